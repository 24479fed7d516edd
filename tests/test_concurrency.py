"""Many writers at once: no lost update, no double, no deadlock, no held connection, and system time in commit order."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from psycopg import sql

from brain.embedders.base import Vector
from brain.embedders.local_hash import LocalHash
from brain.errors import BrainError, Busy, Conflict, Unavailable
from brain.repository import audit
from brain.runtime import Brain
from brain.services import memory, pins, search, session, status, threads, trail
from brain.work import LOOK_UPS, Work
from tests import factories

_SLEEPING = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep%' AND wait_event = 'PgSleep'"
)
PROCESSES = 4
ROUNDS = 4


async def outcomes(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    return list(await asyncio.gather(*calls, return_exceptions=True))


async def texts(brain: Brain) -> list[str]:
    return [each.text for each in (await brain.read(lambda work: trail.walk(work, limit=200))).facts]


def execute(dsn: str, query: str, *params: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query, params or None)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


async def test_parallel_calls_of_one_turn_all_land_and_one_rewrite_wins(brain: Brain) -> None:
    other = factories.brain_on(_dsn(brain), namespace=brain.caller.namespace, client="other")
    await factories.page(brain, "Marlow", "Version one.")
    facts = [factories.fact((brain, other)[number % 2], f"Fact {number}.") for number in range(20)]
    pages = [
        factories.page((brain, other)[number % 2], "Marlow", f"By {number}.", expected_version=1) for number in range(4)
    ]
    found = await outcomes([*facts, *pages])
    await other.close()
    assert sorted(await texts(brain)) == sorted(f"Fact {number}." for number in range(20))
    assert Counter(type(each).__name__ for each in found[20:]) == {"Page": 1, "Conflict": 3}
    [winner] = [each for each in found[20:] if not isinstance(each, Exception)]
    conflicts = [each for each in found[20:] if isinstance(each, Conflict)]
    assert {each.current["body"] for each in conflicts} == {winner.body}


async def test_eight_writers_of_one_key_and_text_store_it_once(brain: Brain) -> None:
    found = await outcomes([factories.written(brain, "One fact.", key="k") for _ in range(8)])
    assert Counter(each.outcome for each in found) == {"created": 1, "unchanged": 7}
    assert len({(each.fact.id, each.fact.version) for each in found}) == 1


async def test_eight_writers_of_one_text_without_a_key_store_it_once(brain: Brain) -> None:
    found = await outcomes([factories.written(brain, "One fact.") for _ in range(8)])
    assert Counter(each.outcome for each in found) == {"created": 1, "deduplicated": 7}
    assert len({each.fact.id for each in found}) == 1


async def test_eight_writers_of_one_key_with_other_texts_make_eight_versions(brain: Brain) -> None:
    found = await outcomes([factories.written(brain, f"Text {number}.", key="k") for number in range(8)])
    assert sorted(each.fact.version for each in found) == list(range(1, 9))
    assert Counter(each.outcome for each in found) == {"created": 1, "new_version": 7}
    last = max((each.fact for each in found), key=lambda fact: fact.version)
    assert await texts(brain) == [last.text]


async def test_eight_writers_that_expect_the_same_version_of_a_key_get_one_through(brain: Brain) -> None:
    await factories.fact(brain, "Before.", key="k")
    found = await outcomes(
        [factories.written(brain, f"Text {number}.", key="k", expected_version=1) for number in range(8)]
    )
    assert Counter(type(each).__name__ for each in found) == {"Written": 1, "Conflict": 7}


async def test_a_new_pin_a_new_thread_and_a_new_rule_are_created_once(brain: Brain) -> None:
    pins = await outcomes([factories.pin(brain, f"State {number}.") for number in range(4)])
    threads = await outcomes([factories.thread(brain) for _ in range(4)])
    rules = await outcomes([factories.constraint(brain) for _ in range(4)])
    assert Counter(type(each).__name__ for each in pins) == {"Pin": 1, "Conflict": 3}
    assert Counter(type(each).__name__ for each in threads) == {"Thread": 1, "Conflict": 3}
    assert len({each.id for each in rules}) == 1


async def test_two_imports_of_the_same_keys_in_opposite_order_both_finish(brain: Brain) -> None:
    other = factories.brain_on(_dsn(brain), namespace=brain.caller.namespace, client="other")
    keys = [f"key-{number}" for number in range(12)]

    async def import_all(importer: Brain, order: Sequence[str]) -> list[memory.Written]:
        drafts = [memory.Draft(text=f"{key} by {importer.caller.client}", key=key, tags=["x", "y"]) for key in order]
        prepared = await memory.prepare(importer.embedder, drafts)
        return await importer.write(lambda work: memory.write_many(work, prepared))

    first, second = await asyncio.gather(import_all(brain, keys), import_all(other, keys[::-1]))
    await other.close()
    assert sorted([{each.outcome for each in first}, {each.outcome for each in second}], key=str) == [
        {"created"}, {"new_version"},
    ]  # fmt: skip
    assert len(await texts(brain)) == 12


async def test_fifty_empty_searches_need_no_more_than_one_connection(module_dsn: str) -> None:
    brain = factories.brain_on(module_dsn, settings={"pool_size": 1})
    prepared = await search.prepare(brain.embedder, search.Question(query="nothing at all"))
    answers = await asyncio.gather(*(brain.read(lambda work: search.run(work, prepared)) for _ in range(50)))
    assert {each.reason for each in answers} == {"empty_scope"}
    await factories.fact(brain)
    await brain.close()


async def test_reads_survive_the_loss_of_every_connection(brain: Brain) -> None:
    await factories.fact(brain, "One.")
    await asyncio.gather(*(texts(brain) for _ in range(4)))
    _terminate(_dsn(brain))
    assert await asyncio.gather(*(texts(brain) for _ in range(4))) == [["One."]] * 4
    _terminate(_dsn(brain))
    await factories.fact(brain, "Two.")
    assert await texts(brain) == ["One.", "Two."]


async def test_a_write_whose_connection_dies_before_the_commit_is_done_once(brain: Brain) -> None:
    [prepared] = await memory.prepare(brain.embedder, [memory.Draft(text="Kept.")])
    calls = 0

    async def job(work: Work) -> memory.Written:
        nonlocal calls
        calls += 1
        await memory.write(work, prepared)
        if calls == 1:
            _terminate(_dsn(brain))
        return await memory.write(work, prepared)

    assert (await brain.write(job)).outcome == "deduplicated"
    assert calls == 2
    assert await texts(brain) == ["Kept."]


async def test_a_write_whose_connection_dies_at_the_commit_is_not_repeated_and_says_so(brain: Brain) -> None:
    await factories.fact(brain, "Before.")
    [prepared] = await memory.prepare(brain.embedder, [memory.Draft(text="Lost.")])
    calls = 0

    async def job(work: Work) -> None:
        nonlocal calls
        calls += 1
        await memory.write(work, prepared)
        _terminate(_dsn(brain))

    with pytest.raises(Unavailable) as caught:
        await brain.write(job)
    assert calls == 1
    assert caught.value.message == (
        "The database went away at the commit: read what was to be stored before you write it again."
    )
    assert await texts(brain) == ["Before."]


class Slow(LocalHash):
    """A model that answers only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Semaphore(0)
        self.answer = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        self.asked.release()
        await self.answer.wait()
        return await super().embed(texts, query=query)


async def test_no_connection_and_no_lock_is_held_while_a_model_runs(module_dsn: str) -> None:
    model = Slow()
    brain = replace(factories.brain_on(module_dsn, settings={"pool_size": 1}), embedder=model)
    waiting = [asyncio.ensure_future(factories.fact(brain, f"Fact {number}.")) for number in range(5)]
    for _ in waiting:
        await model.asked.acquire()
    await factories.pin(brain, "Written meanwhile.")
    assert execute(module_dsn, factories.ADVISORY_LOCKS) == [(0,)]
    ours = "datname = current_database() AND pid <> pg_backend_pid()"
    open_ones = f"SELECT count(*) FROM pg_stat_activity WHERE {ours} AND xact_start IS NOT NULL"
    assert execute(module_dsn, open_ones) == [(0,)]
    model.answer.set()
    assert len(await asyncio.gather(*waiting)) == 5
    await brain.close()


async def test_a_full_pool_is_one_short_sentence(module_dsn: str) -> None:
    brain = factories.brain_on(module_dsn, settings={"pool_size": 1, "connect_timeout_seconds": 0.1})
    await factories.fact(brain)
    held, release = asyncio.Event(), asyncio.Event()

    async def hold(work: Work) -> None:
        held.set()
        await release.wait()

    holding = asyncio.ensure_future(brain.read(hold))
    await held.wait()
    with pytest.raises(Busy, match="connection is in use"):
        await texts(brain)
    release.set()
    await holding
    assert len(await texts(brain)) == 1
    await brain.close()


async def test_a_write_that_waits_too_long_for_another_says_so(module_dsn: str) -> None:
    brain = factories.brain_on(module_dsn, settings={"lock_timeout_ms": 50})
    await factories.fact(brain)
    with factories.application(module_dsn, brain.caller.namespace) as writer:
        writer.execute("SELECT * FROM brain_begin_write(%s, 'UTC', 'english')", [brain.caller.namespace])
        with pytest.raises(Busy, match="Another write of this brain"):
            await factories.fact(brain, "Other.")
        assert len(await texts(brain)) == 1
    await factories.fact(brain, "Other.")
    await brain.close()


async def test_a_read_only_server_refuses_writes_loudly_and_reads_go_on(dsn: str) -> None:
    before = factories.brain_on(dsn)
    await factories.one_of_each(before)
    await before.close()
    _set_for_database(dsn, "default_transaction_read_only = on")
    # A transaction may ask for writing all the same; a server after a failover would not grant it.
    brain = factories.brain_on(dsn, namespace=before.caller.namespace)
    counts = await brain.read(lambda work: status.overview(work, brain.embedder))
    assert set(counts["visible_rows"].values()) == {1}
    with pytest.raises(Unavailable, match="accepts no writes") as caught:
        await factories.fact(brain, "Other.")
    assert "nothing was stored" in caught.value.message
    await brain.close()


async def test_a_statement_that_takes_too_long_leaves_no_part_of_its_write(module_dsn: str) -> None:
    brain = factories.brain_on(module_dsn, settings={"statement_timeout_ms": 2_000})
    await factories.fact(brain, "Before.")
    short = factories.brain_on(module_dsn, namespace=brain.caller.namespace, settings={"statement_timeout_ms": 100})
    [prepared] = await memory.prepare(brain.embedder, [memory.Draft(text="Half.", scope="project:half")])

    async def job(work: Work) -> None:
        await memory.write(work, prepared)
        await work.values("SELECT pg_sleep(5)::text", {})

    with pytest.raises(Busy, match="statement timeout"):
        await short.write(job)
    for table in ("memory", "memory_visible", "postings", "embeddings", "scopes"):
        query = f"SELECT count(*) FROM {table} WHERE namespace = %s"
        assert execute(module_dsn, query, brain.caller.namespace)[0][0] == {"scopes": 4, "postings": 1}.get(table, 1)
    assert await texts(brain) == ["Before."]
    await short.close()
    await brain.close()


async def test_a_search_that_is_cancelled_or_takes_too_long_leaves_its_connection_usable(module_dsn: str) -> None:
    brain = factories.brain_on(module_dsn, settings={"pool_size": 1, "statement_timeout_ms": 300})
    await factories.fact(brain, "The lease ends in May.")
    prepared = await search.prepare(brain.embedder, search.Question(query="lease"))

    async def stuck(work: Work) -> None:
        await search.run(work, prepared)
        await work.values("SELECT pg_sleep(5) WHERE %(namespace)s <> ''", {}, under=LOOK_UPS | {"enable_sort": "off"})

    for delay in range(12):
        running = asyncio.ensure_future(brain.read(lambda work: search.run(work, prepared)))
        await asyncio.sleep(delay / 1000)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    with pytest.raises(Busy, match="statement timeout"):
        await brain.read(stuck)
    answer = await brain.read(lambda work: search.run(work, prepared))
    assert [hit.fact.text for hit in answer.hits] == ["The lease ends in May."]
    await brain.close()


async def test_a_cancelled_write_leaves_nothing_and_its_connection_is_usable(module_dsn: str) -> None:
    brain = factories.brain_on(module_dsn, settings={"pool_size": 1})
    await factories.fact(brain, "Before.")
    [prepared] = await memory.prepare(brain.embedder, [memory.Draft(text="Cancelled.")])

    async def job(work: Work) -> None:
        await memory.write(work, prepared)
        await work.values("SELECT pg_sleep(30)::text", {})

    running = asyncio.ensure_future(brain.write(job))
    # The server does not hear of a cancellation that comes before the statement has begun.
    while not await asyncio.to_thread(execute, module_dsn, _SLEEPING):
        assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await texts(brain) == ["Before."]
    await factories.fact(brain, "After.")
    await brain.close()


async def test_a_client_that_vanishes_during_a_statement_does_not_keep_the_write_lock(module_dsn: str) -> None:
    """As after a kill, or a cancellation that the server missed: the statement would otherwise run to its timeout."""
    brain = factories.brain_on(module_dsn, settings={"lock_timeout_ms": 9_000})
    await factories.fact(brain, "Before.")
    [prepared] = await memory.prepare(brain.embedder, [memory.Draft(text="Half.")])

    async def job(work: Work) -> None:
        await memory.write(work, prepared)
        work.connection.pgconn.send_query(b"SELECT pg_sleep(25)")
        work.connection.pgconn.flush()
        while not await asyncio.to_thread(execute, module_dsn, _SLEEPING):
            pass
        work.connection.pgconn.finish()
        raise Conflict("Gone.", current={})

    with pytest.raises(Conflict):
        await brain.write(job)
    await factories.fact(brain, "After.")
    assert await texts(brain) == ["Before.", "After."]
    await brain.close()


async def test_a_failing_job_rolls_back_every_layer(brain: Brain) -> None:
    async def job(work: Work) -> None:
        await pins.write(work, state="Half.")
        await threads.touch(work, key="half", title="Half")
        raise Conflict("Changed.", current={})

    with pytest.raises(BrainError):
        await brain.write(job)
    assert await brain.read(audit.writes) == []


async def test_system_time_follows_commits_and_no_reader_misses_a_write_of_four_processes(module_dsn: str) -> None:
    """Payloads taken while four processes write are replayed when all is written: the same bytes."""
    brain = factories.brain_on(module_dsn, client="reader")
    command = [sys.executable, "-m", "tests.writers", module_dsn, brain.caller.namespace]
    writers = [
        await asyncio.create_subprocess_exec(*command, f"writer-{number}", str(ROUNDS), stderr=subprocess.PIPE)
        for number in range(PROCESSES)
    ]
    ends = asyncio.gather(*(each.communicate() for each in writers))
    taken: dict[str, tuple[session.Payload, list[str]]] = {}
    while not ends.done():
        await asyncio.wait([ends], timeout=0.02)
        payload = await brain.read(_start)
        moment = payload.data["as_of"]
        taken.setdefault(payload.text.partition("\n")[2], (payload, await brain.read(_facts, as_of=moment)))
    assert [errors for _, errors in await ends] == [b""] * PROCESSES
    assert [each.returncode for each in writers] == [0] * PROCESSES

    moments = [each.recorded_at for each in await brain.read(lambda work: audit.writes(work, limit=10_000))]
    assert len(moments) == PROCESSES * ROUNDS * 3
    assert all(earlier < later for earlier, later in pairwise(moments))
    assert len(taken) > 3
    for payload, seen in taken.values():
        again = await brain.read(_start, as_of=payload.data["as_of"])
        assert (again.text, json.dumps(again.data)) == (payload.text, json.dumps(payload.data))
        assert await brain.read(_facts, as_of=payload.data["as_of"]) == seen
    await brain.close()


async def _start(work: Work) -> session.Payload:
    return await session.start(work, since="2020-01-01", budget=200_000)


async def _facts(work: Work) -> list[str]:
    return [each.text for each in (await trail.walk(work, limit=200)).facts]


def _dsn(brain: Brain) -> str:
    assert brain.settings.database_url is not None
    return brain.settings.database_url.get_secret_value()


def _terminate(dsn: str) -> None:
    """End every connection of a database but the one that asks."""
    others = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    execute(dsn, f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}")


def _set_for_database(dsn: str, setting: str) -> None:
    [(name,)] = execute(dsn, "SELECT current_database()")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL(f"ALTER DATABASE {{}} SET {setting}").format(sql.Identifier(name)))  # type: ignore[arg-type]
