"""The versions of any row: what it said when, who wrote it and why, and what each tombstone hid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from brain.errors import NotFound
from brain.layers import LAYERS, Assertion, Layer, layer_named
from brain.names import excerpt
from brain.refs import Ref, parse_ref
from brain.repository import versions, visibility
from brain.repository.versions import Stamped
from brain.services import facts, inputs
from brain.times import format_instant
from brain.work import Work


@dataclass(frozen=True, slots=True)
class History:
    """Every version of one row known as of the instant, oldest first."""

    ref: str
    layer: Layer
    versions: list[Stamped]
    hid: dict[int, list[int]]
    """Version of each tombstone to the versions that it hid."""


async def of(work: Work, name: str, *, for_human: bool = False) -> History:
    """Return the history of a ref of any layer; raise NotFound when nothing of it was known then.

    The failure log is shown to humans only.
    """
    ref = await resolve(work, name)
    layer = layer_named(ref.layer, field="ref") if for_human else inputs.readable_layer(ref, field="ref")
    found = await versions.history(work, layer, ref.id)
    if not found:
        raise NotFound(f"ref {excerpt(str(ref))} was not known at that instant.", field="ref")
    return History(str(Ref(ref.layer, ref.id)), layer, found, await _hid(work, layer, found))


def shown(history: History) -> list[dict[str, Any]]:
    """Return each version as every surface shows it, with its interval of system time and what a tombstone hid."""
    result = []
    for each in history.versions:
        entry = inputs.shown(history.layer, each.row)
        entry["known_to"] = format_instant(each.known_to) if each.known_to else None
        if each.row.version in history.hid:
            entry["hid"] = [f"{history.ref}@{version}" for version in history.hid[each.row.version]]
        result.append(entry)
    return result


async def _hid(work: Work, layer: Layer, found: list[Stamped]) -> dict[int, list[int]]:
    """Return, for each tombstone, the versions that were visible until it took effect."""
    by_doc = {each.row.doc: each.row.version for each in found if isinstance(each.row, Assertion)}
    hid: dict[int, list[int]] = {}
    for each in found:
        if isinstance(each.row, Assertion) and each.row.tombstone:
            closed = await visibility.closed_at(work, layer, each.row.id, each.row.known_from)
            hid[each.row.version] = sorted({by_doc[piece.doc] for piece in closed if piece.doc in by_doc})
    return hid


async def resolve(work: Work, name: str) -> Ref:
    """Return the ref that a name means; a bare key means a fact."""
    text = name.strip()
    layer, _, rest = text.partition(":")
    if layer == "memory" or layer not in LAYERS or not rest:
        return await _fact(work, text)
    return inputs.in_normal_form(parse_ref(text, field="ref"), field="ref")


async def _fact(work: Work, text: str) -> Ref:
    """Return the ref of a fact by id or key; a version at the end counts when no key ends like that."""
    version = 0
    fact = await facts.find(work, text)
    base, _, number = text.rpartition("@")
    if fact is None and base and number.isascii() and number.isdecimal() and len(number) < 10:
        fact, text, version = await facts.find(work, base), base, int(number)
    known = fact is not None and fact.known_from <= work.as_of
    return Ref("memory", fact.id if fact is not None and known else text.removeprefix("memory:"), version)
