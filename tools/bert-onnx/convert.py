"""Turn a BERT encoder's safetensors into ONNX, with no deep-learning framework.

    python convert.py --out DIR MODEL_DIR

MODEL_DIR holds `model.safetensors`, `config.json` and `tokenizer.json`. DIR
receives `model.onnx` and `tokenizer.json`, and of a cross-encoder `config.json`.

The graph takes `input_ids`, `attention_mask` and `token_type_ids`, all int64
[batch, sequence], and gives `last_hidden_state`, float32
[batch, sequence, hidden], or for a BertForSequenceClassification `logits`,
float32 [batch, labels]. The weights are copied, never computed with, so the
file is the same to the byte on every machine that has the pinned packages.

Architecture: Devlin et al., "BERT: Pre-training of Deep Bidirectional
Transformers for Language Understanding" (2019), section 3, with the erf form
of GELU (Hendrycks and Gimpel, 2016). An encoder's pooler is left out: sentence
vectors are pooled from the hidden states. A classifier stands on it.
"""

import argparse
import json
import math
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

# Opset 20 is the first with Gelu, so that every step of the encoder is one
# operator of the standard; IR 9 is the version that came with it.
OPSET = 20
IR_VERSION = 9

# Added to the attention scores of padding. exp() of it is exactly 0 in
# float32, and unlike the lowest float it stays finite in float16.
MASKED = -10000.0

# The checkpoint's own names for what this script understands. Anything else in
# `hidden_act` or `position_embedding_type` would give wrong vectors without an
# error, so it is refused.
HIDDEN_ACT = "gelu"
POSITIONS = "absolute"

# Tensors of the checkpoint that the graph has no use for: position_ids is
# 0..n-1, which the graph slices for itself, and nothing reads the pooler.
UNUSED = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}


CLASSIFIER = "BertForSequenceClassification"


class Graph:
    """Collects nodes and weights in the order in which they are first used."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.nodes = []
        self.initializers = {}

    def const(self, name, value):
        """Adds a constant once and returns its name."""
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def weight(self, name, transpose=False):
        """Moves one tensor of the checkpoint into the graph."""
        value = self.tensors.pop(name)
        if value.dtype != np.float32:
            sys.exit(f"convert.py: tensor {name} is {value.dtype}, want float32")
        return self.const(name, value.T if transpose else value)

    def op(self, kind, inputs, output, **attributes):
        """Appends one node, named after its output, and returns the output."""
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def linear(self, x, prefix, output):
        """x [..., in] times weight^T [in, out] plus bias [out]."""
        product = self.op("MatMul", [x, self.weight(f"{prefix}.weight", transpose=True)], f"{output}.matmul")
        return self.op("Add", [product, self.weight(f"{prefix}.bias")], output)

    def layer_norm(self, x, prefix, epsilon, output):
        """Normalises the last axis of x."""
        inputs = [x, self.weight(f"{prefix}.weight"), self.weight(f"{prefix}.bias")]
        return self.op("LayerNormalization", inputs, output, axis=-1, epsilon=epsilon)


def embeddings(g, epsilon):
    """Sums word, position and token type; returns [batch, sequence, hidden]."""
    words = g.op("Gather", [g.weight("embeddings.word_embeddings.weight"), "input_ids"], "embeddings.words")
    types = g.op("Gather", [g.weight("embeddings.token_type_embeddings.weight"), "token_type_ids"], "embeddings.types")
    length = g.op("Shape", ["input_ids"], "embeddings.length", start=1, end=2)
    zero = g.const("zero", np.array([0], np.int64))
    positions = g.op(
        "Slice",
        [g.weight("embeddings.position_embeddings.weight"), zero, length, zero],
        "embeddings.positions",
    )
    typed = g.op("Add", [words, types], "embeddings.typed")
    placed = g.op("Add", [typed, positions], "embeddings.placed")
    return g.layer_norm(placed, "embeddings.LayerNorm", epsilon, "embeddings.output")


def attention_bias(g):
    """Turns the 0/1 mask into [batch, 1, 1, sequence]: 0 to attend, MASKED not to."""
    axes = g.const("mask.axes", np.array([1, 2], np.int64))
    mask = g.op("Cast", [g.op("Unsqueeze", ["attention_mask", axes], "mask.unsqueezed")], "mask.float", to=TensorProto.FLOAT)
    padding = g.op("Sub", [g.const("one", np.array(1, np.float32)), mask], "mask.padding")
    return g.op("Mul", [padding, g.const("mask.masked", np.array(MASKED, np.float32))], "mask.bias")


def attention(g, x, bias, layer, heads, head_size):
    """Multi-head self-attention of x, before the output projection."""
    out = f"{layer}.attention.self"
    split = g.const("heads.split", np.array([0, 0, heads, head_size], np.int64))
    merge = g.const("heads.merge", np.array([0, 0, heads * head_size], np.int64))

    def projection(which, perm):
        y = g.linear(x, f"{out}.{which}", f"{out}.{which}")
        y = g.op("Reshape", [y, split], f"{out}.{which}.split")
        return g.op("Transpose", [y], f"{out}.{which}.heads", perm=perm)

    query = projection("query", [0, 2, 1, 3])
    key = projection("key", [0, 2, 3, 1])
    value = projection("value", [0, 2, 1, 3])
    scores = g.op("MatMul", [query, key], f"{out}.scores")
    scale = g.const("heads.scale", np.array(math.sqrt(head_size), np.float32))
    scaled = g.op("Div", [scores, scale], f"{out}.scaled")
    masked = g.op("Add", [scaled, bias], f"{out}.masked")
    weights = g.op("Softmax", [masked], f"{out}.weights", axis=-1)
    context = g.op("MatMul", [weights, value], f"{out}.context")
    joined = g.op("Transpose", [context], f"{out}.context.transposed", perm=[0, 2, 1, 3])
    return g.op("Reshape", [joined, merge], f"{out}.output")


def encoder_layer(g, x, bias, index, config, output):
    """One post-norm transformer layer."""
    layer = f"encoder.layer.{index}"
    heads = config["num_attention_heads"]
    epsilon = config["layer_norm_eps"]
    context = attention(g, x, bias, layer, heads, config["hidden_size"] // heads)
    attended = g.linear(context, f"{layer}.attention.output.dense", f"{layer}.attention.output.dense")
    residual = g.op("Add", [attended, x], f"{layer}.attention.output.residual")
    x = g.layer_norm(residual, f"{layer}.attention.output.LayerNorm", epsilon, f"{layer}.attention.output")
    inner = g.linear(x, f"{layer}.intermediate.dense", f"{layer}.intermediate.dense")
    active = g.op("Gelu", [inner], f"{layer}.intermediate.gelu", approximate="none")
    outer = g.linear(active, f"{layer}.output.dense", f"{layer}.output.dense")
    residual = g.op("Add", [outer, x], f"{layer}.output.residual")
    return g.layer_norm(residual, f"{layer}.output.LayerNorm", epsilon, output)


def classifier(g, x):
    """The head on the first token: pooler, tanh, and a logit for each label."""
    token = g.op("Gather", [x, g.const("first", np.array([0], np.int64))], "pooler.token", axis=1)
    first = g.op("Squeeze", [token, g.const("first.axis", np.array([1], np.int64))], "pooler.first")
    pooled = g.op("Tanh", [g.linear(first, "pooler.dense", "pooler.dense")], "pooler.tanh")
    return g.linear(pooled, "classifier", "logits")


def build(tensors, config):
    """Builds the ONNX model of a checkpoint."""
    for key, want in (("model_type", "bert"), ("hidden_act", HIDDEN_ACT), ("position_embedding_type", POSITIONS)):
        if config.get(key, want) != want:
            sys.exit(f"convert.py: config.json has {key} {config[key]!r}; only {want!r} is understood")
    ranks = CLASSIFIER in config.get("architectures", [])
    unused = UNUSED
    if ranks:
        tensors = {name.removeprefix("bert."): value for name, value in tensors.items()}
        unused = {"embeddings.position_ids"}
    g = Graph({name: value for name, value in tensors.items() if name not in unused})
    x = embeddings(g, config["layer_norm_eps"])
    bias = attention_bias(g)
    last = config["num_hidden_layers"] - 1
    for index in range(last + 1):
        output = "last_hidden_state" if index == last else f"encoder.layer.{index}.output"
        x = encoder_layer(g, x, bias, index, config, output)
    labels = len(config["id2label"]) if ranks else 0
    if ranks:
        x = classifier(g, x)
    if g.tensors:
        sys.exit(f"convert.py: tensors that no layer of BERT has: {', '.join(sorted(g.tensors))}")

    shape = ["batch", "sequence"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", labels] if ranks else [*shape, config["hidden_size"]])
    graph = helper.make_graph(g.nodes, "bert", inputs, [output], list(g.initializers.values()))
    model = helper.make_model(
        graph,
        producer_name="bert-onnx",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL_DIR")
    args = parser.parse_args()

    config = json.loads((args.model / "config.json").read_text(encoding="utf-8"))
    model = build(load_file(args.model / "model.safetensors"), config)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    shutil.copyfile(args.model / "tokenizer.json", args.out / "tokenizer.json")
    if CLASSIFIER in config.get("architectures", []):
        shutil.copyfile(args.model / "config.json", args.out / "config.json")


if __name__ == "__main__":
    main()
