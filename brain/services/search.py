"""Search in the memory layer: visible rows first, two legs, an honesty floor, and a diagnosis in every answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from brain import ranking, times
from brain.embedders import Embedder
from brain.errors import BrainError, InvalidInput
from brain.layers import Fact
from brain.names import clean_text
from brain.repository import memory as facts
from brain.repository import search as repository
from brain.services import cursors, inputs, models, retrieval, scopes
from brain.services.facts import KINDS
from brain.services.retrieval import Asked, Ranked, Retrieved
from brain.text import ANALYSIS_VERSION, Query
from brain.work import Work

NOTHING = "No relevant memories found for this query."
MODES = ("hybrid", "strict", "auto")
MOST_HITS = 100
"""Longest page."""
MOST_VARIANTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and of which rows; empty means left out."""

    query: str
    query_variants: Sequence[str] = ()
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
    """A checked question with a vector for each of its queries, made before any transaction."""

    question: Question
    vectors: list[str | None]
    """As text, see `memory.vector_text`."""
    failed: bool
    """The model could not be reached: the vector leg does not run."""
    embedder: Embedder
    profile: ranking.Profile
    """How far the model's similarities are trusted, with the floor that holds as of the transaction's instant."""

    @property
    def queries(self) -> list[str]:
        """The query and its variants."""
        return [self.question.query, *self.question.query_variants]

    @property
    def by_words_only(self) -> bool:
        """Whether the mode asks for every word, so that the vector leg has no say."""
        return self.question.mode in ("strict", "auto")


@dataclass(frozen=True, slots=True)
class Hit:
    """A fact that stands on its own, with what each leg said of it."""

    fact: Fact
    score: float
    candidate: ranking.Candidate
    strength: float
    """Its evidence as a multiple of the honesty floor."""
    relaxed: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """What a cursor holds: all pages are cut from the same order of hits."""

    as_of: datetime
    start: int
    """Place of the first hit in that order."""
    relaxed: int
    """Whether the pass was relaxed, 0 or 1."""
    depth: int
    """How many candidates each leg handed to fusion."""

    def after(self, count: int) -> str:
        """Return the cursor that goes on after so many hits."""
        return cursors.pack(self.as_of, self.start + count, self.relaxed, self.depth)


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits in order, or none with the evidence for that, and the diagnosis of how they came about."""

    hits: list[Hit]
    reason: ranking.Reason
    diagnosis: dict[str, Any] = field(default_factory=dict)
    cursor: str = ""
    place: Place | None = None
    """Where its first hit stands."""

    @property
    def message(self) -> str:
        """One sentence for people."""
        if self.hits or self.reason in ("matched", "relaxed_match"):
            return ""
        sentences = {
            "leg_unavailable": "The search is incomplete: the vector leg missed rows, and no words matched.",
            "past_end": "There are no more hits.",
        }
        return sentences.get(self.reason, NOTHING)


async def prepare(embedder: Embedder, question: Question) -> Prepared:
    """Check a question and embed its queries; no transaction may be open. A failing model leaves the words leg."""
    if not 1 <= question.limit <= MOST_HITS:
        raise InvalidInput(f"limit must be a whole number from 1 to {MOST_HITS}.", field="limit")
    if len(question.query_variants) > MOST_VARIANTS:
        raise InvalidInput(f"query_variants takes at most {MOST_VARIANTS} entries.", field="query_variants")
    checked = replace(
        question,
        query=clean_text(question.query, field="query", minimum=1, maximum=2_000),
        query_variants=[
            clean_text(each, field="query_variants", minimum=1, maximum=2_000) for each in question.query_variants
        ],
        kinds=[inputs.choice(kind, KINDS, field="kinds") for kind in question.kinds],
        tags=inputs.labels(question.tags, field="tags"),
        mode=inputs.choice(question.mode or "hybrid", MODES, field="mode"),
    )
    unasked: list[str | None] = [None] * (1 + len(checked.query_variants))
    prepared = Prepared(checked, unasked, False, embedder, models.profile(embedder))
    if prepared.by_words_only:
        return prepared
    try:
        vectors = await embedder.embed(prepared.queries, query=True)
    except BrainError:
        return replace(prepared, failed=True)
    return replace(prepared, vectors=[None if each is None else facts.vector_text(each) for each in vectors])


def pinned(question: Question) -> datetime | None:
    """Return the instant that a cursor pins, so that pages stay together while others write."""
    return _cursor(question).as_of


async def run(work: Work, prepared: Prepared) -> Answer:
    """Answer a prepared question as of the transaction's instant."""
    question = prepared.question
    in_use = await models.in_use(work, prepared.embedder)
    prepared = replace(prepared, profile=in_use.profile)
    covered = await scopes.for_reading(work, question.scope)
    visible = _visible(work, question, covered)
    start, relaxed, depth = _cursor(question).position or (0, 0, max(retrieval.DEPTH, question.limit))
    asked = _asked(prepared, depth, in_use.indexed)
    found = [await retrieval.retrieve(work, visible, each) for each in asked]
    if question.mode == "auto" and (relaxed or not question.cursor) and not any(each.ranked for each in found):
        found = [await retrieval.relax(work, visible, *each) for each in zip(asked, found, strict=True)]
        relaxed = 1
    ranked = _fused(found)
    chosen = ranked[start : start + question.limit]
    rows = await facts.by_doc(work, [each.row.doc for each in chosen])
    page = [_hit(rows[each.row.doc], each, prepared) for each in chosen]
    place = Place(work.as_of, start, relaxed, depth)
    more = len(ranked) > start + len(page)
    model = prepared.embedder.model
    waiting = await repository.without_vector(work, visible, model=model) if in_use.waiting else 0
    reason = _reason(page, ranked, found, waiting, prepared)
    diagnosis = {
        "reason": reason,
        "mode": question.mode,
        "filters": _filters(question, visible, covered),
        "as_of": times.format_instant(work.as_of),
        "valid_at": times.format_instant(visible.valid_at),
        "rows_searched": found[0].rows,
        "rows_without_vector": waiting,
        "exact": all(each.exact for each in found),
        "lexical": _words_said(found[0].query, found[0].words),
        "vector": _vector_said(prepared, found[0]),
        "below_floor": _below(found, prepared),
        "floor": {"evidence": prepared.profile.floor, "words": prepared.profile.words},
        "model": model,
        "analysis": ANALYSIS_VERSION,
        "found": len(ranked),
        "limit_reached": more,
        "candidate_limit_reached": any(_cut(each, depth) for each in found),
    }
    if question.query_variants:
        diagnosis["variants"] = [
            {"query": query, "found": len(each.ranked)} for query, each in zip(prepared.queries, found, strict=True)
        ]
    return Answer(page, reason, diagnosis, place.after(len(page)) if more else "", place)


def cut(answer: Answer, count: int) -> Answer:
    """Return an answer with only its first hits; its cursor goes on with the first one left out."""
    if count >= len(answer.hits) or answer.place is None:
        return answer
    return replace(answer, hits=answer.hits[:count], cursor=answer.place.after(count))


def _hit(fact: Fact, found: Ranked, prepared: Prepared) -> Hit:
    strength = ranking.strength(found.candidate, prepared.profile)
    return Hit(fact, found.score, found.candidate, strength, found.relaxed)


def _cursor(question: Question) -> cursors.Cursor:
    return cursors.unpack(question.cursor, cursors.number, cursors.number, _depth)


def _depth(word: Any) -> int:
    """Read a depth of a cursor, which a page can have asked for."""
    depth = cursors.number(word)
    if not retrieval.DEPTH <= depth <= MOST_HITS:
        raise ValueError("not a depth")
    return depth


def _asked(prepared: Prepared, depth: int, indexed: bool) -> list[Asked]:
    pairs = zip(prepared.queries, prepared.vectors, strict=True)
    return [
        Asked(text, vector, prepared.embedder, prepared.profile, prepared.by_words_only, depth, indexed)
        for text, vector in pairs
    ]


def _fused(found: Sequence[Retrieved]) -> list[Ranked]:
    """Return the hits of one query as they are, or those of several fused by reciprocal rank."""
    if len(found) == 1:
        return found[0].ranked
    best: dict[int, Ranked] = {}
    for retrieved in found:
        for each in retrieved.ranked:
            best.setdefault(each.row.doc, each)
    scores = ranking.reciprocal_ranks([[each.row.doc for each in retrieved.ranked] for retrieved in found])
    return sorted(
        (replace(best[doc], score=score) for doc, score in scores.items()), key=lambda each: (-each.score, each.row.key)
    )


def _visible(work: Work, question: Question, covered: scopes.Covered) -> repository.Visible:
    return repository.Visible(
        scopes=list(covered.numbers),
        numbers=list(covered.numbers.values()),
        valid_at=inputs.instant(work, question.valid_at, field="valid_at") or work.as_of,
        kinds=list(question.kinds) or None,
        tags=list(question.tags) or None,
        since=inputs.period_start(work, question.since, field="since"),
        until=inputs.period_start(work, question.until, field="until"),
        whole=covered.scopes is None,
    )


def _reason(
    page: Sequence[Hit], ranked: Sequence[Ranked], found: Sequence[Retrieved], waiting: int, prepared: Prepared
) -> ranking.Reason:
    if page:
        return "relaxed_match" if page[0].relaxed else "matched"
    if ranked:
        return "past_end"
    if prepared.failed or (waiting and not prepared.profile.words_only and not prepared.by_words_only):
        return "leg_unavailable"
    if not found[0].rows:
        return "empty_scope"
    fell = any(each.words.candidates or each.below for each in found)
    return "below_floor" if fell else "no_match"


def _below(found: Sequence[Retrieved], prepared: Prepared) -> dict[str, Any]:
    """Return how many candidates fell below the floor, and the best evidence, cosine and coverage among them."""
    fallen = [candidate for each in found for candidate in each.below]
    cosines = [each.vector.score for each in fallen if each.vector is not None]
    coverages = [each.coverage for each in fallen] + [each.words.best_below for each in found]
    strengths = [ranking.strength(each, prepared.profile) for each in fallen]
    if prepared.profile.words_only and not prepared.by_words_only:
        strengths += [each.words.best_below / prepared.profile.words for each in found]
    uncovered = sum(max(each.words.candidates - len(each.words.hits), 0) for each in found)
    return {
        "candidates": len(fallen) + uncovered,
        "best_strength": round(max(strengths, default=0.0), 6),
        "best_cosine": round(max(cosines, default=0.0), 6),
        "best_coverage": round(max(coverages, default=0.0), 6),
    }


def _cut(found: Retrieved, depth: int) -> bool:
    return len(found.words.hits) == depth or len(found.nearest) == depth


def _words_said(query: Query, words: repository.Lexical) -> dict[str, Any]:
    return {
        "status": "ran" if query.terms else "no_words",
        "candidates": words.candidates,
        "passed": len(words.hits),
        "terms": list(query.terms),
        "ignored": list(query.ignored),
        "only_stop_words": query.only_stop_words,
    }


def _vector_said(prepared: Prepared, found: Retrieved) -> dict[str, Any]:
    if prepared.by_words_only:
        status = "not_asked"
    elif prepared.failed:
        status = "unavailable"
    elif found.query.only_stop_words or prepared.vectors[0] is None:
        status = "no_vector_for_query"
    else:
        status = "ran"
    return {"status": status, "candidates": len(found.nearest)}


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
