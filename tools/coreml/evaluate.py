"""Holds packages made by convert.py to the reference, read back from disk and run in numpy.

    python evaluate.py VARIANT DIR MODEL_DIR [--rows N]

Embedders are held to vectors that sentence-transformers recorded, rankers to BERT's forward pass in float64 over the
checkpoint in MODEL_DIR. Every bucket is run on rows of its own length, on shorter ones, and on its golden rows. Prints
a line a bucket; exits 1 where one is below its bound.
"""

import argparse
import json
import pathlib
import sys

import numpy as np

import interpret
import models
import reference

# What float16 costs here is below 3e-6; a fault in mask, positions, pooling or layout costs orders more.
MIN_COSINE = 0.9999
# Of a score. Float16 costs about 0.001; token types are worth more than a tenth.
MAX_SCORE_DIFFERENCE = 0.01


# Recorded rows a bucket, besides the golden ones.
ROWS = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variant", choices=sorted(models.VARIANTS))
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL_DIR")
    parser.add_argument("--rows", type=int, default=ROWS, help="recorded rows a bucket (default %(default)s)")
    arguments = parser.parse_args()
    weights = models.load(arguments.model)
    sys.exit(0 if variant(arguments.variant, arguments.folder, weights, arguments.rows) else 1)


def variant(name, folder, weights, rows=ROWS):
    """Says whether every bucket of every package in the folder holds."""
    good = True
    for path in sorted(folder.rglob("*.mlpackage")):
        package = interpret.Package(path)
        for function in sorted(package.functions):
            if name == "ranker":
                good &= ranker(path, package, weights)
            else:
                good &= embedder(path, package, function, rows)
    return good


def inputs(function, ids, types=None):
    """Lays a row out as the function's inputs, padded with id 0."""
    shape = function.inputs["input_ids"].shape
    row = np.zeros(shape, np.int32)
    row[0, : len(ids)] = ids
    mask = np.zeros(shape, np.int32)
    mask[0, : len(ids)] = 1
    given = {"input_ids": row, "attention_mask": mask}
    if types is not None:
        given["token_type_ids"] = np.zeros(shape, np.int32)
        given["token_type_ids"][0, : len(ids)] = types
    return given


def embedder(path, package, name, count):
    """Compares a bucket's vectors with the recorded ones and with its golden rows."""
    function = package.functions[name]
    length = function.inputs["input_ids"].shape[1]
    rows, vectors = reference.suite()
    fit = sorted((i for i, row in enumerate(rows) if len(row["ids"]) <= length), key=lambda i: len(rows[i]["ids"]))
    # Over all lengths that fit, the longest included.
    chosen = [fit[k] for k in np.linspace(0, len(fit) - 1, min(count, len(fit))).astype(int)]
    tests = [(rows[i]["ids"], vectors[i]) for i in chosen]
    golden = json.loads(package.metadata["synapse.golden"])
    tests += [(g["ids"], g["vector"]) for g in golden if len(g["ids"]) <= length]
    worst = 1.0
    for ids, want in tests:
        got = package.run(inputs(function, ids), name).astype(np.float64)
        got = got[0, : len(ids)].mean(axis=0) if got.ndim == 3 else got[0]
        worst = min(worst, float(got @ want / np.linalg.norm(got) / np.linalg.norm(want)))
    print(
        f"{path.name} {name} 1x{length}: specification {package.specification}, {len(tests)} rows, "
        f"cosine at least {worst:.7f}"
    )
    return worst >= MIN_COSINE


def ranker(path, package, weights):
    """Compares scores of pairs with the float64 ones, and shows that token types matter to them."""
    function = package.functions["main"]
    head = models.head(weights)
    worst, without = 0.0, 0.0
    for query, document in models.pairs():
        ids, types = models.lay(query, document)
        want = reference.score(weights, head, ids, types)
        worst = max(worst, abs(float(package.run(inputs(function, ids, types))[0, 0]) - want))
        plain = float(package.run(inputs(function, ids, [0] * len(ids)))[0, 0])
        without = max(without, abs(plain - want))
    for g in json.loads(package.metadata["synapse.golden"]):
        ids, types = models.lay(g["query"], g["document"])
        worst = max(worst, abs(float(package.run(inputs(function, ids, types))[0, 0]) - g["score"]))
    print(
        f"{path.name} 1x{function.inputs['input_ids'].shape[1]}: specification {package.specification}, "
        f"scores differ by at most {worst:.5f}; by up to {without:.2f} without token types"
    )
    return worst <= MAX_SCORE_DIFFERENCE and without > MAX_SCORE_DIFFERENCE


if __name__ == "__main__":
    main()
