"""Records tiny models of the architectures that worker-llama embeds, ranks and generates with, and what they compute.

    python record_architectures.py OUT_DIR [NAME...]

Writes NAME.gguf.zst and NAME.json for each of architectures.py. The reference is torch in float64 with eager
attention, one row at a time; the weights are the file's, exactly.
"""

import argparse
import json
import pathlib
import tempfile
import zlib

import dataset
import gguf
import numpy
import torch
from architectures import ARCHITECTURES
from tiny import VOCABULARY, WINDOW, drawn

# One token, fewer and more than llama.cpp's tile of 64, several windows of local attention, and more than the 512 that
# worker-llama puts into one batch.
LENGTHS = (1, 2, 9, 2 * WINDOW + 5, 64, 101, 700)
PAIRS = ((3, 5), (7, 1), (12, 60))  # ids of the query and of the document
SPECIAL = 4
FIRST, PAD, LAST, UNKNOWN = range(SPECIAL)  # as XLM-RoBERTa, which counts no position for its padding
POOLINGS = {
    "mean": (gguf.PoolingType.MEAN, lambda states: states.mean(0)),
    "cls": (gguf.PoolingType.CLS, lambda states: states[0]),
    "last": (gguf.PoolingType.LAST, lambda states: states[-1]),
}
# Prompts of a generator: one token, few, more than a window of local attention, and more than the 512 that worker-llama
# computes at once.
PROMPTS = (1, 6, 2 * WINDOW + 5, 530)
GENERATED = 32
# By how much the likeliest token must lead the next, in standard deviations of the step's logits: more than rounding of
# keys and values to f16 moves it.
MARGIN = 0.03
LEAST_DISTINCT = 8  # tokens of a continuation that is worth holding to
ATTEMPTS = 2000
DIGITS = 8  # significant ones: as many as float32 has


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for make in ARCHITECTURES:
        tiny = make()
        if arguments.names and tiny.name not in arguments.names:
            continue
        small = {"rounded": torch.float8_e4m3fn, "shuffled": True, "scales": tiny.scales} if tiny.generates else {}
        drawn(tiny.model, zlib.crc32(tiny.name.encode()), **small)
        for kind in ("_attn_implementation", "_experts_implementation"):
            if hasattr(tiny.model.config, kind):
                setattr(tiny.model.config, kind, "eager")
        record = (_continuations if tiny.generates else _scores if tiny.ranks else _vectors)(tiny)
        data = _gguf(tiny)
        dataset.compress(arguments.out / f"{tiny.name}.gguf.zst", data)
        (arguments.out / f"{tiny.name}.json").write_text(_json(record))
        size = (arguments.out / f"{tiny.name}.gguf.zst").stat().st_size
        print(f"{tiny.name}: {len(data)} bytes, {size} compressed", flush=True)


def _ids(draw, length):
    return torch.randint(SPECIAL, VOCABULARY, (length,), generator=draw).tolist()


def _vectors(tiny):
    draw = torch.Generator().manual_seed(1)
    tiny.model.double()
    rows = []
    for length in LENGTHS:
        if length > tiny.keys["context_length"]:
            break
        ids = _ids(draw, length)
        with torch.no_grad():
            states = tiny.model(input_ids=torch.tensor([ids])).last_hidden_state[0]
            vectors = {name: POOLINGS[name][1](states) for name in tiny.poolings}
            if tiny.head:
                vectors = {name: tiny.head(vector) for name, vector in vectors.items()}
        rows.append({"ids": ids, "vectors": {name: vector.tolist() for name, vector in vectors.items()}})
    tiny.model.float()
    return {"pooling": tiny.poolings[0], "activation": _activation(tiny), "rows": rows}


def _scores(tiny):
    draw = torch.Generator().manual_seed(1)
    tiny.model.double()
    if tiny.tokens:
        pairs = list(tiny.tokens.pairs(tiny.model))
        tiny.model.float()
        return {"pooling": "rank", "activation": _activation(tiny), "pairs": pairs}
    pairs = []
    between = [LAST, LAST] if tiny.tokenizer == "t5" else [LAST]
    for lengths in PAIRS:
        query, document = (_ids(draw, length) for length in lengths)
        row = [FIRST, *query, *between, *document, LAST]
        with torch.no_grad():
            logits = tiny.model(input_ids=torch.tensor([row])).logits[0]
        pairs.append({"query": query, "document": document, "score": logits.item()})
    tiny.model.float()
    return {"pooling": "rank", "activation": _activation(tiny), "pairs": pairs}


def _continuations(tiny):
    """Records greedy continuations, each step computed of the whole row, and the logits of each one's last step.

    Prompts are drawn until every step of their continuation has a likeliest token that rounding cannot change.
    """
    draw = torch.Generator().manual_seed(1)
    tiny.model.double()
    continuations = []
    for length in PROMPTS:
        if length + GENERATED > tiny.keys["context_length"]:
            break
        for _ in range(ATTEMPTS):
            prompt = _ids(draw, length)
            if _continued(tiny.model, prompt, cached=True)[0]:  # which is quick, and for the search alone
                tokens, margin, logits = _continued(tiny.model, prompt)
                if tokens:
                    break
        else:
            raise ValueError(f"{tiny.name}: no prompt of {length} tokens has a continuation to hold to")
        continuations.append({"prompt": prompt, "tokens": tokens, "margin": margin, "logits": logits})
    tiny.model.float()
    return {"pooling": "none", "activation": _activation(tiny), "continuations": continuations}


def _continued(model, prompt, cached=False):
    """Returns the tokens, the least lead of a likeliest one, and the last step's logits; no tokens where a step is too
    close to call or they say too little."""
    tokens, least, cache = [], float("inf"), None
    for _ in range(GENERATED):
        row = tokens[-1:] if cache else prompt + tokens
        with torch.no_grad():
            output = model(input_ids=torch.tensor([row]), past_key_values=cache, use_cache=cached)
        logits, cache = output.logits[0, -1], output.past_key_values if cached else None
        (first, second), (token, _) = logits.topk(2)
        lead = (first - second).item()
        if lead < MARGIN * logits.std().item() or token < SPECIAL:
            return [], 0, []
        tokens.append(token.item())
        least = min(least, lead)
    return (tokens, least, logits.tolist()) if len(set(tokens)) >= LEAST_DISTINCT else ([], 0, [])


def _activation(tiny):
    """Returns what the reference's feed-forward layers go through, by transformers' name."""
    config = tiny.model.config
    names = ("hidden_activation", "hidden_act", "activation_function", "activation")
    return next(name for name in (getattr(config, name, None) for name in names) if name)


def _gguf(tiny):
    """Returns the bytes of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.gguf"
        writer = gguf.GGUFWriter(path, tiny.architecture)
        writer.add_type(gguf.GGUFType.MODEL)
        for key, value in tiny.keys.items():
            _add(writer, f"{tiny.architecture}.{key}", value)
        if not tiny.ranks and not tiny.generates:
            writer.add_pooling_type(POOLINGS[tiny.poolings[0]][0])
        if tiny.tokens:
            writer.add_pooling_type(gguf.PoolingType.RANK)
            tiny.tokens.write(writer)
        else:
            _add_vocabulary(writer, tiny)
        for name, values in tiny.gguf_tensors():
            writer.add_tensor(name, numpy.ascontiguousarray(values))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


def _add(writer, key, value):
    if key.endswith("classifier.pooling_type"):
        value = int(POOLINGS[value][0])
    add = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        list: writer.add_array,
    }
    add[type(value)](key, value)


def _add_vocabulary(writer, tiny):
    """Adds tokens that stand for nothing but their numbers: rows are given as ids."""
    space = "\u0120" if tiny.generates and tiny.tokenizer == "gpt2" else "\u2581"
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] + [f"{space}{i}" for i in range(SPECIAL, VOCABULARY)]
    types = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.UNKNOWN] + [gguf.TokenType.NORMAL] * (VOCABULARY - SPECIAL)
    writer.add_tokenizer_model(tiny.tokenizer)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if tiny.tokenizer in ("t5", "llama"):
        writer.add_token_scores([0.0] * VOCABULARY)
    if tiny.tokenizer == "gpt2":
        writer.add_tokenizer_pre("default")
        writer.add_token_merges([f"{space} 4"])
    writer.add_bos_token_id(FIRST)
    writer.add_eos_token_id(LAST)
    writer.add_sep_token_id(LAST)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_pad_token_id(PAD)
    if tiny.ranks:  # which converters do not declare otherwise
        writer.add_classifier_output_labels(["LABEL_0"])
    for key, value in tiny.tokenizer_keys.items():
        _add(writer, f"tokenizer.ggml.{key}", value)


def _json(record):
    """Returns the record with one row a line."""
    kind = next(kind for kind in ("rows", "pairs", "continuations") if kind in record)
    lines = ",\n".join(json.dumps(_rounded(row), separators=(",", ":")) for row in record[kind])
    rest = ",".join(f'"{key}":{json.dumps(value)}' for key, value in record.items() if key != kind)
    return f'{{{rest},"{kind}":[\n{lines}\n]}}\n'


def _rounded(value):
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(x) for x in value]
    if isinstance(value, dict):
        return {key: _rounded(x) for key, x in value.items()}
    return value


if __name__ == "__main__":
    main()
