"""The chronological trail of a scope, tag or entity, by event time; no search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from brain import times
from brain.errors import InvalidInput
from brain.layers import Fact
from brain.names import clean_text
from brain.repository import memory as repository
from brain.services import cursors, inputs, scopes
from brain.services.facts import KINDS
from brain.text import query_terms
from brain.work import Work


@dataclass(frozen=True, slots=True)
class Trail:
    """Facts in order of their events, the filters that were applied, and where the next page begins."""

    facts: list[Fact]
    filters: dict[str, Any]
    cursor: str


async def walk(
    work: Work,
    *,
    scope: str = "",
    tags: Sequence[str] = (),
    kinds: Sequence[str] = (),
    entity: str = "",
    since: inputs.Instant = None,
    until: inputs.Instant = None,
    valid_at: inputs.Instant = None,
    newest_first: bool = False,
    limit: int = 50,
    cursor: str = "",
) -> Trail:
    """Return visible facts by event time; entity keeps only facts that contain all of its words."""
    if not 1 <= limit <= 200:
        raise InvalidInput("limit must be a whole number from 1 to 200.", field="limit")
    covered = await scopes.for_reading(work, scope)
    labels = inputs.labels(tags, field="tags")
    chosen = [inputs.choice(kind, KINDS, field="kinds") for kind in kinds]
    named = clean_text(entity, field="entity", maximum=200).strip()
    terms = list(query_terms(named, work.language).terms) if named else []
    start = inputs.period_start(work, since, field="since")
    end = inputs.period_start(work, until, field="until")
    after = cursors.unpack(cursor, cursors.instant, cursors.number).position
    rows = await repository.trail(
        work,
        scopes=covered.scopes,
        valid_at=inputs.instant(work, valid_at, field="valid_at"),
        tags=labels,
        kinds=chosen,
        terms=terms,
        since=start,
        until=end,
        descending=newest_first,
        after=(after[0], after[1]) if after else None,
        limit=limit + 1,
    )
    filters = {
        "scopes": covered.label,
        "tags": labels,
        "kinds": chosen,
        "entity": named,
        "since": times.format_instant(start) if start else "",
        "until": times.format_instant(end) if end else "",
        "order": "newest first" if newest_first else "oldest first",
    }
    page = rows[:limit]
    following = cursors.pack(work.as_of, page[-1].occurred, page[-1].doc) if len(rows) > limit else ""
    return Trail(page, {name: value for name, value in filters.items() if value}, following)


def pinned(cursor: str) -> datetime | None:
    """Return the instant that a cursor pins, so that pages stay together while others write."""
    return cursors.unpack(cursor, cursors.instant, cursors.number).as_of
