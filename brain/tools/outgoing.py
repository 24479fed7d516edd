"""What leaves the process: plain JSON values, valid Unicode, and errors as one sentence."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
import uuid
from collections.abc import Mapping
from typing import Any, Final

from brain.errors import BrainError, Conflict
from brain.names import scrub
from brain.times import format_instant

CURRENT_CONTENT_LIMIT: Final = 60_000
"""Characters of a conflict's current content that fit beside its sentence."""

_LINE_BREAKS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def plain(value: Any) -> Any:
    """The value as JSON can carry it: instants in UTC with `Z`, decimals as text, NaN as null, valid Unicode.

    Raises TypeError for a type that has no agreed form.
    """
    match value:
        case None | bool() | int() if not isinstance(value, enum.Enum):
            return value
        case enum.Enum():
            return plain(value.value)
        case str():
            return scrub(str(value))
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {scrub(str(key)): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case datetime.datetime():
            return format_instant(value)
        case datetime.date():
            return value.isoformat()
        case decimal.Decimal():
            return format(value, "f")
        case uuid.UUID():
            return str(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no plain form")


def one_line(value: Any) -> str:
    """A value as JSON on one line, so that stored text inside it cannot start a line of the answer."""
    return json.dumps(plain(value), ensure_ascii=False, separators=(", ", ": ")).translate(_LINE_BREAKS)


def error_text(error: BrainError) -> str:
    """The sentence, the hint, and the current content after a conflict."""
    sentence = error.message
    if error.field and error.field not in sentence:
        sentence = f"{error.field}: {sentence}"
    text = " ".join(f"{sentence} {error.hint}".split())  # a sentence never starts a second line
    if isinstance(error, Conflict):
        text = f"{text}\n{_current(error.current)}"
    return scrub(text)


def _current(content: Mapping[str, Any]) -> str:
    shown = one_line(content)
    if len(shown) > CURRENT_CONTENT_LIMIT:
        return f"The current content has {len(shown)} characters; read it again before writing."
    return f"Current content: {shown}"
