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
    strict = question.mode == "strict"
    words = await repository.lexical(work, visible, query.terms, strict=strict, depth=DEPTH) if query.terms else []
    nearest = await _vector_leg(work, visible, prepared, strict=strict)
    candidates = await _candidates(work, words, nearest, prepared)
    floor = prepared.embedder.floor
    standing = [each for each in candidates if each.stands(cosine_floor=floor)]
    ordered = await _ordered(work, standing)
    start = next(iter(cursors.unpack(question.cursor, cursors.number).position), 0)
    page = ordered[start : start + question.limit]
    searched = await repository.searched(work, visible, model=model)
    reason = _reason(page, ordered, candidates, searched.searched, prepared)
    following = start + len(page)
    diagnosis = {
        "reason": reason,
        "mode": question.mode,
        "filters": _filters(question, visible, covered),
        "as_of": times.format_instant(work.as_of),
        "valid_at": times.format_instant(visible.valid_at),
        "rows_searched": searched.searched,
        "rows_without_vector": searched.without_vector,
        "exact": True,
        "lexical": _lexical_leg(query, len(words)),
        "vector": _vector_said(prepared, len(nearest), strict=strict),
        "below_floor": _below(candidates, standing),
        "floor": {"cosine": floor, "coverage": ranking.COVERAGE_FLOOR},
        "model": model,
        "analysis": ANALYSIS_VERSION,
        "found": len(ordered),
        "limit_reached": len(ordered) > following,
        "candidate_limit_reached": len(words) == DEPTH or len(nearest) == DEPTH,
    }
    cursor = cursors.pack(work.as_of, following) if len(ordered) > following else ""
    return Answer(page, reason, diagnosis, cursor)


def _visible(work: Work, question: Question, covered: scopes.Covered) -> repository.Visible:
    return repository.Visible(
        scopes=covered.scopes,
        valid_at=inputs.instant(work, question.valid_at, field="valid_at") or work.as_of,
        kinds=list(question.kinds) or None,
        tags=list(question.tags) or None,
        since=inputs.period_start(work, question.since, field="since"),
        until=inputs.period_start(work, question.until, field="until"),
    )


async def _vector_leg(
    work: Work, visible: repository.Visible, prepared: Prepared, *, strict: bool
) -> list[repository.VectorHit]:
    if strict or prepared.vector is None:
        return []
    return await repository.vector(work, visible, prepared.vector, model=prepared.embedder.model, depth=DEPTH)


async def _candidates(
    work: Work,
    words: Sequence[repository.LexicalHit],
    nearest: Sequence[repository.VectorHit],
    prepared: Prepared,
) -> list[ranking.Candidate]:
    """Join the legs; a row is a candidate of the vector leg only where the cosine is evidence."""
    lexical = ranking.legs({hit.doc: hit.score for hit in words})
    meaning = ranking.legs({hit.doc: hit.score for hit in nearest if hit.score > 0})
    coverage = {hit.doc: hit.coverage for hit in words}
    return [
        ranking.Candidate(doc, lexical.get(doc), meaning.get(doc), coverage.get(doc, 0.0))
        for doc in sorted(lexical.keys() | meaning.keys())
    ]


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
    page: Sequence[Hit],
    ordered: Sequence[Hit],
    candidates: Sequence[ranking.Candidate],
    searched: int,
    prepared: Prepared,
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


def _below(candidates: Sequence[ranking.Candidate], standing: Sequence[ranking.Candidate]) -> dict[str, Any]:
    """Return how many candidates fell below the floor, and the best cosine and coverage among them."""
    left = {each.doc for each in standing}
    fallen = [each for each in candidates if each.doc not in left]
    return {
        "candidates": len(fallen),
        "best_cosine": round(max((each.vector.score for each in fallen if each.vector), default=0.0), 6),
        "best_coverage": round(max((each.coverage for each in fallen), default=0.0), 6),
    }


def _lexical_leg(query: Query, found: int) -> dict[str, Any]:
    status = "ran" if query.terms else "no_words"
    return {
        "status": status,
        "candidates": found,
        "terms": list(query.terms),
        "ignored": list(query.ignored),
        "only_stop_words": query.only_stop_words,
    }


def _vector_said(prepared: Prepared, found: int, *, strict: bool) -> dict[str, Any]:
    if strict:
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
