"""One question put to the product and to its parts: the search that the tools run, each leg, the fusion by itself."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import common, legs, references
from benchmarks.references import Search
from brain.runtime import Brain
from brain.services import search

LIMIT: Final = 20
"""How many hits a search returns; the mean reciprocal rank looks as far."""
RETURNED, FUSED, WORDS, MEANING = "returned", "fused", "words leg", "vector leg"
FTS5, BM25S = "SQLite FTS5", "bm25s"
LEGS: Final = (WORDS, MEANING)
REFERENCES: Final = (FTS5, BM25S)


@dataclass(frozen=True, slots=True)
class Found:
    """What a question found in each way, best first, and what the search was made of."""

    systems: dict[str, list[int]]
    answer: search.Answer
    fusable: legs.Fusable
    seconds: float


async def ask(brain: Brain, query: str, scope: str) -> Found:
    """Search as the tools do, and by each part alone."""
    began = time.perf_counter()
    answer = await answered(brain, query, scope, LIMIT)
    seconds = time.perf_counter() - began
    vector, embedder = await legs.query_vector(brain.embedder, query), brain.embedder
    fusable = await brain.read(lambda work: legs.fusable(work, query, vector, embedder, scope=scope))
    alone = await brain.read(
        lambda work: legs.alone(work, query, vector, model=embedder.model, scope=scope, depth=LIMIT)
    )
    systems = {
        RETURNED: [hit.fact.doc for hit in answer.hits],
        FUSED: fusable.order(fusable.profile.weight)[:LIMIT],
        WORDS: [doc for doc, _ in alone.words],
        MEANING: [doc for doc, _ in alone.meaning],
    }
    return Found(systems, answer, fusable, seconds)


async def answered(brain: Brain, query: str, scope: str, limit: int) -> search.Answer:
    """Search as the tools do."""
    prepared = await search.prepare(brain.embedder, search.Question(query=query, scope=scope, limit=limit))
    return await brain.read(lambda work: search.run(work, prepared))


def strength(answer: search.Answer) -> float:
    """Return the best evidence of any row, as a multiple of the honesty floor."""
    hits = [hit.strength for hit in answer.hits]
    return max(hits, default=float(answer.diagnosis["below_floor"]["best_strength"]))


def reference_systems(texts: Sequence[str]) -> dict[str, Search]:
    """Return the reference systems that are installed, over the same texts."""
    built = {FTS5: references.fts5(texts), BM25S: references.bm25s(texts)}
    return {name: find for name, find in built.items() if find is not None}


def best(figures: Mapping[str, float], of: Sequence[str]) -> float | None:
    """Return the best figure of some systems."""
    return max((figures[each] for each in of if each in figures), default=None)


def figure_rows(systems: Mapping[str, Any], group: str, names: Sequence[str]) -> list[list[str]]:
    """Return the rows of a table: the figures of each system for one group."""
    return [
        [system, *(common.percent(figures[group][name]) for name in names)]
        for system, figures in systems.items()
        if group in figures
    ]


def show_groups(title: str, systems: Mapping[str, Any], groups: Sequence[str], measure: str = "recall_at_10") -> None:
    """Print one figure of each system for each group that has questions."""
    present = [group for group in groups if any(group in figures for figures in systems.values())]
    rows = [
        [system, *(common.percent(figures.get(group, {}).get(measure)) for group in present)]
        for system, figures in systems.items()
    ]
    common.table(title, ["", *present], rows)
