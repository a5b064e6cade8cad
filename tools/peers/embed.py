"""Compares worker-onnx with a peer on this machine: the same model, the same rows, turn by turn.

    venv/bin/python embed.py onnxruntime --worker ../../bin/worker-onnx --model MODEL.onnx
    venv/bin/python embed.py sentence-transformers --worker ... --model MODEL.onnx --weights FOLDER

Machines differ and are noisy, so the figures are ratios inside one run: in each round both sides embed all rows of the
suite, in an order that changes from round to round, and what is printed is the median of the rounds' ratios, of tokens
per second and of tokens per CPU second. The worker's CPU time is its own plus that of this process, which drives it.
"""

import argparse
import io
import json
import os
import pathlib
import statistics
import sys
import time

import numpy
import zstandard

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "examples" / "python-module"))

from synapse_worker import Worker  # noqa: E402

# What "its best batching" is chosen from: rows sorted by length, in batches of so many rows.
BATCH_SIZES = (1, 4, 8, 16, 32, 64)
TOLERANCE = 1e-4  # of a vector's elements; two fp32 engines differ by some 1e-7


class OurWorker:
    """The worker behind its socket. All rows are one request; how they are batched is the worker's own business."""

    def __init__(self, path, model, threads):
        self.worker = Worker(path)
        self.ref = self.worker.load(model, "onnx", {"pooling": "mean", "threads": threads})["model_ref"]

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.worker.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def embed(self, rows):
        return numpy.stack([numpy.frombuffer(v, dtype="<f4") for v in self.worker.embed(self.ref, rows)])


class InProcess:
    """A peer that runs in this process: rows sorted by length and padded together, `batch` at a time."""

    batch = 32

    def cpu(self):
        return 0.0  # all of it is this process's

    def embed(self, rows):
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        out = [None] * len(rows)
        for start in range(0, len(order), self.batch):
            part = order[start : start + self.batch]
            longest = max(len(rows[i]) for i in part)
            ids = numpy.zeros((len(part), longest), dtype=numpy.int64)
            mask = numpy.zeros_like(ids)
            for k, i in enumerate(part):
                ids[k, : len(rows[i])] = rows[i]
                mask[k, : len(rows[i])] = 1
            for k, vector in enumerate(self.forward(ids, mask)):
                out[part[k]] = vector
        return numpy.stack(out)

    def choose(self, rows, sizes):
        """Takes the batch size that was fastest, each tried twice."""

        def cost(size):
            self.batch = size
            return min(wall_and_cpu(self, rows)[0] for _ in range(2))

        self.batch = min(sizes, key=cost)


class OnnxRuntime(InProcess):
    def __init__(self, args):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
        self.session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name for i in self.session.get_inputs()}
        self.name = f"onnxruntime {onnxruntime.__version__}"

    def forward(self, ids, mask):
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        hidden = self.session.run(None, {k: v for k, v in feed.items() if k in self.inputs})[0]
        weights = mask[:, :, None].astype(numpy.float32)
        mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return mean / numpy.linalg.norm(mean, axis=1, keepdims=True)


class SentenceTransformers(InProcess):
    def __init__(self, args):
        import sentence_transformers
        import torch

        torch.set_num_threads(args.threads)
        self.torch = torch
        self.model = sentence_transformers.SentenceTransformer(
            args.weights, device="cpu", local_files_only=True, model_kwargs={"dtype": torch.float32}
        )
        self.model.max_seq_length = 512
        self.name = f"sentence-transformers {sentence_transformers.__version__}, torch {torch.__version__}"

    def forward(self, ids, mask):
        with self.torch.inference_mode():
            features = {"input_ids": self.torch.from_numpy(ids), "attention_mask": self.torch.from_numpy(mask)}
            features["token_type_ids"] = self.torch.zeros_like(features["input_ids"])
            return self.model(features)["sentence_embedding"].numpy()


def wall_and_cpu(side, rows):
    cpu, wall = side.cpu() + time.process_time(), time.perf_counter()
    side.embed(rows)
    return time.perf_counter() - wall, side.cpu() + time.process_time() - cpu


def inputs(suite):
    packed = (ROOT / "certify" / "suites" / suite / "inputs.jsonl.zst").read_bytes()
    text = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)), encoding="utf-8")
    return [json.loads(line)["ids"] for line in text]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["onnxruntime", "sentence-transformers"])
    parser.add_argument("--worker", required=True)
    parser.add_argument("--model", required=True, help="the ONNX file, given to the worker and to onnxruntime")
    parser.add_argument("--weights", help="sentence-transformers: the folder of the same model")
    parser.add_argument("--suite", default="all-minilm-l6-v2", help="whose rows are embedded")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, help="the peer's batch size; its best of %s without" % (BATCH_SIZES,))
    args = parser.parse_args()

    rows = inputs(args.suite)
    tokens = sum(map(len, rows))
    ours = OurWorker(args.worker, args.model, args.threads)
    peer = OnnxRuntime(args) if args.peer == "onnxruntime" else SentenceTransformers(args)
    peer.choose(rows, [args.batch] if args.batch else BATCH_SIZES)
    apart = float(numpy.abs(ours.embed(rows) - peer.embed(rows)).max())
    if not apart <= TOLERANCE:
        sys.exit(f"the two differ by {apart}: they do not compute the same, so their speeds say nothing")

    walls, cpus, speeds = [], [], []
    for n in range(args.rounds):
        measured = {}
        for side in (ours, peer) if n % 2 == 0 else (peer, ours):
            measured[side] = wall_and_cpu(side, rows)
        walls.append(measured[peer][0] / measured[ours][0])
        cpus.append(measured[peer][1] / measured[ours][1])
        speeds.append([tokens / measured[side][0] for side in (ours, peer)])
    ours.worker.close()
    median = statistics.median
    print(f"{args.suite}: {len(rows)} rows, {tokens} tokens; {args.threads} threads, {args.rounds} rounds")
    for name, side in ("worker-onnx", 0), (f"{peer.name} in batches of {peer.batch}", 1):
        print(f"  {median(s[side] for s in speeds):6.0f} tokens/s {name}")
    for unit, ratios in ("tokens/s", walls), ("tokens/CPU-s", cpus):
        print(f"  {median(ratios):6.2f} ratio of {unit}, from {min(ratios):.2f} to {max(ratios):.2f}")
    print(f"  vectors apart by at most {apart:.1e}")


if __name__ == "__main__":
    main()
