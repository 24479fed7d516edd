"""Rows of any layer by one mechanism: what is visible as of an instant, what came before, how a version is added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from brain.layers import Layer, Version
from brain.work import Work

R = TypeVar("R", bound=Version)


@dataclass(frozen=True, slots=True)
class Stamped:
    """A version with the instant at which it stopped being the newest, as far as was known at as_of."""

    row: Version
    known_to: datetime | None


@cache
def columns(layer: Layer) -> tuple[str, ...]:
    """The columns of a layer's table that its dataclass holds."""
    return tuple(each.name for each in fields(layer.row))


@cache
def select_columns(layer: Layer) -> str:
    """The same, qualified by the alias t, for a SELECT list."""
    return ", ".join(f"t.{name}" for name in columns(layer))


@cache
def visible_from(layer: Layer) -> str:
    """FROM and WHERE of the rows of a layer that are visible as of %(as_of)s, and valid at %(valid_at)s."""
    if not layer.valid_time:
        return (
            f"FROM {layer.table} t WHERE t.namespace = %(namespace)s AND t.known_from <= %(as_of)s"
            " AND (t.known_to IS NULL OR t.known_to > %(as_of)s)"
        )
    return (
        f"FROM {layer.table}_visible v JOIN {layer.table} t ON t.namespace = v.namespace AND t.doc = v.doc"
        f" WHERE v.namespace = %(namespace)s AND {rectangle_contains('v')}"
    )


def rectangle_contains(alias: str) -> str:
    """The condition that a rectangle contains the point (as_of, valid_at)."""
    return (
        f"{alias}.known_from <= %(as_of)s AND ({alias}.known_to IS NULL OR {alias}.known_to > %(as_of)s)"
        f" AND ({alias}.valid_from IS NULL OR {alias}.valid_from <= %(valid_at)s)"
        f" AND ({alias}.valid_to IS NULL OR {alias}.valid_to > %(valid_at)s)"
    )


async def get(work: Work, layer: Layer, id: str, *, valid_at: datetime | None = None) -> Any | None:  # noqa: A002
    """Return the visible version of one row, or None."""
    return await first(work, layer, "AND t.id = %(id)s", {"id": id}, valid_at=valid_at)


async def first(
    work: Work, layer: Layer, condition: str, params: Mapping[str, Any], *, valid_at: datetime | None = None
) -> Any | None:
    """Return one visible row that meets a condition, or None."""
    query = f"SELECT {select_columns(layer)} {visible_from(layer)} {condition} LIMIT 1"
    return await work.one(layer.row, query, {"valid_at": valid_at or work.as_of, **params})


async def listing(
    work: Work,
    layer: Layer,
    *,
    scopes: Sequence[str] | None = None,
    condition: str = "",
    params: Mapping[str, Any] | None = None,
    order: str = "t.id",
    valid_at: datetime | None = None,
    limit: int | None = None,
) -> list[Any]:
    """Return the visible rows of a layer in the given scopes (None: all), ordered; condition begins with AND."""
    query = (
        f"SELECT {select_columns(layer)} {visible_from(layer)}"
        f"{' AND t.scope = ANY(%(scopes)s)' if scopes is not None else ''} {condition}"
        f" ORDER BY {order}{' LIMIT %(limit)s' if limit is not None else ''}"
    )
    given = {"valid_at": valid_at or work.as_of, "scopes": list(scopes or ()), "limit": limit, **(params or {})}
    return await work.all(layer.row, query, given)


@cache
def history_query(layer: Layer) -> str:
    """Every version of one row known by as_of, oldest first, with its end as it was known then."""
    ends = (
        f"(SELECT CASE WHEN bool_and(v.known_to IS NOT NULL AND v.known_to <= %(as_of)s) THEN max(v.known_to) END"
        f" FROM {layer.table}_visible v WHERE v.namespace = t.namespace AND v.doc = t.doc"
        f" AND v.known_from <= %(as_of)s)"
        if layer.valid_time
        else "CASE WHEN t.known_to <= %(as_of)s THEN t.known_to END"
    )
    return (
        f"SELECT {select_columns(layer)}, {ends} AS known_to FROM {layer.table} t"
        " WHERE t.namespace = %(namespace)s AND t.id = %(id)s AND t.known_from <= %(as_of)s ORDER BY t.version"
    )


async def history(work: Work, layer: Layer, id: str) -> list[Stamped]:  # noqa: A002
    """Return every version of one row that was known by as_of, oldest first."""
    rows = await work.dicts(history_query(layer), {"id": id})
    return [Stamped(known_to=row.pop("known_to"), row=layer.row(**row)) for row in rows]


async def newest(work: Work, layer: Layer, id: str) -> Any | None:  # noqa: A002
    """Return the version of a row with the highest number that was known by as_of, visible or not, or None."""
    query = (
        f"SELECT {select_columns(layer)} FROM {layer.table} t WHERE t.namespace = %(namespace)s AND t.id = %(id)s"
        " AND t.known_from <= %(as_of)s ORDER BY t.version DESC LIMIT 1"
    )
    return await work.one(layer.row, query, {"id": id})


@cache
def insert_query(layer: Layer) -> str:
    """The statement that adds versions, given as JSON: one however many they are."""
    names = ", ".join(columns(layer))
    return (
        f"INSERT INTO {layer.table} (namespace, {names})"
        f" SELECT %(namespace)s, {names} FROM json_populate_recordset(NULL::{layer.table}, %(rows)s)"
    )


async def insert(work: Work, layer: Layer, rows: Sequence[Version]) -> None:
    """Add versions."""
    values = [{name: getattr(row, name) for name in columns(layer)} for row in rows]
    await work.run(insert_query(layer), {"rows": json.dumps(values, default=str, ensure_ascii=False)})


@cache
def close_query(layer: Layer) -> str:
    """The statement that closes the open version of a row."""
    return (
        f"UPDATE {layer.table} SET known_to = %(known_to)s"
        " WHERE namespace = %(namespace)s AND id = %(id)s AND known_to IS NULL"
    )


async def rewrite(work: Work, layer: Layer, row: R) -> R:
    """Close the open version of a row, if there is one, and add this one."""
    if row.version > 1:
        await work.run(close_query(layer), {"id": row.id, "known_to": row.known_from})
    await insert(work, layer, [row])
    return row


async def next_docs(work: Work, layer: Layer, count: int) -> list[int]:
    """Take the next document numbers of a layer with valid time; they grow with the order of writing."""
    query = "SELECT nextval(pg_get_serial_sequence(%(table)s, 'doc')) FROM generate_series(1, %(count)s)"
    return await work.values(query, {"table": layer.table, "count": count})


def successor(row: R, **changes: Any) -> R:
    """Return the next version of a row with the given changes."""
    return replace(row, version=row.version + 1, **changes)
