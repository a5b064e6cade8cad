"""Turn a Llama-type decoder's GGUF into ONNX, and into a GGUF of the same float32 weights.

    python convert.py --out DIR [--layers N] [--only onnx|gguf] MODEL

MODEL is a GGUF, or a directory with `model.gguf` in it. DIR receives `onnx/` with
`model.onnx`, `config.json`, `generation_config.json` and `tokenizer.json`, and
`model.gguf`; --only makes one of the two. Quantised weights are expanded to float32 once and written
to both, so that an engine over ONNX and llama.cpp compute with the same numbers
and can be held to one another. --layers keeps the first N layers only: a small
model for tests, whose text means little.

The graph takes `input_ids`, `attention_mask` and `position_ids`, int64, and the
cache `past_key_values.I.key` and `.value`, float32 [batch, kv heads, past, head];
it gives `logits` [batch, sequence, vocabulary] and the cache, longer, as
`present.I.key` and `.value`. Positions must count up from 0.

Architecture: Touvron et al., "LLaMA: Open and Efficient Foundation Language
Models" (2023), section 2.2; grouped-query attention after Ainslie et al. (2023);
rotary positions after Su et al., "RoFormer" (2021).
"""

import argparse
import json
import pathlib
import sys

import gguf
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
IR_VERSION = 9

# Added to the attention scores of tokens that are padding or come later. exp() of
# it is exactly 0 in float32.
MASKED = -1e9

# Token types of GGUF: control tokens stand for no text.
CONTROL = 3


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

    def op(self, kind, inputs, output, **attributes):
        """Appends one node, named after its output, and returns the output."""
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def linear(self, x, name, output):
        """x [..., in] times weight^T [in, out]."""
        return self.op("MatMul", [x, self.const(name, self.tensors[name].T)], output)

    def norm(self, x, name, epsilon, output):
        """Divides the last axis of x by its root mean square, and scales it."""
        two, last = self.const("two", np.float32(2)), self.const("last", np.array([-1], np.int64))
        square = self.op("Pow", [x, two], f"{output}.square")
        mean = self.op("ReduceMean", [square, last], f"{output}.mean", keepdims=1)
        padded = self.op("Add", [mean, self.const("epsilon", np.float32(epsilon))], f"{output}.padded")
        root = self.op("Sqrt", [padded], f"{output}.root")
        scaled = self.op("Div", [x, root], f"{output}.scaled")
        return self.op("Mul", [scaled, self.const(name, self.tensors[name])], output)


def rotary_tables(context, size, base):
    """cos and sin of every position's angles, float32 [context, size]."""
    angles = np.outer(np.arange(context), base ** (-np.arange(0, size, 2, dtype=np.float64) / size))
    angles = np.concatenate([angles, angles], axis=1)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def rotate(g, x, name):
    """Turns the two halves of each head by its token's position."""
    halves = [f"{name}.first", f"{name}.second"]
    g.nodes.append(helper.make_node("Split", [x], halves, name=f"{name}.halves", axis=-1, num_outputs=2))
    turned = g.op("Concat", [g.op("Neg", [halves[1]], f"{name}.negative"), halves[0]], f"{name}.turned", axis=-1)
    straight = g.op("Mul", [x, "rotary.cos"], f"{name}.cos")
    return g.op("Add", [straight, g.op("Mul", [turned, "rotary.sin"], f"{name}.sin")], name)


def split_pairs(weight, heads):
    """Undoes GGUF's order of query and key rows, in which the two values that are
    turned together stand side by side: here they stand half a head apart."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def frame(g, config):
    """Makes what all layers share: the mask, and the tables at the positions."""
    axis0, axis1 = g.const("axis0", np.array([0], np.int64)), g.const("axis1", np.array([1], np.int64))
    cos, sin = rotary_tables(config["context"], config["head"], config["base"])
    for name, table in (("cos", cos), ("sin", sin)):
        at = g.op("Gather", [g.const(f"rotary.{name}.table", table), "position_ids"], f"rotary.{name}.at", axis=0)
        g.op("Unsqueeze", [at, axis1], f"rotary.{name}")
    zero, one = g.const("zero", np.array(0, np.int64)), g.const("one", np.array(1, np.int64))
    length = g.op("Squeeze", [g.op("Shape", ["attention_mask"], "mask.shape", start=1, end=2), axis0], "mask.length")
    keys = g.op("Range", [zero, length, one], "mask.keys")  # [all]
    queries = g.op("Unsqueeze", ["position_ids", g.const("last", np.array([-1], np.int64))], "mask.queries")
    earlier = g.op("LessOrEqual", [keys, queries], "mask.earlier")  # [batch, sequence, all]
    real = g.op("Cast", [g.op("Unsqueeze", ["attention_mask", axis1], "mask.row")], "mask.real", to=TensorProto.BOOL)
    allowed = g.op("And", [earlier, real], "mask.allowed")
    bias = g.op("Where", [allowed, g.const("mask.open", np.float32(0)), g.const("mask.shut", np.float32(MASKED))], "mask.bias")
    g.op("Unsqueeze", [bias, axis1], "mask")  # [batch, 1, sequence, all]


def attention(g, x, index, config):
    """Self-attention of x over the cache and itself, with the output projection."""
    heads, kv_heads, head = config["heads"], config["kv_heads"], config["head"]
    block = f"blk.{index}"

    def project(which, count):
        y = g.linear(x, f"{block}.attn_{which}.weight", f"{block}.{which}")
        y = g.op("Reshape", [y, g.const(f"split.{count}", np.array([0, 0, count, head], np.int64))], f"{block}.{which}.split")
        return g.op("Transpose", [y], f"{block}.{which}.heads", perm=[0, 2, 1, 3])

    def spread(y, name):
        """Repeats each of the cache's heads for the queries that share it."""
        y = g.op("Unsqueeze", [y, g.const("axis2", np.array([2], np.int64))], f"{name}.group")
        ones = g.const("group", np.array([1, 1, heads // kv_heads, 1, 1], np.int64))
        y = g.op("Expand", [y, ones], f"{name}.spread")
        return g.op("Reshape", [y, g.const("join", np.array([0, heads, -1, head], np.int64))], f"{name}.all")

    query = rotate(g, project("q", heads), f"{block}.query")
    key = rotate(g, project("k", kv_heads), f"{block}.key")
    value = project("v", kv_heads)
    key = g.op("Concat", [f"past_key_values.{index}.key", key], f"present.{index}.key", axis=2)
    value = g.op("Concat", [f"past_key_values.{index}.value", value], f"present.{index}.value", axis=2)
    turned = g.op("Transpose", [spread(key, f"{block}.keys")], f"{block}.keys.turned", perm=[0, 1, 3, 2])
    scores = g.op("MatMul", [query, turned], f"{block}.scores")
    scaled = g.op("Mul", [scores, g.const("scale", np.float32(head**-0.5))], f"{block}.scaled")
    weights = g.op("Softmax", [g.op("Add", [scaled, "mask"], f"{block}.masked")], f"{block}.weights", axis=-1)
    context = g.op("MatMul", [weights, spread(value, f"{block}.values")], f"{block}.context")
    joined = g.op("Transpose", [context], f"{block}.context.turned", perm=[0, 2, 1, 3])
    merged = g.op("Reshape", [joined, g.const("merge", np.array([0, 0, heads * head], np.int64))], f"{block}.context.merged")
    return g.linear(merged, f"{block}.attn_output.weight", f"{block}.attended")


def layer(g, x, index, config):
    """One pre-norm layer: attention, then the gated feed-forward."""
    block = f"blk.{index}"
    normed = g.norm(x, f"{block}.attn_norm.weight", config["epsilon"], f"{block}.attn_norm")
    x = g.op("Add", [x, attention(g, normed, index, config)], f"{block}.residual")
    normed = g.norm(x, f"{block}.ffn_norm.weight", config["epsilon"], f"{block}.ffn_norm")
    gate = g.linear(normed, f"{block}.ffn_gate.weight", f"{block}.gate")
    active = g.op("Mul", [gate, g.op("Sigmoid", [gate], f"{block}.gate.sigmoid")], f"{block}.gate.active")
    up = g.linear(normed, f"{block}.ffn_up.weight", f"{block}.up")
    down = g.linear(g.op("Mul", [active, up], f"{block}.gated"), f"{block}.ffn_down.weight", f"{block}.down")
    return g.op("Add", [x, down], f"{block}.output")


def build(tensors, config):
    """Builds the ONNX model."""
    tensors = dict(tensors)
    for index in range(config["layers"]):
        for which, heads in (("q", config["heads"]), ("k", config["kv_heads"])):
            name = f"blk.{index}.attn_{which}.weight"
            tensors[name] = split_pairs(tensors[name], heads)
    g = Graph(tensors)
    words = g.const("token_embd.weight", tensors["token_embd.weight"])
    x = g.op("Gather", [words, "input_ids"], "embedded")
    frame(g, config)
    for index in range(config["layers"]):
        x = layer(g, x, index, config)
    x = g.norm(x, "output_norm.weight", config["epsilon"], "output_norm")
    if "output.weight" in tensors:
        g.linear(x, "output.weight", "logits")
    else:
        g.op("MatMul", [x, g.op("Transpose", [words], "words.turned", perm=[1, 0])], "logits")

    def value(name, *shape, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, list(shape))

    inputs = [value(name, "batch", length, kind=TensorProto.INT64)
              for name, length in (("input_ids", "sequence"), ("attention_mask", "all"), ("position_ids", "sequence"))]
    outputs = [value("logits", "batch", "sequence", tensors["token_embd.weight"].shape[0])]
    for index in range(config["layers"]):
        for part in ("key", "value"):
            inputs.append(value(f"past_key_values.{index}.{part}", "batch", config["kv_heads"], "past", config["head"]))
            outputs.append(value(f"present.{index}.{part}", "batch", config["kv_heads"], "all", config["head"]))
    graph = helper.make_graph(g.nodes, "llama", inputs, outputs, list(g.initializers.values()))
    model = helper.make_model(graph, producer_name="llama-onnx", ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
    onnx.checker.check_model(model)
    return model


def read(path, layers):
    """The metadata, the configuration and the float32 weights of a GGUF."""
    reader = gguf.GGUFReader(path)
    fields = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    if fields["general.architecture"] != "llama":
        sys.exit(f"convert.py: the architecture is {fields['general.architecture']!r}; only 'llama' is understood")
    config = {
        "layers": fields["llama.block_count"] if layers is None else layers,
        "hidden": fields["llama.embedding_length"],
        "heads": fields["llama.attention.head_count"],
        "kv_heads": fields["llama.attention.head_count_kv"],
        "context": fields["llama.context_length"],
        "epsilon": fields["llama.attention.layer_norm_rms_epsilon"],
        "base": fields["llama.rope.freq_base"],
    }
    config["head"] = config["hidden"] // config["heads"]
    if not 1 <= config["layers"] <= fields["llama.block_count"]:
        sys.exit(f"convert.py: --layers is {config['layers']}, the model has {fields['llama.block_count']}")
    tensors = {}
    for t in reader.tensors:
        if not t.name.startswith("blk.") or int(t.name.split(".")[1]) < config["layers"]:
            shape = tuple(int(n) for n in reversed(t.shape))
            tensors[t.name] = gguf.quants.dequantize(t.data, t.tensor_type).reshape(shape).astype(np.float32)
    return reader, fields, config, tensors


def write_gguf(path, reader, tensors, layers):
    """The same model in float32, with the metadata of the original."""
    writer = gguf.GGUFWriter(path, "llama")
    changed = {"llama.block_count": layers, "general.file_type": int(gguf.LlamaFileType.ALL_F32)}
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.quantization_version"):
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, changed.get(field.name, field.contents()), kind, sub_type=sub)
    for name, value in tensors.items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def write_sidecars(out, fields, config):
    """What a worker reads beside the graph: limits, ends, and the tokens' text."""
    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    write_json(out / "config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": len(tokens),
        "max_position_embeddings": config["context"], "num_hidden_layers": config["layers"],
    })
    write_json(out / "generation_config.json", {"eos_token_id": fields["tokenizer.ggml.eos_token_id"]})
    write_json(out / "tokenizer.json", {
        "version": "1.0",
        "added_tokens": [
            {"id": i, "content": token, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
            for i, token in enumerate(tokens) if types[i] == CONTROL
        ],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": fields["tokenizer.ggml.merges"]},
    })


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--layers", type=int, metavar="N", help="keep the first N layers only")
    parser.add_argument("--only", choices=("onnx", "gguf"), help="make one of the two")
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL")
    args = parser.parse_args()

    source = args.model / "model.gguf" if args.model.is_dir() else args.model
    reader, fields, config, tensors = read(source, args.layers)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.only != "gguf":
        folder = args.out / "onnx"  # one artifact: a worker takes the folder as a whole
        folder.mkdir(exist_ok=True)
        (folder / "model.onnx").write_bytes(build(tensors, config).SerializeToString(deterministic=True))
        write_sidecars(folder, fields, config)
    if args.only != "onnx":
        write_gguf(args.out / "model.gguf", reader, tensors, config["layers"])


if __name__ == "__main__":
    main()
