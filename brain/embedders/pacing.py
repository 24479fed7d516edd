"""When to ask a provider again: exponential backoff with full jitter, and waits that the provider asked for.

Full jitter after Brooker 2015, "Exponential Backoff And Jitter".
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

ATTEMPTS: Final = 4
_FIRST_WAIT: Final = 0.25
_LONGEST_WAIT: Final = 8.0
_LONGEST_REST: Final = 3_600.0


def backoff(attempt: int) -> float:
    """Seconds to wait after attempt number 0, 1, 2 …: at least a twentieth of the ceiling, so that waits grow."""
    ceiling = min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt)
    return random.uniform(ceiling / 20, ceiling)  # noqa: S311 - spreads load, protects nothing


def retry_after(header: str | None) -> float | None:
    """Seconds that a Retry-After header asks for (a number or an HTTP date), at most an hour; None when unreadable."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return min(float(text), _LONGEST_REST)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), _LONGEST_REST)
