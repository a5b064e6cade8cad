"""Make a cross-encoder for tests: a BERT encoder with a ranking head that was never trained.

    python make.py --out DIR MODEL_DIR

No package was found that carries the weights of a small trained cross-encoder.
What tests need is that an engine computes the whole of one: the pooler, its
tanh, the classifier, and the second segment. MODEL_DIR holds a BertModel with
its pooler; DIR receives the same as a BertForSequenceClassification of one
label, whose classifier is drawn with a fixed seed. Its scores rank nothing.

The output is the same to the byte on every machine that has the pinned packages.
"""

import argparse
import json
import pathlib
import shutil

import numpy as np
from safetensors.numpy import load_file, save_file

SEED = 4

# Wide enough that pairs score apart by some tenths, as trained ones do.
SPREAD = 0.2
BIAS = 0.1


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL_DIR")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    config = json.loads((args.model / "config.json").read_text(encoding="utf-8"))
    config |= {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    tensors = {f"bert.{name}": value for name, value in load_file(args.model / "model.safetensors").items()}
    draw = np.random.default_rng(SEED)
    tensors["classifier.weight"] = (draw.standard_normal((1, config["hidden_size"])) * SPREAD).astype(np.float32)
    tensors["classifier.bias"] = np.array([BIAS], dtype=np.float32)

    save_file(tensors, args.out / "model.safetensors", metadata={"format": "pt"})
    (args.out / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    shutil.copyfile(args.model / "tokenizer.json", args.out / "tokenizer.json")


if __name__ == "__main__":
    main()
