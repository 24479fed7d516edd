"""One query through both legs: what stands on its own, in order, and what fell short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from brain import ranking
from brain.database import Work
from brain.embedders import Embedder, Vector
from brain.repository import memory as facts
from brain.repository import search as repository
from brain.text import Query, query_terms

DEPTH = 200
"""How many candidates each leg hands to fusion."""

RAREST = 3
"""How many of a query's rarest terms a relaxed pass looks for."""

NO_WORDS = repository.Lexical(repository.Weights(0, 0.0, [], [], [], []))


@dataclass(frozen=True, slots=True)
class Asked:
    """One query, with its vector unless the vector leg does not run."""

    text: str
    vector: Vector | None
    embedder: Embedder
    coverage_floor: float = ranking.COVERAGE_FLOOR


@dataclass(frozen=True, slots=True)
class Ranked:
    """A row that stands on its own, with its final score and what each leg said of it."""

    row: facts.Ranking
    score: float
    candidate: ranking.Candidate
    relaxed: bool = False


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What one query found, best first, with the evidence of both legs."""

    query: Query
    words: repository.Lexical
    nearest: Sequence[repository.VectorHit]
    fallen: Sequence[repository.VectorHit]
    """Rows of the vector leg that are not among those that stand."""
    ranked: list[Ranked]
    rows: int
    """How many rows were visible."""
    exact: bool
    """Whether every one of them was compared, in both legs."""


async def retrieve(work: Work, visible: repository.Visible, asked: Asked) -> Retrieved:
    """Run both legs for one query and fuse what stands on its own."""
    query = query_terms(asked.text, work.language)
    words = NO_WORDS
    if query.terms:
        words = await repository.lexical(work, visible, query.terms, floor=asked.coverage_floor, depth=DEPTH)
    rows = words.weights.rows or await repository.searched(work, visible)
    nearest: list[repository.VectorHit] = []
    exact = True
    if asked.vector is not None:
        nearest, exact = await repository.vector(
            work, visible, asked.vector, model=asked.embedder.model, depth=DEPTH, rows=rows
        )
    standing = await _standing(work, visible, words, nearest, asked)
    kept = {each.doc for each in standing}
    fallen = [hit for hit in nearest if hit.score > 0 and hit.doc not in kept]
    return Retrieved(query, words, nearest, fallen, await _ranked(work, standing), rows, exact)


async def relax(work: Work, visible: repository.Visible, strict: Retrieved) -> Retrieved:
    """Look for the rarest terms of a query that no row matches whole; every hit is marked as relaxed.

    A term that no row, or more than half of all rows, contain is no fragment worth looking for.
    """
    weights = strict.words.weights
    usable = [
        (idf, term)
        for term, df, idf in zip(weights.terms, weights.frequencies, weights.idfs, strict=True)
        if 0 < df <= max(1, weights.rows / 2)
    ]
    rarest = [term for _, term in sorted(usable, key=lambda each: (-each[0], each[1]))[:RAREST]]
    if not rarest:
        return strict
    words = await repository.lexical(work, visible, rarest, floor=0.0, depth=DEPTH)
    legs = ranking.legs({hit.doc: hit.score for hit in words.hits})
    standing = [ranking.Candidate(hit.doc, legs[hit.doc], None, hit.coverage) for hit in words.hits]
    ranked = [replace(each, relaxed=True) for each in await _ranked(work, standing)]
    return replace(strict, words=words, ranked=ranked)


async def _standing(
    work: Work,
    visible: repository.Visible,
    words: repository.Lexical,
    nearest: Sequence[repository.VectorHit],
    asked: Asked,
) -> list[ranking.Candidate]:
    """Return the rows that stand on their own in either leg, with both scores.

    What one leg found is looked up in the other, so that a row's place does not depend on where a list was cut.
    """
    lexical = {hit.doc: hit for hit in words.hits}
    cosine = {hit.doc: hit.score for hit in nearest if hit.score >= asked.embedder.floor}
    lexical |= await repository.lexical_of(work, visible, sorted(cosine.keys() - lexical.keys()), words.weights)
    if asked.vector is not None:
        known = {hit.doc: hit.score for hit in nearest}
        missing = sorted(lexical.keys() - known.keys())
        known |= await repository.vector_of(work, missing, asked.vector, model=asked.embedder.model)
        cosine |= {doc: score for doc, score in known.items() if doc in lexical and score > 0}
    by_words = ranking.legs({doc: hit.score for doc, hit in lexical.items()})
    by_meaning = ranking.legs(cosine)
    return [
        ranking.Candidate(doc, by_words.get(doc), by_meaning.get(doc), lexical[doc].coverage if doc in lexical else 0.0)
        for doc in sorted(by_words.keys() | by_meaning.keys())
    ]


async def _ranked(work: Work, standing: Sequence[ranking.Candidate]) -> list[Ranked]:
    """Fuse and re-rank: by score, then by key, so that the same question gives the same bytes."""
    rows = await facts.ranking(work, [each.doc for each in standing])
    scores = ranking.fuse(standing)
    ranked = [Ranked(rows[each.doc], scores[each.doc] * _adjustment(work, rows[each.doc]), each) for each in standing]
    return sorted(ranked, key=lambda each: (-each.score, each.row.key))


def _adjustment(work: Work, row: facts.Ranking) -> float:
    age = (work.as_of - row.occurred) / timedelta(days=1)
    return ranking.adjustment(kind=row.kind, importance=row.importance, confidence=float(row.confidence), age_days=age)
