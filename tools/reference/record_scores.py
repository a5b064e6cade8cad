"""Records the reference scores of a rerank suite with transformers, in fp32, on the CPU.

    python record_scores.py MODEL_DIR OUT_DIR --name minilm-cross-encoder --recorded-on 2026-11-30

MODEL_DIR holds a BertForSequenceClassification of one label: the asset minilm-reranker-safetensors. Every pair is
scored alone, unpadded, on one thread; the score is the logit. Each score is also held to tools/reranker/score.py,
BERT written out in numpy float64, which shares no code with transformers.
"""

import pathlib
import sys

import numpy
import tokenizers
import torch
import transformers

import dataset
from corpus import pairs

sys.path.append(str(pathlib.Path(__file__).parent.parent / "reranker"))
import score

# fp32 stays within some 1e-6 of float64; another pooler, segment or separator costs orders more.
MAX_DIFFERENCE = 5e-6
# numpy's own error function is slow: so many pairs are held to float64, the shortest and the longest among them.
HELD = 60


def main():
    arguments = dataset.local_recorder(__doc__).parse_args()

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    tokenizer = tokenizers.Tokenizer.from_file(str(arguments.model / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    model = transformers.BertForSequenceClassification.from_pretrained(arguments.model, dtype=torch.float32).eval()
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    queries = pairs.queries(tokenizer)
    rows = [_row(cls, sep, q["ids"], d["ids"]) for q in queries for d in q["documents"]]
    _hold_layout(tokenizer, queries, rows)
    scores = numpy.array([_score(model, *row) for row in rows], dtype=numpy.float32)
    _hold(scores, rows, score.Model(arguments.model))
    provenance = {
        "model": {"name": arguments.name, "licence": "Apache-2.0"},
        "weights": {
            name: dataset.sha256((arguments.model / name).read_bytes())
            for name in ("model.safetensors", "config.json", "tokenizer.json")
        },
        "encoding": {
            "dtype": "float32",
            "byte_order": "little",
            "score": "logit",
            "layout": "[CLS] query [SEP] document [SEP], document in segment 1",
            "max_tokens": model.config.max_position_embeddings,
            "attention": model.config._attn_implementation,
        },
    }
    dataset.write_task(
        arguments.out,
        queries,
        ("scores", dataset.SCORES, scores.astype("<f4").tobytes(), {"count": len(rows)}),
        provenance,
        arguments.recorded_on,
    )
    print(
        f"{len(queries)} queries, {len(rows)} pairs, scores {scores.min():.4f} to {scores.max():.4f}, in {arguments.out}"
    )


def _row(cls, sep, query, document):
    """Returns (ids, segments) of a pair as BERT was trained on it."""
    ids = [cls, *query, sep, *document, sep]
    second = len(query) + 2
    return ids, [0] * second + [1] * (len(ids) - second)


def _hold_layout(tokenizer, queries, rows):
    """Raises ValueError where the tokenizer lays a pair out otherwise."""
    texts = [(q["text"], d["text"]) for q in queries for d in q["documents"]]
    for (query, document), (ids, segments) in zip(texts, rows, strict=True):
        if document is not None:
            own = tokenizer.encode(query, document)
            if own.ids != ids or own.type_ids != segments:
                raise ValueError(f"the tokenizer lays {query!r} and {document[:40]!r} out otherwise")


def _score(model, ids, segments):
    row = torch.tensor([ids])
    with torch.inference_mode():
        logits = model(
            input_ids=row, attention_mask=torch.ones_like(row), token_type_ids=torch.tensor([segments])
        ).logits
    if logits.shape != (1, 1) or not torch.isfinite(logits).all():
        raise ValueError(f"the model gave {logits}, wanted one finite logit")
    return logits.item()


def _hold(scores, rows, model):
    order = sorted(range(len(rows)), key=lambda n: len(rows[n][0]))
    chosen = sorted({order[round(k * (len(order) - 1) / (HELD - 1))] for k in range(HELD)})
    differences = [abs(float(scores[n]) - model.score(*rows[n])) for n in chosen]
    print(f"{len(chosen)} pairs held to float64: max difference {max(differences):.2e}")
    if max(differences) > MAX_DIFFERENCE:
        raise ValueError(f"a score is {max(differences):.2e} from float64, allowed is {MAX_DIFFERENCE:.0e}")


if __name__ == "__main__":
    main()
