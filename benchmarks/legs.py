"""Each leg of the search by itself, as the service calls it, without floor and fusion."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from brain.database import Work
from brain.repository import search as repository
from brain.services import scopes
from brain.services.search import Prepared
from brain.text import query_terms


@dataclass(frozen=True, slots=True)
class Legs:
    """Document numbers with their scores, best first."""

    words: list[tuple[int, float]]
    meaning: list[tuple[int, float]]


async def alone(work: Work, prepared: Prepared, *, depth: int, valid_at: datetime | None = None) -> Legs:
    """Return the order of each leg for a prepared question, as of the transaction's instant."""
    covered = await scopes.for_reading(work, prepared.question.scope)
    visible = repository.Visible(
        scopes=list(covered.numbers), numbers=list(covered.numbers.values()), valid_at=valid_at or work.as_of
    )
    terms = query_terms(prepared.question.query, work.language).terms
    words = await repository.lexical(work, visible, terms, floor=0, depth=depth) if terms else None
    model, vector = prepared.embedder.model, prepared.vector
    nearest = await repository.vector(work, visible, vector, model=model, depth=depth) if vector is not None else []
    return Legs(
        [(hit.doc, hit.score) for hit in words.hits] if words else [], [(hit.doc, hit.score) for hit in nearest]
    )
