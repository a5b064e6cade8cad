"""BERT in Core ML's intermediate language (MIL), at fixed shapes.

Architecture: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding" (2019),
section 3, with the erf form of GELU (Hendrycks and Gimpel, 2016).

Two forms compute the same. `dense` keeps [rows, tokens, hidden] and multiplies matrices. `conv` keeps
[rows, hidden, 1, tokens] and convolves with 1x1 kernels, the layout that Apple describes for the Neural Engine
("Deploying Transformers on the Apple Neural Engine", 2022).
"""

import math

import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types

# Added to the attention scores of padding. exp() of it is 0 in float16, and unlike the lowest float32, which models
# were seen to be converted with, it does not become an infinity there.
MASKED = -10000.0

# What an output is: the hidden states [rows, tokens, hidden], their mean over the tokens that the mask leaves
# [rows, hidden], or a ranking head's score [rows, 1].
HIDDEN, MEAN, SCORE = "last_hidden_state", "embedding", "score"


class Weights:
    """A checkpoint's tensors, float32, by their names in transformers' BertModel."""

    def __init__(self, tensors, config):
        wanted = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
        for key, value in wanted.items():
            if config.get(key, value) != value:
                raise ValueError(f"config.json has {key} {config[key]!r}; only {value!r} is understood")
        for name, tensor in tensors.items():
            if tensor.dtype != np.float32 and name != "embeddings.position_ids":
                raise ValueError(f"tensor {name} is {tensor.dtype}, wanted float32")
        self.tensors = tensors
        self.layers = config["num_hidden_layers"]
        self.heads = config["num_attention_heads"]
        self.hidden = config["hidden_size"]
        self.epsilon = config["layer_norm_eps"]
        self.vocabulary = config["vocab_size"]

    def __getitem__(self, name):
        return self.tensors[name]

    def linear(self, name):
        """Returns weight [out, in] and bias [out]."""
        return self[f"{name}.weight"], self[f"{name}.bias"]


def program(weights, rows, tokens, *, form, output, token_types, opset, head=None):
    """Builds the MIL program of one bucket.

    Inputs are int32 [rows, tokens]: input_ids, attention_mask and, with `token_types`, token_type_ids. `head` is the
    weight [1, hidden] and bias [1] of a ranking head over BERT's pooler, for the output SCORE.
    """
    names = ["input_ids", "attention_mask"] + ["token_type_ids"] * token_types
    # One specification an input: the builder takes two that are one object for one.
    specs = [mb.TensorSpec(shape=(rows, tokens), dtype=types.int32) for _ in names]
    encoder = {"dense": Dense, "conv": Conv}[form](weights, rows, tokens)

    def build(input_ids, attention_mask, token_type_ids=None):
        mask = mb.cast(x=attention_mask, dtype="fp32", name="mask")
        x = encoder.encode(embed(weights, tokens, input_ids, token_type_ids), mask)
        if output == HIDDEN:
            return encoder.hidden(x)
        if output == MEAN:
            return encoder.mean(x, mask)
        return encoder.score(x, head)

    if token_types:
        def traced(input_ids, attention_mask, token_type_ids):
            return build(input_ids, attention_mask, token_type_ids)
    else:
        def traced(input_ids, attention_mask):
            return build(input_ids, attention_mask)
    return mb.program(input_specs=specs, opset_version=opset)(traced)


def embed(weights, tokens, ids, token_types):
    """Sums word, position and token type: [rows, tokens, hidden], not yet normalised."""
    x = mb.gather(x=weights["embeddings.word_embeddings.weight"], indices=ids, axis=0, name="words")
    places = weights["embeddings.position_embeddings.weight"][:tokens]
    kinds = weights["embeddings.token_type_embeddings.weight"]
    if token_types is None:
        return mb.add(x=x, y=(places + kinds[0])[None], name="embedded")
    x = mb.add(x=x, y=places[None], name="placed")
    return mb.add(x=x, y=mb.gather(x=kinds, indices=token_types, axis=0, name="kinds"), name="embedded")


class Dense:
    """[rows, tokens, hidden] and matrix products."""

    def __init__(self, weights, rows, tokens):
        self.w, self.rows, self.tokens = weights, rows, tokens
        self.size = weights.hidden // weights.heads

    def linear(self, x, name):
        weight, bias = self.w.linear(name)
        return mb.linear(x=x, weight=weight, bias=bias, name=name)

    def norm(self, x, name):
        gamma, beta = self.w.linear(name)
        return mb.layer_norm(x=x, axes=[-1], gamma=gamma, beta=beta, epsilon=self.w.epsilon, name=name)

    def bias(self, mask):
        """[rows, 1, 1, tokens]: 0 to attend, MASKED not to."""
        return mb.mul(x=mb.sub(x=1.0, y=mb.expand_dims(x=mask, axes=[1, 2])), y=MASKED, name="mask.bias")

    def encode(self, x, mask):
        x, bias = self.norm(x, "embeddings.LayerNorm"), self.bias(mask)
        for n in range(self.w.layers):
            layer = f"encoder.layer.{n}"
            mixed = self.attention(x, bias, f"{layer}.attention.self")
            attended = self.linear(mixed, f"{layer}.attention.output.dense")
            x = self.norm(mb.add(x=attended, y=x), f"{layer}.attention.output.LayerNorm")
            inner = mb.gelu(x=self.linear(x, f"{layer}.intermediate.dense"), mode="EXACT")
            x = self.norm(mb.add(x=self.linear(inner, f"{layer}.output.dense"), y=x), f"{layer}.output.LayerNorm")
        return x

    def attention(self, x, bias, name):
        def split(part):
            y = mb.reshape(x=self.linear(x, f"{name}.{part}"), shape=[self.rows, self.tokens, self.w.heads, self.size])
            return mb.transpose(x=y, perm=[0, 2, 1, 3])

        query, key, value = split("query"), split("key"), split("value")
        scores = mb.mul(x=mb.matmul(x=query, y=key, transpose_y=True), y=1 / math.sqrt(self.size))
        mixed = mb.matmul(x=mb.softmax(x=mb.add(x=scores, y=bias), axis=-1), y=value)
        return mb.reshape(x=mb.transpose(x=mixed, perm=[0, 2, 1, 3]), shape=[self.rows, self.tokens, self.w.hidden])

    def hidden(self, x):
        return mb.identity(x=x, name=HIDDEN)

    def mean(self, x, mask):
        # Shares instead of a sum and a division: a sum over many tokens leaves float16's range sooner.
        share = mb.real_div(x=mask, y=mb.reduce_sum(x=mask, axes=[1], keep_dims=True))
        mixed = mb.matmul(x=mb.expand_dims(x=share, axes=[1]), y=x)
        return mb.squeeze(x=mixed, axes=[1], name=MEAN)

    def score(self, x, head):
        first = mb.slice_by_size(x=x, begin=[0, 0, 0], size=[self.rows, 1, self.w.hidden])
        pooled = mb.tanh(x=self.linear(mb.squeeze(x=first, axes=[1]), "pooler.dense"))
        return mb.linear(x=pooled, weight=head[0], bias=head[1], name=SCORE)


class Conv:
    """[rows, hidden, 1, tokens] and 1x1 convolutions."""

    def __init__(self, weights, rows, tokens):
        self.w, self.rows, self.tokens = weights, rows, tokens
        self.size = weights.hidden // weights.heads

    def linear(self, x, name):
        weight, bias = self.w.linear(name)
        return mb.conv(x=x, weight=weight[:, :, None, None], bias=bias, name=name)

    def norm(self, x, name):
        gamma, beta = self.w.linear(name)
        return mb.layer_norm(x=x, axes=[1], gamma=gamma, beta=beta, epsilon=self.w.epsilon, name=name)

    def encode(self, x, mask):
        x = mb.expand_dims(x=mb.transpose(x=x, perm=[0, 2, 1]), axes=[2])
        x = self.norm(x, "embeddings.LayerNorm")
        bias = mb.mul(x=mb.sub(x=1.0, y=mb.expand_dims(x=mask, axes=[1, 2])), y=MASKED, name="mask.bias")
        for n in range(self.w.layers):
            layer = f"encoder.layer.{n}"
            mixed = self.attention(x, bias, f"{layer}.attention.self")
            attended = self.linear(mixed, f"{layer}.attention.output.dense")
            x = self.norm(mb.add(x=attended, y=x), f"{layer}.attention.output.LayerNorm")
            inner = mb.gelu(x=self.linear(x, f"{layer}.intermediate.dense"), mode="EXACT")
            x = self.norm(mb.add(x=self.linear(inner, f"{layer}.output.dense"), y=x), f"{layer}.output.LayerNorm")
        return x

    def attention(self, x, bias, name):
        def split(part):
            shape = [self.rows, self.w.heads, self.size, self.tokens]
            return mb.reshape(x=self.linear(x, f"{name}.{part}"), shape=shape)

        query, key, value = split("query"), split("key"), split("value")
        scores = mb.mul(x=mb.matmul(x=query, y=key, transpose_x=True), y=1 / math.sqrt(self.size))
        weights = mb.softmax(x=mb.add(x=scores, y=bias), axis=-1)
        mixed = mb.matmul(x=value, y=weights, transpose_y=True)
        return mb.reshape(x=mixed, shape=[self.rows, self.w.hidden, 1, self.tokens])

    def mean(self, x, mask):
        share = mb.real_div(x=mask, y=mb.reduce_sum(x=mask, axes=[1], keep_dims=True))
        weighted = mb.mul(x=x, y=mb.expand_dims(x=share, axes=[1, 2]))
        return mb.reduce_sum(x=weighted, axes=[2, 3], keep_dims=False, name=MEAN)
