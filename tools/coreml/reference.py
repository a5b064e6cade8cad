"""What the models are held to: recorded vectors, and BERT's forward pass in numpy float64."""

import json
import math
import pathlib

import numpy as np
import zstandard

SUITE = pathlib.Path(__file__).resolve().parents[2] / "certify" / "suites" / "all-minilm-l6-v2"


def suite():
    """Returns the recorded rows, each with `id`, `ids` and `tags`, and their vectors [rows, dims] float32."""
    read = zstandard.ZstdDecompressor()

    def contents(name):
        with (SUITE / name).open("rb") as file, read.stream_reader(file) as stream:
            return stream.read()

    rows = [json.loads(line) for line in contents("inputs.jsonl.zst").split(b"\n") if line]
    vectors = np.frombuffer(contents("reference.f32.zst"), "<f4").reshape(len(rows), -1)
    return rows, vectors


erf = np.vectorize(math.erf, otypes=[np.float64])


def encode(weights, ids, types=None):
    """Returns the hidden states [tokens, hidden] in float64; `weights` is a bert.Weights."""
    w = {name: tensor.astype(np.float64) for name, tensor in weights.tensors.items() if tensor.dtype == np.float32}
    types = np.zeros(len(ids), int) if types is None else np.asarray(types)
    x = (
        w["embeddings.word_embeddings.weight"][ids]
        + w["embeddings.position_embeddings.weight"][: len(ids)]
        + w["embeddings.token_type_embeddings.weight"][types]
    )

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x, name):
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + weights.epsilon)
        return centred / deviation * w[f"{name}.weight"] + w[f"{name}.bias"]

    def attention(x, name):
        query, key, value = (
            linear(x, f"{name}.{part}").reshape(len(ids), weights.heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (shares / shares.sum(axis=-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(x.shape)

    x = norm(x, "embeddings.LayerNorm")
    for n in range(weights.layers):
        layer = f"encoder.layer.{n}"
        attended = linear(attention(x, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
        x = norm(attended + x, f"{layer}.attention.output.LayerNorm")
        inner = linear(x, f"{layer}.intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / np.sqrt(2)))
        x = norm(linear(inner, f"{layer}.output.dense") + x, f"{layer}.output.LayerNorm")
    return x


def score(weights, head, ids, types):
    """Returns the score of a pair: a ranking head over BERT's pooler."""
    first = encode(weights, ids, types)[0]
    pooled = np.tanh(weights["pooler.dense.weight"].astype(np.float64) @ first + weights["pooler.dense.bias"])
    return float((head[0].astype(np.float64) @ pooled + head[1])[0])
