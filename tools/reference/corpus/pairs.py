"""Queries and documents of the rerank suites, put together from the texts of the embedding suites."""

from . import lengths, scripts, snippets, symbols, topics

# Of a topic query's documents, how many are of other topics.
STRANGERS = 6
WHEN_OPEN = "when does the library open"
CODE = "a function that reads a file line by line"
MARKS = "a sentence with many marks and numbers"
# Lengths of whole pairs, special tokens counted: short ones, the neighbours of a batch's usual widths, the limit.
PAIR_LENGTHS = (14, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 383, 384, 510, 511, 512)
# [CLS] and two [SEP].
PAIR_TOKENS = 3
LONG_QUERY = "who took the boat from the harbor"


def queries(tokenizer):
    """Returns a list of {"id", "text", "ids", "documents", "tags"}, a document being {"id", "text", "ids"}.

    `tokenizer` is a tokenizers.Tokenizer with truncation and padding off. Ids are without special tokens: a worker
    builds the pair. A text that has no ids is left out. `text` is None where the ids are given.
    """

    def encode(text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    groups = list(_topical())
    groups.append((WHEN_OPEN, [text for text, _ in scripts.rows()], ["scripts"]))
    groups.append((CODE, [text for text, _ in snippets.rows()], ["snippets"]))
    groups.append((MARKS, [text for text, _ in symbols.rows()], ["symbols"]))
    found = []
    for text, documents, tags in groups:
        found.append((text, encode(text), [(d, encode(d)) for d in documents], tags))
    found.append((LONG_QUERY, encode(LONG_QUERY), list(_exact(encode)), ["lengths"]))
    return [_query(n, *group) for n, group in enumerate(found)]


def _topical():
    """Yields (query, documents, tags): what the topic has, and passages of the topics that follow."""
    names = list(topics.TOPICS)
    for at, name in enumerate(names):
        group = topics.TOPICS[name]
        strangers = [
            topics.TOPICS[names[(at + step) % len(names)]]["passages"][step % 6] for step in range(1, STRANGERS + 1)
        ]
        for query in group["queries"]:
            yield query, group["passages"] + group["paraphrases"] + strangers, [f"topic:{name}"]


def _exact(encode):
    """Yields (None, ids) of documents that make pairs of exactly PAIR_LENGTHS tokens."""
    story = encode(" ".join(lengths.STORY))
    for start, count in enumerate(PAIR_LENGTHS):
        want = count - PAIR_TOKENS - len(encode(LONG_QUERY))
        if want < 1:
            raise ValueError(f"a pair of {count} tokens has no room for the document: lengthen PAIR_LENGTHS")
        yield None, [story[(start + n) % len(story)] for n in range(want)]


def _query(number, text, ids, documents, tags):
    kept = [(d, row) for d, row in documents if row]
    return {
        "id": f"q{number:02d}",
        "text": text,
        "ids": ids,
        "documents": [{"id": f"q{number:02d}d{n:02d}", "text": d, "ids": row} for n, (d, row) in enumerate(kept)],
        "tags": tags,
    }
