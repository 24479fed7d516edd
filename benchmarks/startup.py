"""Cold start of the stdio server beside an empty MCP server: `python -m benchmarks.startup --json OUT`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

STARTS: Final = 5
TIMEOUT_SECONDS: Final = 60
EMPTY_SERVER: Final = "from mcp.server import MCPServer; MCPServer('empty').run()"
INITIALIZE: Final = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "startup-benchmark", "version": "1"},
}


@dataclass(frozen=True, slots=True)
class Start:
    """One cold start: seconds from spawning the process, and resident megabytes when it is idle again."""

    initialize_seconds: float
    list_seconds: float
    first_call_seconds: float | None
    idle_mb: float


class Process:
    """A server process spoken to in plain JSON-RPC, so that a client library's own cost is not measured."""

    def __init__(self, command: list[str]) -> None:
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def elapsed(self) -> float:
        """Seconds since the process was spawned."""
        return time.perf_counter() - self.began

    def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, request_id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Write one request and wait for its result. Raises RuntimeError when there is none."""
        self.send({"id": request_id, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == request_id:
                if "result" not in message or message["result"].get("isError"):
                    raise RuntimeError(f"{method} failed: {line.decode()[:300]}")
                return dict(message["result"])
        raise RuntimeError(f"The server ended before it answered {method}.")

    def resident_mb(self) -> float:
        """Resident memory of the process alone, without children such as an embedded database."""
        status = Path(f"/proc/{self._process.pid}/status")
        if status.exists():
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
            return int(fields["VmRSS"].split()[0]) / 1024
        shown = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self._process.pid)], capture_output=True, text=True, check=True
        )
        return int(shown.stdout) / 1024

    def close(self) -> None:
        """Close stdin and wait for the process to end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def start(command: list[str], tool: str | None) -> Start:
    """Start a server once, up to its first tool call when `tool` names one."""
    process = Process(command)
    try:
        process.ask(1, "initialize", INITIALIZE)
        initialized = process.elapsed()
        process.send({"method": "notifications/initialized"})
        process.ask(2, "tools/list", {})
        listed = process.elapsed()
        called = None
        if tool:
            process.ask(3, "tools/call", {"name": tool, "arguments": {}})
            called = process.elapsed()
        return Start(initialized, listed, called, process.resident_mb())
    finally:
        process.close()


def measure(command: list[str], tool: str | None, starts: int) -> tuple[list[Start], list[Start]]:
    """Start the server and the empty server in turn, so that both see the same machine.

    One start of each comes before and is not counted: it makes the brain exist and fills the file cache.
    """
    reference = [sys.executable, "-c", EMPTY_SERVER]
    start(command, tool)
    start(reference, None)
    pairs = [(start(command, tool), start(reference, None)) for _ in range(starts)]
    return [own for own, _ in pairs], [empty for _, empty in pairs]


def median(starts: list[Start], figure: Callable[[Start], float | None]) -> float | None:
    """Median of one figure over the starts, or nothing where it was not measured."""
    values = [value for start in starts if (value := figure(start)) is not None]
    return round(statistics.median(values), 3) if values else None


def bars(own: list[Start], empty: list[Start]) -> dict[str, float | None]:
    """The figures that documents quote: medians."""
    return {
        "initialize_seconds": median(own, lambda s: s.initialize_seconds),
        "first_call_seconds": median(own, lambda s: s.first_call_seconds),
        "idle_mb": median(own, lambda s: s.idle_mb),
        "reference_initialize_seconds": median(empty, lambda s: s.initialize_seconds),
        "reference_idle_mb": median(empty, lambda s: s.idle_mb),
    }


def report(own: list[Start], empty: list[Start]) -> str:
    """A table of medians and worst values."""
    rows: list[tuple[str, Callable[[Start], float | None], str]] = [
        ("initialize answered", lambda s: s.initialize_seconds, "s"),
        ("tools/list answered", lambda s: s.list_seconds, "s"),
        ("first tool call answered", lambda s: s.first_call_seconds, "s"),
        ("idle memory", lambda s: s.idle_mb, "MB"),
    ]
    lines = [f"{'':26}{'brain: median':>16}{'worst':>10}{'empty: median':>16}{'worst':>10}"]
    for label, figure, unit in rows:
        cells = [cell for starts in (own, empty) for cell in (median(starts, figure), worst(starts, figure))]
        shown = [f"{cell:.2f} {unit}" if cell is not None else "-" for cell in cells]
        lines.append(f"{label:26}{shown[0]:>16}{shown[1]:>10}{shown[2]:>16}{shown[3]:>10}")
    return "\n".join(lines)


def worst(starts: list[Start], figure: Callable[[Start], float | None]) -> float | None:
    """Largest value of one figure over the starts."""
    return max((value for start in starts if (value := figure(start)) is not None), default=None)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    installed = Path(sys.executable).with_name("brain")
    parser.add_argument("--command", default=f"{shlex.quote(str(installed))} serve", help="the server to start")
    parser.add_argument("--tool", default="get_status", help="tool of the first call; empty for none")
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    own, empty = measure(shlex.split(options.command), options.tool or None, options.starts)
    print(report(own, empty))
    if options.json:
        results = {
            "bars": bars(own, empty),
            "starts": [asdict(start) for start in own],
            "reference_starts": [asdict(start) for start in empty],
            "machine": {"python": platform.python_version(), "system": platform.system(), "processors": os.cpu_count()},
        }
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
