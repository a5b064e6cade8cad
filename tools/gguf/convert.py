"""Turn a BERT encoder or cross-encoder into GGUF, with no deep-learning framework.

    python convert.py --type f32|f16|q8_0 [--pooling mean|cls] [--segments] --out DIR MODEL_DIR

MODEL_DIR holds `tokenizer.json` and either `model.safetensors` with
`config.json`, or `model.onnx` as torch exports it. DIR receives `model.gguf`,
of llama.cpp's architecture "bert".

A checkpoint with a classifier (BertForSequenceClassification) becomes a
reranker: llama.cpp then computes classifier(tanh(pooler(first state))), so the
pooler is written too. Any other becomes an embedder, pooled as --pooling says,
or as `1_Pooling/config.json` in MODEL_DIR does.

llama.cpp adds token type 0 to every token. --segments works round it exactly:
the table of V word embeddings E is written twice, the second time as
E[i] + T[1] - T[0] with the token types T, so that id V+i is token i in the
second segment. The key `synapse.segment_b_offset` holds V.

Weights of one dimension, positions, token types and the ranking head stay
float32 in every type. The output is the same to the byte on every machine that
has the pinned packages.

Architecture: Devlin et al., "BERT: Pre-training of Deep Bidirectional
Transformers for Language Understanding" (2019).
"""

import argparse
import json
import pathlib
import re
import sys
from dataclasses import dataclass

import gguf
import numpy as np
from gguf import GGMLQuantizationType

FILE_NAME = "model.gguf"
SEGMENT_KEY = "synapse.segment_b_offset"

# Type of the matrices, and llama.cpp's number for a file of that type.
TYPES = {
    "f32": (GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "f16": (GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "q8_0": (GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}
POOLINGS = {"mean": gguf.PoolingType.MEAN, "cls": gguf.PoolingType.CLS}

# The checkpoint's modules in one encoder layer, and llama.cpp's names for them.
LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
# llama.cpp makes the position ids itself. A pooler without a classifier is read by nothing.
UNUSED = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}

WORDS = "embeddings.word_embeddings.weight"
TOKEN_TYPES = "embeddings.token_type_embeddings.weight"
POSITIONS = "embeddings.position_embeddings.weight"


@dataclass
class Checkpoint:
    """A model as it was trained: tensors by torch's names without the prefix "bert.", float32."""

    tensors: dict
    heads: int
    layer_norm_eps: float

    @property
    def layers(self):
        return 1 + max(int(n.split(".")[2]) for n in self.tensors if n.startswith("encoder.layer."))


def fail(message):
    sys.exit(f"convert.py: {message}")


def from_safetensors(directory):
    from safetensors.numpy import load_file

    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    expected = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    for key, want in expected.items():
        if config.get(key, want) != want:
            fail(f"config.json: {key} is {config[key]!r}, only {want!r} is converted faithfully")
    tensors = {
        name.removeprefix("bert."): value.astype(np.float32)
        for name, value in load_file(directory / "model.safetensors").items()
    }
    return Checkpoint(tensors, config["num_attention_heads"], config["layer_norm_eps"])


def from_onnx(directory):
    """Names the weights of a torch export.

    The exporter stores a Linear's weight transposed under a number; the node
    that multiplies by it keeps the path of the module.
    """
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(directory / "model.onnx").graph
    stored = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    constants = {
        n.output[0]: numpy_helper.to_array(n.attribute[0].t)
        for n in graph.node
        if n.op_type == "Constant" and n.attribute[0].name == "value"
    }
    if not any(n.op_type == "Erf" for n in graph.node):
        fail("model.onnx: no Erf, so the activation is not BERT's GELU")
    tensors, divisors, epsilons = {}, set(), set()
    for node in graph.node:
        second = node.input[1] if len(node.input) > 1 else ""
        if node.op_type == "MatMul" and second in stored:
            name = node.name.removeprefix("/").removesuffix("/MatMul").replace("/", ".")
            tensors[f"{name}.weight"] = stored.pop(second).T
        elif node.name.endswith("/attention/self/Div"):
            divisors.add(float(constants[second]))
        elif node.op_type == "Add" and re.search(r"/LayerNorm/Add$", node.name) and second in constants:
            epsilons.add(float(constants[second]))
    tensors.update(stored)
    for name, value in tensors.items():
        if name not in UNUSED and value.dtype != np.float32:
            fail(f"model.onnx: {name} is {value.dtype}, float32 is due: a quantised export cannot be converted")
    if len(divisors) != 1 or len(epsilons) != 1:
        fail(f"model.onnx: expected one attention divisor and one epsilon, found {divisors} and {epsilons}")
    head_size = round(divisors.pop() ** 2)
    # The constant is a float32; the nearest short decimal is what the configuration said.
    return Checkpoint(tensors, tensors[WORDS].shape[1] // head_size, float(f"{epsilons.pop():.6g}"))


def pooling_of(directory, asked):
    """Returns --pooling, or what sentence-transformers' own file says."""
    file = directory / "1_Pooling" / "config.json"
    if asked or not file.exists():
        return asked
    config = json.loads(file.read_text(encoding="utf-8"))
    modes = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    chosen = [key for key, value in config.items() if key.startswith("pooling_mode_") and value]
    if len(chosen) != 1 or chosen[0] not in modes:
        fail(f"{file}: {chosen} is none of {list(modes)}")
    return modes[chosen[0]]


class Writer:
    """Writes one GGUF file and sees to it that every tensor of the checkpoint is used."""

    def __init__(self, checkpoint, matrix_type, segments):
        self.checkpoint = checkpoint
        self.tensors = dict(checkpoint.tensors)
        self.matrix_type, self.file_type = TYPES[matrix_type]
        self.segments = segments
        self.gguf = None

    def put(self, name, value, float32=False):
        value = np.ascontiguousarray(value)
        if value.ndim == 1 or float32 or self.matrix_type == GGMLQuantizationType.F32:
            self.gguf.add_tensor(name, value)
        elif self.matrix_type == GGMLQuantizationType.F16:
            self.gguf.add_tensor(name, value.astype(np.float16))
        else:
            self.gguf.add_tensor(name, gguf.quants.quantize(value, self.matrix_type), raw_dtype=self.matrix_type)

    def linear(self, name, module, float32=False):
        for part in ("weight", "bias"):
            self.put(f"{name}.{part}", self.tensors.pop(f"{module}.{part}"), float32)

    def parameters(self, pooling):
        words, positions = self.tensors[WORDS].shape, self.tensors[POSITIONS].shape
        w = self.gguf
        w.add_context_length(positions[0])
        w.add_embedding_length(words[1])
        w.add_feed_forward_length(self.tensors["encoder.layer.0.intermediate.dense.weight"].shape[0])
        w.add_block_count(self.checkpoint.layers)
        w.add_head_count(self.checkpoint.heads)
        w.add_layer_norm_eps(self.checkpoint.layer_norm_eps)
        w.add_causal_attention(False)
        w.add_token_type_count(self.tensors[TOKEN_TYPES].shape[0])
        w.add_file_type(self.file_type)
        w.add_pooling_type(pooling)

    def vocabulary(self, tokenizer):
        """Writes the tokens, which llama.cpp wants although it is given ids only."""
        vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda entry: entry[1])
        size = self.tensors[WORDS].shape[0]
        if [i for _, i in vocabulary] != list(range(size)):
            fail(f"tokenizer.json: the ids are not 0..{size - 1}, as the embeddings have them")
        special = {t["content"]: t["id"] for t in tokenizer["added_tokens"] if t["special"]}
        tokens, kinds = [], []
        for token, _ in vocabulary:
            if token in special:
                tokens.append(token)
                kinds.append(gguf.TokenType.CONTROL)
            else:  # llama.cpp marks the beginning of a word, BERT its continuation
                tokens.append(token[2:] if token.startswith("##") else "\u2581" + token)
                kinds.append(gguf.TokenType.NORMAL)
        if self.segments:
            tokens += [f"[B{i}]" for i in range(size)]
            kinds += [gguf.TokenType.UNUSED] * size
            self.gguf.add_uint32(SEGMENT_KEY, size)
        w = self.gguf
        w.add_tokenizer_model("bert")
        w.add_tokenizer_pre("bert-bge")
        w.add_token_list(tokens)
        w.add_token_types(kinds)
        w.add_unk_token_id(special["[UNK]"])
        w.add_pad_token_id(special["[PAD]"])
        w.add_mask_token_id(special["[MASK]"])
        w.add_bos_token_id(special["[CLS]"])
        w.add_eos_token_id(special["[SEP]"])
        w.add_sep_token_id(special["[SEP]"])
        w.add_add_bos_token(True)
        w.add_add_eos_token(True)

    def weights(self):
        words, types = self.tensors.pop(WORDS), self.tensors.pop(TOKEN_TYPES)
        if self.segments:
            if types.shape[0] != 2:
                fail(f"--segments: the model has {types.shape[0]} token types, two are due")
            words = np.concatenate([words, words + (types[1] - types[0])])
        self.put("token_embd.weight", words)
        self.put("token_types.weight", types, float32=True)
        self.put("position_embd.weight", self.tensors.pop(POSITIONS), float32=True)
        self.linear("token_embd_norm", "embeddings.LayerNorm")
        for layer in range(self.checkpoint.layers):
            for module, name in LAYER.items():
                self.linear(f"blk.{layer}.{name}", f"encoder.layer.{layer}.{module}")

    def head(self):
        if self.tensors["classifier.weight"].shape[0] != 1:
            fail("classifier.weight has several labels; a reranker has one score")
        self.linear("cls", "pooler.dense", float32=True)
        self.linear("cls.output", "classifier", float32=True)

    def write(self, path, name, tokenizer, pooling):
        ranks = "classifier.weight" in self.tensors
        if not ranks and pooling is None:
            fail("say --pooling: MODEL_DIR has neither a classifier nor 1_Pooling/config.json")
        self.gguf = gguf.GGUFWriter(path, "bert")
        self.gguf.add_name(name)
        self.parameters(gguf.PoolingType.RANK if ranks else POOLINGS[pooling])
        self.vocabulary(tokenizer)
        self.weights()
        if ranks:
            self.head()
        left = self.tensors.keys() - UNUSED
        if left:
            fail(f"no place in GGUF for {sorted(left)}: this is not a plain BERT")
        self.gguf.write_header_to_file()
        self.gguf.write_kv_data_to_file()
        self.gguf.write_tensors_to_file()
        self.gguf.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--type", choices=TYPES, required=True, help="type of the matrices")
    parser.add_argument("--pooling", choices=POOLINGS, help="how an embedder pools; default: as 1_Pooling says")
    parser.add_argument("--segments", action="store_true", help="write the table for a second segment as well")
    parser.add_argument("--name", default="", help="the model's name, for general.name; default: the directory's")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL_DIR")
    args = parser.parse_args()
    read = from_safetensors if (args.model / "model.safetensors").exists() else from_onnx
    tokenizer = json.loads((args.model / "tokenizer.json").read_text(encoding="utf-8"))
    args.out.mkdir(parents=True, exist_ok=True)
    Writer(read(args.model), args.type, args.segments).write(
        args.out / FILE_NAME, args.name or args.model.name, tokenizer, pooling_of(args.model, args.pooling)
    )


if __name__ == "__main__":
    main()
