"""What a search must answer, worked out without the store: visibility by its rule, BM25, cosine, fusion and floor.

Plain Python and numpy over the revisions themselves. Only the constants of the formulas come from the product.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.filling import Filled
from benchmarks.histories import Asked, Revision
from brain import ranking
from brain.ranking import Profile
from brain.text import Query, query_terms, terms

DEPTH: Final = 50
"""How many rows each leg hands to fusion, as documented."""

Scores = dict[int, float]
Cosines = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One searchable revision with its document number, its terms and its place in the matrix of vectors."""

    doc: int
    place: int
    revision: Revision
    counts: Counter[str]
    length: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """The exact scores of some rows for a query: BM25, cosine, and the idf-weighted share of the query covered."""

    words: Scores
    meaning: Scores
    coverage: Scores
    ideal: float
    """The sum of the terms' idf."""
    coverage_floor: float


class Corpus:
    """A history with the document numbers that the store gave it, and its vectors as they are stored."""

    def __init__(self, history: Sequence[Revision], filled: Filled, language: str = "english") -> None:
        self.language = language
        self.rows = [
            _row(doc, place, revision, language)
            for place, (doc, revision) in enumerate(zip(filled.docs, history, strict=True))
        ]
        self.by_doc = {row.doc: row for row in self.rows}
        self._vectors = filled.vectors.astype(np.float64)
        self._norms = np.linalg.norm(self._vectors, axis=1)
        self._lives: dict[str, list[Row]] = {}
        for row in self.rows:
            self._lives.setdefault(row.revision.key, []).append(row)

    def visible(self, asked: Asked) -> list[Row]:
        """Return the rows that a question may see, by the rule: of those known and valid, the newest known wins."""
        found = (_winner(life, asked.as_of, asked.valid_at) for life in self._lives.values())
        return [
            row
            for row in found
            if row is not None and not row.revision.tombstone and asked.scope in ("all", row.revision.scope)
        ]

    def latest(self, scope: str) -> list[Row]:
        """Return what a store holds that keeps only the newest known version of each key."""
        newest = (max(life, key=lambda row: (row.revision.known_from, row.doc)) for life in self._lives.values())
        return [row for row in newest if not row.revision.tombstone and scope in ("all", row.revision.scope)]

    def known(self, scope: str, as_of: datetime | None = None) -> list[Row]:
        """Return every version, also those no longer visible; with as_of only those known by then."""
        return [
            row
            for row in self.rows
            if not row.revision.tombstone
            and scope in ("all", row.revision.scope)
            and (as_of is None or row.revision.known_from <= as_of)
        ]

    def cosines(self, vector: Cosines | None) -> Cosines | None:
        """Return the cosine similarity of every revision, in order; NaN where there is no direction."""
        if vector is None:
            return None
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Cosines = self._vectors @ vector / (self._norms * np.linalg.norm(vector))
        return found

    def evidence(self, rows: Sequence[Row], query: str, cosines: Cosines | None) -> Evidence:
        """Score rows for a query as a fresh index over exactly these rows would."""
        asked = query_terms(query, self.language)
        words, coverage, ideal = _bm25(rows, asked)
        meaning = {} if cosines is None else {row.doc: float(cosines[row.place]) for row in rows}
        floor = 1.0 if asked.only_stop_words else ranking.WORDS_FLOOR * ranking.COMPANION
        return Evidence(words, {doc: score for doc, score in meaning.items() if score == score}, coverage, ideal, floor)


def order(
    scores: Mapping[int, float], most: int | None = None, tie: Callable[[int], object] = lambda doc: doc
) -> list[int]:
    """Return documents by falling score; scores that differ by less than arithmetic noise are tied."""

    def place(doc: int) -> tuple[float, object]:
        return -round(scores[doc], 10), tie(doc)

    return sorted(scores, key=place) if most is None else heapq.nsmallest(most, scores, key=place)


def fused(corpus: Corpus, evidence: Evidence, asked: Asked, profile: Profile) -> Scores:
    """Return the final score of every row that stands, for a question that does not ask for the present.

    Each leg hands over its best rows; what only one leg handed over is looked up in the other. A model that sees words
    only hands over none of its own. Both legs are scaled to their best and combined by the profile's weight.
    """
    passing = {doc: score for doc, score in evidence.words.items() if evidence.coverage[doc] >= evidence.coverage_floor}
    candidates = set(order(passing, DEPTH))
    if not profile.words_only:
        candidates |= set(order(evidence.meaning, DEPTH))
    similar = {doc: _similarity(evidence.meaning.get(doc), profile) for doc in candidates}
    strengths = {doc: _strength(evidence, doc, similar[doc], profile) for doc in candidates}
    if max(strengths.values(), default=0.0) < 1:
        return {}
    judged = any(doc in evidence.meaning for doc in candidates)
    damping = profile.damping if judged else 0.0
    words = {doc: _damped(evidence.words.get(doc, 0.0), corpus.by_doc[doc].length, damping) for doc in candidates}
    best_words = max(*words.values(), ranking.IDEAL_SHARE * evidence.ideal)
    best_similar = max(*similar.values(), profile.cap)
    weight = profile.weight if judged else 1.0
    return {
        doc: (weight * _part(words[doc], best_words) + (1 - weight) * _part(similar[doc], best_similar))
        * adjusted(corpus.by_doc[doc].revision, asked.as_of)
        for doc, strength in strengths.items()
        if strength >= ranking.COMPANION
    }


def _similarity(cosine: float | None, profile: Profile) -> float:
    return max(0.0, (cosine or 0.0) - profile.base) / (1 - profile.base)


def _strength(evidence: Evidence, doc: int, similar: float, profile: Profile) -> float:
    """Return a row's evidence as a multiple of the honesty floor."""
    covered = evidence.coverage.get(doc, 0.0)
    if profile.words_only or doc not in evidence.meaning:
        return covered / ranking.WORDS_FLOOR
    return (similar + ranking.COVERAGE_WEIGHT * covered) / profile.floor


def _damped(score: float, length: int, damping: float) -> float:
    factor: float = min(1.0, ranking.DAMPED_FROM / length) ** damping
    return score * factor


def _part(value: float, whole: float) -> float:
    return value / whole if whole > 0 else 0.0


def adjusted(revision: Revision, as_of: datetime) -> float:
    """Return the bounded factor for importance, confidence and recency."""
    minute = revision.occurred.replace(second=0, microsecond=0)
    age_days = max(0.0, (as_of - minute) / timedelta(days=1))
    recency: float = 0.5 ** (age_days / ranking._HALF_LIFE_DAYS[revision.kind])
    return (
        1
        + ranking._IMPORTANCE_STEP * (revision.importance - 3)
        + ranking._CONFIDENCE_SPAN * (float(revision.confidence) - 1)
        + ranking._RECENCY_SPAN * (recency - 0.5)
    )


def _row(doc: int, place: int, revision: Revision, language: str) -> Row:
    counts = Counter(terms(revision.text, language))
    return Row(doc, place, revision, counts, counts.total())


def _winner(life: Iterable[Row], as_of: datetime, valid_at: datetime) -> Row | None:
    winner: Row | None = None
    for row in life:
        each = row.revision
        if each.known_from > as_of:
            continue
        if (each.valid_from and valid_at < each.valid_from) or (each.valid_to and valid_at >= each.valid_to):
            continue
        if winner is None or (each.known_from, row.doc) > (winner.revision.known_from, winner.doc):
            winner = row
    return winner


def _bm25(rows: Sequence[Row], query: Query) -> tuple[Scores, Scores, float]:
    """Return Okapi BM25 and coverage of the rows that contain any term, with statistics of these rows only.

    A name that no row contains weighs more in the query. A row without a rare term covers nothing of it, unless it has
    every term, of two or more, and such rows are as few as those of a rare term.
    """
    if not rows or not query.terms:
        return {}, {}, 0.0
    average = sum(row.length for row in rows) / len(rows)
    holders = {term: [row for row in rows if term in row.counts] for term in query.terms}
    idf = {term: math.log(1 + (len(rows) - len(found) + 0.5) / (len(found) + 0.5)) for term, found in holders.items()}
    unknown = {term for term in query.names if not holders[term]}
    whole = math.fsum(idf[term] * (ranking.UNKNOWN_NAME if term in unknown else 1) for term in query.terms)
    common = max(2, ranking.UBIQUITOUS * len(rows)) if len(rows) >= ranking.SMALL_CORPUS else math.inf
    gains: dict[int, list[float]] = {}
    shares: dict[int, list[float]] = {}
    rare: set[int] = set()
    for term, found in holders.items():
        rare |= {row.doc for row in found} if len(found) <= common else set()
        for row in found:
            tf, norm = row.counts[term], 1 - ranking.B + ranking.B * row.length / average
            gains.setdefault(row.doc, []).append(idf[term] * tf * (ranking.K1 + 1) / (tf + ranking.K1 * norm))
            shares.setdefault(row.doc, []).append(idf[term])
    complete = {doc for doc, each in shares.items() if len(each) == len(query.terms) > 1}
    fewest = min(len(found) for found in holders.values())
    if len(complete) <= max(2, ranking.UBIQUITOUS * len(rows)) and fewest <= ranking.MOST_COMMON:
        rare |= complete
    return (
        {doc: math.fsum(each) for doc, each in gains.items()},
        {doc: math.fsum(each) / whole if doc in rare else 0.0 for doc, each in shares.items()},
        math.fsum(idf.values()),
    )
