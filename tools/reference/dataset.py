"""Writes and reads a reference data set: inputs.jsonl.zst, what the reference gave for them, and reference.json.

README.md in this folder gives the formats. The digests are of the uncompressed files, since compressed bytes depend
on the version of zstd.
"""

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import pathlib
import platform

import numpy
import zstandard

SCHEMA = 1
INPUTS = "inputs.jsonl"
VECTORS = "reference.f32"
SCORES = "scores.f32"
ANSWERS = "answers.jsonl"
PROVENANCE = "reference.json"
ZSTD_LEVEL = 19
LIBRARIES = ("sentence-transformers", "transformers", "torch", "tokenizers", "numpy")


def recorder(doc):
    """Returns the argument parser that all recorders begin with."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--recorded-on", type=datetime.date.fromisoformat, required=True, help="date for the provenance, YYYY-MM-DD"
    )
    return parser


def local_recorder(doc):
    """Returns the argument parser of recorders whose model was made here and has no package."""
    parser = recorder(doc)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--name", required=True, help="of the model, for the provenance")
    return parser


def write(folder, rows, vectors, source, encoder, recorded_on):
    """Writes the three files into `folder`; `vectors` is [len(rows), dims] float32, in the order of `rows`."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = json_lines(rows)
    matrix = numpy.ascontiguousarray(vectors, dtype="<f4").tobytes()
    provenance = {
        "schema": SCHEMA,
        "model": {"name": source.name, "licence": source.licence},
        "package": {
            "registry": source.registry,
            "name": source.package,
            "version": source.version,
            "sha256": source.package_sha256,
            "weights": {"file": source.weights, "sha256": source.weights_sha256},
            "tokenizer": {"file": source.tokenizer, "sha256": source.tokenizer_sha256},
        },
        "encoding": {
            "dtype": "float32",
            "byte_order": "little",
            "pooling": source.pooling,
            "normalized": True,
            "dims": encoder.dims,
            "max_tokens": encoder.limit,
            "attention": encoder.attention,
        },
        "inputs": {"count": len(rows), "tokens": sum(len(row["ids"]) for row in rows), "sha256": sha256(lines)},
        "vectors": {"sha256": sha256(matrix)},
        "libraries": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in LIBRARIES},
        # The last bits of a float32 product depend on the vector instructions that computed it.
        "cpu": {"architecture": platform.machine(), "capability": encoder.capability},
        "recorded_on": recorded_on.isoformat(),
    }
    compress(folder / f"{INPUTS}.zst", lines)
    compress(folder / f"{VECTORS}.zst", matrix)
    (folder / PROVENANCE).write_text(json.dumps(provenance, indent=2) + "\n")


def write_task(folder, inputs, reference, provenance, recorded_on):
    """Writes a data set of another task than embedding.

    `reference` is (member of the provenance, file, bytes, further members of it). `provenance` is what the recorder
    knows of the model and of how it was run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    member, file, data, more = reference
    lines = json_lines(inputs)
    compress(folder / f"{INPUTS}.zst", lines)
    compress(folder / f"{file}.zst", data)
    provenance = (
        {"schema": SCHEMA}
        | provenance
        | {
            "inputs": {"count": len(inputs), "sha256": sha256(lines)},
            member: more | {"sha256": sha256(data)},
            "libraries": {"python": platform.python_version()}
            | {name: importlib.metadata.version(name) for name in ("transformers", "torch", "tokenizers", "numpy")},
            "cpu": {"architecture": platform.machine(), "capability": torch_capability()},
            "recorded_on": recorded_on.isoformat(),
        }
    )
    (folder / PROVENANCE).write_text(json.dumps(provenance, indent=2) + "\n")


def torch_capability():
    """Returns the CPU's vector instructions that torch chose. torch is imported here: make_people.py has none."""
    import torch

    return torch.backends.cpu.get_cpu_capability()


def read(folder):
    """Returns (rows, vectors [count, dims] float32, provenance). Raises ValueError if a digest or a size is wrong."""
    provenance = json.loads((folder / PROVENANCE).read_text())
    if provenance["schema"] != SCHEMA:
        raise ValueError(f"{folder / PROVENANCE}: schema {provenance['schema']}, this script reads {SCHEMA}")
    lines = _decompress(folder / f"{INPUTS}.zst", provenance["inputs"]["sha256"])
    matrix = _decompress(folder / f"{VECTORS}.zst", provenance["vectors"]["sha256"])
    rows = [json.loads(line) for line in lines.decode().split("\n")[:-1]]
    if len(rows) != provenance["inputs"]["count"]:
        raise ValueError(f"{folder}: {len(rows)} inputs, {PROVENANCE} says {provenance['inputs']['count']}")
    vectors = numpy.frombuffer(matrix, dtype="<f4").reshape(len(rows), provenance["encoding"]["dims"])
    return rows, vectors, provenance


def json_lines(objects):
    """Returns the UTF-8 bytes of one compact JSON object a line, every line ended."""
    return "".join(json.dumps(o, ensure_ascii=False, separators=(",", ":")) + "\n" for o in objects).encode()


def compress(path, data):
    """Writes `data` to `path` as one zstd frame with a checksum."""
    path.write_bytes(zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True).compress(data))


def _decompress(path, want):
    data = zstandard.ZstdDecompressor().decompress(path.read_bytes())
    if sha256(data) != want:
        raise ValueError(
            f"{path}: the uncompressed bytes are not those that {PROVENANCE} names; restore the file from git"
        )
    return data


def sha256(data):
    """Returns the SHA-256 of `data` as lower-case hex."""
    return hashlib.sha256(data).hexdigest()
