"""The models that are made here: which shapes, which output, which metadata. README.md says what each is for."""

import json
import sys

import coremltools as ct
import numpy as np
from safetensors.numpy import load_file

import bert
import package
import reference

# Lengths of the buckets. A package a bucket repeats the weights (45 MB each), functions of one package share them.
PACKAGES = (32, 128, 512)
FUNCTIONS = (32, 64, 128, 256, 512)

# The pair as worker-ane's metadata writes it: [CLS] query [SEP] document [SEP], the document in the second segment.
CLS, SEP = 101, 102
PAIR = f"{CLS} $A {SEP} $B:1 {SEP}:1"

# Rows of the recorded reference that a model carries as golden ones: every bucket is checked at LOAD by those that
# fit it, so the first is short, and each length of a bucket has one that fills it.
GOLDEN_LENGTHS = (8, 32, 128, 512)

# The head of the cross-encoder. No ranking weights are in any package registry, so these are made: it ranks nothing,
# and exercises all that a real one does.
HEAD_SEED = 20261130


def load(folder):
    """Reads a checkpoint in the layout of sentence-transformers."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    try:
        return bert.Weights(load_file(folder / "model.safetensors"), config)
    except ValueError as e:
        sys.exit(f"{folder}: {e}")


def packages(weights, out):
    """A directory of one package a bucket, for macOS 13 on: pooled vectors."""
    for tokens in PACKAGES:
        program = bert.program(
            weights, 1, tokens, form="dense", output=bert.MEAN, token_types=False, opset=ct.target.iOS16
        )
        model = package.convert(program, ct.target.macOS13)
        path = out / "packages" / f"s{tokens}.mlpackage"
        package.write(model, path, f"all-MiniLM-L6-v2, mean pooled, 1x{tokens}", embedder(weights))


def functions(weights, out):
    """One package of a function a bucket, for macOS 15 on: hidden states."""
    models = {}
    for tokens in FUNCTIONS:
        program = bert.program(
            weights, 1, tokens, form="dense", output=bert.HIDDEN, token_types=False, opset=ct.target.iOS18
        )
        models[f"s{tokens}"] = package.convert(program, ct.target.macOS15)
    package.write_functions(
        models,
        out / "model.mlpackage",
        "all-MiniLM-L6-v2, hidden states, a function a length",
        embedder(weights) | {"synapse.functions": ",".join(models)},
    )


def conv(weights, out):
    """The convolution form at one length, for macOS 13 on: to measure against the dense form."""
    program = bert.program(weights, 1, 128, form="conv", output=bert.MEAN, token_types=False, opset=ct.target.iOS16)
    model = package.convert(program, ct.target.macOS13)
    package.write(
        model, out / "model.mlpackage", "all-MiniLM-L6-v2, mean pooled, 1x128, convolutions", embedder(weights)
    )


def ranker(weights, out):
    """A cross-encoder with token types, at one length, for macOS 13 on."""
    program = bert.program(
        weights, 1, 128, form="dense", output=bert.SCORE, token_types=True, opset=ct.target.iOS16, head=head(weights)
    )
    model = package.convert(program, ct.target.macOS13)
    golden = []
    for query, document in pairs():
        ids, types = lay(query, document)
        golden.append({
            "query": query,
            "document": document,
            "score": round(reference.score(weights, head(weights), ids, types), 6),
        })
    package.write(
        model,
        out / "model.mlpackage",
        "all-MiniLM-L6-v2 under a made ranking head, 1x128: ranks nothing",
        {
            "synapse.arch": "bert",
            "synapse.vocab_size": str(weights.vocabulary),
            "synapse.pair": PAIR,
            "synapse.golden": compact(golden),
        },
    )


VARIANTS = {"packages": packages, "functions": functions, "conv": conv, "ranker": ranker}


def embedder(weights):
    """The metadata of an embedding model."""
    rows, vectors = reference.suite()
    golden = []
    for length in GOLDEN_LENGTHS:
        at = next(i for i, row in enumerate(rows) if len(row["ids"]) == length and f"len:{length}" in row["tags"])
        golden.append({"ids": rows[at]["ids"], "vector": [round(float(x), 6) for x in vectors[at]]})
    return {
        "synapse.arch": "bert",
        "synapse.vocab_size": str(weights.vocabulary),
        "synapse.pooling": "mean",
        "synapse.golden": compact(golden),
    }


def head(weights):
    """The made ranking head: weight [1, hidden] and bias [1], float32."""
    random = np.random.Generator(np.random.PCG64(HEAD_SEED))
    return random.standard_normal((1, weights.hidden)).astype(np.float32), np.zeros(1, np.float32)


def pairs():
    """Query and document ids of the recorded topics, without special tokens, short enough for the ranker."""
    rows, _ = reference.suite()
    queries = [row["ids"][1:-1] for row in rows if "role:query" in row["tags"]]
    passages = [row["ids"][1:-1] for row in rows if "role:passage" in row["tags"]]
    return [(q, p) for q, p in zip(queries, passages) if len(q) + len(p) <= 125][:4]


def lay(query, document):
    """Lays a pair out as PAIR says; returns ids and token types."""
    ids = [CLS, *query, SEP, *document, SEP]
    return ids, [0] * (len(query) + 2) + [1] * (len(document) + 1)


def compact(value):
    return json.dumps(value, separators=(",", ":"))
