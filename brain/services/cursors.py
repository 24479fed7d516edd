"""Cursors: where the next page begins and the instant that all its pages share, in an opaque word."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from brain import times
from brain.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Cursor:
    """The pinned instant and the position after it; the position's meaning is the reader's own."""

    as_of: datetime | None = None
    position: Sequence[Any] = ()


def pack(as_of: datetime, *position: Any) -> str:
    """Return a cursor."""
    words = [times.format_instant(each) if isinstance(each, datetime) else each for each in (as_of, *position)]
    return base64.urlsafe_b64encode(json.dumps(words).encode()).decode().rstrip("=")


def unpack(cursor: str, *readers: Callable[[Any], Any]) -> Cursor:
    """Read a cursor whose position has one reader a word; empty text is the first page.

    Raises InvalidInput for text that this server did not give out for the same read.
    """
    text = cursor.strip()
    if not text:
        return Cursor()
    try:
        as_of, *position = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        words = [reader(word) for reader, word in zip(readers, position, strict=True)]
        return Cursor(instant(as_of), words)
    except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error, InvalidInput):
        raise InvalidInput(
            "cursor must be the cursor of an earlier answer to the same question.", field="cursor"
        ) from None


def instant(word: Any) -> datetime:
    """Read an instant of a cursor."""
    return times.parse_instant(word, field="cursor")


def number(word: Any) -> int:
    """Read a number of a cursor, from 0."""
    if not isinstance(word, int) or isinstance(word, bool) or not 0 <= word < 2**62:
        raise ValueError("not a position")
    return word
