"""The back-fill beside a server: what was stored without a vector gets one, and nothing that it meets stops it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from brain.caller import Caller
from brain.config import Settings
from brain.database import Database
from brain.embedders import LocalHash, Vector
from brain.errors import Unavailable
from brain.runtime import Brain
from brain.services import memory, status
from brain.tools.refill import Refill


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


async def finished(refill: Refill) -> None:
    for task in refill._passes.values():
        await task


async def test_the_first_call_fills_what_waits(brain_with: Open) -> None:
    brain = await brain_with(Moody(failures=1))
    assert await waiting(brain) == 1
    refill = Refill()
    refill.wake(brain)
    await finished(refill)
    assert await waiting(brain) == 0


async def test_a_model_that_comes_back_is_tried_again(brain_with: Open) -> None:
    brain = await brain_with(Moody(failures=3))
    refill = Refill(pauses=(0.0, 0.0))
    refill.wake(brain)
    await finished(refill)
    assert await waiting(brain) == 0


async def test_a_model_that_stays_away_leaves_the_fact_for_the_next_pending_write(brain_with: Open) -> None:
    brain = await brain_with(Moody(failures=3))
    refill = Refill(pauses=(0.0,))
    refill.wake(brain)
    await finished(refill)
    assert await waiting(brain) == 1
    refill.wake(brain)
    await finished(refill)
    assert await waiting(brain) == 1
    refill.wake(brain, pending=True)
    await finished(refill)
    assert await waiting(brain) == 0


async def test_what_nobody_foresaw_ends_the_pass_and_not_the_server(
    brain_with: Open, caplog: pytest.LogCaptureFixture
) -> None:
    model = Moody(failures=1)
    brain = await brain_with(model)
    model.failures, model.error = 1, ZeroDivisionError("inside the model")
    refill = Refill()
    refill.wake(brain)
    await finished(refill)
    assert "the back-fill failed" in caplog.text
    assert await waiting(brain) == 1


async def test_a_read_only_process_fills_nothing(brain_with: Open) -> None:
    brain = await brain_with(Moody(failures=1))
    refill = Refill()
    refill.wake(replace(brain, caller=replace(brain.caller, read_only=True)))
    await finished(refill)
    assert await waiting(brain) == 1


async def test_another_model_than_the_brain_was_indexed_with_fills_nothing(brain_with: Open) -> None:
    class Other(Moody):
        model = "another-model-256"

    brain = await brain_with(Moody(failures=1))
    other = replace(brain, embedder=Other(failures=0))
    refill = Refill()
    refill.wake(other)
    await finished(refill)
    assert await waiting(brain) == 1
