"""Upkeep beside serving: facts that wait for a vector get one, and vectors that outgrew comparison get an index."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from brain.errors import BrainError, Unavailable
from brain.repository import vector_index
from brain.runtime import Brain
from brain.services import backfill, models
from brain.work import Work

log = logging.getLogger(__name__)

PASS_SECONDS: Final = 600.0
"""How long a pass may fill; what is left waits for the next."""

CLOSE_SECONDS: Final = 2.0
"""How long the end of a process waits for the end of a pass."""

PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""How long a pass waits before it tries a model again that could not be reached, in seconds."""


class Upkeep:
    """At most one pass at a time for each namespace, and never one that stops the process."""

    def __init__(self, pauses: tuple[float, ...] = PAUSES) -> None:
        self._pauses = pauses
        self._passes: dict[str, asyncio.Task[None]] = {}

    def wake(self, brain: Brain, *, pending: bool = False) -> None:
        """Begin a pass when none runs, and this is the namespace's first call or a fact has just become pending."""
        last = self._passes.get(brain.caller.namespace)
        wanted = last is None or (pending and last.done())
        if wanted and not brain.caller.read_only:
            self._passes[brain.caller.namespace] = asyncio.create_task(self._pass(brain))

    async def close(self) -> None:
        """Cancel what runs and wait for its end, but not for a lock that another process holds."""
        for task in self._passes.values():
            task.cancel()
        if self._passes:
            await asyncio.wait(self._passes.values(), timeout=CLOSE_SECONDS)

    async def _pass(self, brain: Brain) -> None:
        try:
            async with asyncio.timeout(PASS_SECONDS):
                await self._fill(brain)
            await self._index(brain)
        except (BrainError, TimeoutError) as error:
            log.info("the upkeep ended early: %s", error)
        except Exception:  # the edge of a task: nobody waits for its outcome
            log.exception("the upkeep failed")

    async def _index(self, brain: Brain) -> None:
        """Build the index that searches would walk, unless schema changes are left to a person."""
        embedder = brain.embedder
        if brain.settings.auto_migrate and await brain.read(lambda work: models.index_is_due(work, embedder)):
            built = await vector_index.build(brain.database, embedder.model, embedder.dimensions)
            log.info("the index of %s: %s %s", embedder.model, built.state, built.reason)

    async def _fill(self, brain: Brain) -> None:
        async def check(work: Work) -> None:
            await models.matches(work, brain.embedder)

        for pause in (*self._pauses, None):
            try:
                await brain.read(check)
                await backfill.run(brain.read, brain.write, brain.embedder)
                return
            except Unavailable:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
