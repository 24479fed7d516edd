"""Open loops below the lane level: a status changes only on what the user said; silence never moves one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from brain.errors import InvalidInput, Refused
from brain.layers import LAYERS, Thread
from brain.names import clean_key, clean_text, parse_scope, slug
from brain.repository import versions
from brain.services import inputs, scopes
from brain.times import days_between
from brain.work import Work

LAYER = LAYERS["thread"]
STATUSES = ("open", "waiting", "paused", "done", "dropped")
UNFINISHED = ("open", "waiting", "paused")


@dataclass(frozen=True, slots=True)
class Quiet:
    """A thread with the whole days since its last touch, in the brain's time zone."""

    thread: Thread
    days: int

    @property
    def is_quiet(self) -> bool:
        """Whether the last touch is longer ago than the cadence allows."""
        return self.thread.status in UNFINISHED and self.days > self.thread.cadence_days


async def touch(
    work: Work,
    *,
    key: str,
    title: str = "",
    scope: str = "",
    status: str = "",
    cadence_days: int = 0,
    note: str = "",
    said: str = "",
    expected_version: int = 0,
    known_at: datetime | None = None,
) -> Thread:
    """Open a thread, or note that it was talked about; what is left out stays as it was.

    Raises Refused when the status changes without the user's words, and Conflict, with the current content, unless
    expected_version is the version that stands.
    """
    identity = slug(clean_key(key, field="key"), field="key")
    quoted = clean_text(said, field="said", maximum=2_000)
    cleaned_note = clean_text(note, field="note", maximum=4_000)
    cleaned_title = clean_text(title, field="title", maximum=200).strip()
    current: Thread | None = await versions.get(work, LAYER, identity)
    wanted = (
        inputs.choice(status, STATUSES, field="status") if status.strip() else (current.status if current else "open")
    )
    if cadence_days and not 1 <= cadence_days <= 3_660:
        raise InvalidInput("cadence_days must be a whole number from 1 to 3660.", field="cadence_days")
    if current is None:
        where = await scopes.for_writing(work, scope)
        if not cleaned_title:
            raise InvalidInput("title must name the open loop when a thread is new.", field="title")
        if wanted != "open":
            inputs.quote(quoted, field="said", what=f"a thread starts as {wanted} only on their word")
    else:
        where = current.scope
        if scope.strip() and str(parse_scope(scope, field="scope")) != where:
            raise Refused(f"scope of thread {identity} is {where} and does not change.", field="scope")
        work.caller.check_may_write(parse_scope(where, field="scope"))
        if wanted != current.status:
            inputs.quote(quoted, field="said", what="a status changes only on what they said")
    inputs.check_version(current, expected_version, layer=LAYER, required=True)
    stamp = inputs.stamp(work, said=quoted, known_at=known_at, after=current.known_from if current else None)
    row = Thread(
        id=identity,
        version=(current.version if current else 0) + 1,
        scope=where,
        title=cleaned_title or (current.title if current else ""),
        status=wanted,
        cadence_days=cadence_days or (current.cadence_days if current else 7),
        note=cleaned_note or (current.note if current else ""),
        said=quoted,
        **stamp,
    )
    return await versions.rewrite(work, LAYER, row)


async def listing(work: Work, where: list[str] | None, *, statuses: tuple[str, ...] = UNFINISHED) -> list[Quiet]:
    """Return the threads of some scopes and statuses, the longest silent first."""
    rows: list[Thread] = await versions.listing(
        work,
        LAYER,
        scopes=where,
        condition="AND t.status = ANY(%(statuses)s)",
        params={"statuses": list(statuses)},
        order="t.known_from, t.id",
    )
    return [Quiet(row, days_between(row.known_from, work.as_of, work.zone)) for row in rows]


async def quiet(work: Work, where: list[str] | None) -> list[Quiet]:
    """Return the unfinished threads whose last touch is longer ago than their cadence."""
    return [each for each in await listing(work, where) if each.is_quiet]
