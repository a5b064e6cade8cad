"""Rows of exact lengths, counted in ids with [CLS] and [SEP], and rows that are given as ids without a text.

512 is the models' position limit, 256 the shorter limit that sentence-transformers ships for MiniLM, 128 the
truncation in its tokenizer.json; each stands here with its neighbours, so that a cut at any of them shows.
"""

from itertools import cycle, islice

LENGTHS = (3, 8, 16, 32, 64, 96, 127, 128, 129, 160, 192, 255, 256, 257, 320, 384, 448, 510, 511, 512)
LIMIT = 512
UNIFORM_SEED = 20240229

# Every word and mark below is one token of BERT's uncased vocabulary; text_of_length checks the count it relies on.
STORY = (
    "the old captain walked slowly along the harbor and counted the boats . one was missing . he asked the boy at the "
    "gate who had taken it , but the boy only looked at the water . a cold wind came in from the north , and the lamps "
    "on the long wall began to shake . by morning the snow had covered every road into the town . no train came , no "
    "letter , no news of the war . the women baked bread in the dark and talked about the river , which had never been "
    "so high . on the third day a horse without a rider stood before the church . its saddle was wet and a small map was "
    "tied to it , drawn with red ink . nobody knew the island on that map . the captain did , and said nothing . "
).split()

# A row of one kind of token as long as the limit allows: no structure that could hide a fault in the positions.
FULL = {
    "one-letter": "a " * (LIMIT - 2),
    "punctuation": "!" * (LIMIT - 2),
    "digits": " ".join(str(n % 10) for n in range(LIMIT - 2)),
    "unknown": "\U0001fae0 " * (LIMIT - 2),
    "han": "水火木金土日月山川田" * ((LIMIT - 2) // 10),
}


def text_of_length(count):
    """Returns a text of `count` ids, [CLS] and [SEP] included.

    The story goes round and starts at another word for each length, so that neighbouring lengths share no prefix.
    """
    return " ".join(islice(cycle(STORY), count, 2 * count - 2))


def rows():
    """Yields (text, tags); the tag len:N is asserted when the text has been tokenised."""
    for count in LENGTHS:
        yield text_of_length(count), [f"len:{count}"]
    for name, text in FULL.items():
        yield text, [f"len:{LIMIT}", f"full:{name}"]


def raw_rows(tokenizer):
    """Yields (ids, tags) for rows that no text gives: an engine must take the ids as they are and add nothing."""
    cls, sep, pad, unk, mask = (tokenizer.token_to_id(t) for t in ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"))
    words = tokenizer.encode("a short text about the sea", add_special_tokens=False).ids
    last = tokenizer.get_vocab_size() - 1
    yield [cls], ["len:1", "raw:cls-only"]
    yield [sep], ["len:1", "raw:sep-only"]
    yield [pad], ["len:1", "raw:pad-only"]
    yield [last], ["len:1", "raw:last-id"]
    yield [words[2]], ["len:1", "raw:word-only"]
    yield [cls, *words], ["raw:without-sep"]
    yield [*words, sep], ["raw:without-cls"]
    yield words, ["raw:without-special"]
    yield [cls, *words, sep], ["raw:with-special"]
    yield [cls, *words, sep, sep], ["raw:two-sep"]
    # Id 0 sent as a token is a token: an engine that derives its mask from id != 0 gives another vector.
    yield [cls, *words, sep, pad, pad, pad], ["raw:trailing-pad"]
    yield [pad, pad, cls, *words, sep], ["raw:leading-pad"]
    yield [cls, words[0], pad, *words[1:], sep], ["raw:inner-pad"]
    yield [cls, mask, unk, mask, unk, sep], ["raw:mask-unk"]
    yield [0, 1, last - 1, last], ["raw:first-and-last-ids"]
    yield uniform_ids(last + 1, 257), ["len:257", "raw:uniform"]
    yield uniform_ids(last + 1, LIMIT), [f"len:{LIMIT}", "raw:uniform"]


def uniform_ids(vocab_size, count):
    """Returns `count` ids spread over the vocabulary by a linear congruential generator (constants of Knuth's MMIX)."""
    state, ids = UNIFORM_SEED, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        ids.append((state >> 33) % vocab_size)
    return ids
