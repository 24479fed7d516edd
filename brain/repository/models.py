"""Which embedding model and text analysis a namespace was indexed with."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from brain.database import Work, named_queries

_SQL = named_queries("models")


@dataclass(frozen=True, slots=True)
class Model:
    """A model with the width of its vectors and the version of the text analysis beside it."""

    model: str
    dimensions: int
    analysis: int


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


async def distinct_texts(work: Work) -> int:
    """Count the different texts of a namespace."""
    [number] = await work.values(_SQL["distinct_texts"], {})
    return int(number)


async def missing_texts(work: Work, model: str, limit: int) -> dict[int, UUID]:
    """Return some texts without a row of a model: a document that holds each, and its content."""
    rows = await work.dicts(_SQL["missing_texts"], {"model": model, "limit": limit})
    return {row["doc"]: row["content"] for row in rows}
