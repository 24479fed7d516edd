"""How fast is a search? `python -m benchmarks.search --rows 10000,100000 --json OUT`.

Synthetic facts are written through the service that the tools use, a share of them twice. Then queries of rare,
middling and common words, each answered by one of the facts, are asked: hybrid, strict and by words alone; now and as
of the instant when half of the facts were there; by one client and by eight at once in one process. Beside it, over
the same facts: SQLite's FTS5 with exact cosine in numpy. Every statement of a search is explained and timed by itself,
which shows what the service adds to its own SQL. Without --embedder, vectors of 384 dimensions are made of the words,
so that no model's time is measured; above the exact threshold they get the index that `brain reindex` builds.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg

from benchmarks import common
from benchmarks.recording import Recorder, Statement
from benchmarks.sqlite_search import SqliteSearch
from benchmarks.vocabulary import KINDS, Vocabulary, WordVectors
from brain import runtime
from brain.config import Settings
from brain.embedders import Vector
from brain.repository import search as legs
from brain.repository import vector_index
from brain.repository.memory import vector_text
from brain.repository.search import EXACT_ROWS, Visible
from brain.runtime import Brain
from brain.services import memory, scopes, search
from brain.services.memory import Draft
from brain.services.retrieval import DEPTH
from brain.work import Work

ROWS: Final = "10000,100000"
QUERIES: Final = 200
CLIENTS: Final = (1, 8)
CHANGED: Final = 0.02
BATCH: Final = 1_000
WARM_UP: Final = 20
RECORDED: Final = 30
LIMIT: Final = 10
SEED: Final = 3
SCOPES: Final = ("global", "lane:work", "project:kestrel", "project:heron")
MODES: Final = {"hybrid": "hybrid", "strict": "strict", "words only": "hybrid"}
NOW, PAST = "now", "past"


@dataclass(frozen=True, slots=True)
class Filled:
    """The texts that are visible now, the instant when half were there, and what the load took."""

    texts: list[str]
    half: datetime
    written: int
    seconds: float
    bytes: int


def drafts(vocabulary: Vocabulary, rows: int, changed: float) -> Iterator[Draft]:
    """Yield facts, and among those of the second half new versions of earlier ones."""
    chance = random.Random(SEED)
    for place in range(rows):
        yield _draft(vocabulary, chance, place)
        if place >= rows // 2 and chance.random() < 2 * changed:
            yield _draft(vocabulary, chance, chance.randrange(rows // 2))


def _draft(vocabulary: Vocabulary, chance: random.Random, place: int) -> Draft:
    return Draft(text=vocabulary.text(chance), key=f"fact {place}", scope=SCOPES[place % len(SCOPES)])


async def fill(brain: Brain, given: Sequence[Draft], rows: int) -> Filled:
    """Write the facts in batches, and build the vector index where searches would use it."""
    for scope in SCOPES[1:]:
        await brain.write(partial(scopes.add, text=scope))
    half: datetime | None = None
    before, began = await _database_bytes(brain), time.perf_counter()
    for start in range(0, len(given), BATCH):
        if half is None and start >= rows // 2:
            half = await brain.read(_instant)
        prepared = await memory.prepare(brain.embedder, given[start : start + BATCH])
        await brain.write(partial(memory.write_many, prepared=prepared))
    seconds = time.perf_counter() - began
    texts = {draft.key: draft.text for draft in given}
    await common.tidy(brain)
    size = await _database_bytes(brain) - before
    return Filled(list(texts.values()), half or datetime.now(UTC), len(given), seconds, size)


async def _instant(work: Work) -> datetime:
    return work.as_of


async def _database_bytes(brain: Brain) -> int:
    async with await psycopg.AsyncConnection.connect(await brain.database.owner_dsn(), autocommit=True) as connection:
        row = await (await connection.execute("SELECT pg_database_size(current_database())")).fetchone()
        assert row is not None
        return int(row[0])


async def index(brain: Brain, rows: int) -> float:
    """Build the index of the vectors above the exact threshold; return the seconds it took."""
    began = time.perf_counter()
    if rows > EXACT_ROWS:
        await vector_index.build(brain.database, brain.embedder.model, brain.embedder.dimensions)
    return time.perf_counter() - began


def queries(vocabulary: Vocabulary, texts: Sequence[str], count: int) -> list[tuple[str, str]]:
    """Return queries with their kind, the kinds in turn."""
    chance = random.Random(SEED)
    kinds = (KINDS[place % len(KINDS)] for place in range(count))
    return [(kind, vocabulary.query(chance.choice(texts), kind)) for kind in kinds]


async def prepared(brain: Brain, mode: str, query: str) -> search.Prepared:
    """Return a question ready to run, for words alone without its vector."""
    asked = search.Question(query=query, scope="all", mode=MODES[mode], limit=LIMIT)
    made = await search.prepare(brain.embedder, asked)
    return replace(made, vectors=[None]) if mode == "words only" else made


async def timed(brain: Brain, mode: str, as_of: datetime | None, query: str) -> float:
    """Return the seconds of one search."""
    began = time.perf_counter()
    made = await prepared(brain, mode, query)
    await brain.read(lambda work: search.run(work, made), as_of=as_of)
    return time.perf_counter() - began


async def by_clients(
    brain: Brain, mode: str, as_of: datetime | None, asked: Sequence[tuple[str, str]], clients: int
) -> dict[str, Any]:
    """Ask every query once, so many at a time, and return the percentiles by kind and in all."""
    waiting = iter(asked)
    taken: dict[str, list[float]] = {}

    async def client() -> None:
        for kind, query in waiting:
            taken.setdefault(kind, []).append(await timed(brain, mode, as_of, query))

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    per_second = len(asked) / (time.perf_counter() - began)
    every = [each for listed in taken.values() for each in listed]
    kinds = {kind: percentiles(listed) for kind, listed in taken.items()}
    return percentiles(every) | {"per_second": round(per_second, 1), "kinds": kinds}


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the high percentiles in milliseconds."""
    found = np.percentile(np.array(seconds), (50, 95, 99)) * 1000
    return {name: round(float(value), 2) for name, value in zip(("p50", "p95", "p99"), found, strict=True)}


async def grid(
    brain: Brain, filled: Filled, asked: Sequence[tuple[str, str]], clients: Sequence[int]
) -> list[dict[str, Any]]:
    """Measure every mode, now and in the past, with each number of clients."""
    cells = []
    for mode in MODES:
        for when, as_of in ((NOW, None), (PAST, filled.half)):
            for kind, query in asked[:WARM_UP]:
                assert kind
                await timed(brain, mode, as_of, query)
            for count in clients:
                found = await by_clients(brain, mode, as_of, asked, count)
                cells.append({"mode": mode, "when": when, "clients": count} | found)
    return cells


async def record(brain: Brain, filled: Filled, asked: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Time the statements of each search by themselves, then explain them."""
    return {
        f"{mode}, {when}": await _record(brain, mode, as_of, asked[:RECORDED])
        for mode in ("hybrid", "strict")
        for when, as_of in ((NOW, None), (PAST, filled.half))
    }


async def _record(brain: Brain, mode: str, as_of: datetime | None, asked: Sequence[tuple[str, str]]) -> dict[str, Any]:
    totals, runs, explained = [], [], []
    for _, query in asked:
        made = await prepared(brain, mode, query)
        began = time.perf_counter()
        runs.append(await brain.read(partial(_recorded, made=made, explaining=False), as_of=as_of))
        totals.append(time.perf_counter() - began)
        explained.append(await brain.read(partial(_recorded, made=made, explaining=True), as_of=as_of))
    whole = statistics.median(totals)
    in_sql = statistics.median(sum(each.seconds for each in run) for run in runs)
    overhead = statistics.median(
        total - sum(each.seconds for each in run) for total, run in zip(totals, runs, strict=True)
    )
    return {
        "ms_median": round(1000 * whole, 2),
        "ms_in_statements": round(1000 * in_sql, 2),
        "ms_around_statements": round(1000 * overhead, 2),
        "statements": _by_name(runs, explained),
        "scanned_whole": sorted(
            {f"{table} by {each.name}" for run in explained for each in run for table in each.scanned_whole}
        ),
    }


async def _recorded(work: Work, made: search.Prepared, explaining: bool) -> list[Statement]:
    recorder = Recorder.over(work, explaining=explaining)
    await search.run(recorder, made)
    return recorder.statements


def _by_name(runs: Sequence[list[Statement]], explained: Sequence[list[Statement]]) -> dict[str, Any]:
    """Return for each statement how often a search runs it, and its mean milliseconds seen by client and by server."""
    names = dict.fromkeys(each.name for run in runs for each in run)
    return {
        name: {
            "calls": round(sum(each.name == name for run in runs for each in run) / len(runs), 2),
            "client_ms": _mean_ms([each.seconds for run in runs for each in run if each.name == name], len(runs)),
            "server_ms": _mean_ms(
                [each.server_ms / 1000 for run in explained for each in run if each.name == name], len(explained)
            ),
        }
        for name in names
    }


def _mean_ms(seconds: Sequence[float], searches: int) -> float:
    return round(1000 * sum(seconds) / searches, 3)


async def recall(brain: Brain, asked: Sequence[tuple[str, str]], rows: int) -> dict[str, Any]:
    """Return the share of the ten nearest rows that the index finds of those that comparing every vector finds."""
    found, seconds = 0, []
    for _, query in asked[:RECORDED]:
        [vector] = await brain.embedder.embed([query], query=True)
        assert vector is not None
        nearest = [
            await brain.read(partial(_nearest, brain=brain, vector=vector, rows=rows, indexed=each))
            for each in (False, True)
        ]
        (exact, spent), (walked, _) = nearest
        found += len(set(exact[:LIMIT]) & set(walked[:LIMIT]))
        seconds.append(spent)
    return {
        "recall_at_10": round(found / (LIMIT * len(asked[:RECORDED])), 4),
        "exact_scan_ms_median": round(1000 * statistics.median(seconds), 2),
    }


async def _nearest(work: Work, brain: Brain, vector: Vector, rows: int, indexed: bool) -> tuple[list[int], float]:
    covered = await scopes.for_reading(work, "all")
    numbers = covered.numbers
    visible = Visible(scopes=list(numbers), numbers=list(numbers.values()), valid_at=work.as_of, whole=True)
    began, asked = time.perf_counter(), vector_text(vector)
    hits, _ = await legs.vector(
        work, visible, asked, model=brain.embedder.model, depth=DEPTH, rows=rows, indexed=indexed
    )
    return [hit.doc for hit in hits], time.perf_counter() - began


def reference(filled: Filled, vectors: WordVectors, asked: Sequence[tuple[str, str]], rows: int) -> dict[str, Any]:
    """Load the facts that are visible now into the reference system and ask it the same queries."""
    with tempfile.TemporaryDirectory() as folder, SqliteSearch(Path(folder) / "facts.sqlite") as system:
        seconds = system.load(filled.texts, vectors.matrix(filled.texts))
        taken: dict[str, list[float]] = {}
        for place, (kind, query) in enumerate([*asked[:WARM_UP], *asked]):
            [vector] = vectors.matrix([query])
            began = time.perf_counter()
            system.search(query, vector, LIMIT)
            if place >= WARM_UP:
                taken.setdefault(kind, []).append(time.perf_counter() - began)
        every = [each for listed in taken.values() for each in listed]
        return percentiles(every) | {
            "rows_per_second": round(rows / seconds, 1),
            "bytes_per_fact": round(system.bytes / rows),
            "kinds": {kind: percentiles(listed) for kind, listed in taken.items()},
        }


async def measure(settings: Settings, rows: int, options: argparse.Namespace, vocabulary: Vocabulary) -> dict[str, Any]:
    """Measure one size in a namespace of its own."""
    named = f"{settings.namespace}-{rows}"
    brain = common.open_brain(settings.model_copy(update={"namespace": named, "pool_size": max(CLIENTS)}))
    vectors = WordVectors(vocabulary, named)
    if not options.embedder:
        brain = replace(brain, embedder=vectors)
    try:
        given = list(drafts(vocabulary, rows, options.changed))
        common.note(f"Loading {len(given)} versions of {rows} facts ...")
        filled = await fill(brain, given, rows)
        index_seconds = await index(brain, rows)
        server = await common.tidy(brain)
        asked = queries(vocabulary, filled.texts, options.queries)
        common.note(f"Loaded in {filled.seconds:.0f} s, index in {index_seconds:.0f} s; asking ...")
        found = {
            "load": {
                "versions": filled.written,
                "rows_per_second": round(filled.written / filled.seconds, 1),
                "bytes_per_fact": round(filled.bytes / rows),
                "index_seconds": round(index_seconds, 1),
            },
            "searches": await grid(brain, filled, asked, CLIENTS),
            "recorded": await record(brain, filled, asked),
            "vector_index": await recall(brain, asked, rows) if rows > EXACT_ROWS else None,
            "reference": reference(filled, vectors, asked, rows),
            "machine": common.machine(server, brain.embedder),
        }
    finally:
        await brain.close()
    return found


def bars(sizes: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Return the figures that documents quote: hybrid, now, one client."""
    found: dict[str, Any] = {}
    scanned: set[str] = set()
    for rows, each in sizes.items():
        cell = _cell(each, "hybrid", NOW, 1)
        found[f"p95_ms_{rows}"] = cell["p95"]
        found[f"sqlite_ratio_{rows}"] = round(cell["p95"] / each["reference"]["p95"], 3)
        found[f"around_statements_ms_{rows}"] = each["recorded"][f"hybrid, {NOW}"]["ms_around_statements"]
        found[f"rows_per_second_{rows}"] = each["load"]["rows_per_second"]
        found[f"vector_recall_at_10_{rows}"] = each["vector_index"]["recall_at_10"] if each["vector_index"] else 1.0
        scanned |= {table for recorded in each["recorded"].values() for table in recorded["scanned_whole"]}
    return found | {"scanned_whole": sorted(scanned)}


def _cell(found: dict[str, Any], mode: str, when: str, clients: int) -> dict[str, Any]:
    wanted = {"mode": mode, "when": when, "clients": clients}
    return next(cell for cell in found["searches"] if wanted.items() <= cell.items())


def show(rows: int, found: dict[str, Any]) -> None:
    """Print the figures of one size as tables."""
    lines = [_line(f"{cell['mode']}, {cell['when']}, {cell['clients']} at once", cell) for cell in found["searches"]]
    lines.append(_line("SQLite FTS5 and numpy, 1 at once", found["reference"]))
    common.table(f"{rows} facts, ms", ["", "p50", "p95", "p99", *(f"{kind} p95" for kind in KINDS), "a second"], lines)
    for name, recorded in found["recorded"].items():
        statements = recorded["statements"].items()
        title = f"{rows} facts, {name}: {recorded['ms_median']} ms, in statements {recorded['ms_in_statements']} ms"
        columns = ["statement", "calls a search", "ms seen by the client", "ms in the server"]
        common.table(title, columns, [[key, *each.values()] for key, each in statements])
    load, other = found["load"], found["reference"]
    print(f"Loaded {load['rows_per_second']} versions a second (SQLite {other['rows_per_second']}),")
    if found["vector_index"]:
        walked = found["vector_index"]
        print(f"The vector index finds {common.percent(walked['recall_at_10'])} % of the ten nearest rows;")
        print(f"comparing every vector takes {walked['exact_scan_ms_median']} ms.")
    print(f"{load['bytes_per_fact']} bytes a fact (SQLite {other['bytes_per_fact']}).")
    scanned = sorted({table for recorded in found["recorded"].values() for table in recorded["scanned_whole"]})
    print(f"Tables of versions scanned whole: {', '.join(scanned) or 'none'}.")


def _line(name: str, cell: dict[str, Any]) -> list[object]:
    kinds = [cell["kinds"][kind]["p95"] if kind in cell["kinds"] else "-" for kind in KINDS]
    return [name, cell["p50"], cell["p95"], cell["p99"], *kinds, cell.get("per_second", "-")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = common.parser("search", __doc__)
    parser.add_argument("--rows", default=ROWS, help="numbers of facts, joined by commas (%(default)s)")
    parser.add_argument("--queries", type=int, default=QUERIES, help="how many queries (%(default)s)")
    parser.add_argument("--changed", type=float, default=CHANGED, help="share of facts written twice (%(default)s)")
    options: argparse.Namespace = parser.parse_args(arguments)
    vocabulary = Vocabulary()
    sizes: dict[int, dict[str, Any]] = {}
    with common.fresh_settings(options) as settings:
        for rows in (int(each) for each in options.rows.split(",")):
            sizes[rows] = runtime.run(partial(measure, settings, rows, options, vocabulary))
            show(rows, sizes[rows])
    common.finish(options, {"bars": bars(sizes), "sizes": {str(rows): each for rows, each in sizes.items()}})


if __name__ == "__main__":
    main()
