"""Every write of every layer in the order in which it was recorded."""

from __future__ import annotations

from brain.errors import InvalidInput
from brain.layers import LAYERS
from brain.refs import Ref
from brain.repository import audit as repository
from brain.repository.audit import Entry
from brain.services import history, inputs, scopes
from brain.work import Work

__all__ = ["MOST", "Entry", "writes"]

MOST = 100_000
"""Most writes in one answer."""


async def writes(
    work: Work,
    *,
    layer: str = "",
    ref: str = "",
    scope: str = "",
    client: str = "",
    since: inputs.Instant = None,
    until: inputs.Instant = None,
    limit: int = 1_000,
) -> list[Entry]:
    """Return writes in the order in which they were recorded, of one layer, row, scope or client, and of a period."""
    if not 1 <= limit <= MOST:
        raise InvalidInput(f"limit must be a whole number from 1 to {MOST}.", field="limit")
    named: Ref | None = await history.resolve(work, ref) if ref.strip() else None
    chosen = inputs.choice(layer, LAYERS, field="layer") if layer.strip() else named.layer if named else ""
    return await repository.writes(
        work,
        layers=[chosen] if chosen else None,
        id=named.id if named else None,
        scopes=(await scopes.for_reading(work, scope)).scopes if scope.strip() else None,
        client=client.strip() or None,
        since=inputs.period_start(work, since, field="since"),
        until=inputs.period_start(work, until, field="until"),
        limit=limit,
    )
