"""A whole worker of the engine-worker protocol in Python's standard library: a toy engine behind the real wire.

It embeds rows of ids 0..99 with vectors that are a function of the ids, and holds to every rule that certify protocol
tries. A module starts it with --socket PATH --nonce HEX.
"""

import argparse
import hashlib
import json
import math
import os
import re
import resource
import socket
import struct
import sys

OK, USAGE, IO, VIOLATION, REFUSED = 0, 64, 74, 76, 77
HANDSHAKE_MAX_FRAME = 64 << 10
MAX_FRAME = 1 << 20
SOCKET_PATH_BYTES = 104 if sys.platform == "darwin" else 108
ENGINE = {"name": "toy", "version": "1", "build_flags": []}
DIMS, MAX_TOKENS, VOCAB_SIZE, POOLINGS = 4, 16, 100, ("mean", "last")
RAW_FRAMES = {"EMBED_BATCH": 1, "RERANK": 1, "GENERATE": 1, "VECTORS": 1, "SCORES": 1}
SPACE = re.compile(r"[ \t\n\r]*")


class Violation(Exception):
    """The stream cannot be trusted any more."""


class Refusal(Exception):
    """The request is answered with ERR of the first argument's code."""


class Stream:
    """Frames over a connected socket."""

    def __init__(self, connection):
        self._connection = connection
        self._file = connection.makefile("rb")
        self.limit = HANDSHAKE_MAX_FRAME

    def control(self):
        """Returns the next control frame's payload, or None at the end of the stream between two frames."""
        head = self._file.read(4)
        if not head:
            return None
        payload = self._payload(head)
        if not payload:
            raise Violation("a control frame of length 0")
        return payload

    def raw(self):
        return self._payload(self._file.read(4))

    def _payload(self, head):
        if len(head) < 4:
            raise Violation("the stream ended inside a frame's length")
        (length,) = struct.unpack("<I", head)
        if length > self.limit:
            raise Violation(f"a frame of {length} bytes is over the limit of {self.limit}")
        payload = self._file.read(length)
        if len(payload) < length:
            raise Violation("the stream ended inside a frame's payload")
        return payload

    def send(self, message, *raw):
        frames = [message.encode(), *raw]
        self._connection.sendall(b"".join(struct.pack("<I", len(f)) + f for f in frames))


class Header:
    """A control frame: its type, and each member's value and JSON text, in order."""

    def __init__(self, payload):
        try:
            text = payload.decode("utf-8")
            self.members = _members(text)
        except ValueError as error:
            raise Violation(f"a control frame is not a JSON object in UTF-8: {error}") from None
        types = [value for name, value, _ in self.members if name == "type"]
        if len(types) != 1 or not isinstance(types[0], str) or not types[0]:
            raise Violation("a control frame has no type, two, or one that is no name")
        self.type = types[0]
        ids = [(value, source) for name, value, source in self.members if name == "req_id"]
        self.req_id = ids[0][1] if len(ids) == 1 and _is_id(*ids[0]) else "null"

    def get(self, name, kind, default=...):
        values = [value for member, value, _ in self.members if member == name]
        if not values and default is not ...:
            return default
        if len(values) != 1 or not isinstance(values[0], kind) or (isinstance(values[0], bool) and kind is not bool):
            raise Refusal("request_invalid", f"{self.type}: the member {name!r} is missing, doubled or of the wrong kind")
        return values[0]


def _members(text):
    """Returns [(name, value, the value's own text)] of the JSON object that `text` is."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    at = SPACE.match(text).end()
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    members, at = [], SPACE.match(text, at + 1).end()
    while text[at : at + 1] != "}":
        if members:
            if text[at : at + 1] != ",":
                raise ValueError(f"a comma is due at {at}")
            at = SPACE.match(text, at + 1).end()
        if text[at : at + 1] != '"':
            raise ValueError(f"a name is due at {at}")
        name, at = decoder.raw_decode(text, at)
        at = SPACE.match(text, at).end()
        if text[at : at + 1] != ":":
            raise ValueError(f"a colon is due at {at}")
        start = SPACE.match(text, at + 1).end()
        value, at = decoder.raw_decode(text, start)
        members.append((name, value, text[start:at]))
        at = SPACE.match(text, at).end()
    if SPACE.match(text, at + 1).end() != len(text):
        raise ValueError("bytes after the object")
    return members


def _no_constant(name):
    raise ValueError(f"{name} is no JSON")


def _is_id(value, source):
    if isinstance(value, str):
        return len(source.encode()) - 2 <= 128
    return isinstance(value, (int, float)) and not isinstance(value, bool) and len(source) <= 128


class Worker:
    """The models of this process and what can be asked of them."""

    def __init__(self):
        self._models = set()
        self._loads = 0

    def answer(self, header, raw, limit):
        """Returns (message, *raw frames). Raises Refusal."""
        handlers = {
            "PING": self.ping, "LOAD": self.load, "DESCRIBE": self.describe, "UNLOAD": self.unload,
            "EMBED_BATCH": self.embed, "RERANK": self.rerank, "GENERATE": self.generate,
        }
        if header.type not in handlers:
            raise Refusal("unknown_type", f"{header.type[:64]!r} is no request that this worker knows")
        if header.req_id == "null":
            raise Refusal("request_invalid", f"{header.type}: req_id must be a number or a string of at most 128 bytes")
        return handlers[header.type](header, raw, limit)

    def ping(self, header, raw, limit):
        rss = max(1, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
        return (message("PONG", header, rss_mb=rss, models_loaded=len(self._models)),)

    def load(self, header, raw, limit):
        path, digest = header.get("artifact_path", str), header.get("artifact_digest", str)
        model_format, config = header.get("format", str), header.get("runtime_config", dict, {})
        if not re.fullmatch("sha256:[0-9a-f]{64}", digest):
            raise Refusal("request_invalid", "artifact_digest: wanted sha256: and 64 hex digits")
        if model_format != "toy":
            raise Refusal("artifact_invalid", f"format {model_format[:64]!r}: this engine loads toy")
        for name in config:
            raise Refusal("config_invalid", f"runtime_config.{name}: this engine has no options")
        try:
            with open(path, "rb") as file:
                found = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise Refusal("artifact_invalid", f"{path}: {error.strerror}") from None
        if found != digest:
            raise Refusal("artifact_invalid", f"{path} has the digest {found}")
        self._loads += 1
        ref = f"toy-{self._loads}"
        self._models.add(ref)
        return (message("LOADED", header, model_ref=ref, dims=DIMS, cold_load_ms=0),)

    def _model(self, header):
        ref = header.get("model_ref", str)
        if ref not in self._models:
            raise Refusal("model_not_found", f"no model {ref[:64]!r} is loaded")
        return ref

    def describe(self, header, raw, limit):
        self._model(header)
        return (message(
            "DESCRIPTION", header, engine=ENGINE, arch="toy", dims=DIMS, max_tokens=MAX_TOKENS, vocab_size=VOCAB_SIZE,
            pooling=POOLINGS, default_pooling="mean", rerank=False, generate=False, grammar=False, config={},
        ),)

    def unload(self, header, raw, limit):
        self._models.remove(self._model(header))
        return (message("UNLOADED", header),)

    def embed(self, header, raw, limit):
        header.get("model_ref", str)
        normalize, items = header.get("normalize", bool), header.get("items", list)
        pooling = header.get("pooling", str, "")
        lengths = [_length(item) for item in items]
        self._model(header)
        if pooling not in ("", *POOLINGS):
            raise Refusal("unsupported", f"pooling {pooling[:64]!r}: this model has {POOLINGS}")
        rows = _rows(raw, lengths)
        if len(rows) * DIMS * 4 > limit:
            raise Refusal("response_too_large", f"{len(rows)} rows of {DIMS} values do not fit a frame of {limit} bytes")
        vectors = [_vector(row, pooling, normalize) for row in rows]
        values = [value for vector in vectors for value in vector]
        return message("VECTORS", header, dims=DIMS, n=len(rows)), struct.pack(f"<{len(values)}f", *values)

    def rerank(self, header, raw, limit):
        header.get("query_n_tokens", int), header.get("candidates", list)
        self._model(header)
        raise Refusal("unsupported", "RERANK: the model has no ranking head")

    def generate(self, header, raw, limit):
        header.get("max_tokens", int)
        self._model(header)
        raise Refusal("unsupported", "GENERATE: the model is an encoder")


def _length(item):
    value = item.get("n_tokens") if isinstance(item, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refusal("request_invalid", "items: each has an n_tokens, a whole number")
    return value


def _rows(raw, lengths):
    if len(raw) % 4:
        raise Refusal("request_invalid", f"a raw frame of {len(raw)} bytes is no whole number of ids")
    ids = struct.unpack(f"<{len(raw) // 4}i", raw)
    for n, length in enumerate(lengths):
        if not 1 <= length <= MAX_TOKENS:
            raise Refusal("request_invalid", f"items[{n}] has {length} tokens, this model takes 1 to {MAX_TOKENS}")
    if sum(lengths) != len(ids):
        raise Refusal("request_invalid", f"the raw frame holds {len(ids)} ids, the header's lengths sum to {sum(lengths)}")
    for i in ids:
        if not 0 <= i < VOCAB_SIZE:
            raise Refusal("request_invalid", f"id {i}: this model's vocabulary is 0 to {VOCAB_SIZE - 1}")
    ends = [sum(lengths[: n + 1]) for n in range(len(lengths))]
    return [ids[end - length : end] for end, length in zip(ends, lengths)]


def _vector(row, pooling, normalize):
    pooled = row[-1:] if pooling == "last" else row
    vector = [sum(math.sin((i + 1) * (j + 1)) for i in pooled) / len(pooled) for j in range(DIMS)]
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if normalize and length else vector


def message(kind, header, **members):
    """Returns the JSON of an answer, whose req_id is the request's own text."""
    rest = json.dumps(members)[1:-1]
    return f'{{"type":"{kind}","req_id":{header.req_id}' + (f",{rest}}}" if rest else "}")


def handshake(stream, nonce):
    """Says HELLO and returns whether the module accepts this worker. Raises Violation."""
    hello = {"type": "HELLO", "v": 1, "nonce": nonce, "engine": ENGINE, "pid": os.getpid(), "max_frame": MAX_FRAME}
    stream.send(json.dumps(hello))
    payload = stream.control()
    if payload is None:
        return False
    ack = Header(payload)
    try:
        if ack.type != "HELLO_ACK":
            raise Violation(f"{ack.type[:64]} where HELLO_ACK is due")
        if not ack.get("accept", bool) or ack.get("v", int) != 1:
            return False
        stream.limit = ack.get("max_frame", int)
    except Refusal as error:
        raise Violation(str(error.args[1])) from None
    if not HANDSHAKE_MAX_FRAME <= stream.limit <= MAX_FRAME:
        raise Violation(f"HELLO_ACK sets max_frame to {stream.limit}")
    return True


def serve(stream):
    """Answers requests until SHUTDOWN or the end of the stream. Raises Violation."""
    worker = Worker()
    while (payload := stream.control()) is not None:
        header = Header(payload)
        frames = RAW_FRAMES.get(header.type)
        if header.type not in ("EMBED_BATCH", "RERANK", "GENERATE"):
            known = header.type in ("PING", "LOAD", "DESCRIBE", "UNLOAD", "SHUTDOWN")
            announced = [value for name, value, _ in header.members if name == "raw_frames"]
            frames = announced[-1] if announced and not known else 0
            if not isinstance(frames, int) or isinstance(frames, bool) or not 0 <= frames <= 16:
                raise Violation(f"raw_frames {frames!r}, legal is 0 to 16")
        raw = [stream.raw() for _ in range(frames)]
        if header.type == "SHUTDOWN":
            return
        try:
            answer = worker.answer(header, b"".join(raw), stream.limit)
        except Refusal as refusal:
            code, msg = refusal.args
            answer = (message("ERR", header, code=code, msg=msg),)
        stream.send(*answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket")
    parser.add_argument("--nonce")
    parser.add_argument("--version", action="store_true")
    arguments = parser.parse_args()
    if arguments.version:
        print(json.dumps({"worker": "toy", "engine": ENGINE}))
        return OK
    if not arguments.socket or not arguments.nonce or len(arguments.socket) >= SOCKET_PATH_BYTES:
        print("worker: --socket (a path that the system takes) and --nonce are needed", file=sys.stderr)
        return USAGE
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(arguments.socket)
        stream = Stream(connection)
        if not handshake(stream, arguments.nonce):
            print("worker: the module refused this worker", file=sys.stderr)
            return REFUSED
        serve(stream)
    except Violation as violation:
        print(f"worker: protocol violation: {violation}", file=sys.stderr)
        return VIOLATION
    except OSError as error:
        print(f"worker: {error}", file=sys.stderr)
        return IO
    return OK


if __name__ == "__main__":
    sys.exit(main())
