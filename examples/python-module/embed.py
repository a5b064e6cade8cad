"""Embeds one row of token ids and prints the vector as JSON.

    python3 embed.py WORKER MODEL FORMAT 101,7592,2088,102 --config '{"pooling": "mean"}'
"""

import argparse
import json

import synapse_worker

parser = argparse.ArgumentParser()
parser.add_argument("worker", help="the worker's executable")
parser.add_argument("model", help="the model's file")
parser.add_argument("format", help="gguf, onnx or fake")
parser.add_argument("ids", type=lambda text: [int(word) for word in text.split(",")], help="token ids, 101,7592,...")
parser.add_argument("--config", type=json.loads, default={}, help="runtime_config as JSON")
options = parser.parse_args()

with synapse_worker.Worker(options.worker) as worker:
    model = worker.load(options.model, options.format, options.config)
    (vector,) = worker.embed(model["model_ref"], [options.ids])
    print(json.dumps(vector.tolist()))
