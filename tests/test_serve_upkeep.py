"""The back-fill beside a server: what was stored without a vector gets one, and nothing that it meets stops it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from brain.caller import Caller
from brain.config import Settings
from brain.database import Database
from brain.embedders import LocalHash, Vector
from brain.errors import Unavailable
from brain.runtime import Brain
from brain.services import memory, models, status
from brain.tools.upkeep import Upkeep


class Moody(LocalHash):
    """Cannot be reached for a number of calls, then works; or breaks with what nobody foresaw."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        super().__init__(language="english")
        self.failures = failures
        self.error = error or Unavailable("The model cannot be reached.")

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        if self.failures > 0:
            self.failures -= 1
            raise self.error
        return await super().embed(texts, query=query)


Open = Callable[[Moody], Awaitable[Brain]]


@pytest.fixture
def brain_with(settings: Settings, database: Database) -> Open:
    """Opens a brain with a fact that its model could not embed."""

    async def opened(model: Moody) -> Brain:
        brain = Brain(settings, database, model, Caller("default", client="test"))
        [prepared] = await memory.prepare(model, [memory.Draft(text="The lease ends in May.", key="lease")])
        assert prepared.pending
        await brain.write(lambda work: memory.write(work, prepared))
        return brain

    return opened


async def waiting(brain: Brain) -> int:
    found: dict[str, Any] = await brain.read(lambda work: status.overview(work, brain.embedder))
    return int(found["facts_without_vector"])


async def finished(upkeep: Upkeep) -> None:
    for task in upkeep._passes.values():
        await task


async def test_the_first_call_fills_what_waits(brain_with: Open) -> None:
    brain = await brain_with(Moody(failures=1))
    assert await waiting(brain) == 1
    upkeep = Upkeep()
    upkeep.wake(brain)
    await finished(upkeep)
    assert await waiting(brain) == 0


async def test_a_model_that_comes_back_is_tried_again(brain_with: Open) -> None:
    brain = await brain_with(Moody(failures=3))
    upkeep = Upkeep(pauses=(0.0, 0.0))
    upkeep.wake(brain)
    await finished(upkeep)
    assert await waiting(brain) == 0


async def test_a_model_that_stays_away_leaves_the_fact_for_the_next_pending_write(brain_with: Open) -> None:
    brain = await brain_with(Moody(failures=3))
    upkeep = Upkeep(pauses=(0.0,))
    upkeep.wake(brain)
    await finished(upkeep)
    assert await waiting(brain) == 1
    upkeep.wake(brain)
    await finished(upkeep)
    assert await waiting(brain) == 1
    upkeep.wake(brain, pending=True)
    await finished(upkeep)
    assert await waiting(brain) == 0


async def test_what_nobody_foresaw_ends_the_pass_and_not_the_server(
    brain_with: Open, caplog: pytest.LogCaptureFixture
) -> None:
    model = Moody(failures=1)
    brain = await brain_with(model)
    model.failures, model.error = 1, ZeroDivisionError("inside the model")
    upkeep = Upkeep()
    upkeep.wake(brain)
    await finished(upkeep)
    assert "the upkeep failed" in caplog.text
    assert await waiting(brain) == 1


async def test_a_read_only_process_fills_nothing(brain_with: Open) -> None:
    brain = await brain_with(Moody(failures=1))
    upkeep = Upkeep()
    upkeep.wake(replace(brain, caller=replace(brain.caller, read_only=True)))
    await finished(upkeep)
    assert await waiting(brain) == 1


async def test_another_model_than_the_brain_was_indexed_with_fills_nothing(brain_with: Open) -> None:
    class Other(Moody):
        model = "another-model-256"

    brain = await brain_with(Moody(failures=1))
    other = replace(brain, embedder=Other(failures=0))
    upkeep = Upkeep()
    upkeep.wake(other)
    await finished(upkeep)
    assert await waiting(brain) == 1


class Drawn(LocalHash):
    """A sentence model as far as anybody can tell by its name."""

    model = "drawn-256"


async def _outgrown(settings: Settings, database: Database, model: LocalHash, facts: int) -> Brain:
    brain = Brain(settings, database, model, Caller("default", client="test"))
    drafts = [memory.Draft(text=f"Room {number} has a blue door.", key=f"room-{number}") for number in range(facts)]
    prepared = await memory.prepare(model, drafts)
    await brain.write(lambda work: memory.write_many(work, prepared))
    return brain


async def indexed_after_upkeep(brain: Brain) -> bool:
    upkeep = Upkeep()
    upkeep.wake(brain)
    await finished(upkeep)
    return (await brain.read(lambda work: models.in_use(work, brain.embedder))).indexed


async def test_vectors_that_outgrew_comparison_get_their_index_while_the_server_runs(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = await _outgrown(settings, database, Drawn(), 9)
    monkeypatch.setattr(models, "EXACT_ROWS", 9)
    assert not await indexed_after_upkeep(brain)
    monkeypatch.setattr(models, "EXACT_ROWS", 8)
    monkeypatch.setattr(models, "MOST_INDEXED", 8)
    assert not await indexed_after_upkeep(brain)
    monkeypatch.setattr(models, "MOST_INDEXED", 9)
    by_hand = replace(brain, settings=settings.model_copy(update={"auto_migrate": False}))
    assert not await indexed_after_upkeep(by_hand)
    assert await indexed_after_upkeep(brain)


async def test_a_model_that_only_sees_words_needs_no_index(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "EXACT_ROWS", 8)
    assert not await indexed_after_upkeep(await _outgrown(settings, database, LocalHash(), 9))


async def test_the_end_of_the_server_does_not_wait_for_a_build_that_waits_for_others(
    settings: Settings, database: Database, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = await _outgrown(settings, database, Drawn(), 9)
    monkeypatch.setattr(models, "EXACT_ROWS", 8)
    upkeep = Upkeep()
    with psycopg.connect(dsn) as holder, psycopg.connect(dsn, autocommit=True) as owner:
        holder.execute("LOCK TABLE embeddings IN ROW EXCLUSIVE MODE")
        upkeep.wake(brain)
        while not owner.execute("SELECT FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting%'").fetchall():
            await asyncio.sleep(0.01)
        began = time.monotonic()
        await upkeep.close()
        assert time.monotonic() - began < 10
        holder.rollback()
    await asyncio.wait(upkeep._passes.values())
    assert await indexed_after_upkeep(brain)
