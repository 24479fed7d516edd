"""The rectangles of system time by valid time that say which assertion of a key is visible where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from brain.layers import Assertion, Layer
from brain.repository.versions import select_columns
from brain.times import Assertion as Claimed
from brain.times import Interval, Rectangle, overlay, rectangles, still_open
from brain.work import Work


@dataclass(frozen=True, slots=True)
class Effect:
    """What one assertion did to the rows of its key, as a reader of the present sees it."""

    row: Assertion
    gone: frozenset[int]
    """Rows that are not seen from now on, its own among them when its validity is over."""
    timed: frozenset[int]
    """Rows that come or go as time passes."""


async def place_new(work: Work, layer: Layer, rows: Sequence[Assertion]) -> list[Effect]:
    """Add the rectangles of assertions whose keys have none yet, one assertion a key."""
    placed = [(row, rectangles([_claim(row)])) for row in rows]
    await _insert(work, layer, [(row, each) for row, derived in placed for each in derived])
    return [_effect(row, {row.doc}, derived) for row, derived in placed]


async def place(work: Work, layer: Layer, row: Assertion) -> Effect:
    """Let one stored assertion take effect on its key's rectangles.

    An assertion that is the newest known only closes and opens; one that was asserted into the past has its key
    derived again from the log.
    """
    if await _later_known(work, layer, row):
        docs, derived = await rebuild(work, layer, row.id, upto=row.doc)
        return _effect(row, docs, derived)
    before = await open_rectangles(work, layer, row.id)
    change = overlay(before, _claim(row))
    await _close(work, layer, row.id, change.closed, row.known_from)
    owners = {row.doc: row} | await _owners(work, layer, row.id, {each.doc for each in change.opened} - {row.doc})
    await _insert(work, layer, [(owners[each.doc], each) for each in change.opened])
    touched = {row.doc} | {each.doc for each in change.closed}
    return _effect(row, touched, [*still_open(before, change.closed), *change.opened])


async def rebuild(
    work: Work,
    layer: Layer,
    id: str,  # noqa: A002
    *,
    upto: int | None = None,
) -> tuple[set[int], list[Rectangle]]:
    """Derive a key's rectangles again from its assertions, or those up to a row; return the rows and their rectangles.

    Rows of one batch are stored together and take effect one after the other.
    """
    await work.run(f"DELETE FROM {layer.table}_visible WHERE namespace = %(namespace)s AND id = %(id)s", {"id": id})
    owners = {doc: row for doc, row in (await _owners(work, layer, id, None)).items() if upto is None or doc <= upto}
    derived = rectangles([_claim(row) for row in owners.values()])
    placed = {each.doc for each in derived}
    never = [
        Rectangle(row.doc, row.known_from, row.known_from, Interval(row.valid_from, row.valid_to))
        for row in owners.values()
        if row.doc not in placed and not row.tombstone
    ]
    await _insert(work, layer, [(owners[each.doc], each) for each in (*derived, *never)])
    return set(owners), derived


def _effect(row: Assertion, touched: Iterable[int], after: Sequence[Rectangle]) -> Effect:
    """Return the effect on the touched rows, given every rectangle of theirs that is open afterwards."""
    seen = {each.doc for each in after if each.known_to is None and each.present is not None}
    return Effect(row, frozenset(touched) - seen, frozenset(each.doc for each in after if each.timed))


async def open_rectangles(work: Work, layer: Layer, id: str) -> list[Rectangle]:  # noqa: A002
    """Return a key's rectangles that are open in system time."""
    query = (
        f"SELECT doc, known_from, known_to, valid_from, valid_to FROM {layer.table}_visible"
        " WHERE namespace = %(namespace)s AND id = %(id)s AND known_to IS NULL ORDER BY rectangle"
    )
    return [_rectangle(row) for row in await work.dicts(query, {"id": id})]


async def closed_at(work: Work, layer: Layer, id: str, at: datetime) -> list[Rectangle]:  # noqa: A002
    """Return the rectangles of a key that an assertion known from an instant closed, earliest validity first."""
    query = (
        f"SELECT doc, known_from, known_to, valid_from, valid_to FROM {layer.table}_visible"
        " WHERE namespace = %(namespace)s AND id = %(id)s AND known_to = %(at)s AND known_from < known_to"
        " ORDER BY valid_from NULLS FIRST"
    )
    return [_rectangle(row) for row in await work.dicts(query, {"id": id, "at": at})]


async def mismatched_keys(work: Work, layer: Layer) -> list[str]:
    """Return the keys whose stored rectangles differ from those that their assertions give."""
    claims = await work.dicts(
        f"SELECT id, doc, known_from, valid_from, valid_to, tombstone FROM {layer.table}"
        " WHERE namespace = %(namespace)s ORDER BY id",
        {},
    )
    stored = await work.dicts(
        f"SELECT id, doc, known_from, known_to, valid_from, valid_to FROM {layer.table}_visible"
        " WHERE namespace = %(namespace)s",
        {},
    )
    log: dict[str, list[Claimed]] = {}
    for row in claims:
        claim = Claimed(row["doc"], row["known_from"], Interval(row["valid_from"], row["valid_to"]), row["tombstone"])
        log.setdefault(row["id"], []).append(claim)
    found: dict[str, list[Rectangle]] = {key: [] for key in log}
    for row in stored:
        if row["known_from"] != row["known_to"]:
            found.setdefault(row["id"], []).append(_rectangle(row))
    return [key for key, have in found.items() if set(have) != set(rectangles(log.get(key, [])))]


def _claim(row: Assertion) -> Claimed:
    return Claimed(row.doc, row.known_from, Interval(row.valid_from, row.valid_to), row.tombstone)


def _rectangle(row: dict[str, Any]) -> Rectangle:
    return Rectangle(row["doc"], row["known_from"], row["known_to"], Interval(row["valid_from"], row["valid_to"]))


async def _later_known(work: Work, layer: Layer, row: Assertion) -> bool:
    query = (
        f"SELECT 1 FROM {layer.table} WHERE namespace = %(namespace)s AND id = %(id)s"
        " AND doc < %(doc)s AND known_from > %(known_from)s LIMIT 1"
    )
    return bool(await work.values(query, {"id": row.id, "doc": row.doc, "known_from": row.known_from}))


async def _owners(work: Work, layer: Layer, id: str, docs: set[int] | None) -> dict[int, Assertion]:  # noqa: A002
    """Return a key's assertions by document number, all of them or the named ones."""
    if docs is not None and not docs:
        return {}
    query = (
        f"SELECT {select_columns(layer)} FROM {layer.table} t WHERE t.namespace = %(namespace)s AND t.id = %(id)s"
        f"{'' if docs is None else ' AND t.doc = ANY(%(docs)s)'} ORDER BY t.doc"
    )
    rows: list[Any] = await work.all(layer.row, query, {"id": id, "docs": sorted(docs or ())})
    return {row.doc: row for row in rows}


async def _close(work: Work, layer: Layer, id: str, closed: Sequence[Rectangle], at: datetime) -> None:  # noqa: A002
    """Close rectangles; one that was opened at the same instant becomes empty, and keeps its document findable."""
    piece = (
        " WHERE namespace = %(namespace)s AND id = %(id)s AND known_to IS NULL AND doc = %(doc)s"
        " AND valid_from IS NOT DISTINCT FROM %(valid_from)s AND valid_to IS NOT DISTINCT FROM %(valid_to)s"
    )
    for each in closed:
        params = {"id": id, "doc": each.doc, "at": at, "valid_from": each.valid.start, "valid_to": each.valid.end}
        await work.run(f"UPDATE {layer.table}_visible SET known_to = %(at)s{piece}", params)


async def _insert(work: Work, layer: Layer, placed: Sequence[tuple[Assertion, Rectangle]]) -> None:
    if not placed:
        return
    names = "".join(f", {name}" for name in layer.carried)
    arrays = "".join(f", %({name})s::{kind}[]" for name, kind in layer.carried.items())
    await work.run(
        f"INSERT INTO {layer.table}_visible"
        f" (namespace, id, doc, scope, known_from, known_to, valid_from, valid_to{names})"
        " SELECT %(namespace)s, * FROM unnest(%(ids)s::text[], %(docs)s::bigint[], %(scopes)s::text[],"
        " %(known_from)s::timestamptz[], %(known_to)s::timestamptz[], %(valid_from)s::timestamptz[],"
        f" %(valid_to)s::timestamptz[]{arrays})",
        {
            "ids": [owner.id for owner, _ in placed],
            "docs": [owner.doc for owner, _ in placed],
            "scopes": [owner.scope for owner, _ in placed],
            "known_from": [each.known_from for _, each in placed],
            "known_to": [each.known_to for _, each in placed],
            "valid_from": [each.valid.start for _, each in placed],
            "valid_to": [each.valid.end for _, each in placed],
            **{name: [getattr(owner, name) for owner, _ in placed] for name in layer.carried},
        },
    )
