"""A module's side of the Synapse engine-worker protocol, in Python's standard library.

One Worker is one process with one engine. Three things can come back from a request: its answer, Refused (the worker
is sound and serves the next request) or EngineCrashed (the process is dead and reaped; start another).

docs/protocol.md is the wire. This file is for Linux and macOS: on Windows the same frames go over a named pipe, which
Python's standard library cannot serve.
"""

import array
import contextlib
import hashlib
import hmac
import itertools
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

VERSION = 1
HANDSHAKE_MAX_FRAME = 64 << 10  # fixed by the protocol until HELLO_ACK
MAX_FRAME = 64 << 20  # what this side offers
LOG_TAIL = 8 << 10  # bytes of the worker's log that a crash carries
START_TIMEOUT = 60  # seconds; an engine's libraries may come from a cold disk
LOAD_TIMEOUT = 3600  # Core ML compiles a model at its first load, which can take many minutes
REQUEST_TIMEOUT = 120
SHUTDOWN_TIMEOUT = 30
LAST_WORDS = 1  # seconds for a worker that closed its connection to finish dying: what it dies of is the news
ACCEPT_POLL = 0.05  # seconds between two looks at whether the worker has died before it connected


class Refused(Exception):
    """The worker answered ERR and serves on. code is one of the protocol's."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class EngineCrashed(Exception):
    """The worker is dead and reaped.

    stage is the request that it died of ("hello" before the first); cause is "timeout", "signal", "exit", "eof" or
    "violation"; status is the exit status, or the negative number of the signal that ended the process.
    """

    def __init__(self, stage, cause, status, detail, log_tail):
        ending = signal.strsignal(-status) if status < 0 else f"exit status {status}"
        super().__init__(f"engine crashed in stage {stage}, cause {cause} ({ending}): {detail}")
        self.stage, self.cause, self.status, self.log_tail = stage, cause, status, log_tail


class _Violation(Exception):
    """The worker broke the protocol: its stream cannot be trusted any more."""


class Worker:
    """A started worker. Its methods may be called from any thread; one request at a time is on the wire."""

    def __init__(self, path, *args, timeout=START_TIMEOUT):
        self._requests = itertools.count(1)
        self._one_at_a_time = threading.Lock()
        self._limit = HANDSHAKE_MAX_FRAME
        self._log = _Log()
        self._connection = None
        # A private directory, so that nobody else can connect; a short name, because a socket's path has 104 bytes.
        directory = tempfile.mkdtemp(prefix="synapse-")
        try:
            with socket.socket(socket.AF_UNIX) as listener:
                address = os.path.join(directory, "s")
                listener.bind(address)
                listener.listen(1)
                nonce = secrets.token_hex(16)
                try:
                    self._process = subprocess.Popen(
                        [os.path.abspath(path), "--socket", address, "--nonce", nonce, *args],
                        stdin=subprocess.DEVNULL,
                        stdout=self._log.writer,
                        stderr=self._log.writer,
                        cwd="/",
                        env={"SYNAPSE_WORKER_ID": f"worker-{nonce[:8]}"},  # and nothing of the module's own
                        start_new_session=True,  # Ctrl-C at a terminal is the module's to handle
                    )
                finally:
                    self._log.follow()
                with self._fatal("hello"):
                    self._meet(listener, nonce, time.monotonic() + timeout)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    @property
    def pid(self):
        return self._process.pid

    def load(self, path, format, config=None, timeout=LOAD_TIMEOUT):
        """Loads a model and returns LOADED, whose "model_ref" names it in requests to this worker."""
        message = {
            "type": "LOAD",
            "artifact_path": os.path.abspath(path),
            "artifact_digest": file_digest(path),
            "format": format,
            "runtime_config": config or {},
        }
        return self._request("load", message, "LOADED", timeout)

    def embed(self, model_ref, rows, pooling="", normalize=True, timeout=REQUEST_TIMEOUT):
        """Returns one array('f') for each row of token ids, in order."""
        message = {
            "type": "EMBED_BATCH",
            "model_ref": model_ref,
            "pooling": pooling,
            "normalize": normalize,
            "items": [{"id": i, "n_tokens": len(row)} for i, row in enumerate(rows)],
        }
        ids = _little_endian(array.array("i", itertools.chain.from_iterable(rows)))
        answer, values = self._request("embed", message, "VECTORS", timeout, ids.tobytes())
        dims = answer["dims"]
        return [values[i * dims : (i + 1) * dims] for i in range(len(rows))]

    def ping(self, timeout=REQUEST_TIMEOUT):
        """Returns PONG: "rss_mb", "models_loaded", and "placement_share" where it applies."""
        return self._request("ping", {"type": "PING"}, "PONG", timeout)

    def close(self, timeout=SHUTDOWN_TIMEOUT):
        """Has the worker free its models and end, and returns its exit status. A worker that does not end is killed."""
        with self._one_at_a_time:
            if self._process.poll() is None:
                try:
                    self._send(self._frames({"type": "SHUTDOWN"}), time.monotonic() + timeout)
                    self._process.wait(timeout)
                except (OSError, subprocess.TimeoutExpired):
                    self._process.kill()
            return self._bury()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _meet(self, listener, nonce, deadline):
        """Lets the worker in and shakes hands."""
        listener.settimeout(ACCEPT_POLL)
        while self._connection is None:
            try:
                self._connection, _ = listener.accept()
            except TimeoutError:
                if self._process.poll() is not None:
                    raise EOFError("it ended before it connected") from None
                if time.monotonic() > deadline:
                    raise
        hello = self._receive_message(deadline)
        if hello["type"] != "HELLO" or hello["v"] != VERSION or hello["pid"] != self.pid:
            raise _Violation(f"not the HELLO of this process: {hello}")
        # A worker of an earlier module, or of somebody else, does not know the nonce.
        if not hmac.compare_digest(hello["nonce"], nonce):
            raise _Violation("the nonce of its HELLO is not the one that it was started with")
        self.engine = hello["engine"]
        limit = min(hello["max_frame"], MAX_FRAME)
        self._send(self._frames({"type": "HELLO_ACK", "v": VERSION, "accept": True, "max_frame": limit}), deadline)
        self._limit = limit

    def _request(self, stage, message, answer_type, timeout, raw=None):
        """Returns the answer, and the values of its raw frame where the request has one."""
        deadline = time.monotonic() + timeout
        with self._one_at_a_time:
            if self._process.returncode is not None:
                raise RuntimeError(f"worker {self.pid} is gone: start another")
            message["req_id"] = next(self._requests)
            data = self._frames(message, raw)
            with self._fatal(stage):
                self._send(data, deadline)
                answer = self._receive_message(deadline)
                if answer["req_id"] != message["req_id"]:
                    raise _Violation(f"the answer to another request: {answer}")
                if answer["type"] == "ERR":
                    raise Refused(answer["code"], answer["msg"])
                if answer["type"] != answer_type:
                    raise _Violation(f"{answer['type']} where {answer_type} is due")
                if raw is None:
                    return answer
                values = self._receive_frame(deadline)
                if answer["n"] != len(message["items"]) or len(values) != 4 * answer["n"] * answer["dims"]:
                    raise _Violation(f"{len(values)} bytes of values do not fit {answer}")
                return answer, _little_endian(array.array("f", values))

    @contextlib.contextmanager
    def _fatal(self, stage):
        """Ends the worker, and raises EngineCrashed, for whatever leaves the stream in no known state."""
        cause = "violation"  # also a member that is missing or of another type
        try:
            yield
            return
        except Refused:
            raise
        except TimeoutError as caught:
            error, cause = caught, "timeout"
        except (EOFError, OSError) as caught:
            error = caught
            try:
                cause = "signal" if self._process.wait(LAST_WORDS) < 0 else "exit"
            except subprocess.TimeoutExpired:
                cause = "eof"
        except Exception as caught:
            error = caught
        except BaseException:  # the module itself is being interrupted, with an answer still due
            self._process.kill()
            self._bury()
            raise
        self._process.kill()  # signals nothing that was reaped
        raise EngineCrashed(stage, cause, self._bury(), error, self._log.tail()) from error

    def _frames(self, message, raw=None):
        """Returns the bytes of a message. Its errors come before anything is sent, so the worker is as it was."""
        frames = [json.dumps(message, allow_nan=False).encode()] + ([] if raw is None else [raw])
        for frame in frames:
            if len(frame) > self._limit:
                raise ValueError(f"a frame of {len(frame)} bytes is over the limit of {self._limit}: send fewer rows")
        return b"".join(struct.pack("<I", len(frame)) + frame for frame in frames)

    def _send(self, data, deadline):
        self._connection.settimeout(_left(deadline))
        self._connection.sendall(data)

    def _receive_message(self, deadline):
        try:
            message = json.loads(self._receive_frame(deadline), object_pairs_hook=_unique)
        except ValueError as error:
            raise _Violation(f"a control frame is no JSON object: {error}") from None
        if not isinstance(message, dict):
            raise _Violation("a control frame is no JSON object")
        return message

    def _receive_frame(self, deadline):
        (length,) = struct.unpack("<I", self._receive(4, deadline))
        if length > self._limit:
            raise _Violation(f"a frame of {length} bytes is over the limit of {self._limit}")
        return self._receive(length, deadline)

    def _receive(self, n, deadline):
        data = bytearray()  # grows with what arrives: an announced length alone costs nothing
        while len(data) < n:
            self._connection.settimeout(_left(deadline))
            piece = self._connection.recv(min(n - len(data), 1 << 16))
            if not piece:
                raise EOFError("it closed its connection")
            data += piece
        return bytes(data)

    def _bury(self):
        """Waits for the process and the end of its log, and returns the exit status."""
        status = self._process.wait()
        if self._connection is not None:
            self._connection.close()
        self._log.finish()
        return status


class _Log:
    """Takes what a worker writes to stdout and stderr, always, and keeps the end of it."""

    def __init__(self):
        self._reader, self.writer = os.pipe()
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._drain, daemon=True)

    def follow(self):
        os.close(self.writer)  # the worker has its own; ours would hide the end of the log
        self._thread.start()

    def _drain(self):
        with open(self._reader, "rb", buffering=0) as reader:
            while piece := reader.read(1 << 15):
                self._kept += piece
                del self._kept[:-LOG_TAIL]

    def finish(self):
        self._thread.join(LAST_WORDS)

    def tail(self):
        return self._kept.decode(errors="replace")


def file_digest(path):
    """Returns the digest of a file as LOAD carries it. A module takes it from its manifest instead."""
    with open(path, "rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def _left(deadline):
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline passed")
    return left


def _unique(pairs):
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member stands there twice")
    return members


def _little_endian(values):
    if sys.byteorder == "big":
        values.byteswap()
    return values
