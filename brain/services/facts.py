"""What every write of a fact shares: its checks, its identity by content, how it is found and how it is stored."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from uuid import UUID

from brain import text as analysis
from brain.errors import InvalidInput
from brain.layers import LAYERS, Fact
from brain.names import clean_key, clean_text, fold
from brain.repository import memory as repository
from brain.repository import versions
from brain.work import Work

LAYER = LAYERS["memory"]
KINDS = ("fact", "preference", "event", "decision", "lesson", "profile", "note")
TRIGGERS = ("explicit", "autonomous")
LONGEST_TEXT = 16_000


def searchable(title: str, text: str) -> str:
    """Return what is indexed and embedded of a fact."""
    return f"{title}\n{text}" if title else text


def content_of(title: str, text: str) -> UUID:
    """Return the identity of a fact's content: a digest of its folded title and text."""
    return _digest(fold(searchable(title, text)))


def words_of(title: str, text: str, language: str) -> UUID:
    """Return the identity of a fact's words and numbers, whatever their order and repeats."""
    return _digest("\n".join(sorted(analysis.distinct_terms(searchable(title, text), language))))


def _digest(text: str) -> UUID:
    return UUID(bytes=hashlib.blake2b(text.encode(), digest_size=16).digest())


async def append(work: Work, facts: Sequence[Fact], *, new_keys: bool = False) -> list[Fact]:
    """Index and store complete assertions."""

    def words(fact: Fact) -> Counter[str]:
        return Counter(analysis.terms(searchable(fact.title, fact.text), work.language))

    return await repository.add(work, facts, words, new_keys=new_keys)


async def find(work: Work, name: str, *, field: str = "ref") -> Fact | None:
    """Return the newest version, visible or not, of the fact that a ref, an id or a key names as of the instant."""
    key = clean_text(name, field=field, maximum=400).strip().removeprefix(f"{LAYER.name}:")
    by_id: Fact | None = await versions.newest(work, LAYER, key)
    if by_id is not None:
        return by_id
    cleaned = clean_key(key, field=field)
    return (await repository.newest_by_key(work, [cleaned])).get(cleaned)


def parse_confidence(value: str | float | Decimal) -> Decimal:
    """Read a confidence between 0 and 1, to three decimals."""
    try:
        number = Decimal(str(value)).quantize(Decimal("0.001"))
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 <= number <= 1:
        raise InvalidInput("confidence must be a number from 0 to 1.", field="confidence")
    return number


def checked_evidence(entry: Mapping[str, str]) -> dict[str, str]:
    """Return one piece of evidence: a description and perhaps where it is."""
    description = clean_text(str(entry.get("description", "")), field="evidence.description", minimum=1, maximum=500)
    uri = clean_text(str(entry.get("uri", "") or ""), field="evidence.uri", maximum=500)
    return {"description": description, "uri": uri} if uri else {"description": description}


def checked_importance(value: int) -> int:
    """Return an importance; raise InvalidInput outside 1 to 5."""
    if not 1 <= value <= 5:
        raise InvalidInput("importance must be a whole number from 1 to 5.", field="importance")
    return value
