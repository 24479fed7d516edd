"""Each leg of the search by itself, as the service calls it, and both without the honesty floor."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from brain import ranking
from brain.database import Work
from brain.embedders import Embedder, Vector
from brain.embedders.floors import profile_of
from brain.repository import search as repository
from brain.services import retrieval, scopes
from brain.text import query_terms


@dataclass(frozen=True, slots=True)
class Legs:
    """Document numbers with their scores, best first."""

    words: list[tuple[int, float]]
    meaning: list[tuple[int, float]]


async def query_vector(embedder: Embedder, query: str) -> Vector | None:
    """Return the vector of a query; no transaction may be open."""
    [vector] = await embedder.embed([query], query=True)
    return vector


async def alone(
    work: Work,
    query: str,
    vector: Vector | None,
    *,
    model: str,
    scope: str,
    depth: int,
    valid_at: datetime | None = None,
) -> Legs:
    """Return the order of each leg for a query, as of the transaction's instant."""
    visible = await _visible(work, scope, valid_at)
    terms = query_terms(query, work.language).terms
    words = await repository.lexical(work, visible, terms, floor=0, depth=depth) if terms else None
    nearest: list[repository.VectorHit] = []
    if vector is not None:
        nearest, _ = await repository.vector(work, visible, vector, model=model, depth=depth, rows=0)
    return Legs(
        [(hit.doc, hit.score) for hit in words.hits] if words else [], [(hit.doc, hit.score) for hit in nearest]
    )


async def unfloored(work: Work, query: str, vector: Vector | None, embedder: Embedder, *, scope: str) -> list[int]:
    """Return the fused order of every candidate, also of those that the honesty floor keeps out."""
    visible = await _visible(work, scope, None)
    profile = profile_of(embedder.model)
    found = await retrieval.retrieve(work, visible, retrieval.Asked(query, vector, embedder, profile))
    candidates = [*(each.candidate for each in found.ranked), *found.below]
    scores = ranking.fuse(candidates, profile, ideal=found.words.weights.ideal)
    return sorted(scores, key=lambda doc: (-scores[doc], doc))


async def _visible(work: Work, scope: str, valid_at: datetime | None) -> repository.Visible:
    covered = await scopes.for_reading(work, scope)
    return repository.Visible(
        scopes=list(covered.numbers), numbers=list(covered.numbers.values()), valid_at=valid_at or work.as_of
    )
