"""Every write of every layer, in order: read from the versions themselves, so that nothing can be missing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from brain.layers import LAYERS, Layer
from brain.work import Work


@dataclass(frozen=True, slots=True)
class Entry:
    """One write."""

    layer: str
    id: str
    version: int
    scope: str
    origin: str
    client: str
    session: str
    model: str
    known_from: datetime
    recorded_at: datetime
    tombstone: bool
    status: str
    reason: str
    label: str


_LABELS = {
    "constraint": "t.rule",
    "record": "t.kind || ' ' || t.title || ' ' || t.date",
    "pin": "t.state",
    "wiki": "t.name",
    "thread": "t.title",
    "memory": "coalesce(nullif(t.title, ''), t.text)",
    "friction": "t.happened",
}
_NOTHING = "''"
_REASONS = {"constraint": "t.reason", "record": "t.reason", "memory": "t.reason"}
_STATUS = {"constraint": "t.status", "thread": "t.status", "friction": "t.status"}


def _select(layer: Layer) -> str:
    tombstone = "t.tombstone" if layer.valid_time else "false"
    return (
        f"SELECT '{layer.name}' AS layer, t.id, t.version, t.scope, t.origin, t.client, t.session, t.model,"
        f" t.known_from, t.recorded_at, {tombstone} AS tombstone, {_STATUS.get(layer.name, _NOTHING)} AS status,"
        f" {_REASONS.get(layer.name, _NOTHING)} AS reason,"
        f" left({_LABELS[layer.name]}, 160) AS label FROM {layer.table} t"
        " WHERE t.namespace = %(namespace)s AND t.recorded_at <= %(as_of)s AND t.known_from <= %(as_of)s"
    )


QUERIES = {
    axis: "SELECT * FROM (" + " UNION ALL ".join(_select(layer) for layer in LAYERS.values()) + ") w"
    " WHERE (%(layers)s::text[] IS NULL OR layer = ANY(%(layers)s))"
    " AND (%(id)s::text IS NULL OR id = %(id)s)"
    " AND (%(scopes)s::text[] IS NULL OR scope = ANY(%(scopes)s))"
    " AND (%(client)s::text IS NULL OR client = %(client)s)"
    " AND (%(not_session)s::text IS NULL OR (client, session) <> (%(not_client)s, %(not_session)s))"
    f" AND (%(since)s::timestamptz IS NULL OR {axis} {after} %(since)s)"
    f" AND (%(until)s::timestamptz IS NULL OR {axis} < %(until)s)"
    f" ORDER BY {axis}, layer, id, version LIMIT %(limit)s"
    for axis, after in (("recorded_at", ">"), ("known_from", ">="))
}
"""By when a row was written (since is exclusive), or by when it was known (since is inclusive)."""


async def writes(
    work: Work,
    *,
    layers: list[str] | None = None,
    id: str | None = None,  # noqa: A002
    scopes: list[str] | None = None,
    client: str | None = None,
    other_than: tuple[str, str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 1_000,
    axis: str = "recorded_at",
) -> list[Entry]:
    """Return writes of a period, oldest first, as they were known at as_of; other_than leaves out one session.

    axis `recorded_at` takes writes recorded after since and before until; `known_from` those known from since on.
    """
    params = {
        "layers": layers,
        "id": id,
        "scopes": scopes,
        "client": client,
        "not_client": other_than[0] if other_than else None,
        "not_session": other_than[1] if other_than else None,
        "since": since,
        "until": until,
        "limit": limit,
    }
    return await work.all(Entry, QUERIES[axis], params)
