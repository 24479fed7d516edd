"""The approximate index of the vector leg: never silently short, close to the exact scan, and absent when it fails."""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from brain.embedders import Vector
from brain.repository import scopes, vector_index
from brain.repository import search as legs
from brain.repository.memory import vector_text
from brain.repository.search import VectorHit, Visible
from brain.runtime import Brain
from brain.services import models
from brain.services.memory import Draft
from brain.work import Work
from tests.memories import Table, ask, brain_on, remember

WIDTH = 24
NEAR, FEW, ANYWHERE = 6_000, 30, 3_000
DEPTH = 200


def direction(seed: object, width: int = WIDTH) -> Vector:
    """A direction that depends on the seed, uniform over the sphere."""
    drawn = random.Random(int.from_bytes(hashlib.blake2b(repr(seed).encode()).digest()[:8]))
    found = [drawn.gauss(0, 1) for _ in range(width)]
    norm = math.sqrt(math.fsum(each * each for each in found))
    return [each / norm for each in found]


POLE = direction("pole")


@dataclass
class Drawn:
    """A model of random directions; texts that begin with `near` lie about one pole."""

    model: str = "drawn"
    dimensions: int = WIDTH
    floor: float = 0.01

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        if not text.startswith("near"):
            return direction(text, self.dimensions)
        return [pole + 0.3 * each for pole, each in zip(POLE, direction(text), strict=True)]


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
async def crowded(store: Database, module_dsn: str) -> Brain:
    """A small lane and a rare tag beside a big lane nearer to the question, all indexed, without statistics."""
    with psycopg.connect(module_dsn) as owner:
        for table in ("memory", "memory_visible", "embeddings", "embeddings_pending", "postings"):
            owner.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)".encode())
    brain = brain_on(store, embedder=Drawn())
    drafts = [Draft(text=f"near {n}", key=f"near-{n}", scope="lane:work") for n in range(NEAR)]
    drafts += [Draft(text=f"far {n}", key=f"far-{n}", scope="lane:personal", tags=["rare"]) for n in range(FEW)]
    drafts += [Draft(text=f"any {n}", key=f"any-{n}", scope="lane:school") for n in range(ANYWHERE)]
    for start in range(0, len(drafts), 1_000):
        await remember(brain, *drafts[start : start + 1_000])
    built = await vector_index.build(store, "drawn", WIDTH)
    assert built.state == "ready"
    return brain


async def both(brain: Brain, asked: Vector, *names: str, tags: Sequence[str] = ()) -> tuple[Any, Any]:
    """What the index and the exact scan find in some scopes, each with whether it is exact."""

    async def job(work: Work) -> tuple[Any, Any]:
        numbers = await scopes.known(work)
        wanted = list(names) or list(numbers)
        given_numbers = [numbers[each] for each in wanted]
        visible = Visible(wanted, given_numbers, work.as_of, tags=list(tags) or None, whole=not names)
        rows = await legs.searched(work, visible)
        given: dict[str, Any] = {"model": brain.embedder.model, "depth": DEPTH, "rows": rows}
        text = vector_text(asked)
        indexed = (await models.in_use(work, brain.embedder)).indexed
        walked = await legs.vector(work, visible, text, indexed=indexed, **given)
        return walked, await legs.vector(work, visible, text, indexed=False, **given)

    return await brain.read(job)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the index be used where more than twenty rows are visible."""
    monkeypatch.setattr(legs, "EXACT_ROWS", 20)


def docs(hits: Sequence[VectorHit]) -> list[int]:
    return [hit.doc for hit in hits]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("names", "tags", "count"), [(["lane:personal"], [], FEW), ([], ["rare"], FEW), ([], [], DEPTH)]
)
async def test_a_filter_as_narrow_as_one_scope_or_tag_never_leaves_an_answer_short(
    crowded: Brain, names: list[str], tags: list[str], count: int
) -> None:
    (walked, _), (compared, exact) = await both(crowded, POLE, *names, tags=tags)
    assert exact
    assert (len(walked), len(compared)) == (count, count)
    if count == FEW:
        assert walked == compared


@pytest.mark.usefixtures("small")
async def test_a_walk_that_ends_short_is_replaced_by_the_exact_scan(
    crowded: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legs, "EF_SEARCH", {0: 40})
    monkeypatch.setattr(legs, "MOST_WALKED", 200)
    (found, claimed), (compared, _) = await both(crowded, POLE, "lane:personal")
    assert claimed
    assert found == compared
    assert len(found) == FEW


@pytest.mark.usefixtures("small")
async def test_the_index_finds_nearly_all_of_the_ten_nearest(crowded: Brain) -> None:
    shared = 0
    for number in range(50):
        (walked, claimed), (compared, _) = await both(crowded, direction(("question", number)), "lane:school")
        assert not claimed
        shared += len(set(docs(walked)[:10]) & set(docs(compared)[:10]))
    assert shared / 500 >= 0.98


@pytest.mark.usefixtures("small")
async def test_an_answer_says_whether_every_row_was_compared(crowded: Brain, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = await ask(crowded, "read_memory", query="near question", scope="lane:work")
    assert answer.data["hits"]
    assert answer.data["diagnosis"]["exact"] is False
    monkeypatch.setattr(legs, "EXACT_ROWS", NEAR)
    exact = await ask(crowded, "read_memory", query="near question", scope="lane:work")
    assert exact.data["diagnosis"]["exact"] is True


@pytest.mark.parametrize(
    "names", [{}, {"scope": "lane:work"}, {"tags": ["rare"]}, {"tags": ["rare"], "mode": "strict"}]
)
async def test_comparing_every_row_takes_its_time_once_a_row_also_without_statistics(
    crowded: Brain, module_dsn: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(legs, "EXACT_ROWS", 1_000_000)
    settings = Settings(database_url=SecretStr(module_dsn), statement_timeout_ms=3_000)
    hurried = replace(crowded, database=Database(settings))
    try:
        answer = await ask(hurried, "read_memory", query="near far any", **names)
    finally:
        await hurried.database.close()
    assert answer.data["diagnosis"]["exact"] is True


@pytest.mark.usefixtures("small")
async def test_an_older_pgvector_is_asked_for_the_exact_scan(crowded: Brain, module_dsn: str) -> None:
    with extension_version(module_dsn, "0.7.4"):
        (found, claimed), (compared, _) = await both(crowded, POLE, "lane:work")
    assert claimed
    assert found == compared
    assert not (await both(crowded, POLE, "lane:work"))[0][1]


@contextmanager
def extension_version(dsn: str, version: str) -> Iterator[None]:
    """Let the catalogue name another version of pgvector."""
    change = "UPDATE pg_extension SET extversion = %s WHERE extname = 'vector' RETURNING extversion"
    with psycopg.connect(dsn, autocommit=True) as connection:
        [before] = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchall()
        connection.execute(change, [version])
        try:
            yield
        finally:
            connection.execute(change, before)


# --- building


def indexes(dsn: str) -> list[tuple[str, bool]]:
    """The approximate indexes of a database, and whether each is complete."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE c.relname LIKE '%hnsw'"
        ).fetchall()


async def three(database: Database, **model: Any) -> Brain:
    """A brain of three facts; each is found exactly whatever becomes of an index."""
    vectors = {"east": [1.0, 0.0, 0.0], "north": [0.0, 1.0, 0.0], "up": [0.0, 0.0, 1.0], "eastward": [0.9, 0.1, 0.0]}
    brain = brain_on(database, embedder=Table(vectors, **model))
    await remember(brain, "east", "north", "up")
    return brain


async def nearest(brain: Brain) -> tuple[str, bool]:
    data = (await ask(brain, "read_memory", query="eastward")).data
    return data["hits"][0]["text"], data["diagnosis"]["exact"]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the index be used at any size."""
    monkeypatch.setattr(legs, "EXACT_ROWS", 0)


@pytest.mark.usefixtures("always")
async def test_a_build_that_fails_leaves_no_index_and_a_search_that_compares_every_row(
    database: Database, dsn: str
) -> None:
    brain = await three(database)
    with psycopg.connect(dsn, autocommit=True) as owner:
        odd = "INSERT INTO embeddings VALUES ('elsewhere', 'table', gen_random_uuid(), '[1,2]')"
        owner.execute(odd)
        built = await vector_index.build(database, "table", 3)
        assert (built.state, indexes(dsn)) == ("failed", [])
        assert built.reason
        assert await nearest(brain) == ("east", True)
        owner.execute("DELETE FROM embeddings WHERE namespace = 'elsewhere'")
    assert (await vector_index.build(database, "table", 3)).state == "ready"
    assert await nearest(brain) == ("east", False)


@pytest.mark.usefixtures("always")
async def test_a_build_whose_connection_ends_leaves_no_index_that_is_half_done(database: Database, dsn: str) -> None:
    brain = await three(database)
    with psycopg.connect(dsn) as holder, psycopg.connect(dsn, autocommit=True) as owner:
        holder.execute("LOCK TABLE embeddings IN ROW EXCLUSIVE MODE")
        building = asyncio.create_task(vector_index.build(database, "table", 3))
        ended: list[Any] = []
        while not ended and not building.done():
            await asyncio.to_thread(owner.execute, "SELECT pg_sleep(0.01)")
            ended = owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_progress_create_index"
                " WHERE datname = current_database() AND phase LIKE 'waiting%'"
            ).fetchall()
        holder.rollback()
        built = await building
    assert (ended, built.state) == ([(True,)], "failed")
    assert indexes(dsn) == []
    assert await nearest(brain) == ("east", True)


@pytest.mark.usefixtures("always")
async def test_what_a_killed_build_left_is_never_used_and_is_built_again(database: Database, dsn: str) -> None:
    brain = await three(database)
    await vector_index.build(database, "table", 3)
    with psycopg.connect(dsn) as owner:
        owner.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [indexes(dsn)[0][0]])
    assert await nearest(brain) == ("east", True)
    assert (await vector_index.build(database, "table", 3)).state == "ready"
    assert indexes(dsn) == [(vector_index.index_name("table"), True)]
    assert await nearest(brain) == ("east", False)


async def test_a_build_outlasts_the_statement_timeout_of_the_database(database: Database, dsn: str) -> None:
    await three(database)
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 200', current_database()); END $$"
        )
    with psycopg.connect(dsn) as holder:
        holder.execute("SET statement_timeout = 0; LOCK TABLE embeddings IN ROW EXCLUSIVE MODE; SELECT pg_sleep(0.01)")
        building = asyncio.create_task(vector_index.build(database, "table", 3))
        await asyncio.to_thread(holder.execute, "SELECT pg_sleep(0.5)")
        assert not building.done()
        holder.rollback()
        assert (await building).state == "ready"


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("width", "state"), [(3_072, "ready"), (4_096, "too_wide")])
async def test_a_wide_vector_is_indexed_in_half_precision_or_compared_exactly(
    database: Database, dsn: str, width: int, state: str
) -> None:
    brain = brain_on(database, embedder=replace(Drawn(), model="wide", dimensions=width))
    await remember(brain, *(f"fact {n}" for n in range(5)))
    assert (await vector_index.build(database, "wide", width)).state == state
    (found, claimed), (compared, _) = await both(brain, direction("fact 3", width))
    assert found == compared
    assert (len(found), claimed) == (5, state == "too_wide")
    assert len(indexes(dsn)) == (state == "ready")
