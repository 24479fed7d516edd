"""Where a scope stands and what is next: one slot a scope, rewritten in place."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from brain.errors import InvalidInput
from brain.layers import LAYERS, Pin
from brain.names import clean_text
from brain.repository import versions
from brain.services import inputs, scopes
from brain.work import Work

LAYER = LAYERS["pin"]


def id_of(scope: str) -> str:
    """Return the id of a scope's pin: `global`, the lane's slug, or `project:<slug>`."""
    return scope.removeprefix("lane:")


async def write(
    work: Work,
    *,
    state: str,
    scope: str = "",
    next_step: str = "",
    blocked_on: str = "",
    cites: Sequence[str] = (),
    expected_version: int = 0,
    known_at: datetime | None = None,
) -> tuple[Pin, bool]:
    """Rewrite a scope's pin and return it with whether anything changed.

    Raises Conflict, with the current content, unless expected_version is the version that stands.
    """
    content: dict[str, Any] = {
        "state": clean_text(state, field="state", minimum=1, maximum=4_000),
        "next": clean_text(next_step, field="next", maximum=2_000),
        "blocked_on": clean_text(blocked_on, field="blocked_on", maximum=2_000),
    }
    where = await scopes.for_writing(work, scope)
    if where.removeprefix("lane:") == "global" and where != "global":
        raise InvalidInput("scope must not be a lane called global.", field="scope")
    current: Pin | None = await versions.get(work, LAYER, id_of(where))
    found, origin = await inputs.cited(work, cites, work.caller.origin)
    unchanged = current is not None and current.cites == found
    if current is not None and unchanged and all(getattr(current, name) == value for name, value in content.items()):
        return current, False
    inputs.check_version(current, expected_version, layer=LAYER, required=True)
    stamp = inputs.stamp(work, known_at=known_at, after=current.known_from if current else None)
    row = Pin(
        id=id_of(where), version=(current.version if current else 0) + 1, scope=where, cites=found, **content,
        **(stamp | {"origin": origin}),
    )  # fmt: skip
    return await versions.rewrite(work, LAYER, row), True


async def listing(work: Work, where: list[str] | None) -> list[Pin]:
    """Return the pins as of the instant: global, lanes, projects, each by name."""
    order = "CASE WHEN t.scope = 'global' THEN 0 WHEN t.scope LIKE 'lane:%%' THEN 1 ELSE 2 END, t.scope"
    return await versions.listing(work, LAYER, scopes=where, order=order)
