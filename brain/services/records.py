"""Hard data: one row for each kind, title and date; amounts are exact decimals from end to end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from brain import times
from brain.errors import InvalidInput, Refused
from brain.layers import LAYERS, Record
from brain.names import clean_key, clean_text, fold, parse_scope, slug
from brain.refs import new_id
from brain.repository import records as repository
from brain.services import inputs, scopes
from brain.work import Work

LAYER = LAYERS["record"]
_VALUE = re.compile(r"[+-]?[0-9]{1,24}(?:\.[0-9]{1,12})?")


@dataclass(frozen=True, slots=True)
class Found:
    """Records that a read found, with figures over all that match and whether there are more."""

    records: list[Record]
    figures: list[dict[str, Any]]
    total: int
    offset: int


async def log(
    work: Work,
    *,
    kind: str,
    title: str,
    date: str,
    value: str = "",
    unit: str = "",
    fields: Mapping[str, str] | None = None,
    source: str = "",
    scope: str = "",
    said: str = "",
    valid_from: inputs.Instant = None,
    valid_to: inputs.Instant = None,
    expected_version: int = 0,
    known_at: datetime | None = None,
) -> tuple[Record, bool]:
    """Write a record, or a new version of the one with the same kind, title and date.

    Returns it with whether anything changed. Without validity it holds for all time; with it, only that interval is
    overlaid. Raises Conflict when expected_version is given and is not the version that stands.
    """
    cleaned_title = clean_text(title, field="title", minimum=1, maximum=200)
    identity: dict[str, Any] = {
        "kind": slug(kind, field="kind"),
        "title_key": fold(cleaned_title),
        "day": times.parse_day(date, field="date"),
    }
    if not identity["title_key"]:
        raise InvalidInput("title must not be empty.", field="title")
    amount = parse_value(value)
    content: dict[str, Any] = {
        "title": cleaned_title,
        "value": amount,
        "unit": _unit(unit, amount),
        "fields": _fields(fields or {}),
        "source": clean_text(source, field="source", maximum=500),
        "valid_from": inputs.instant(work, valid_from, field="valid_from"),
        "valid_to": inputs.instant(work, valid_to, field="valid_to"),
        "tombstone": False,
    }
    inputs.interval(content["valid_from"], content["valid_to"])
    quoted = clean_text(said, field="said", maximum=2_000)
    current = await repository.newest_by_identity(work, **identity)
    where = await _scope(work, current, scope)
    inputs.check_version(current, expected_version, layer=LAYER, required=False)
    if current is not None and all(getattr(current, name) == each for name, each in content.items()):
        return current, False
    stamp = inputs.stamp(work, said=quoted, known_at=known_at)
    row = Record(
        id=current.id if current else new_id(stamp["known_from"]),
        version=(current.version if current else 0) + 1,
        doc=0,
        scope=where,
        kind=identity["kind"],
        title_key=identity["title_key"],
        date=identity["day"],
        reason="",
        **content,
        **stamp,
    )
    return await repository.add(work, row), True


async def read(
    work: Work,
    *,
    scope: str = "",
    kind: str = "",
    title: str = "",
    since: str = "",
    until: str = "",
    valid_at: inputs.Instant = None,
    limit: int = 50,
    offset: int = 0,
) -> Found:
    """Return visible records by date with figures over everything that matches."""
    filters = repository.Filters(
        scopes=(await scopes.for_reading(work, scope)).scopes,
        kind=slug(kind, field="kind") if kind.strip() else None,
        title_key=fold(clean_text(title, field="title", maximum=200)) or None,
        since=times.parse_day(since, field="since") if since.strip() else None,
        until=times.parse_day(until, field="until") if until.strip() else None,
        valid_at=inputs.instant(work, valid_at, field="valid_at"),
    )
    figures = await repository.figures(work, filters)
    rows = await repository.matching(work, filters, limit=limit, offset=offset)
    return Found(rows, figures, sum(each["rows"] for each in figures), offset)


def parse_value(text: str) -> Decimal | None:
    """Read an exact decimal, or None for nothing; raise InvalidInput for anything else."""
    written = text.strip()
    if not written:
        return None
    if not _VALUE.fullmatch(written):
        raise InvalidInput(
            "value must be a plain decimal number such as 1250.00, without thousands separators or a unit.",
            field="value",
        )
    return Decimal(written)


def _unit(unit: str, amount: Decimal | None) -> str:
    name = clean_key(unit, field="unit") if unit.strip() else ""
    if len(name) > 20:
        raise InvalidInput("unit must be a short name such as EUR, h or kg.", field="unit")
    if name and amount is None:
        raise InvalidInput("unit needs a value beside it.", field="unit")
    return name.upper() if len(name) == 3 and name.isascii() and name.isalpha() else name


def _fields(fields: Mapping[str, str]) -> dict[str, str]:
    if len(fields) > 30:
        raise InvalidInput("fields takes at most 30 names.", field="fields")
    return {
        clean_key(name, field="fields"): clean_text(value, field="fields", maximum=1_000)
        for name, value in sorted(fields.items())
    }


async def _scope(work: Work, current: Record | None, scope: str) -> str:
    if current is None:
        return await scopes.for_writing(work, scope)
    if scope.strip() and str(parse_scope(scope, field="scope")) != current.scope:
        raise Refused(
            f"scope of this record is {current.scope} and does not change; another title makes another record.",
            field="scope",
        )
    work.caller.check_may_write(parse_scope(current.scope, field="scope"))
    return current.scope
