"""Makes the inputs and the rated pairs of the people gates, on the machine that certifies.

    python make_people.py TOKENIZER GENSIM_WHEEL OUT_DIR

TOKENIZER is the model's tokenizer.json, GENSIM_WHEEL any wheel of the version that people.py names (its compiled parts
are not used). Writes inputs.jsonl.zst and pairs.jsonl.zst, byte for byte what record_people.py recorded; needs no
torch (requirements-people.txt).
"""

import argparse
import pathlib

import tokenizers

import dataset
import people


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()

    tokenizer = tokenizers.Tokenizer.from_file(str(arguments.tokenizer))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows, pairs = people.read(arguments.wheel, tokenizer)
    arguments.out.mkdir(parents=True, exist_ok=True)
    dataset.compress(arguments.out / f"{people.INPUTS}.zst", dataset.json_lines(rows))
    dataset.compress(arguments.out / f"{people.PAIRS}.zst", dataset.json_lines(pairs))
    print(f"{len(rows)} texts and {len(pairs)} rated pairs in {arguments.out}")


if __name__ == "__main__":
    main()
