"""Which embedding model and text analysis a namespace was indexed with."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import UUID

from brain.repository import vector_index
from brain.work import LOOK_UPS, Work, named_queries

_SQL = named_queries("models")


@dataclass(frozen=True, slots=True)
class Model:
    """A model with the width of its vectors and the version of the text analysis beside it."""

    model: str
    dimensions: int
    analysis: int


@dataclass(frozen=True, slots=True)
class InUse:
    """What a search has to know of the model before it begins."""

    model: Model | None
    floor: float | None
    """Calibrated, or None for the model's default."""
    waiting: bool
    """Whether any text waits for its vector."""
    indexed: bool
    """Whether its vectors have an index that a search may walk."""


async def active(work: Work) -> Model | None:
    """Return the model in use, or None before the first fact."""
    return await work.one(Model, _SQL["active"], {})


async def register(work: Work, model: Model) -> None:
    """Settle the model of a namespace that has none."""
    params = {"model": model.model, "dimensions": model.dimensions, "analysis": model.analysis}
    await work.run(_SQL["register"], params)


async def activate(work: Work, model: Model) -> None:
    """Make a model the one in use."""
    await work.run(_SQL["deactivate"], {})
    params = {"model": model.model, "dimensions": model.dimensions, "analysis": model.analysis}
    await work.run(_SQL["activate"], params)


@dataclass(frozen=True, slots=True)
class Extent:
    """How much there is to embed: facts, different texts, and how many of these a model has no row for."""

    facts: int
    texts: int
    missing: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """A floor with what it was chosen on: true hits and those that it keeps, foreign questions and those it answers."""

    floor: float
    hits: int
    kept: int
    foreigners: int
    answered: int


async def extent(work: Work, model: str) -> Extent:
    """Count what a namespace holds and what a model has not embedded of it."""
    found = await work.one(Extent, _SQL["extent"], {"model": model})
    return found or Extent(0, 0, 0)


async def missing_texts(work: Work, model: str, limit: int, *, after: int = 0) -> dict[int, UUID]:
    """Return the next texts after a document without a row of a model: a document that holds each, and its content."""
    rows = await work.dicts(_SQL["missing_texts"], {"model": model, "limit": limit, "after": after})
    return {row["doc"]: row["content"] for row in rows}


async def in_use(work: Work, model: str, analysis: int) -> InUse:
    """Return the model in use, with the floor last calibrated by the instant for the asked model and analysis."""
    asked = {"model": model, "analysis": analysis, "index": vector_index.index_name(model)}
    [row] = await work.dicts(_SQL["in_use"], asked, under=LOOK_UPS)
    found = None if row["model"] is None else Model(row["model"], row["dimensions"], row["analysis"])
    return InUse(found, row["floor"], row["waiting"], row["indexed"])


async def vectors(work: Work, model: str, *, most: int) -> int:
    """Count the texts with a row of a model, at most so many."""
    [found] = await work.values(_SQL["vectors"], {"model": model, "most": most})
    return int(found)


async def add_calibration(work: Work, model: str, analysis: int, found: Calibration) -> None:
    """Store a calibration, known from a fresh instant on."""
    work.next_instant()
    await work.run(
        _SQL["add_calibration"],
        {"model": model, "analysis": analysis, "client": work.caller.client, **asdict(found)},
    )
