"""The two search legs over the visible rows, exact in every plan."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from brain import ranking
from brain.repository.memory import numbers
from brain.work import LOOK_UPS, Work, literal, named_queries

_QUERIES = named_queries("search")


def _composed(query: str) -> str:
    """Return a statement with the parts that several share put in, and of its comments only what names it."""
    query = query.replace("{returned}", _QUERIES["returned"])
    query = query.replace("{passing_and_rarest}", _QUERIES["passing"].replace("{more}", _QUERIES["rarest_said"]))
    query = query.replace("{passing}", _QUERIES["passing"].replace("{more}", ""))
    for part in ("given", "scanned", "kept", "weighed", "rare", "rarest", "gain"):
        query = query.replace(f"{{{part}}}", _QUERIES[part])
    first, *rest = query.splitlines()
    return "\n".join([first, *(line for line in rest if not line.startswith("--"))])


_SQL = {name: _composed(query) for name, query in _QUERIES.items()}

MOST_TIMED = 4_000
"""Up to so many rows that come or go with time, the words leg reads running counts, not all that is visible."""

EXACT_ROWS = 2_000
"""Up to so many visible rows, every vector is compared; above, a model's index is used where there is one."""

EF_SEARCH = {250_000: 400, 20_000: 128, 0: 80}
"""How many candidates one step of the index walk holds, from so many visible rows on: the nearest of more are harder to
find."""

MOST_WALKED = 100_000
"""Where a walk of the index ends at the latest."""

_ONE_PASS = {"enable_nestloop": "off", "plan_cache_mode": "force_custom_plan"}
"""Settings under which all vectors are read once and joined to the visible rows."""

_WALK = {
    "enable_seqscan": "off",
    "enable_sort": "off",
    "hnsw.iterative_scan": "strict_order",
    "plan_cache_mode": "force_custom_plan",
}
"""Settings under which rows come in the order of the index, until enough are visible."""

_SAMPLED_FROM, _SAMPLE = 4_000, 16
"""With more postings to read than this, one in so many of the newest rows is scored first: the last of their best is
a score below which no row can be among the best of all, and such rows are dropped early."""

_UNIT = 68_719_476_736
"""Scores are whole numbers of 2^-36 in the statements."""

_K1_TIMES_B = 0.9
"""Written out in the statements as well: the product of the two constants has other bits."""

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


class LexicalHit(NamedTuple):
    """A row with its BM25 score and the idf-weighted share of the query's terms that it contains."""

    doc: int
    score: float
    coverage: float


class VectorHit(NamedTuple):
    """A row with its cosine similarity."""

    doc: int
    score: float


class Detail(NamedTuple):
    """What ranking needs to know of a row, and what was looked up for the leg that had not found it."""

    doc: int
    key: str
    kind: str
    importance: int
    confidence: Decimal
    occurred: datetime
    length: int
    """In terms."""
    cosine: float | None
    score: float | None
    """BM25; None without a term of the query."""
    coverage: float | None


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
    rarest: Sequence[bool]
    """Whether it is the rarest of those that any row contains."""

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
    """Rows that contain an essential term; when no row covers enough, rows that contain the rarest."""
    best_below: float = 0.0
    """The greatest coverage among those that do not cover enough."""


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
        counted = await work.dicts(_SQL["prefix"], {**asked, "most": MOST_TIMED}, under=LOOK_UPS)
        if not counted[0]["asserted_past"] and counted[0]["timed"] <= MOST_TIMED:
            return await _in_prefix(work, asked, counted)
    return await _over_visible(work, visible, asked)


async def vector(
    work: Work, visible: Visible, asked: str, *, model: str, depth: int, rows: int, indexed: bool
) -> tuple[list[VectorHit], bool]:
    """Return the nearest of so many visible rows by cosine similarity, and whether that is exact.

    asked is a vector as text, as `memory.vector_text` writes it. Up to EXACT_ROWS, and wherever the model is not
    indexed, every visible row is compared. Above, the index is walked until enough visible rows are found; when it ends
    short of them, every row is compared after all.
    """
    if rows > EXACT_ROWS and indexed:
        found = await _nearest(work, visible, asked, model=model, depth=depth, rows=rows)
        if len(found) == min(depth, rows):
            return found, False
    return await compared(work, visible, asked, model=model, depth=depth), True


async def compared(work: Work, visible: Visible, asked: str, *, model: str, depth: int) -> list[VectorHit]:
    """Return the nearest by comparing every visible row: all vectors in one pass, or those of some rows one by one.

    A planner without statistics of a brain takes its rows for one, and would compare every row with every vector.
    """
    params = {**visible.params(), "vector": asked, "model": model, "depth": depth}
    if visible.narrowed or not visible.whole:
        return await work.all(VectorHit, statement("vector_each", visible), params)
    return await work.all(VectorHit, statement("vector", visible), params, under=_ONE_PASS)


async def _nearest(work: Work, visible: Visible, asked: str, *, model: str, depth: int, rows: int) -> list[VectorHit]:
    ef_search = next(held for least, held in EF_SEARCH.items() if rows >= least)
    walking = {**_WALK, "hnsw.ef_search": str(ef_search), "hnsw.max_scan_tuples": str(MOST_WALKED)}
    query = _SQL["nearest"].replace("{model}", literal(model)).replace("{width}", str(1 + asked.count(",")))
    params = {**visible.params(), "vector": asked, "model": model, "depth": depth}
    return await work.all(VectorHit, query, params, under=walking)


async def details(
    work: Work,
    visible: Visible,
    docs: Sequence[int],
    *,
    weights: Weights,
    unread: Collection[int],
    asked: str | None,
    model: str,
    unseen: Collection[int],
) -> dict[int, Detail]:
    """Return what ranking needs of some visible rows: also the score by words of the unread, the cosine of the unseen.

    The weights are those of the words leg of the same search. asked is a vector as text; without one nothing is near.
    """
    if not docs:
        return {}
    params = {
        **visible.params(),
        **_weighted(weights),
        "docs": numbers(docs),
        "unread": numbers(doc for doc in docs if doc in unread),
        "unseen": numbers(doc for doc in docs if asked is not None and doc in unseen),
        "vector": asked,
        "model": model,
    }
    return {row.doc: row for row in await work.all(Detail, _SQL["details"], params, under=LOOK_UPS)}


async def searched(work: Work, visible: Visible) -> int:
    """Count the visible rows."""
    [rows] = await work.values(statement("searched", visible), visible.params())
    return int(rows)


async def without_vector(work: Work, visible: Visible, *, model: str) -> int:
    """Count the visible rows that wait for their vector."""
    [rows] = await work.values(statement("without_vector", visible), {**visible.params(), "model": model})
    return int(rows)


def statement(name: str, visible: Visible) -> str:
    """Return a statement with the visible rows put in."""
    return _SQL[name].replace("{visible}", _SQL["visible_filtered" if visible.narrowed else "visible"])


async def _in_prefix(work: Work, asked: dict[str, Any], counted: Sequence[dict[str, Any]]) -> Lexical:
    first, columns = counted[0], _columns(counted, "term", "df", "idf", "mass", "rare", "essential", "rarest")
    weights = _weights(first["rows"], first["terms"], *columns)
    if not weights.rows:
        return Lexical(weights)
    if (common := _all_common(weights, asked)) is not None:
        return common
    given = {**asked, "last": first["last"], "hidden": first["hidden"]}
    found = await _scored(work, given, weights)
    if found.hits or not any(weights.frequencies):
        return found
    diagnosed = await _scored(work, given, replace(weights, essential=weights.rarest))
    return replace(diagnosed, weights=weights, hits=[])


async def _scored(work: Work, given: dict[str, Any], weights: Weights) -> Lexical:
    scanned = _scanned(weights)
    query = _SQL["prefix_lexical" if all(scanned) else "prefix_probing"]
    params = {**given, **_weighted(weights), "scanned": scanned, "first": 0, "least": 0.0}
    if sum(df for df, whole in zip(weights.frequencies, scanned, strict=True) if whole) > _SAMPLED_FROM:
        recent = {**params, "first": given["last"] - given["last"] // _SAMPLE}
        sample = _lexical(weights, await work.dicts(query, recent, under=LOOK_UPS))
        if len(sample.hits) == given["depth"]:
            params["least"] = sample.hits[-1].score * _UNIT
    return _lexical(weights, await work.dicts(query, params, under=LOOK_UPS))


async def _over_visible(work: Work, visible: Visible, asked: dict[str, Any]) -> Lexical:
    rows = await work.dicts(statement("lexical", visible), asked)
    first = rows[0]
    names = ("words", "dfs", "idfs", "masses", "rares", "essentials", "rarests")
    weights = _weights(first["rows"], first["terms"], *(first[name] for name in names))
    return _all_common(weights, asked) or _lexical(weights, rows)


def _all_common(weights: Weights, asked: dict[str, Any]) -> Lexical | None:
    """Return that nothing stands, where the matching terms are too common to look for the rows that hold them all."""
    fewest = min((df for df in weights.frequencies if df), default=0)
    rare = any(rare and df for rare, df in zip(weights.rare, weights.frequencies, strict=True))
    if not asked["guarded"] or rare or fewest <= ranking.MOST_COMMON:
        return None
    return Lexical(weights, candidates=fewest)


def _weights(
    rows: float,
    length: float,
    terms: Any,
    dfs: Any,
    idfs: Any,
    masses: Any,
    rare: Any,
    essential: Any,
    rarest: Any,
) -> Weights:
    average = length / rows if rows else 0.0
    return Weights(int(rows), average, terms, [int(df) for df in dfs], idfs, masses, rare, essential, rarest)


def _columns(rows: Sequence[dict[str, Any]], *names: str) -> list[list[Any]]:
    return [[row[name] for row in rows] for name in names]


def _weighted(weights: Weights) -> dict[str, Any]:
    return {
        "terms": list(weights.terms),
        "idfs": list(weights.idfs),
        "masses": list(weights.masses),
        "rare": list(weights.rare),
        "essential": list(weights.essential),
        "slope": _K1_TIMES_B / weights.average if weights.average else 0.0,
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
