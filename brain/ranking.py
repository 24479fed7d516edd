"""From the scores of each leg to one order: ranks, fusion, a bounded re-rank, and the honesty floor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

K1 = 1.2
B = 0.75
"""BM25 constants (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond")."""

RRF_K = 60
"""Reciprocal rank fusion constant (Cormack, Clarke and Büttcher 2009)."""

COVERAGE_FLOOR = 0.5
"""Idf-weighted share of the query's terms that a hit must contain to stand on its words alone."""

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
class LegScore:
    """What one leg says of a document: its rank (tied scores share one), its score, and whether that is evidence."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document with everything that ranking knows of it."""

    doc: int
    lexical: LegScore | None
    vector: LegScore | None
    coverage: float

    def stands(self, *, cosine_floor: float, coverage_floor: float = COVERAGE_FLOOR) -> bool:
        """Whether one leg alone is evidence enough: the honesty floor, applied before fusion."""
        by_meaning = self.vector is not None and self.vector.score >= cosine_floor
        return by_meaning or (self.lexical is not None and self.coverage >= coverage_floor)

    def fused(self, k: int = RRF_K) -> float:
        """Reciprocal rank fusion: the sum of 1 / (k + rank) over the legs that found the document."""
        return sum(1 / (k + leg.rank) for leg in (self.lexical, self.vector) if leg is not None)


def shared_ranks(scores: Sequence[float]) -> list[int]:
    """Return the rank of each score in a descending list, from 1; equal scores share the rank of the first."""
    ranks: list[int] = []
    for position, score in enumerate(scores):
        tied = position > 0 and score == scores[position - 1]
        ranks.append(ranks[-1] if tied else position + 1)
    return ranks


def legs(scores: Mapping[int, float]) -> dict[int, LegScore]:
    """Return the rank and score of each document of one leg."""
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    ranks = shared_ranks([score for _, score in ordered])
    return {doc: LegScore(rank, score) for (doc, score), rank in zip(ordered, ranks, strict=True)}


def fuse(candidates: Sequence[Candidate]) -> dict[int, float]:
    """Return one score a candidate out of what both legs say of it."""
    return {each.doc: each.fused() for each in candidates}


def reciprocal_ranks(orders: Sequence[Sequence[int]], k: int = RRF_K) -> dict[int, float]:
    """Return the sum of 1 / (k + rank) of each document over several orders (reciprocal rank fusion)."""
    scores: dict[int, float] = {}
    for order in orders:
        for place, doc in enumerate(order, start=1):
            scores[doc] = scores.get(doc, 0.0) + 1 / (k + place)
    return scores


def adjustment(*, kind: str, importance: int, confidence: float, age_days: float) -> float:
    """Return a factor near one: what is important, certain and recent comes first among the equally relevant.

    Recency halves with each half-life of the kind. The factor stays within 0.96 and 1.04, so that it orders
    neighbours and cannot lift an irrelevant fact over a relevant one.
    """
    recency = math.pow(0.5, max(0.0, age_days) / _HALF_LIFE_DAYS[kind])
    return (
        1 + _IMPORTANCE_STEP * (importance - 3) + _CONFIDENCE_SPAN * (confidence - 1) + _RECENCY_SPAN * (recency - 0.5)
    )
