"""One query through both legs: what stands on its own, in order, and what fell short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from brain import ranking
from brain.embedders import Embedder
from brain.repository import memory as facts
from brain.repository import search as repository
from brain.scripts import main_script
from brain.staleness import Dated, asks_for_the_present, newer_first
from brain.text import Query, query_terms
from brain.work import Work

DEPTH = 50
"""How many candidates each leg hands to fusion, unless a page is longer."""

MOST_ACROSS = 20
"""How many of the nearest rows are read to see whether they are written in another script."""

RAREST = 3
"""How many of a query's rarest terms a relaxed pass looks for."""

NO_WORDS = repository.Lexical(repository.Weights(0, 0.0, [], [], [], [], [], [], []))


@dataclass(frozen=True, slots=True)
class Asked:
    """One query, with its vector unless the vector leg does not run."""

    text: str
    vector: str | None
    """As `memory.vector_text` writes it."""
    embedder: Embedder
    profile: ranking.Profile
    strict: bool = False
    """Every term must occur."""
    depth: int = DEPTH
    """How many candidates each leg hands to fusion."""
    indexed: bool = False
    """Whether the model's vectors have an index."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A row that stands on its own, with its final score and what each leg said of it."""

    row: repository.Detail
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
    details: Mapping[int, repository.Detail] = field(default_factory=dict)
    """Every candidate's row."""


async def retrieve(work: Work, visible: repository.Visible, asked: Asked) -> Retrieved:
    """Run both legs for one query, keep what stands above the honesty floor, and order it."""
    found = await _gathered(work, visible, asked)
    standing = ranking.standing(found.below, asked.profile)
    kept = {each.doc for each in standing}
    scores = ranking.fuse(found.below, asked.profile, ideal=found.words.weights.ideal)
    ranked = await _newer_first(work, asked.text, _ranked(work, standing, scores, found.details))
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
    nearest, exact = await _vector_leg(work, visible, asked, rows)
    details = await _details(work, visible, words, nearest, asked)
    if asked.profile.words_only:
        nearest = [repository.VectorHit(row.doc, row.cosine) for row in details.values() if row.cosine is not None]
    candidates = await _across(work, asked, _candidates(words, nearest, details))
    return Retrieved(query, words, nearest, [], rows, exact, candidates, details)


async def relax(work: Work, visible: repository.Visible, asked: Asked, strict: Retrieved) -> Retrieved:
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
    words = await repository.lexical(work, visible, rarest, floor=0.0, depth=asked.depth)
    details = await _details(work, visible, words, [], replace(asked, vector=None))
    found = _candidates(words, [], details)
    ranked = _ranked(work, found, {hit.doc: hit.score for hit in words.hits}, details)
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
        depth=asked.depth,
        names=query.names,
        guarded=not asked.strict,
    )


async def _vector_leg(
    work: Work, visible: repository.Visible, asked: Asked, rows: int
) -> tuple[list[repository.VectorHit], bool]:
    """Return the nearest rows; a model that sees words only is asked about the rows that share words, see _details."""
    if asked.vector is None or asked.profile.words_only:
        return [], True
    model = asked.embedder.model
    return await repository.vector(
        work, visible, asked.vector, model=model, depth=asked.depth, rows=rows, indexed=asked.indexed
    )


async def _details(
    work: Work,
    visible: repository.Visible,
    words: repository.Lexical,
    nearest: Sequence[repository.VectorHit],
    asked: Asked,
) -> dict[int, repository.Detail]:
    """Look up the rows that either leg found, with what the other leg says of them.

    So a row's place does not depend on where a list was cut.
    """
    lexical, near = {hit.doc for hit in words.hits}, {hit.doc for hit in nearest if hit.score > 0}
    return await repository.details(
        work,
        visible,
        sorted(lexical | near),
        weights=words.weights,
        unread=near - lexical,
        asked=asked.vector,
        model=asked.embedder.model,
        unseen=lexical - near,
    )


def _candidates(
    words: repository.Lexical, nearest: Sequence[repository.VectorHit], details: Mapping[int, repository.Detail]
) -> list[ranking.Candidate]:
    """Return every row that either leg found with both scores."""
    found = {hit.doc: (hit.score, hit.coverage) for hit in words.hits}
    found |= {row.doc: (row.score, row.coverage or 0.0) for row in details.values() if row.score is not None}
    cosine = {hit.doc: hit.score for hit in nearest if hit.score > 0}
    cosine |= {row.doc: row.cosine for row in details.values() if row.cosine is not None}
    by_words = ranking.legs({doc: score for doc, (score, _) in found.items()})
    by_meaning = ranking.legs(cosine)
    return [
        ranking.Candidate(doc, by_words.get(doc), by_meaning.get(doc), found.get(doc, (0.0, 0.0))[1], row.length)
        for doc, row in details.items()
    ]


async def _across(work: Work, asked: Asked, candidates: list[ranking.Candidate]) -> list[ranking.Candidate]:
    """Mark the nearest of the rows that do not stand by themselves where they are written in another script."""
    least, script = asked.profile.across, main_script(asked.text)
    if least is None or not script:
        return candidates
    weak = [each for each in candidates if ranking.strength(each, asked.profile) < 1]
    near = {each.doc: ranking.similarity(each, asked.profile) for each in weak}
    doubtful = sorted((doc for doc, found in near.items() if found >= least), key=lambda doc: -near[doc])[:MOST_ACROSS]
    rows = await facts.by_doc(work, doubtful)
    other = {doc for doc, row in rows.items() if main_script(row.text) not in ("", script)}
    return [each._replace(other_script=True) if each.doc in other else each for each in candidates]


def _ranked(
    work: Work,
    standing: Sequence[ranking.Candidate],
    scores: Mapping[int, float],
    rows: Mapping[int, repository.Detail],
) -> list[Ranked]:
    """Re-rank: by score, then by key, so that the same question gives the same bytes."""
    return _by_score(
        Ranked(rows[each.doc], scores[each.doc] * _adjustment(work, rows[each.doc]), each) for each in standing
    )


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


def _adjustment(work: Work, row: repository.Detail) -> float:
    age = ranking.age_days(row.occurred, work.as_of)
    return ranking.adjustment(kind=row.kind, importance=row.importance, confidence=float(row.confidence), age_days=age)
