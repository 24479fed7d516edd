"""The two search legs over the visible rows, exact in every plan."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from brain import ranking
from brain.database import Work, literal, named_queries
from brain.embedders.base import Vector
from brain.repository import vector_index
from brain.repository.memory import vector_text

_QUERIES = named_queries("search")


def _composed(query: str) -> str:
    """Return a statement with the parts that several share put in."""
    for part in ("passing", "weighed", "rare"):
        query = query.replace(f"{{{part}}}", _QUERIES[part])
    return query


_SQL = {name: _composed(query) for name, query in _QUERIES.items()}

MOST_MUTABLE = 4_000
"""Up to so many rows that may be hidden, the words leg reads running counts instead of scanning what is visible."""

EXACT_ROWS = 20_000
"""Up to so many visible rows, every vector is compared; above, a model's index is used where there is one."""

EF_SEARCH = 400
"""How many candidates one step of the index walk holds."""

MOST_WALKED = 100_000
"""Where a walk of the index ends at the latest."""

_SCAN_RATIO = 0.3
"""Looking terms up row by row pays while the rows to look up are fewer than this share of the postings saved."""


@dataclass(frozen=True, slots=True)
class Visible:
    """Which rows a search may see; None does not narrow. The period of the event is half-open."""

    scopes: Sequence[str]
    numbers: Sequence[int]
    """The numbers of the scopes, in the same order."""
    valid_at: datetime
    kinds: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    whole: bool = False
    """Whether the scopes are all that there are."""

    @property
    def narrowed(self) -> bool:
        """Whether anything but scope and time narrows the rows."""
        return any(each is not None for each in (self.kinds, self.tags, self.since, self.until))

    def params(self) -> dict[str, Any]:
        """The parameters of the statements."""
        return {
            "scopes": list(self.scopes),
            "numbers": list(self.numbers),
            "valid_at": self.valid_at,
            "kinds": list(self.kinds) if self.kinds is not None else None,
            "tags": list(self.tags) if self.tags is not None else None,
            "since": self.since,
            "until": self.until,
        }


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A row with its BM25 score and the idf-weighted share of the query's terms that it contains."""

    doc: int
    score: float
    coverage: float


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A row with its cosine similarity."""

    doc: int
    score: float


@dataclass(frozen=True, slots=True)
class Weights:
    """Statistics of the visible rows for the terms of a query."""

    rows: int
    average: float
    """Mean length of the rows in terms."""
    terms: Sequence[str]
    frequencies: Sequence[int]
    """How many rows contain each term."""
    idfs: Sequence[float]
    masses: Sequence[float]
    """What each term weighs in the query: its idf, more for a name that no row contains."""
    rare: Sequence[bool]
    """Whether so few rows contain it that a row may stand on it."""
    essential: Sequence[bool]
    """Rare, and such that a row without it and every weightier term cannot cover enough of the query."""

    @property
    def ideal(self) -> float:
        """The sum of the terms' idf."""
        return math.fsum(self.idfs)


@dataclass(frozen=True, slots=True)
class Lexical:
    """The words leg: rows that cover enough of the query, best first, and what fell short."""

    weights: Weights
    hits: list[LexicalHit] = field(default_factory=list)
    candidates: int = 0
    """Rows that contain an essential term; when no row covers enough, rows that contain any term."""
    best_below: float = 0.0
    """The greatest coverage among those that do not cover enough."""


@dataclass(frozen=True, slots=True)
class _Prefix:
    """What was written by an instant, and which of it is hidden."""

    last: int
    asserted_past: bool
    mutable: int
    docs: list[int]
    numbers: list[int]
    length: int


async def lexical(
    work: Work,
    visible: Visible,
    terms: Sequence[str],
    *,
    floor: float,
    depth: int,
    names: Collection[str] = (),
    guarded: bool = False,
    general: bool = False,
) -> Lexical:
    """Return the best rows by BM25 whose coverage is at least floor (1: every term), exact over the visible rows.

    names are the terms that are probably names; guarded asks for a matching term that few rows contain.
    general forces the plan that scans the visible rows; otherwise the cheaper plan that applies is taken. Both give
    the same answer to the bit.
    """
    ordered = sorted(terms)
    asked = {
        **visible.params(),
        "terms": ordered,
        "names": [term in names for term in ordered],
        "floor": floor,
        "depth": depth,
        "guarded": guarded,
        "unknown_name": ranking.UNKNOWN_NAME,
        "ubiquitous": ranking.UBIQUITOUS,
        "small": ranking.SMALL_CORPUS,
    }
    if not general and not visible.narrowed and visible.valid_at == work.as_of:
        prefix = await work.one(_Prefix, _SQL["prefix"], {**visible.params(), "most": MOST_MUTABLE})
        if prefix is not None and not prefix.asserted_past and prefix.mutable <= MOST_MUTABLE:
            return await _in_prefix(work, asked, prefix)
    return await _over_visible(work, visible, asked)


async def lexical_of(work: Work, visible: Visible, docs: Sequence[int], weights: Weights) -> dict[int, LexicalHit]:
    """Return BM25 and coverage of named visible rows under the weights of the same search."""
    if not docs or not weights.terms:
        return {}
    params = {"docs": list(docs), **_weighted(weights), "numbers": list(visible.numbers)}
    return {hit.doc: hit for hit in await work.all(LexicalHit, _SQL["lexical_of"], params)}


async def vector(
    work: Work, visible: Visible, asked: Vector, *, model: str, depth: int, rows: int
) -> tuple[list[VectorHit], bool]:
    """Return the nearest of so many visible rows by cosine similarity, and whether that is exact.

    Up to EXACT_ROWS, and wherever the model has no index, every visible row is compared. Above, the index is walked
    until enough visible rows are found; when it ends short of them, every row is compared after all.
    """
    params = {**visible.params(), "vector": vector_text(asked), "model": model, "depth": depth}
    if rows > EXACT_ROWS and await vector_index.usable(work, model):
        found = await _nearest(work, params, model, len(asked))
        if len(found) == min(depth, rows):
            return found, False
    return await _compared(work, visible, params), True


async def _compared(work: Work, visible: Visible, params: dict[str, Any]) -> list[VectorHit]:
    """Compare every visible row: all vectors of the brain in one pass, or those of some rows one by one.

    A planner without statistics of a brain takes its rows for one, and would compare every row with every vector.
    """
    if visible.narrowed or not visible.whole:
        return await work.all(VectorHit, statement("vector_each", visible), params)
    await work.run("SET LOCAL enable_nestloop = off", None)
    found = await work.all(VectorHit, statement("vector", visible), params)
    await work.run("SET LOCAL enable_nestloop = on", None)
    return found


async def _nearest(work: Work, params: dict[str, Any], model: str, width: int) -> list[VectorHit]:
    await work.run(
        f"SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.ef_search = {EF_SEARCH};"
        f" SET LOCAL hnsw.max_scan_tuples = {MOST_WALKED}; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off",
        None,
    )
    query = _SQL["nearest"].replace("{model}", literal(model)).replace("{width}", str(width))
    found = await work.all(VectorHit, query, params)
    await work.run("SET LOCAL enable_seqscan = on; SET LOCAL enable_sort = on", None)
    return found


async def vector_of(work: Work, docs: Sequence[int], asked: Vector, *, model: str) -> dict[int, float]:
    """Return the cosine similarity of the named rows that have a vector."""
    if not docs:
        return {}
    params = {"docs": list(docs), "vector": vector_text(asked), "model": model}
    return {hit.doc: hit.score for hit in await work.all(VectorHit, _SQL["vector_of"], params)}


async def searched(work: Work, visible: Visible) -> int:
    """Count the visible rows."""
    [rows] = await work.values(statement("searched", visible), visible.params())
    return int(rows)


async def without_vector(work: Work, visible: Visible, *, model: str) -> int:
    """Count the visible rows that wait for their vector."""
    [waiting] = await work.values(_SQL["any_pending"], {"model": model})
    if not waiting:
        return 0
    [rows] = await work.values(statement("without_vector", visible), {**visible.params(), "model": model})
    return int(rows)


def statement(name: str, visible: Visible) -> str:
    """Return a statement with the visible rows put in."""
    return _SQL[name].replace("{visible}", _SQL["visible_filtered" if visible.narrowed else "visible"])


async def _in_prefix(work: Work, asked: dict[str, Any], prefix: _Prefix) -> Lexical:
    hidden = {
        "hidden": prefix.docs,
        "hidden_numbers": prefix.numbers,
        "hidden_length": prefix.length,
        "last": prefix.last,
    }
    counted = await work.dicts(_SQL["prefix_weights"], {**asked, **hidden})
    columns = _columns(counted, "term", "df", "idf", "mass", "rare", "essential")
    weights = _weights(counted[0]["rows"], counted[0]["terms"], *columns)
    if not weights.rows:
        return Lexical(weights)
    given = {**asked, **hidden, **_weighted(weights)}
    found = _lexical(weights, await work.dicts(_SQL["prefix_lexical"], {**given, "scanned": _scanned(weights)}))
    if found.hits:
        return found
    every = [True] * len(weights.terms)
    whole = _lexical(weights, await work.dicts(_SQL["prefix_lexical"], {**given, "essential": every, "scanned": every}))
    return replace(whole, hits=[])


async def _over_visible(work: Work, visible: Visible, asked: dict[str, Any]) -> Lexical:
    rows = await work.dicts(statement("lexical", visible), asked)
    first = rows[0]
    names = ("words", "dfs", "idfs", "masses", "rares", "essentials")
    weights = _weights(first["rows"], first["terms"], *(first[name] for name in names))
    return _lexical(weights, rows)


def _weights(
    rows: float, length: float, terms: Any, dfs: Any, idfs: Any, masses: Any, rare: Any, essential: Any
) -> Weights:
    average = length / rows if rows else 0.0
    return Weights(int(rows), average, terms, [int(df) for df in dfs], idfs, masses, rare, essential)


def _columns(rows: Sequence[dict[str, Any]], *names: str) -> list[list[Any]]:
    return [[row[name] for row in rows] for name in names]


def _weighted(weights: Weights) -> dict[str, Any]:
    return {
        "terms": list(weights.terms),
        "idfs": list(weights.idfs),
        "masses": list(weights.masses),
        "rare": list(weights.rare),
        "essential": list(weights.essential),
        "average": weights.average,
        "rows": weights.rows,
    }


def _scanned(weights: Weights) -> list[bool]:
    """Return which terms to read whole: the essential ones, or all when looking the others up would cost more."""
    essential = sum(df for df, needed in zip(weights.frequencies, weights.essential, strict=True) if needed)
    others = sum(weights.frequencies) - essential
    others_count = len(weights.terms) - sum(weights.essential)
    if essential * others_count < _SCAN_RATIO * others:
        return list(weights.essential)
    return [True] * len(weights.terms)


def _lexical(weights: Weights, rows: Sequence[dict[str, Any]]) -> Lexical:
    hits = [LexicalHit(row["doc"], row["score"], row["coverage"]) for row in rows if row["doc"] is not None]
    return Lexical(weights, hits, rows[0]["candidates"], rows[0]["best_below"] or 0.0)
