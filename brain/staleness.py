"""Which of two rows about the same thing is the newer: only for questions about how something is now."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from brain.ranking import CLOSE

_PRESENT = re.compile(
    r"^\W*(?:how (?:many|much|long|often|old|far|fast|big|large|high)\b|(?:what|which)\b|when\b"
    r"|where (?:is|are|do|does|am)\b|what's|who (?:is|are)\b)",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:did|was|were|had)\b", re.IGNORECASE)
_STAMP = re.compile(r"^\s*\[[^\]]*\]")
_NUMBER = re.compile(r"\d[\d,.:]*\d|\d")


@dataclass(frozen=True, slots=True)
class Dated:
    """A row among the best of a query."""

    doc: int
    score: float
    occurred: datetime
    text: str


def asks_for_the_present(question: str) -> bool:
    """Whether an English question asks for a value as it is now."""
    return bool(_PRESENT.search(question)) and not _PAST.search(question)


def newer_first(best: Sequence[Dated]) -> dict[int, float]:
    """Return scores under which a newer row that states another number comes before a close older one.

    The newer must have at least CLOSE of the older one's score and state a number that the older one does not. A
    date stamp in brackets at the start of a text is no statement. What is newer still and was in front stays in front.
    """
    raised: dict[int, float] = {}
    for row in sorted(best, key=lambda each: (each.occurred, each.doc)):
        score = row.score
        for older in best:
            if older.doc in raised and (_replaces(row, older) or _led(row, older, raised[older.doc])):
                score = max(score, math.nextafter(raised[older.doc], math.inf))
        raised[row.doc] = score
    return raised


def _replaces(newer: Dated, older: Dated) -> bool:
    return newer.score >= CLOSE * older.score and _states_another(newer.text, older.text)


def _led(newer: Dated, older: Dated, raised: float) -> bool:
    """Whether the newer row was in front until the older one was raised."""
    return newer.score >= older.score and raised > older.score


def _states_another(newer: str, older: str) -> bool:
    before = _numbers(older)
    return bool(before) and bool(_numbers(newer) - before)


def _numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(_STAMP.sub("", text)))
