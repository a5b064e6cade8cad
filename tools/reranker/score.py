"""Score pairs with a BERT cross-encoder in float64, in numpy alone.

    python score.py MODEL_DIR < PAIRS > PAIRS_WITH_SCORES

PAIRS is a JSON array of {"query": [ids], "document": [ids]}, without special
tokens. The output has for each pair "score", the model's logit for
[CLS] query [SEP] document [SEP] with the document in the second segment, and
"one_segment", the same with all tokens in the first.

It shares no code with any engine and has the erf form of GELU that BERT was
trained with. About a second a pair.
"""

import json
import math
import pathlib
import sys

import numpy as np
from safetensors.numpy import load_file

CLS, SEP = 101, 102

_erf = np.vectorize(math.erf)


class Model:
    def __init__(self, directory):
        self.config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        self.tensors = {
            name.removeprefix("bert."): value.astype(np.float64)
            for name, value in load_file(directory / "model.safetensors").items()
        }

    def linear(self, x, name):
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def attention(self, x, layer):
        heads = self.config["num_attention_heads"]

        def split(part):  # [tokens, hidden] to [heads, tokens, head]
            return self.linear(x, f"{layer}.attention.self.{part}").reshape(len(x), heads, -1).swapaxes(0, 1)

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weights / weights.sum(-1, keepdims=True)) @ value
        return self.linear(mixed.swapaxes(0, 1).reshape(x.shape), f"{layer}.attention.output.dense")

    def score(self, ids, segments):
        table = "embeddings.{}_embeddings.weight".format
        x = self.tensors[table("word")][ids] + self.tensors[table("token_type")][segments]
        x = self.norm(x + self.tensors[table("position")][: len(ids)], "embeddings.LayerNorm")
        for i in range(self.config["num_hidden_layers"]):
            layer = f"encoder.layer.{i}"
            x = self.norm(x + self.attention(x, layer), f"{layer}.attention.output.LayerNorm")
            inner = self.linear(x, f"{layer}.intermediate.dense")
            inner = inner * (1 + _erf(inner / math.sqrt(2))) / 2
            x = self.norm(x + self.linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        return self.linear(np.tanh(self.linear(x[0], "pooler.dense")), "classifier").item()


def main():
    model = Model(pathlib.Path(sys.argv[1]))
    pairs = json.load(sys.stdin)
    for pair in pairs:
        ids = [CLS, *pair["query"], SEP, *pair["document"], SEP]
        second = len(pair["query"]) + 2
        pair["score"] = round(model.score(ids, [0] * second + [1] * (len(ids) - second)), 7)
        pair["one_segment"] = round(model.score(ids, [0] * len(ids)), 7)
    json.dump(pairs, sys.stdout)
    print()


if __name__ == "__main__":
    main()
