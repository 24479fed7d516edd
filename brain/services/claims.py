"""Weighing claims: the server looks up each ref's layer and dates; the caller only says what it read there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any

from brain import trust
from brain.errors import InvalidInput
from brain.layers import Assertion, Constraint, Fact, Record, Version
from brain.names import clean_text
from brain.refs import Ref, parse_ref
from brain.repository import versions
from brain.services import inputs
from brain.work import Work


@dataclass(frozen=True, slots=True)
class Weighed:
    """A verdict, with the rows that the claims came from."""

    verdict: trust.Verdict
    rows: dict[str, dict[str, Any]]


async def weigh(work: Work, *, claims: Sequence[tuple[str, str]], recall: str = "") -> Weighed:
    """Weigh what was read at each ref, and the model's own recall if it has one, as of the instant."""
    remembered = clean_text(recall, field="recall", maximum=2_000)
    if not claims and not remembered.strip():
        raise InvalidInput(
            "claims must hold at least one ref with the value read there, or give recall.", field="claims"
        )
    if len(claims) > 20:
        raise InvalidInput("claims takes at most 20 entries.", field="claims")
    gathered: list[trust.Claim] = []
    rows: dict[str, dict[str, Any]] = {}
    for position, (text, value) in enumerate(claims):
        field = f"claims[{position}]"
        ref = parse_ref(text, field=f"{field}.ref")
        layer = _claimable(ref, field=f"{field}.ref")
        read = clean_text(value, field=f"{field}.value", minimum=1, maximum=2_000)
        row = await _in_force(work, ref, field=f"{field}.ref")
        if isinstance(row, Constraint) and row.status == "retired":
            raise InvalidInput(f"{field}.ref names a rule that was retired and claims nothing any more.", field=field)
        full = str(Ref(ref.layer, row.id, row.version))
        gathered.append(trust.Claim(layer=layer, value=read, at=held_at(work, row), ref=full))
        rows[full] = inputs.shown(inputs.readable_layer(ref, field=field), row)
    if remembered.strip():
        gathered.append(trust.Claim(layer=trust.Layer.recall, value=remembered, at=None, ref="recall"))
    return Weighed(trust.weigh(gathered), rows)


def held_at(work: Work, row: Version) -> datetime:
    """Return when a row's content held: the event of a fact, the date of a record, the writing of compiled text."""
    if isinstance(row, Fact):
        return row.occurred
    if isinstance(row, Record):
        return datetime.combine(row.date, time(), tzinfo=work.zone).astimezone(UTC)
    return row.known_from


async def _in_force(work: Work, ref: Ref, *, field: str) -> Version:
    """Return the row that a ref names; raise InvalidInput for a version that was rewritten, retired or forgotten."""
    row = await inputs.visible_row(work, ref, field=field)
    if ref.version:
        log = await versions.history(work, inputs.readable_layer(ref, field=field), row.id)
        closed = any(each.known_to is not None for each in log if each.row.version == row.version)
        if closed or (isinstance(row, Assertion) and row.tombstone):
            raise InvalidInput(
                f"{field} names a version that was rewritten, retired or forgotten; it claims nothing any more.",
                field=field,
                hint=f"Leave out @{ref.version} and read the row as it stands.",
            )
    return row


def _claimable(ref: Ref, *, field: str) -> trust.Layer:
    try:
        layer = trust.Layer(ref.layer)
    except ValueError:
        layer = trust.Layer.recall
    if layer is trust.Layer.recall:
        stored = ", ".join(each.value for each in trust.Layer if each is not trust.Layer.recall)
        raise InvalidInput(f"{field} must name a row of one of the layers {stored}.", field=field)
    return layer
