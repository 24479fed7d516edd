"""From what each leg says of a row to one order: evidence and the honesty floor, fusion, and a bounded re-rank."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

K1 = 1.2
B = 0.75
"""BM25 constants (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond")."""

RRF_K = 60
"""Constant of reciprocal rank fusion over query variants (Cormack, Clarke and Büttcher 2009)."""

WORDS_FLOOR = 0.32
"""Coverage from which a row stands on its words alone."""

COMPANION = 0.5
"""Once one row stands, others are kept down to this share of the floor."""

COVERAGE_WEIGHT = 0.5
"""What full coverage adds to a similarity as evidence."""

UNKNOWN_NAME = 3.0
"""How much heavier a name that no row contains weighs in the query than another unknown word."""

UBIQUITOUS = 0.1
SMALL_CORPUS = 20
"""From so many rows on, a row needs one matching term that at most a tenth of the rows (or two) contain."""

MOST_COMMON = 2_000
"""Where a query has no such term, a row needs all of its terms, and the rarest of them at most so many rows."""

DAMPED_FROM = 100
"""Length in terms from which a long text's BM25 is damped: it mentions everything."""

IDEAL_SHARE = 0.5
"""Share of the sum of idf below which the best BM25 of a query does not count as full evidence."""

TOP = 5
CLOSE = 0.6
"""Places and score ratio within which the newer of two rows about the same thing comes first."""

Reason = Literal["matched", "relaxed_match", "empty_scope", "no_match", "below_floor", "past_end", "leg_unavailable"]

_HALF_LIFE_DAYS = {
    "event": 90,
    "note": 90,
    "decision": 365,
    "fact": 730,
    "lesson": 1460,
    "preference": 1460,
    "profile": 3650,
}
_IMPORTANCE_STEP = 0.01
_CONFIDENCE_SPAN = 0.02
_RECENCY_SPAN = 0.02


@dataclass(frozen=True, slots=True)
class Profile:
    """How far the similarities of one embedding model can be trusted; measured by `python -m benchmarks.locomo`."""

    weight: float
    """Share of the words leg in the fused score; the vector leg has the rest."""
    base: float
    """Cosine of unrelated texts."""
    cap: float
    """The best similarity of a query counts as at least this much, so that a weak one is not inflated."""
    damping: float
    """Exponent that damps BM25 of long texts, for models that judge them better; 0 leaves it."""
    floor: float
    """Evidence from which a row stands."""
    words_only: bool = False
    """The model sees words only: its similarity orders rows that share words and is no evidence of its own."""
    across: float | None = None
    """Similarity from which a row in another script than the query's stands, for the two cannot share words; None for
    models that know one language."""
    words: float = WORDS_FLOOR
    """Coverage from which a row stands where there is no similarity: without a vector, or for a words-only model."""

    @property
    def least_coverage(self) -> float:
        """Rows that cover less of the query are never candidates of the words leg."""
        return self.words * COMPANION

    def calibrated(self, floor: float) -> Profile:
        """The same profile with a floor that was measured; for a model that sees words only, that of the words."""
        return replace(self, floor=floor, words=floor if self.words_only else self.words)


class LegScore(NamedTuple):
    """What one leg says of a document: its rank (tied scores share one) and its score."""

    rank: int
    score: float


class Candidate(NamedTuple):
    """A document with everything that ranking knows of it."""

    doc: int
    lexical: LegScore | None
    vector: LegScore | None
    coverage: float
    length: int = 0
    other_script: bool = False
    """Written in another script than the query, so that words say nothing."""


def similarity(candidate: Candidate, profile: Profile) -> float:
    """Return a candidate's cosine between that of unrelated texts (0) and equality (1)."""
    cosine = candidate.vector.score if candidate.vector is not None else 0.0
    return max(0.0, cosine - profile.base) / (1 - profile.base)


def strength(candidate: Candidate, profile: Profile) -> float:
    """Return a candidate's evidence as a multiple of the floor: from 1 on it stands."""
    by_words = profile.words_only or candidate.vector is None
    usual = evidence(candidate, profile) / (profile.words if by_words else profile.floor)
    if candidate.other_script and profile.across is not None:
        return max(usual, similarity(candidate, profile) / profile.across)
    return usual


def evidence(candidate: Candidate, profile: Profile) -> float:
    """Return how much speaks for a candidate: similarity plus half the coverage, against the profile's floor.

    For a row or query without a vector, and for a model that sees words only, it is the coverage, against the floor
    for words.
    """
    if profile.words_only or candidate.vector is None:
        return candidate.coverage
    return similarity(candidate, profile) + COVERAGE_WEIGHT * candidate.coverage


def standing(candidates: Sequence[Candidate], profile: Profile) -> list[Candidate]:
    """Apply the honesty floor: nothing unless some candidate stands, then it and its companions."""
    strengths = [strength(each, profile) for each in candidates]
    if max(strengths, default=0.0) < 1:
        return []
    return [each for each, found in zip(candidates, strengths, strict=True) if found >= COMPANION]


def fuse(candidates: Sequence[Candidate], profile: Profile, *, ideal: float) -> dict[int, float]:
    """Return a convex combination of both legs, each scaled to its best; ideal is the sum of the query's idf.

    Where no candidate has a vector, the words leg orders alone, and no long text is damped: nothing judges it better.
    """
    judged = any(each.vector is not None for each in candidates)
    words = {each.doc: _damped(each, profile.damping if judged else 0.0) for each in candidates}
    meaning = {each.doc: similarity(each, profile) for each in candidates}
    best_word = max(max(words.values(), default=0.0), IDEAL_SHARE * ideal)
    best_meaning = max(max(meaning.values(), default=0.0), profile.cap)
    weight = profile.weight if judged else 1.0
    return {
        doc: weight * _share(words[doc], best_word) + (1 - weight) * _share(meaning[doc], best_meaning) for doc in words
    }


def _damped(candidate: Candidate, damping: float) -> float:
    if candidate.lexical is None:
        return 0.0
    return candidate.lexical.score * math.pow(min(1.0, DAMPED_FROM / max(candidate.length, 1)), damping)


def _share(value: float, whole: float) -> float:
    return value / whole if whole > 0 else 0.0


def legs(scores: Mapping[int, float]) -> dict[int, LegScore]:
    """Return the rank and score of each document of one leg; equal scores share the rank of the first."""
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    ranked: dict[int, LegScore] = {}
    rank = 0
    for place, (doc, score) in enumerate(ordered, start=1):
        if place == 1 or score != ordered[place - 2][1]:
            rank = place
        ranked[doc] = LegScore(rank, score)
    return ranked


def reciprocal_ranks(orders: Sequence[Sequence[int]], k: int = RRF_K) -> dict[int, float]:
    """Return the sum of 1 / (k + rank) of each document over several orders (reciprocal rank fusion)."""
    scores: dict[int, float] = {}
    for order in orders:
        for place, doc in enumerate(order, start=1):
            scores[doc] = scores.get(doc, 0.0) + 1 / (k + place)
    return scores


def age_days(occurred: datetime, as_of: datetime) -> float:
    """Return the days since the minute of an event.

    What was written together stays equally old, where instants that differ by less than rounding would change places
    from one instant of asking to the next.
    """
    return (as_of - occurred.replace(second=0, microsecond=0)) / timedelta(days=1)


def adjustment(*, kind: str, importance: int, confidence: float, age_days: float) -> float:
    """Return a factor near one: what is important, certain and recent comes first among the equally relevant.

    Recency halves with each half-life of the kind. The factor stays within 0.95 and 1.03, so that it orders
    neighbours and cannot lift an irrelevant fact over a relevant one.
    """
    recency = math.pow(0.5, max(0.0, age_days) / _HALF_LIFE_DAYS[kind])
    return (
        1 + _IMPORTANCE_STEP * (importance - 3) + _CONFIDENCE_SPAN * (confidence - 1) + _RECENCY_SPAN * (recency - 0.5)
    )
