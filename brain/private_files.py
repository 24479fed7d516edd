"""Files and directories that only one account may open, and locks that end with their process."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brain.accounts import Account
from brain.errors import Busy

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_POLL = 0.02


def make_directory(path: Path, account: Account | None = None) -> None:
    """Create or close a directory to everybody but the account (by default the one of this process)."""
    path.mkdir(mode=0o700, exist_ok=True)
    if sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if account:
            account.own(handle)
        os.fchmod(handle, 0o700)
    finally:
        os.close(handle)


def open_file(path: Path, account: Account | None = None) -> int:
    """A descriptor to read and write a private file, created when missing."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    if account:
        account.own(handle)
    return handle


def replace(path: Path, text: str, account: Account | None = None) -> None:
    """Write a private file whole or not at all."""
    handle, name = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            if account:
                account.own(file.fileno())
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def try_lock(handle: int) -> bool:
    """Take an exclusive lock that the kernel releases when the descriptor closes, however the process ends."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextmanager
def locked(path: Path, account: Account | None, *, patience: float) -> Iterator[None]:
    """Hold the lock of a file; Busy when nobody released it within `patience` seconds."""
    handle = open_file(path, account)
    deadline = time.monotonic() + patience
    try:
        while not try_lock(handle):
            if time.monotonic() > deadline:
                raise Busy("Another process is still starting or stopping the embedded database.")
            time.sleep(_POLL)
        yield
    finally:
        os.close(handle)
