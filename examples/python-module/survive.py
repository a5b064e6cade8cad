"""Lets a worker crash, hang and refuse, and goes on: each step is a line of JSON on stdout.

    python3 survive.py WORKER_FAKE MODEL
"""

import json
import sys

from synapse_worker import EngineCrashed, Refused, Worker

path, file = sys.argv[1:]
ROWS = [[11, 72, 12], [11, 28, 12, 9]]


def say(step, **what):
    print(json.dumps({"step": step} | what), flush=True)


def embed(worker, timeout=60, **config):
    model = worker.load(file, "fake", config)
    return worker.embed(model["model_ref"], ROWS, timeout=timeout)


worker = Worker(path)
say("started", engine=worker.engine["name"])
say("embedded", vectors=[vector.tolist() for vector in embed(worker)])

# A refusal leaves the worker as it was.
try:
    embed(worker, max_tokens=2)
except Refused as refusal:
    say("refused", code=refusal.code, message=str(refusal))
say("served on", models=worker.ping()["models_loaded"])

# A crash leaves the module as it was. The worker is gone: count the crash against this model and its config, and
# start another.
try:
    embed(worker, fault="last_words", fault_bytes=100000)
except EngineCrashed as crash:
    say("crashed", stage=crash.stage, cause=crash.cause, tail=len(crash.log_tail), last=crash.log_tail.splitlines()[-1])
try:
    worker.ping()
except RuntimeError as error:
    say("gone", message=str(error))

# A hang is a crash too, when the request's deadline has passed.
try:
    embed(Worker(path), timeout=0.5, fault="hang")
except EngineCrashed as crash:
    say("crashed", stage=crash.stage, cause=crash.cause, status=crash.status)

worker = Worker(path)
say("embedded", vectors=[vector.tolist() for vector in embed(worker)])
say("closed", status=worker.close())
