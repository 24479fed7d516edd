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
from brain.text import query_terms, terms

DEPTH: Final = 200
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
        words, coverage = _bm25(rows, query_terms(query, self.language).terms)
        meaning = {} if cosines is None else {row.doc: float(cosines[row.place]) for row in rows}
        return Evidence(words, {doc: score for doc, score in meaning.items() if score == score}, coverage)


def order(
    scores: Mapping[int, float], most: int | None = None, tie: Callable[[int], object] = lambda doc: doc
) -> list[int]:
    """Return documents by falling score; scores that differ by less than arithmetic noise are tied."""

    def place(doc: int) -> tuple[float, object]:
        return -round(scores[doc], 10), tie(doc)

    return sorted(scores, key=place) if most is None else heapq.nsmallest(most, scores, key=place)


def fused(corpus: Corpus, evidence: Evidence, asked: Asked, cosine_floor: float) -> Scores:
    """Return the final score of every row that stands on its own in either leg.

    A leg hands over its best rows that pass its own floor; what only one leg handed over is looked up in the other.
    """
    passing = {doc: score for doc, score in evidence.words.items() if _covers(evidence.coverage[doc])}
    by_words = set(order(passing, DEPTH))
    nearest = {doc: evidence.meaning[doc] for doc in order(evidence.meaning, DEPTH)}
    by_meaning = {doc for doc, score in nearest.items() if score >= cosine_floor}
    standing = by_words | by_meaning
    words = {doc: evidence.words[doc] for doc in standing if doc in evidence.words}
    meaning = {doc: score for doc, score in evidence.meaning.items() if doc in standing and score > 0}
    ranked = [_ranks(words), _ranks(meaning)]
    return {
        doc: sum(1 / (ranking.RRF_K + ranks[doc]) for ranks in ranked if doc in ranks)
        * adjusted(corpus.by_doc[doc].revision, asked.as_of)
        for doc in standing
    }


def adjusted(revision: Revision, as_of: datetime) -> float:
    """Return the bounded factor for importance, confidence and recency."""
    age_days = max(0.0, (as_of - revision.occurred) / timedelta(days=1))
    recency: float = 0.5 ** (age_days / ranking._HALF_LIFE_DAYS[revision.kind])
    return (
        1
        + ranking._IMPORTANCE_STEP * (revision.importance - 3)
        + ranking._CONFIDENCE_SPAN * (float(revision.confidence) - 1)
        + ranking._RECENCY_SPAN * (recency - 0.5)
    )


def _covers(share: float) -> bool:
    return share >= ranking.COVERAGE_FLOOR


def _ranks(scores: Mapping[int, float]) -> dict[int, int]:
    """Return ranks from 1, where tied scores share the better one."""
    ranks: dict[int, int] = {}
    before, rank = math.inf, 0
    for place, doc in enumerate(order(scores), 1):
        if round(scores[doc], 10) < before:
            before, rank = round(scores[doc], 10), place
        ranks[doc] = rank
    return ranks


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


def _bm25(rows: Sequence[Row], asked: Sequence[str]) -> tuple[Scores, Scores]:
    """Return Okapi BM25 and coverage of the rows that contain any asked term, with statistics of these rows only."""
    if not rows:
        return {}, {}
    average = sum(row.length for row in rows) / len(rows)
    holders = {term: [row for row in rows if term in row.counts] for term in asked}
    idf = {term: math.log(1 + (len(rows) - len(found) + 0.5) / (len(found) + 0.5)) for term, found in holders.items()}
    gains: dict[int, list[float]] = {}
    shares: dict[int, list[float]] = {}
    for term, found in holders.items():
        for row in found:
            tf, norm = row.counts[term], 1 - ranking.B + ranking.B * row.length / average
            gains.setdefault(row.doc, []).append(idf[term] * tf * (ranking.K1 + 1) / (tf + ranking.K1 * norm))
            shares.setdefault(row.doc, []).append(idf[term])
    whole = math.fsum(idf.values())
    return (
        {doc: math.fsum(each) for doc, each in gains.items()},
        {doc: math.fsum(each) / whole for doc, each in shares.items()},
    )
