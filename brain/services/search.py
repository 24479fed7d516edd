"""Search in the memory layer: visible rows first, two legs, an honesty floor, and a diagnosis in every answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from brain import ranking, times
from brain.database import Work
from brain.embedders import Embedder, Vector
from brain.errors import BrainError, InvalidInput
from brain.layers import Fact
from brain.names import clean_text
from brain.repository import memory as facts
from brain.repository import search as repository
from brain.services import cursors, inputs, models, scopes
from brain.services.facts import KINDS
from brain.text import ANALYSIS_VERSION, Query, query_terms

DEPTH = 200
"""How many candidates each leg hands to fusion."""

NOTHING = "No relevant memories found for this query."
Mode = Literal["hybrid", "strict"]
MODES = ("hybrid", "strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and of which rows; empty means left out."""

    query: str
    scope: str = ""
    kinds: Sequence[str] = ()
    tags: Sequence[str] = ()
    since: inputs.Instant = None
    until: inputs.Instant = None
    valid_at: inputs.Instant = None
    mode: str = "hybrid"
    limit: int = 10
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked question with its query vector, made before any transaction."""

    question: Question
    vector: Vector | None
    failed: bool
    """The model could not be reached: the vector leg does not run."""
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class Hit:
    """A fact that stands on its own, with what each leg said of it."""

    fact: Fact
    score: float
    candidate: ranking.Candidate


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits in order, or none with the evidence for that, and the diagnosis of how they came about."""

    hits: list[Hit]
    reason: ranking.Reason
    diagnosis: dict[str, Any] = field(default_factory=dict)
    cursor: str = ""

    @property
    def message(self) -> str:
        """One sentence for people."""
        if self.hits:
            return ""
        sentences = {
            "leg_unavailable": "The search is incomplete: the vector leg did not run, and no words matched.",
            "past_end": "There are no more hits.",
        }
        return sentences.get(self.reason, NOTHING)


async def prepare(embedder: Embedder, question: Question) -> Prepared:
    """Check a question and embed its query; no transaction may be open. A failing model leaves the words leg."""
    query = clean_text(question.query, field="query", minimum=1, maximum=2_000)
    if not 1 <= question.limit <= 100:
        raise InvalidInput("limit must be a whole number from 1 to 100.", field="limit")
    checked = replace(
        question,
        query=query,
        kinds=[inputs.choice(kind, KINDS, field="kinds") for kind in question.kinds],
        tags=inputs.labels(question.tags, field="tags"),
        mode=inputs.choice(question.mode or "hybrid", MODES, field="mode"),
    )
    try:
        [vector] = await embedder.embed([query], query=True)
    except BrainError:
        return Prepared(checked, None, True, embedder)
    return Prepared(checked, vector, False, embedder)


def pinned(question: Question) -> datetime | None:
    """Return the instant that a cursor pins, so that pages stay together while others write."""
    return cursors.unpack(question.cursor, cursors.number).as_of


async def run(work: Work, prepared: Prepared) -> Answer:
    """Answer a prepared question as of the transaction's instant."""
    question, model = prepared.question, prepared.embedder.model
    await models.matches(work, prepared.embedder)
    covered = await scopes.for_reading(work, question.scope)
    visible = _visible(work, question, covered)
    query = query_terms(question.query, work.language)
    words = await _words_leg(work, visible, query, question)
    nearest = await _vector_leg(work, visible, prepared)
    standing, fallen = await _candidates(work, visible, words, nearest, prepared)
    ordered = await _ordered(work, standing)
    start = next(iter(cursors.unpack(question.cursor, cursors.number).position), 0)
    page = ordered[start : start + question.limit]
    searched = words.weights.rows if query.terms else await repository.searched(work, visible)
    reason = _reason(page, ordered, words.candidates + len(fallen), searched, prepared)
    following = start + len(page)
    diagnosis = {
        "reason": reason,
        "mode": question.mode,
        "filters": _filters(question, visible, covered),
        "as_of": times.format_instant(work.as_of),
        "valid_at": times.format_instant(visible.valid_at),
        "rows_searched": searched,
        "rows_without_vector": await repository.without_vector(work, visible, model=model),
        "exact": True,
        "lexical": _words_said(query, words),
        "vector": _vector_said(prepared, len(nearest)),
        "below_floor": _below(words, standing, fallen),
        "floor": {"cosine": prepared.embedder.floor, "coverage": _coverage_floor(question)},
        "model": model,
        "analysis": ANALYSIS_VERSION,
        "found": len(ordered),
        "limit_reached": len(ordered) > following,
        "candidate_limit_reached": len(words.hits) == DEPTH or len(nearest) == DEPTH,
    }
    cursor = cursors.pack(work.as_of, following) if len(ordered) > following else ""
    return Answer(page, reason, diagnosis, cursor)


def _visible(work: Work, question: Question, covered: scopes.Covered) -> repository.Visible:
    return repository.Visible(
        scopes=list(covered.numbers),
        numbers=list(covered.numbers.values()),
        valid_at=inputs.instant(work, question.valid_at, field="valid_at") or work.as_of,
        kinds=list(question.kinds) or None,
        tags=list(question.tags) or None,
        since=inputs.period_start(work, question.since, field="since"),
        until=inputs.period_start(work, question.until, field="until"),
    )


async def _words_leg(work: Work, visible: repository.Visible, query: Query, question: Question) -> repository.Lexical:
    if not query.terms:
        return repository.Lexical(repository.Weights(0, 0.0, [], [], [], []))
    return await repository.lexical(work, visible, query.terms, floor=_coverage_floor(question), depth=DEPTH)


def _coverage_floor(question: Question) -> float:
    return 1.0 if question.mode == "strict" else ranking.COVERAGE_FLOOR


async def _vector_leg(work: Work, visible: repository.Visible, prepared: Prepared) -> list[repository.VectorHit]:
    if prepared.question.mode == "strict" or prepared.vector is None:
        return []
    return await repository.vector(work, visible, prepared.vector, model=prepared.embedder.model, depth=DEPTH)


async def _candidates(
    work: Work,
    visible: repository.Visible,
    words: repository.Lexical,
    nearest: Sequence[repository.VectorHit],
    prepared: Prepared,
) -> tuple[list[ranking.Candidate], list[repository.VectorHit]]:
    """Return the rows that stand on their own in either leg, with both scores, and the nearest rows that fell.

    What one leg found is looked up in the other, so that a row's place does not depend on where a list was cut.
    """
    floor = prepared.embedder.floor
    lexical = {hit.doc: hit for hit in words.hits}
    cosine = {hit.doc: hit.score for hit in nearest if hit.score >= floor}
    lexical |= await repository.lexical_of(work, visible, sorted(cosine.keys() - lexical.keys()), words.weights)
    if prepared.vector is not None and prepared.question.mode != "strict":
        known = {hit.doc: hit.score for hit in nearest}
        missing = sorted(lexical.keys() - known.keys())
        found = await repository.vector_of(work, missing, prepared.vector, model=prepared.embedder.model)
        cosine |= {doc: score for doc, score in (known | found).items() if doc in lexical and score > 0}
    by_words = ranking.legs({doc: hit.score for doc, hit in lexical.items()})
    by_meaning = ranking.legs(cosine)
    standing = [
        ranking.Candidate(doc, by_words.get(doc), by_meaning.get(doc), lexical[doc].coverage if doc in lexical else 0.0)
        for doc in sorted(by_words.keys() | by_meaning.keys())
    ]
    kept = {each.doc for each in standing}
    return standing, [hit for hit in nearest if hit.score > 0 and hit.doc not in kept]


async def _ordered(work: Work, standing: Sequence[ranking.Candidate]) -> list[Hit]:
    """Fuse and re-rank: by score, then by key, so that the same question gives the same bytes."""
    rows = await facts.by_doc(work, [each.doc for each in standing])
    hits = [Hit(rows[each.doc], each.fused() * _adjustment(work, rows[each.doc]), each) for each in standing]
    return sorted(hits, key=lambda hit: (-hit.score, hit.fact.key))


def _adjustment(work: Work, fact: Fact) -> float:
    age = (work.as_of - fact.occurred) / timedelta(days=1)
    return ranking.adjustment(
        kind=fact.kind, importance=fact.importance, confidence=float(fact.confidence), age_days=age
    )


def _reason(
    page: Sequence[Hit], ordered: Sequence[Hit], candidates: int, searched: int, prepared: Prepared
) -> ranking.Reason:
    if page:
        return "matched"
    if ordered:
        return "past_end"
    if prepared.failed and prepared.question.mode != "strict":
        return "leg_unavailable"
    if not searched:
        return "empty_scope"
    return "below_floor" if candidates else "no_match"


def _below(
    words: repository.Lexical, standing: Sequence[ranking.Candidate], fallen: Sequence[repository.VectorHit]
) -> dict[str, Any]:
    """Return how many candidates fell below the floor, and the best cosine and coverage among them."""
    return {
        "candidates": max(words.candidates - len(words.hits), 0) + len(fallen),
        "best_cosine": round(max((hit.score for hit in fallen), default=0.0), 6),
        "best_coverage": round(words.best_below, 6),
    }


def _words_said(query: Query, words: repository.Lexical) -> dict[str, Any]:
    return {
        "status": "ran" if query.terms else "no_words",
        "candidates": words.candidates,
        "passed": len(words.hits),
        "terms": list(query.terms),
        "ignored": list(query.ignored),
        "only_stop_words": query.only_stop_words,
    }


def _vector_said(prepared: Prepared, found: int) -> dict[str, Any]:
    if prepared.question.mode == "strict":
        status = "not_asked"
    elif prepared.failed:
        status = "unavailable"
    else:
        status = "ran" if prepared.vector is not None else "no_vector_for_query"
    return {"status": status, "candidates": found}


def _filters(question: Question, visible: repository.Visible, covered: scopes.Covered) -> dict[str, Any]:
    """Echo the filters that were applied."""
    given = {
        "scopes": covered.label,
        "kinds": list(visible.kinds or ()),
        "tags": list(visible.tags or ()),
        "since": times.format_instant(visible.since) if visible.since else "",
        "until": times.format_instant(visible.until) if visible.until else "",
    }
    return {name: value for name, value in given.items() if value} | {"limit": question.limit}
