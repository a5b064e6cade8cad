"""Makes the inputs and the rated pairs of the people gates, on the machine that certifies.

    python make_people.py --out DIR GENSIM_DIR MODEL_DIR

GENSIM_DIR holds the four files that people.py names, out of gensim's wheel; MODEL_DIR the model's tokenizer.json.
Writes people/inputs.jsonl.zst and people/pairs.jsonl.zst, byte for byte what record_people.py recorded; needs no torch
(requirements-people.txt).
"""

import argparse
import pathlib

import tokenizers

import dataset
import people


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("judgements", type=pathlib.Path, metavar="GENSIM_DIR")
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL_DIR")
    arguments = parser.parse_args()

    tokenizer = tokenizers.Tokenizer.from_file(str(arguments.model / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows, pairs = people.read(arguments.judgements, tokenizer)
    folder = arguments.out / "people"
    folder.mkdir(parents=True, exist_ok=True)
    dataset.compress(folder / f"{people.INPUTS}.zst", dataset.json_lines(rows))
    dataset.compress(folder / f"{people.PAIRS}.zst", dataset.json_lines(pairs))
    print(f"{len(rows)} texts and {len(pairs)} rated pairs in {folder}")


if __name__ == "__main__":
    main()
