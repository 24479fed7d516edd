"""The two search legs over the visible rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from brain.database import Work, named_queries
from brain.embedders.base import Vector
from brain.repository.memory import vector_text

_SQL = named_queries("search")


@dataclass(frozen=True, slots=True)
class Visible:
    """Which rows a search may see; None does not narrow. The period of the event is half-open."""

    scopes: Sequence[str] | None
    valid_at: datetime
    kinds: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def block(self) -> str:
        """Name of the query that yields these rows."""
        narrowed = any(each is not None for each in (self.kinds, self.tags, self.since, self.until))
        return "visible_filtered" if narrowed else "visible"

    def params(self) -> dict[str, Any]:
        """The parameters of that query."""
        return {
            "scopes": list(self.scopes) if self.scopes is not None else None,
            "valid_at": self.valid_at,
            "kinds": list(self.kinds) if self.kinds is not None else None,
            "tags": list(self.tags) if self.tags is not None else None,
            "since": self.since,
            "until": self.until,
        }


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A row with its BM25 score and the idf-weighted share of the query's terms that it contains."""

    doc: int
    score: float
    coverage: float


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A row with its cosine similarity."""

    doc: int
    score: float


@dataclass(frozen=True, slots=True)
class Searched:
    """How many rows a search covered, and how many of them have no vector of the current model."""

    searched: int
    without_vector: int


async def lexical(work: Work, visible: Visible, terms: Sequence[str], *, strict: bool, depth: int) -> list[LexicalHit]:
    """Return the best rows by BM25, exact over the visible rows; strict asks for every term."""
    params = {**visible.params(), "terms": list(terms), "strict": strict, "depth": depth}
    return await work.all(LexicalHit, query("lexical", visible), params)


async def vector(work: Work, visible: Visible, asked: Vector, *, model: str, depth: int) -> list[VectorHit]:
    """Return the nearest rows by cosine similarity, exact over the visible rows."""
    params = {**visible.params(), "vector": vector_text(asked), "model": model, "depth": depth}
    return await work.all(VectorHit, query("vector", visible), params)


async def similarities(work: Work, docs: Sequence[int], asked: Vector, *, model: str) -> dict[int, float]:
    """Return the cosine similarity of the named rows that have a vector."""
    params = {"docs": list(docs), "vector": vector_text(asked), "model": model}
    return {hit.doc: hit.score for hit in await work.all(VectorHit, _SQL["similarities"], params)}


async def searched(work: Work, visible: Visible, *, model: str) -> Searched:
    """Count the visible rows."""
    found = await work.one(Searched, query("coverage", visible), {**visible.params(), "model": model})
    return found or Searched(0, 0)


def query(name: str, visible: Visible) -> str:
    """Return a search statement with the visible rows put in."""
    return _SQL[name].replace("{visible}", _SQL[visible.block])
