"""An embedding service on the loopback interface that answers, or fails, as a test scripts it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: Any
    at: float


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    drip: bool = False
    promise: int = 0
    """Bytes that Content-Length promises beyond those sent."""


Answer = Callable[[Request], Reply]


@dataclass
class Stub:
    url: str
    port: int
    requests: list[Request] = field(default_factory=list)
    script: list[Answer] = field(default_factory=list)
    """Answers in order; the last one repeats."""
    released: threading.Event = field(default_factory=threading.Event)

    def texts(self) -> list[list[str]]:
        return [request.body["input"] for request in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: Stub

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, json.loads(raw), time.monotonic())
        self.stub.requests.append(request)
        answer = self.stub.script.pop(0) if len(self.stub.script) > 1 else self.stub.script[0]
        self._send(answer(request))

    def _send(self, reply: Reply) -> None:
        if reply.hang:
            self.stub.released.wait(30)
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body) + reply.promise))
        self.end_headers()
        if reply.drip:
            for byte in reply.body:
                if self.stub.released.wait(0.02):
                    break
                self.wfile.write(bytes([byte]))
        else:
            self.wfile.write(reply.body)
        self.close_connection = bool(reply.promise) or reply.drip

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a client that left."""


@contextmanager
def serving(*script: Answer) -> Iterator[Stub]:
    server = _Server(("127.0.0.1", 0), _Handler)
    port = server.server_address[1]
    stub = Stub(f"http://127.0.0.1:{port}", port, script=list(script))
    server.RequestHandlerClass = type("Handler", (_Handler,), {"stub": stub})
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield stub
    finally:
        stub.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def vector_of(text: str) -> list[float]:
    """A direction that depends on the text."""
    return [float(len(text)), 1.0, float(sum(map(ord, text)) % 7), -2.0]


def embeddings(provider: str, vectors: Sequence[object]) -> object:
    if provider == "ollama":
        return {"model": "m", "embeddings": list(vectors)}
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "m", "usage": {"total_tokens": 1}}


def as_json(value: object, status: int = 200, **headers: str) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


def well(provider: str) -> Answer:
    return lambda request: as_json(embeddings(provider, [vector_of(text) for text in request.body["input"]]))


def status(code: int, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: Reply(code, b'{"error": "kestrel-secret-detail"}', named)
