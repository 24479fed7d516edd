"""One query through both legs: what stands on its own, in order, and what fell short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from brain import ranking
from brain.database import Work
from brain.embedders import Embedder, Vector
from brain.repository import memory as facts
from brain.repository import search as repository
from brain.staleness import Dated, asks_for_the_present, newer_first
from brain.text import Query, query_terms

DEPTH = 200
"""How many candidates each leg hands to fusion."""

RAREST = 3
"""How many of a query's rarest terms a relaxed pass looks for."""

NO_WORDS = repository.Lexical(repository.Weights(0, 0.0, [], [], [], [], [], []))


@dataclass(frozen=True, slots=True)
class Asked:
    """One query, with its vector unless the vector leg does not run."""

    text: str
    vector: Vector | None
    embedder: Embedder
    profile: ranking.Profile
    strict: bool = False
    """Every term must occur."""


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
    ranked: list[Ranked]
    rows: int
    """How many rows were visible."""
    exact: bool
    """Whether every one of them was compared, in both legs."""
    below: Sequence[ranking.Candidate] = ()
    """Candidates that the floor kept out."""


async def retrieve(work: Work, visible: repository.Visible, asked: Asked) -> Retrieved:
    """Run both legs for one query, keep what stands above the honesty floor, and order it."""
    found = await _gathered(work, visible, asked)
    standing = ranking.standing(found.below, asked.profile)
    kept = {each.doc for each in standing}
    scores = ranking.fuse(found.below, asked.profile, ideal=found.words.weights.ideal)
    ranked = await _newer_first(work, asked.text, await _ranked(work, standing, scores))
    return replace(found, ranked=ranked, below=[each for each in found.below if each.doc not in kept])


async def unfloored(work: Work, visible: repository.Visible, asked: Asked) -> list[ranking.Candidate]:
    """Return what both legs find for one query, in fused order and whatever its evidence, for the calibration."""
    found = await _gathered(work, visible, replace(asked, profile=replace(asked.profile, words=0.0)))
    scores = ranking.fuse(found.below, asked.profile, ideal=found.words.weights.ideal)
    return sorted(found.below, key=lambda each: (-scores[each.doc], each.doc))


async def _gathered(work: Work, visible: repository.Visible, asked: Asked) -> Retrieved:
    """Run both legs for one query, with every candidate still below the floor."""
    query = query_terms(asked.text, work.language)
    words = await _words_leg(work, visible, query, asked)
    rows = words.weights.rows or await repository.searched(work, visible)
    if query.only_stop_words:  # they say nothing that a row could be near to in meaning
        asked = replace(asked, vector=None)
    nearest, exact = await _vector_leg(work, visible, words, asked, rows)
    candidates = await _candidates(work, visible, words, nearest, asked)
    return Retrieved(query, words, nearest, [], rows, exact, candidates)


async def relax(work: Work, visible: repository.Visible, strict: Retrieved) -> Retrieved:
    """Look for the rarest terms of a query that no row matches whole; every hit is marked as relaxed.

    A term that no row, or more than half of all rows, contain is no fragment worth looking for, nor are stop words.
    """
    weights = strict.words.weights
    usable = [
        (idf, term)
        for term, df, idf in zip(weights.terms, weights.frequencies, weights.idfs, strict=True)
        if 0 < df <= max(1, weights.rows / 2)
    ]
    rarest = [term for _, term in sorted(usable, key=lambda each: (-each[0], each[1]))[:RAREST]]
    if not rarest or strict.query.only_stop_words:
        return strict
    words = await repository.lexical(work, visible, rarest, floor=0.0, depth=DEPTH)
    legs = ranking.legs({hit.doc: hit.score for hit in words.hits})
    found = [ranking.Candidate(hit.doc, legs[hit.doc], None, hit.coverage) for hit in words.hits]
    ranked = await _ranked(work, found, {hit.doc: hit.score for hit in words.hits})
    return replace(strict, words=words, ranked=[replace(each, relaxed=True) for each in ranked])


async def _words_leg(work: Work, visible: repository.Visible, query: Query, asked: Asked) -> repository.Lexical:
    """Return the rows that cover enough of the query; of a query of stop words only, that is all of it."""
    if not query.terms:
        return NO_WORDS
    whole = asked.strict or query.only_stop_words
    return await repository.lexical(
        work,
        visible,
        query.terms,
        floor=1.0 if whole else asked.profile.least_coverage,
        depth=DEPTH,
        names=query.names,
        guarded=not asked.strict,
    )


async def _vector_leg(
    work: Work, visible: repository.Visible, words: repository.Lexical, asked: Asked, rows: int
) -> tuple[list[repository.VectorHit], bool]:
    """Return the nearest rows; for a model that sees words only, the similarity of the rows that share words."""
    if asked.vector is None:
        return [], True
    model = asked.embedder.model
    if asked.profile.words_only:
        found = await repository.vector_of(work, [hit.doc for hit in words.hits], asked.vector, model=model)
        return [repository.VectorHit(doc, score) for doc, score in found.items()], True
    return await repository.vector(work, visible, asked.vector, model=model, depth=DEPTH, rows=rows)


async def _candidates(
    work: Work,
    visible: repository.Visible,
    words: repository.Lexical,
    nearest: Sequence[repository.VectorHit],
    asked: Asked,
) -> list[ranking.Candidate]:
    """Return what either leg found with both scores.

    What one leg found is looked up in the other, so that a row's place does not depend on where a list was cut.
    """
    lexical = {hit.doc: hit for hit in words.hits}
    cosine = {hit.doc: hit.score for hit in nearest if hit.score > 0}
    missing = sorted(lexical.keys() - cosine.keys())
    if asked.vector is not None and not asked.profile.words_only:
        cosine |= await repository.vector_of(work, missing, asked.vector, model=asked.embedder.model)
    if not asked.strict:
        unread = sorted(cosine.keys() - lexical.keys())
        lexical |= await repository.lexical_of(work, visible, unread, words.weights)
    by_words = ranking.legs({doc: hit.score for doc, hit in lexical.items()})
    by_meaning = ranking.legs(cosine)
    docs = sorted(by_words.keys() | by_meaning.keys())
    lengths = await facts.lengths(work, docs)
    return [
        ranking.Candidate(
            doc,
            by_words.get(doc),
            by_meaning.get(doc),
            lexical[doc].coverage if doc in lexical else 0.0,
            lengths[doc],
        )
        for doc in docs
    ]


async def _ranked(work: Work, standing: Sequence[ranking.Candidate], scores: Mapping[int, float]) -> list[Ranked]:
    """Re-rank: by score, then by key, so that the same question gives the same bytes."""
    rows = await facts.ranking(work, [each.doc for each in standing])
    ranked = [Ranked(rows[each.doc], scores[each.doc] * _adjustment(work, rows[each.doc]), each) for each in standing]
    return _by_score(ranked)


async def _newer_first(work: Work, question: str, ranked: list[Ranked]) -> list[Ranked]:
    """Put the newer of two close rows first when the question asks for a value as it is now."""
    best = ranked[: ranking.TOP]
    if len(best) < 2 or not asks_for_the_present(question):
        return ranked
    texts = await facts.by_doc(work, [each.row.doc for each in best])
    dated = [Dated(each.row.doc, each.score, each.row.occurred, texts[each.row.doc].text) for each in best]
    raised = newer_first(dated)
    return _by_score([replace(each, score=raised[each.row.doc]) for each in best]) + ranked[ranking.TOP :]


def _by_score(ranked: Iterable[Ranked]) -> list[Ranked]:
    return sorted(ranked, key=lambda each: (-each.score, each.row.key))


def _adjustment(work: Work, row: facts.Ranking) -> float:
    age = (work.as_of - row.occurred) / timedelta(days=1)
    return ranking.adjustment(kind=row.kind, importance=row.importance, confidence=float(row.confidence), age_days=age)
