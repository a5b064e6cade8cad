"""The inputs of the embedding suites: texts and rows of ids, all written for this repository."""

from . import lengths, scripts, snippets, symbols, topics


def rows(tokenizer):
    """Returns the inputs as a list of {"id", "text", "ids", "tags"}, tokenised whole.

    `tokenizer` is a tokenizers.Tokenizer with truncation and padding off. `text` is None where the ids are given.
    Raises ValueError if a row has not the length that its tag states, or has no ids, or more than the limit.
    """
    found = []
    texts = [("", ["len:2", "empty"])]
    for source in (topics, scripts, snippets, symbols, lengths):
        texts.extend(source.rows())
    for text, tags in texts:
        found.append((text, tokenizer.encode(text).ids, tags))
    for ids, tags in lengths.raw_rows(tokenizer):
        found.append((None, ids, tags))
    return [_row(n, *row) for n, row in enumerate(found)]


def _row(number, text, ids, tags):
    name = f"t{number:03d}"
    stated = [int(tag.removeprefix("len:")) for tag in tags if tag.startswith("len:")]
    if any(length != len(ids) for length in stated):
        raise ValueError(f"{name} has {len(ids)} ids, its tags say {tags}: correct the text or the tag")
    if not 1 <= len(ids) <= lengths.LIMIT:
        raise ValueError(f"{name} has {len(ids)} ids, outside 1..{lengths.LIMIT}: shorten the text")
    return {"id": name, "text": text, "ids": ids, "tags": tags}
