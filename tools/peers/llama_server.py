"""Compares worker-llama with llama-server on this machine: the same libraries, model, ids and threads, turn by turn.

    python3 llama_server.py embed --worker ../../bin/worker-llama --libs ../../out/llama-libs --model MINILM.gguf
    python3 llama_server.py generate --worker ... --libs ... --model SMOLLM2.gguf

LIBS is what tools/llama-libs/build.sh makes with SERVER=1: the libraries, and llama-server from the same sources. Needs
Python's standard library alone. The CPU time is that of worker and server; the cost of driving them is left out. What
the two answer is compared first: a speed of something else is not printed.

The figures are medians of the rounds' ratios: machines are noisy, and both sides of a ratio were measured in one round.
"""

import argparse
import array
import http.client
import json
import math
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "examples" / "python-module"))

from synapse_worker import Worker  # noqa: E402

ROWS, BATCH = 128, 32  # rows of 8 to 256 ids; a request has a batch of them
PROMPT = [6403, 1980, 253, 655]  # "Once upon a time" for SmolLM2
TOKENS = 96
START_SECONDS = 60
ANSWER_SECONDS = 600

# Cosines of llama-server's vectors to the worker's: it computes GELU by its tanh form, the worker as it is told.
LEAST_COSINE = {"tanh": 0.999999, "erf": 0.99999}


def cpu_of(pid):
    """Seconds of CPU that a process has used, by its clock (clock_getcpuclockid): /proc counts whole ticks of 10 ms, which
    are percents of a round of generation."""
    return time.clock_gettime((~pid << 3) | 2)


class Ours:
    """worker-llama behind its socket."""

    def __init__(self, args, gelu):
        self.worker = Worker(args.worker, "--engine-lib", os.path.abspath(args.libs))
        config = {"threads": args.threads, "gelu": gelu}
        if args.task == "generate":
            config["context_length"] = 1024
        self.ref = self.worker.load(os.path.abspath(args.model), "gguf", config)["model_ref"]
        self.pid = self.worker.pid
        self.name = f"worker-llama, gelu {gelu}"

    def embed(self, rows):
        return self.worker.embed(self.ref, rows)

    def generate(self):
        # The example's client embeds alone; its frames serve for this message too.
        message = {"type": "GENERATE", "req_id": next(self.worker._requests), "model_ref": self.ref, "max_tokens": TOKENS}
        deadline = time.monotonic() + ANSWER_SECONDS
        self.worker._send(self.worker._frames(message, array.array("i", PROMPT).tobytes()), deadline)
        return self.worker._receive_message(deadline)["text"]

    def close(self):
        self.worker.close()


class Server:
    """llama-server behind HTTP, set up as it is fastest for the task."""

    def __init__(self, args):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [os.path.join(args.libs, "llama-server"), "-m", args.model, "--host", "127.0.0.1", "--port", str(port)]
        command += ["-t", str(args.threads), "-tb", str(args.threads), "--no-warmup"]
        if args.task == "embed":
            command += ["--embeddings", "--pooling", "mean", "-np", "8", "-b", "512", "-ub", "512", "-c", "4096"]
        else:
            command += ["-np", "1", "-c", "1024"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pid, self.port, self.name = self.process.pid, port, "llama-server"
        deadline = time.monotonic() + START_SECONDS
        while not self.healthy():
            if time.monotonic() > deadline or self.process.poll() is not None:
                sys.exit("llama-server does not come up")
            time.sleep(0.2)

    def healthy(self):
        try:
            return self.ask("GET", "/health", None)[0] == 200
        except OSError:
            return False

    def ask(self, method, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data

    def post(self, path, body):
        status, data = self.ask("POST", path, body)
        if status != 200:
            sys.exit(f"llama-server: {status} {data[:300]!r}")
        return json.loads(data)

    def embed(self, rows):
        answers = self.post("/v1/embeddings", {"input": rows})["data"]
        return [a["embedding"] for a in sorted(answers, key=lambda a: a["index"])]

    def generate(self):
        body = {"prompt": PROMPT, "n_predict": TOKENS, "temperature": 0, "top_k": 1, "samplers": ["top_k"]}
        return self.post("/completion", {**body, "cache_prompt": False})["content"]

    def close(self):
        self.process.terminate()
        self.process.wait()


def draw_rows():
    draw = random.Random(7)
    return [[101, *(draw.randrange(1000, 29000) for _ in range(draw.randint(6, 254))), 102] for _ in range(ROWS)]


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def same_answers(task, sides, server, rows):
    """Exits unless all sides compute the same."""
    if task == "generate":
        texts = {side.generate() for side in [*sides, server]}
        if len(texts) != 1:
            sys.exit(f"the texts differ: {texts}")
        return
    want = server.embed(rows[:BATCH])
    for side in sides:
        low = min(cosine(a, b) for a, b in zip(side.embed(rows[:BATCH]), want))
        if not low >= LEAST_COSINE[side.name.rsplit(" ", 1)[1]]:
            sys.exit(f"{side.name} and llama-server are a cosine of {low} apart")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["embed", "generate"])
    parser.add_argument("--worker", required=True)
    parser.add_argument("--libs", required=True, help="directory of the libraries and of llama-server")
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()

    rows = draw_rows()
    server = Server(args)
    sides = [Ours(args, gelu) for gelu in (("tanh", "erf") if args.task == "embed" else ("tanh",))]
    same_answers(args.task, sides, server, rows)
    tokens = sum(map(len, rows)) if args.task == "embed" else TOKENS

    def measure(side):
        cpu, wall = cpu_of(side.pid), time.perf_counter()
        if args.task == "embed":
            for start in range(0, len(rows), BATCH):
                side.embed(rows[start : start + BATCH])
        else:
            side.generate()
        return tokens / (time.perf_counter() - wall), tokens / (cpu_of(side.pid) - cpu)

    rounds = []
    for n in range(args.rounds):
        order = [server, *sides] if n % 2 == 0 else [*reversed(sides), server]
        rounds.append({side: measure(side) for side in order})
    for side in [server, *sides]:
        side.close()
    print(f"{args.task}: {tokens} tokens, {args.threads} threads, {args.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    for side in [server, *sides]:
        line = f"  {side.name:24}"
        for unit, k in ("tokens/s", 0), ("tokens/CPU-s", 1):
            ratios = [r[side][k] / r[server][k] for r in rounds]
            line += f"  {statistics.median(r[side][k] for r in rounds):6.0f} {unit}, ratio {statistics.median(ratios):.2f}"
            line += f" ({min(ratios):.2f} to {max(ratios):.2f})"
        print(line)


if __name__ == "__main__":
    main()
