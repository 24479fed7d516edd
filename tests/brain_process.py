"""A real `brain serve` process for tests: lines in, lines out, nothing in between."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

COMMAND = [sys.executable, "-c", "from brain.cli.main import run; run()"]
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "raw", "version": "1"},
}


class Served:
    """One server process and the conversation with it."""

    def __init__(self, environment: Mapping[str, str], *arguments: str, cwd: Any = None) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=cwd,
        )
        self.lines: list[bytes] = []

    def send(self, request_id: int | str | None, method: str, params: Mapping[str, Any] | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        if request_id is not None:
            message["id"] = request_id
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, request_id: int, tool: str, **arguments: Any) -> None:
        self.send(request_id, "tools/call", {"name": tool, "arguments": arguments})

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the server ended: {self.process.stderr.read() if self.process.stderr else b''!r}"
        self.lines.append(line)
        return dict(json.loads(line))

    def hello(self) -> dict[str, Any]:
        self.send("hello", "initialize", INITIALIZE)
        answer = self.receive()
        self.send(None, "notifications/initialized")
        return answer

    def ask(self, request_id: int, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Whether a call worked, and its text."""
        self.call(request_id, tool, **arguments)
        answer = self.receive()
        assert answer["id"] == request_id
        result = answer["result"]
        return not result.get("isError", False), str(result["content"][0]["text"])

    def end(self) -> int:
        """Close stdin, keep what still arrives, and return the exit code."""
        stdout, self.stderr = self.process.communicate(timeout=30)
        self.lines += stdout.splitlines()
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)
