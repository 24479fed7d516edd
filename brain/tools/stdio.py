"""The stdio transport: stdout is the protocol's from the first byte, and the process ends with its client.

Importing this module loads nothing but the standard library, so that `reserve_stdout` can run before anything
that might print.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final

if TYPE_CHECKING:
    import asyncio

    from anyio.abc import ObjectReceiveStream, ObjectSendStream
    from mcp.server import Server
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage, RequestId

DRAIN_SECONDS: Final = 0.75
"""How long requests that were already sent may still be answered after the client closed stdin."""

EXIT_SECONDS: Final = 2.0
"""How long the whole end may take before the process is cut off."""

_CHUNK: Final = 65_536
_KEPT_ENDS: Final = 1_024
_AHEAD: Final = 256


def reserve_stdout() -> BinaryIO:
    """Keep stdout for the protocol: return it, and point descriptor 1 at stderr for everybody else.

    Call it before other imports. Prints, warnings and child processes end up on stderr from then on.
    """
    return os.fdopen(_set_aside(1, lambda: os.dup(2), os.O_WRONLY), "wb", buffering=0, closefd=False)


def reserve_stdin() -> BinaryIO:
    """Keep stdin for the protocol: return it, and let everybody else, child processes included, read nothing."""
    return os.fdopen(
        _set_aside(0, lambda: os.open(os.devnull, os.O_RDONLY), os.O_RDONLY), "rb", buffering=0, closefd=False
    )


def _set_aside(descriptor: int, substitute: Callable[[], int], mode: int) -> int:
    private = _above_standard(os.dup(descriptor))
    try:
        replacement = substitute()
    except OSError:  # no stderr
        replacement = os.open(os.devnull, mode)
    os.dup2(replacement, descriptor)
    os.close(replacement)
    return private


def _above_standard(descriptor: int) -> int:
    """The same file under a number above 2: a standard stream that was closed must not be taken for the protocol."""
    if descriptor > 2:
        return descriptor
    higher = _above_standard(os.dup(descriptor))
    os.close(descriptor)
    return higher


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Collect no garbage while modules load: they make many objects that stay. A tenth of a cold start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class ExitDeadline:
    """Ends the process when an orderly end does not come in time, say because a thread hangs in a system call."""

    def __init__(self, seconds: float = EXIT_SECONDS, *, cleanup: Callable[[], None] | None = None) -> None:
        """`cleanup` runs once before the cut, and gets half a second."""
        self._seconds = seconds
        self._cleanup = cleanup
        self._armed = threading.Lock()

    def arm(self) -> None:
        """Start the clock; further calls change nothing."""
        if self._armed.acquire(blocking=False):
            threading.Thread(target=self._cut, name="exit-deadline", daemon=True).start()

    def _cut(self) -> None:
        threading.Event().wait(self._seconds)
        if self._cleanup is not None:
            last_words = threading.Thread(target=self._cleanup, daemon=True)
            last_words.start()
            last_words.join(0.5)
        os._exit(0)


@dataclass(frozen=True, slots=True)
class _TooLong:
    start: bytes
    end: bytes


_Line = bytes | _TooLong | None
"""A line without its end, a line over the limit, or the end of input."""


def _lines(descriptor: int, limit: int) -> Iterator[bytes | _TooLong]:
    """Lines of a descriptor in bounded memory. A last line without its end counts as well."""
    held, skipped = bytearray(), b""
    while chunk := _read(descriptor):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            held += part
            yield _line(bytes(held), skipped, limit)
            held, skipped = bytearray(), b""
        held += rest
        if len(held) > limit:
            skipped = skipped or bytes(held[:_KEPT_ENDS])
            del held[:-_KEPT_ENDS]
    if held or skipped:
        yield _line(bytes(held), skipped, limit)


def _line(held: bytes, skipped: bytes, limit: int) -> bytes | _TooLong:
    if skipped:
        return _TooLong(skipped, held[-_KEPT_ENDS:])
    return held if len(held) <= limit else _TooLong(held[:_KEPT_ENDS], held[-_KEPT_ENDS:])


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:
        return b""


class _Inbox:
    """Lines on their way from the reading thread to the event loop, a bounded number ahead."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        self._loop = loop
        self._room = threading.Semaphore(_AHEAD)
        self._queue: asyncio.Queue[_Line] = asyncio.Queue()

    def put(self, line: _Line) -> None:
        self._room.acquire()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for it
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)

    async def get(self) -> _Line:
        line = await self._queue.get()
        self._room.release()
        return line


class _Unanswered:
    """Ids of requests that were read and not yet answered."""

    def __init__(self) -> None:
        import asyncio

        self._ids: set[RequestId] = set()
        self._none = asyncio.Event()
        self._none.set()

    def read(self, message: JSONRPCMessage) -> None:
        from mcp_types import JSONRPCNotification, JSONRPCRequest

        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
            self._none.clear()
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._drop((message.params or {}).get("requestId"))

    def written(self, message: JSONRPCMessage) -> None:
        from mcp_types import JSONRPCError, JSONRPCResponse

        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._drop(message.id)

    def _drop(self, request_id: Any) -> None:
        if isinstance(request_id, int | str):
            self._ids.discard(request_id)
        if not self._ids:
            self._none.set()

    async def none_left(self) -> None:
        await self._none.wait()


async def run_stdio(
    server: Server[Any], stdin: BinaryIO, stdout: BinaryIO, *, on_end: Callable[[], None] = lambda: None
) -> None:
    """Serve one client over a pair of pipes until it closes stdin, stops reading, or SIGTERM or SIGINT arrives.

    After the end of input, requests already sent have DRAIN_SECONDS to be answered; then their handlers are
    cancelled. `on_end` is called from another thread as soon as the end is seen, also while the event loop is
    blocked: pass `ExitDeadline(...).arm` to bound what follows.
    """
    import asyncio

    import anyio
    from mcp.shared.message import SessionMessage

    loop = asyncio.get_running_loop()
    inbox, unanswered = _Inbox(loop), _Unanswered()
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    threading.Thread(target=_pump, args=(stdin.fileno(), inbox, on_end), name="stdin", daemon=True).start()
    async with anyio.create_task_group() as tasks:

        def stop() -> None:
            on_end()
            loop.call_soon_threadsafe(tasks.cancel_scope.cancel)

        with _on_signals(stop):
            tasks.start_soon(_feed, inbox, to_server, to_client.clone(), unanswered)
            tasks.start_soon(_drain_to, stdout.fileno(), from_server, unanswered, stop)
            await server.run(from_client, to_client, server.create_initialization_options())
            on_end()
            tasks.cancel_scope.cancel()


def _pump(descriptor: int, inbox: _Inbox, on_end: Callable[[], None]) -> None:
    from brain.tools.envelope import MESSAGE_LIMIT

    for line in _lines(descriptor, MESSAGE_LIMIT):
        inbox.put(line)
    on_end()
    inbox.put(None)


async def _feed(
    inbox: _Inbox,
    to_server: ObjectSendStream[SessionMessage | Exception],
    to_client: ObjectSendStream[SessionMessage],
    unanswered: _Unanswered,
) -> None:
    import anyio
    from mcp.shared.message import SessionMessage

    from brain.tools.envelope import UnreadableError

    async with to_server, to_client:
        while (line := await inbox.get()) is not None:
            if isinstance(line, bytes) and not line.strip():
                continue
            try:
                message = _message(line)
            except UnreadableError as error:
                await to_client.send(SessionMessage(error.answer()))
                continue
            unanswered.read(message)
            await to_server.send(SessionMessage(message))
        with anyio.move_on_after(DRAIN_SECONDS):
            await unanswered.none_left()


def _message(line: bytes | _TooLong) -> JSONRPCMessage:
    from brain.tools.envelope import read_message, too_long

    if isinstance(line, _TooLong):
        raise too_long(line.start, line.end)
    return read_message(line)


async def _drain_to(
    descriptor: int,
    from_server: ObjectReceiveStream[SessionMessage],
    unanswered: _Unanswered,
    stop: Callable[[], None],
) -> None:
    import anyio

    from brain.tools.envelope import write_message

    # its own limiter: handlers that fill the shared one must not keep answers back
    limiter = anyio.CapacityLimiter(1)
    async with from_server:
        async for outgoing in from_server:
            data = write_message(outgoing.message)
            try:
                await anyio.to_thread.run_sync(_write, descriptor, data, abandon_on_cancel=True, limiter=limiter)
            except OSError:  # the client no longer reads
                stop()
                return
            unanswered.written(outgoing.message)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@contextlib.contextmanager
def _on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT stop the session. Outside the main thread signals are somebody else's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # signal.signal rather than loop.add_signal_handler: it also runs while Python code blocks the loop
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
