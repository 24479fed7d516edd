"""The seven layers as plain data: one frozen dataclass a layer, and LAYERS, which shared code iterates over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from brain.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What every version of every row carries, whatever its layer."""

    id: str
    version: int
    scope: str
    origin: str
    client: str
    session: str
    model: str
    known_from: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint(Version):
    """A standing rule, added and retired only on the user's own word."""

    rule: str
    status: str
    said: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin(Version):
    """Where a scope stands and what is next."""

    state: str
    next: str
    blocked_on: str
    cites: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Version):
    """One compiled page per entity."""

    name: str
    core: bool
    summary: str
    body: str
    cites: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread(Version):
    """An open loop."""

    title: str
    status: str
    cadence_days: int
    note: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Friction(Version):
    """One entry of the model's own failure log."""

    happened: str
    expected: str
    category: str
    artifact: str
    status: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion(Version):
    """A version that also says when it holds in the world; half-open, None is unbounded."""

    doc: int
    tombstone: bool
    reason: str
    valid_from: datetime | None
    valid_to: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Assertion):
    """Hard data: an invoice, a deadline, a measurement."""

    kind: str
    title: str
    title_key: str
    date: date
    value: Decimal | None
    unit: str
    fields: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Assertion):
    """One dated fact of the memory layer."""

    key: str
    text: str
    title: str
    kind: str
    tags: list[str]
    importance: int
    confidence: Decimal
    evidence: list[Mapping[str, Any]]
    supersedes: str
    trigger: str
    reference: str
    said: str
    occurred: datetime
    content: UUID
    words: UUID
    length: int
    docs_before: int
    terms_before: int


@dataclass(frozen=True, slots=True)
class Layer:
    """What shared code needs to know of a layer; the job and the tense are shown to people."""

    name: str
    table: str
    row: type[Version]
    job: str
    tense: str
    valid_time: bool = False
    """Rows are assertions with an interval of validity; visibility comes from the rectangles in `<table>_visible`."""
    carried: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Columns of an assertion that its rectangles repeat, with their types."""
    readable: bool = True
    """Reading tools may show its rows; the failure log is for humans only."""


LAYERS: Mapping[str, Layer] = {
    layer.name: layer
    for layer in (
        Layer("constraint", "constraints", Constraint, "standing rules, injected every session", "present"),
        Layer("record", "records", Record, "hard data: invoices, deadlines, measurements", "present", valid_time=True),
        Layer("pin", "pins", Pin, "where a scope stands and what is next", "present"),
        Layer("wiki", "wiki", Page, "one compiled page per entity", "present"),
        Layer("thread", "threads", Thread, "open loops below the lane level", "present"),
        Layer(
            "memory",
            "memory",
            Fact,
            "what happened: dated facts and decisions",
            "past",
            valid_time=True,
            carried={"length": "int", "content": "uuid"},
        ),
        Layer("friction", "friction", Friction, "the model's own failure log", "meta", readable=False),
    )
}


def layer_named(name: str, *, field: str) -> Layer:
    """Return the layer with that name; raise InvalidInput with the list of names otherwise."""
    layer = LAYERS.get(name)
    if layer is None:
        raise InvalidInput(f"{field} must name one of the layers {', '.join(LAYERS)}.", field=field)
    return layer
