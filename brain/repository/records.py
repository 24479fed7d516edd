"""Records in the database: assertions with rectangles, read by filters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from brain.layers import LAYERS, Record
from brain.repository import versions, visibility
from brain.work import Work, named_queries

LAYER = LAYERS["record"]
_SQL = {
    name: query.replace("{columns}", versions.select_columns(LAYER)).replace("{visible}", versions.visible_from(LAYER))
    for name, query in named_queries("records").items()
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What narrows a read of records; None does not narrow. The period is half-open."""

    scopes: list[str] | None = None
    kind: str | None = None
    title_key: str | None = None
    since: date | None = None
    until: date | None = None
    valid_at: datetime | None = None


async def newest_by_identity(work: Work, *, kind: str, title_key: str, day: date) -> Record | None:
    """Return the newest version of one record, visible or not."""
    return await work.one(Record, _SQL["newest_by_identity"], {"kind": kind, "title_key": title_key, "date": day})


async def add(work: Work, record: Record) -> Record:
    """Store one assertion and let it take effect."""
    [doc] = await versions.next_docs(work, LAYER, 1)
    stored = replace(record, doc=doc)
    await versions.insert(work, LAYER, [stored])
    await visibility.place(work, LAYER, stored)
    return stored


async def matching(work: Work, filters: Filters, *, limit: int, offset: int = 0) -> list[Record]:
    """Return visible records by date."""
    return await work.all(Record, _SQL["matching"], {**_params(work, filters), "limit": limit, "offset": offset})


async def figures(work: Work, filters: Filters) -> list[dict[str, Any]]:
    """Return count, sum, min and max by kind and unit of all rows that the filters leave."""
    return await work.dicts(_SQL["figures"], _params(work, filters))


def _params(work: Work, filters: Filters) -> dict[str, Any]:
    return {
        "scopes": filters.scopes,
        "kind": filters.kind,
        "title_key": filters.title_key,
        "since": filters.since,
        "until": filters.until,
        "valid_at": filters.valid_at or work.as_of,
    }
