"""Each leg of the search by itself, as the service calls it, and both without the honesty floor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from brain import ranking
from brain.embedders import Embedder, Vector
from brain.embedders.floors import profile_of
from brain.ranking import Candidate, Profile
from brain.repository import search as repository
from brain.repository.memory import vector_text
from brain.services import retrieval, scopes
from brain.services.retrieval import DEPTH
from brain.text import query_terms
from brain.work import Work


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
        nearest = await repository.compared(work, visible, vector_text(vector), model=model, depth=depth)
    return Legs(
        [(hit.doc, hit.score) for hit in words.hits] if words else [], [(hit.doc, hit.score) for hit in nearest]
    )


@dataclass(frozen=True, slots=True)
class Fusable:
    """Every row that either leg found, with both scores, ready to be fused with any weight."""

    candidates: list[Candidate]
    profile: Profile
    ideal: float

    def scores(self, weight: float) -> dict[int, float]:
        """Return the fused scores when the words leg has this share, of rows that any leg says something of."""
        scores = ranking.fuse(self.candidates, replace(self.profile, weight=weight), ideal=self.ideal)
        return {doc: score for doc, score in scores.items() if score > 0}

    def order(self, weight: float) -> list[int]:
        """Return document numbers by fused score alone: no honesty floor, no re-rank."""
        return by_score(self.scores(weight))


def by_score(scores: Mapping[int, float]) -> list[int]:
    """Return document numbers, best first; ties by number."""
    return sorted(scores, key=lambda doc: (-scores[doc], doc))


async def fusable(work: Work, query: str, vector: Vector | None, embedder: Embedder, *, scope: str) -> Fusable:
    """Return the best rows of each leg with what the other says of them, also those that the floor would keep out."""
    visible = await _visible(work, scope, None)
    terms = query_terms(query, work.language).terms
    words = await repository.lexical(work, visible, terms, floor=0, depth=DEPTH) if terms else retrieval.NO_WORDS
    nearest: list[repository.VectorHit] = []
    asked = None if vector is None else vector_text(vector)
    if asked is not None:
        nearest = await repository.compared(work, visible, asked, model=embedder.model, depth=DEPTH)
    lexical, cosine = {hit.doc: hit.score for hit in words.hits}, {hit.doc: hit.score for hit in nearest}
    rows = await repository.details(
        work,
        visible,
        sorted(lexical | cosine),
        weights=words.weights,
        unread=cosine.keys() - lexical.keys(),
        asked=asked,
        model=embedder.model,
        unseen=lexical.keys() - cosine.keys(),
    )
    lexical |= {row.doc: row.score for row in rows.values() if row.score is not None}
    cosine |= {row.doc: row.cosine for row in rows.values() if row.cosine is not None}
    by_words, by_meaning = ranking.legs(lexical), ranking.legs(cosine)
    candidates = [Candidate(doc, by_words.get(doc), by_meaning.get(doc), 0.0, row.length) for doc, row in rows.items()]
    return Fusable(candidates, profile_of(embedder.model), words.weights.ideal)


async def _visible(work: Work, scope: str, valid_at: datetime | None) -> repository.Visible:
    covered = await scopes.for_reading(work, scope)
    return repository.Visible(
        scopes=list(covered.numbers), numbers=list(covered.numbers.values()), valid_at=valid_at or work.as_of
    )
