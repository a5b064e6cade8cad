"""Judgements of people: texts and words whose similarity people rated, read from gensim's package data.

Lee: 50 news texts, each pair rated by several readers, 0 to 1 (Lee, Pincombe and Welsh, 2005).
WordSim-353: pairs of words by relatedness, 0 to 10 (Finkelstein and others, 2002).
SimLex-999: pairs of words by similarity proper, 0 to 10 (Hill, Reichart and Korhonen, 2014).

The files come with the wheel and with no licence of their own; neither Lee nor SimLex-999 is published with one. They
are therefore taken out of the wheel on the machine that certifies, as the asset gensim-judgements, and neither they
nor their token ids are committed.
"""

import dataset

PACKAGE = "gensim"
VERSION = "4.3.3"
# Each platform has a wheel of its own, so the digests are those of the four files.
DIGESTS = {
    "lee.cor": "a878f9a58f6743c32985c56c2f2f75988386216b38a4023a01fd3bcf7884d93e",
    "similarities0-1.txt": "23762bc6b728897144dda3d324a2c032dc1e059e1009806226d64b6dd123ed79",
    "wordsim353.tsv": "f92a022fc2537793a15bc3a8c162ebcd74990e033a228bb6388cb71e4c0b1e1d",
    "simlex999.txt": "d5e0501971478a511430ee880bd0121e94ac701ba86d90544d83e6d2ba3db05d",
}
WORD_SETS = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}
SETS = ("lee", *WORD_SETS)
INPUTS = "inputs.jsonl"
PAIRS = "pairs.jsonl"


def read(folder, tokenizer):
    """Returns (rows, pairs) of the three sets, whose files of gensim's wheel lie in `folder`.

    rows: {"id", "text", "ids", "tags"} as in a suite, one for each different text, tagged set:NAME.
    pairs: {"set", "a", "b", "score"}, a and b being ids of rows; scores are as published, on the scale of their set.
    `tokenizer` is a tokenizers.Tokenizer with truncation and padding off. Raises ValueError if a file is not the
    one that is pinned here.
    """
    files = _files(folder)
    rows, pairs = {}, []
    documents = files["lee.cor"].decode("latin-1").split("\n")
    scores = [[float(score) for score in line.split()] for line in files["similarities0-1.txt"].decode().splitlines()]
    for a, first in enumerate(documents):
        _row(rows, first, "lee", tokenizer)
        for b in range(a):
            pairs.append(_pair(rows, "lee", documents[b], first, scores[b][a]))
    for name, file in WORD_SETS.items():
        for line in files[file].decode().splitlines():
            if line.startswith("#"):
                continue
            first, second, score = line.split("\t")
            _row(rows, first, name, tokenizer)
            _row(rows, second, name, tokenizer)
            pairs.append(_pair(rows, name, first, second, float(score)))
    return list(rows.values()), pairs


def _files(folder):
    files = {name: (folder / name).read_bytes() for name in DIGESTS}
    for name, data in files.items():
        if dataset.sha256(data) != DIGESTS[name]:
            raise ValueError(f"{folder / name} is not the pinned one; it comes with {PACKAGE}=={VERSION}")
    return files


def _row(rows, text, name, tokenizer):
    row = rows.setdefault(
        text, {"id": f"p{len(rows):04d}", "text": text, "ids": tokenizer.encode(text).ids, "tags": []}
    )
    if f"set:{name}" not in row["tags"]:
        row["tags"].append(f"set:{name}")


def _pair(rows, name, first, second, score):
    return {"set": name, "a": rows[first]["id"], "b": rows[second]["id"], "score": score}
