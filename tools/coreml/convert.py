"""Makes Core ML packages of a BERT checkpoint, with no deep-learning framework and on any system.

    python convert.py VARIANT --out DIR MODEL_DIR

MODEL_DIR holds model.safetensors and config.json. DIR receives the packages. They are the same to the byte on every
machine that has the pinned packages, and none is left behind that does not hold to the reference (evaluate.py).
"""

import argparse
import pathlib
import sys

import evaluate
import models


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variant", choices=sorted(models.VARIANTS))
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL_DIR")
    arguments = parser.parse_args()
    weights = models.load(arguments.model)
    models.VARIANTS[arguments.variant](weights, arguments.out)
    if not evaluate.variant(arguments.variant, arguments.out, weights):
        sys.exit("convert.py: a package does not hold to the reference")


if __name__ == "__main__":
    main()
