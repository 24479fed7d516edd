"""The stdio transport as a client sees it: a real process, real pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp
import pytest

from brain.tools.envelope import MESSAGE_LIMIT, UnreadableError, read_message, too_long
from brain.tools.stdio import _lines, _TooLong

ROOT = Path(__file__).parent.parent
SERVER = [sys.executable, str(Path(__file__).with_name("stdio_server.py"))]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
HANDSHAKE = [
    b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
]


def call(request_id: int, tool: str, arguments: str = "{}") -> bytes:
    return (
        f'{{"jsonrpc":"2.0","id":{request_id},"method":"tools/call",'
        f'"params":{{"name":"{tool}","arguments":{arguments}}}}}'
    ).encode()


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*SERVER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )


def send(process: subprocess.Popen[bytes], *lines: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n".join(lines) + b"\n")
    process.stdin.flush()


def wait_for(process: subprocess.Popen[bytes], words: bytes) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    pytest.fail(f"the server ended without saying {words!r}")


class Transcript:
    """Everything that one session wrote."""

    def __init__(self, stdout: bytes, stderr: bytes, code: int) -> None:
        self.lines = stdout.splitlines()
        self.stderr = stderr.decode()
        self.code = code

    def answer(self, request_id: int | str) -> dict[str, Any]:
        (found,) = [m for m in map(json.loads, self.lines) if m.get("id") == request_id]
        return dict(found)

    def text(self, request_id: int) -> str:
        return str(self.answer(request_id)["result"]["content"][0]["text"])


@pytest.fixture(scope="module")
def noisy() -> Transcript:
    filler = b"x" * MESSAGE_LIMIT
    lines = [
        *HANDSHAKE,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
        call(2, "noise"),
        call(3, "echo", r'{"text":"trip \ud83d"}'),
        call(4, "echo", '{"text":"the next call"}'),
        call(5, "fail", '{"how":"surrogate"}'),
        call(6, "fail", '{"how":"surrogate_error"}'),
        call(7, "fail", '{"how":"crash"}'),
        b'{"jsonrpc":"2.0","id":8,"method":"no\\ud800such"}',
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo","arguments":{"text":"'
        + filler
        + b'"}}}',
        b'{"method":"tools/call","params":{"name":"echo","arguments":{"text":"'
        + filler
        + b'"}},"jsonrpc":"2.0","id":10}',
        b"not json",
        b"[]",
        b"",
        call(11, "echo", '{"text":"bad \xff byte"}').replace("ÿ".encode(), b"\xff"),
        call(12, "echo", '{"text":"the last line has no end"}'),
    ]
    process = start("noisy")
    stdout, stderr = process.communicate(b"\n".join(lines), timeout=60)
    return Transcript(stdout, stderr, process.returncode)


def test_every_line_on_stdout_is_json_rpc(noisy: Transcript) -> None:
    messages = [json.loads(line) for line in noisy.lines]
    assert len(messages) == 13 + 2
    assert all(m["jsonrpc"] == "2.0" and ("result" in m) != ("error" in m) for m in messages)


def test_whatever_else_is_printed_goes_to_stderr(noisy: Transcript) -> None:
    for noise in ("a banner before the imports", "a dependency prints", "and writes", "a warning fires"):
        assert noise in noisy.stderr
    assert "a child prints" in noisy.stderr
    assert "DEBUG" in noisy.stderr


def test_requests_sent_before_the_end_of_input_are_answered(noisy: Transcript) -> None:
    assert noisy.text(12) == "the last line has no end"
    assert noisy.code == 0
    assert "an orderly end" in noisy.stderr


def test_a_lone_surrogate_in_an_argument_is_refused_by_name_and_the_next_call_works(noisy: Transcript) -> None:
    assert noisy.answer(3)["result"]["isError"] is True
    assert noisy.text(3).startswith("text ")
    assert noisy.text(4) == "the next call"


def test_bytes_that_are_not_utf_8_are_refused_by_name(noisy: Transcript) -> None:
    assert noisy.answer(11)["result"]["isError"] is True
    assert noisy.text(11).startswith("text ")


def test_a_lone_surrogate_in_a_result_or_an_error_leaves_as_valid_unicode(noisy: Transcript) -> None:
    assert noisy.text(5) == "cut \ufffd here"
    assert noisy.answer(5)["result"]["structuredContent"] == {"key \ufffd": ["value \ufffd"]}
    assert noisy.text(6) == "The line holds \ufffd."


def test_a_method_with_a_lone_surrogate_is_answered_under_its_id(noisy: Transcript) -> None:
    assert noisy.answer(8)["error"]["code"] == -32601


def test_a_message_over_the_limit_is_answered_under_its_id(noisy: Transcript) -> None:
    for request_id in (9, 10):
        assert str(MESSAGE_LIMIT) in noisy.answer(request_id)["error"]["message"]


def test_a_line_that_is_not_a_message_is_answered_without_an_id(noisy: Transcript) -> None:
    codes = [m["error"]["code"] for m in map(json.loads, noisy.lines) if m["id"] is None]
    assert codes == [-32700, -32600]


def test_an_internal_error_shows_an_id_and_the_log_has_the_traceback_under_it(noisy: Transcript) -> None:
    text = noisy.text(7)
    assert "hunter2" not in text
    assert "db.internal" not in text
    identifier = text.removeprefix("Internal error ").split(".")[0]
    assert f"internal error {identifier}" in noisy.stderr
    assert "RuntimeError" in noisy.stderr


def test_a_failed_start_writes_nothing_to_stdout() -> None:
    done = subprocess.run([*SERVER, "broken"], input=b"", capture_output=True, env=ENVIRONMENT, timeout=60, check=False)
    assert done.stdout == b""
    assert b"about to fail" in done.stderr
    assert done.returncode != 0


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    running = start()
    yield running
    running.kill()
    running.wait()
    for pipe in (running.stdin, running.stdout, running.stderr):
        assert pipe is not None
        pipe.close()


def test_the_process_ends_with_its_input_while_a_query_waits(process: subprocess.Popen[bytes]) -> None:
    send(process, *HANDSHAKE, call(1, "sleep"))
    wait_for(process, b"sleeping")
    process.stdin.close()  # type: ignore[union-attr]
    assert process.wait(timeout=10) == 0
    assert b"an orderly end" in process.stderr.read()  # type: ignore[union-attr]


def test_the_process_ends_with_its_input_while_a_thread_is_blocked(process: subprocess.Popen[bytes]) -> None:
    send(process, *HANDSHAKE, call(1, "block"))
    wait_for(process, b"blocking")
    process.stdin.close()  # type: ignore[union-attr]
    assert process.wait(timeout=10) == 0
    assert b"cleanup ran" in process.stderr.read()  # type: ignore[union-attr]


def test_sigterm_ends_the_process_in_order(process: subprocess.Popen[bytes]) -> None:
    send(process, *HANDSHAKE, call(1, "sleep"))
    wait_for(process, b"sleeping")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 0
    assert b"an orderly end" in process.stderr.read()  # type: ignore[union-attr]


def test_the_process_ends_when_its_client_stops_reading(process: subprocess.Popen[bytes]) -> None:
    send(process, *HANDSHAKE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    send(process, call(1, "echo", '{"text":"nobody reads this"}'))
    assert process.wait(timeout=10) == 0


def test_the_official_client_calls_a_tool() -> None:
    async def session() -> str:
        server = mcp.StdioServerParameters(command=SERVER[0], args=SERVER[1:], env={"PYTHONPATH": str(ROOT)})
        async with mcp.Client(server) as client:
            result = await client.call_tool("echo", {"text": "null"})
            return str(result.structured_content["text"])

    assert anyio.run(session) == "null"


def test_the_transport_module_loads_before_anything_that_could_print() -> None:
    code = "import sys; import brain.tools.stdio; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert not {"mcp", "pydantic", "anyio", "asyncio", "logging", "psycopg", "numpy"} & set(loaded.stdout.split())


def read_lines(data: bytes, limit: int) -> list[bytes | _TooLong]:
    reading, writing = os.pipe()

    def fill() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(data)

    threading.Thread(target=fill).start()
    try:
        return list(_lines(reading, limit))
    finally:
        os.close(reading)


def test_lines_are_split_at_newlines_only() -> None:
    assert read_lines("a\r\u2028b\n\nc\n".encode(), 100) == ["a\r\u2028b".encode(), b"", b"c"]


def test_a_line_over_the_limit_keeps_only_its_ends() -> None:
    long, short = read_lines(b"<" + b"x" * 1_000_000 + b">\nshort\n", 1_000)
    assert isinstance(long, _TooLong)
    assert long.start[:1] == b"<"
    assert long.end[-1:] == b">"
    assert len(long.start) + len(long.end) <= 2_048
    assert short == b"short"


@pytest.mark.parametrize("size", [999, 1_000, 1_001, 65_536, 70_000])
def test_the_limit_is_exact(size: int) -> None:
    (line,) = read_lines(b"x" * size + b"\n", 1_000)
    assert isinstance(line, bytes) == (size <= 1_000)


@pytest.mark.parametrize(
    ("start_bytes", "end_bytes", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"text":"', b'x"}}', 7),
        (b'{"method":"tools/call","params":{"text":"', b'x"}},"jsonrpc":"2.0","id":"seven"}', "seven"),
        (b'{"method":"m","params":{"id":3,"text":"', b'x"}}', None),
    ],
)
def test_the_id_of_a_long_message_is_taken_from_the_envelope_only(
    start_bytes: bytes, end_bytes: bytes, expected: int | str | None
) -> None:
    assert too_long(start_bytes, end_bytes).request_id == expected


def test_a_request_with_a_fractional_id_is_not_mistaken_for_a_notification() -> None:
    with pytest.raises(UnreadableError, match="whole number or text"):
        read_message(b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}')


def test_deep_nesting_is_refused_without_a_crash() -> None:
    with pytest.raises(UnreadableError):
        read_message(b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b"[" * 200_000 + b"]" * 200_000 + b"}")
