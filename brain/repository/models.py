"""Which embedding model and text analysis a namespace was indexed with."""

from __future__ import annotations

from dataclasses import dataclass

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
