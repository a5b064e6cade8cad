"""Records the reference answers of a generate suite with transformers, in fp32, on the CPU.

    python record_answers.py MODEL.gguf OUT_DIR --name SmolLM2-135M-Instruct --recorded-on 2026-11-30

transformers reads the GGUF's weights, expands quantised ones to float32 and computes in its own LlamaForCausalLM: no
code of llama.cpp's runs. Each prompt is continued alone, greedily, on one thread.
"""

import gguf
import tokenizers
import torch
import transformers

import dataset
from corpus import prompts

CONTROL = 3  # GGUF's type of tokens that stand for no text


def main():
    arguments = dataset.local_recorder(__doc__).parse_args()

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.disable_progress_bar()
    fields = {
        name: f.contents()
        for name, f in gguf.GGUFReader(arguments.model).fields.items()
        if name.startswith("tokenizer.ggml.")
    }
    vocabulary = Vocabulary(fields)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.model.parent, gguf_file=arguments.model.name, dtype=torch.float32
    ).eval()
    rows = prompts.prompts(vocabulary.encode)
    answers, margins = [], []
    for row in rows:
        if "grammar" not in row:
            answer, margin = _answer(model, vocabulary, row)
            answers.append(answer)
            margins.append(margin)
            print(
                f"{row['id']} {answer['finish']} after {len(answer['ids'])}, least margin {margin:.4f}: {''.join(answer['pieces'])!r}"
            )
    provenance = {
        "model": {"name": arguments.name, "licence": "Apache-2.0"},
        "weights": {arguments.model.name: dataset.sha256(arguments.model.read_bytes())},
        "encoding": {
            "dtype": "float32",
            "max_tokens": model.config.max_position_embeddings,
            "decoding": "greedy",
            "attention": model.config._attn_implementation,
            # Two engines that differ by less in their logits choose alike.
            "least_margin": round(min(margins), 6),
        },
    }
    dataset.write_task(
        arguments.out,
        rows,
        ("answers", dataset.ANSWERS, dataset.json_lines(answers), {}),
        provenance,
        arguments.recorded_on,
    )
    print(f"{len(rows)} prompts, {len(answers)} answers, in {arguments.out}")


class Vocabulary:
    """The tokenizer of a GGUF of the SmolLM family: byte-level BPE that splits off each digit.

    end: the token that ends an answer.
    """

    def __init__(self, fields):
        tokens = fields["tokenizer.ggml.tokens"]
        if fields["tokenizer.ggml.model"] != "gpt2" or fields["tokenizer.ggml.pre"] != "smollm":
            raise ValueError("only SmolLM's tokenizer is understood here")
        merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
        self.end = fields["tokenizer.ggml.eos_token_id"]
        self._special = {i for i, kind in enumerate(fields["tokenizer.ggml.token_type"]) if kind == CONTROL}
        self._tokens = tokens
        self._bytes = {character: byte for byte, character in _byte_characters().items()}
        self._tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({t: i for i, t in enumerate(tokens)}, merges))
        self._tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [
                tokenizers.pre_tokenizers.Digits(individual_digits=True),
                tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
        self._tokenizer.add_special_tokens([tokens[i] for i in sorted(self._special)])

    def encode(self, text):
        """Returns the ids of a text, in which special tokens may stand by name."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def pieces(self, ids):
        """Returns the text that each token adds; one that ends within a character gives it to the token that completes it."""
        pieces, held = [], b""
        for i in ids:
            held += b"" if i in self._special else bytes(self._bytes[c] for c in self._tokens[i])
            whole = held.decode(errors="ignore").encode()
            if not held.startswith(whole):
                raise ValueError(f"{held!r} is no UTF-8")
            pieces.append(whole.decode())
            held = held[len(whole) :]
        return pieces


def _byte_characters():
    """The characters that byte-level BPE writes bytes as: printable ones as themselves, others from 256 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + n) for n, byte in enumerate(others)}


def _answer(model, vocabulary, row):
    """Returns ({"id", "ids", "pieces", "finish"}, margin), margin being the least lead of a chosen token's logit."""
    ids, margin = [], float("inf")
    step, cache = torch.tensor([row["ids"]]), None
    with torch.inference_mode():
        while len(ids) < row["max_tokens"] and (not ids or ids[-1] != vocabulary.end):
            out = model(input_ids=step, cache=cache, use_cache=True)
            cache = out.cache
            best = torch.topk(out.logits[0, -1], 2)
            margin = min(margin, (best.values[0] - best.values[1]).item())
            ids.append(best.indices[0].item())
            step = torch.tensor([[ids[-1]]])
    finish = "stop" if ids[-1] == vocabulary.end else "length"
    return {"id": row["id"], "ids": ids, "pieces": vocabulary.pieces(ids), "finish": finish}, margin


if __name__ == "__main__":
    main()
