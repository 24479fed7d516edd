"""A process that writes to a brain while others do: `python -m tests.writers DSN NAMESPACE NAME ROUNDS`."""

from __future__ import annotations

import asyncio
import random
import sys

from brain import runtime
from brain.errors import Conflict
from brain.runtime import Brain
from brain.services import memory, session
from brain.work import Work
from tests import factories


async def write(brain: Brain, name: str, number: int) -> None:
    """Write to several layers in one transaction that is held open for a moment."""
    [prepared] = await memory.prepare(brain.embedder, [memory.Draft(text=f"Fact {number} of {name}.")])
    hold = random.Random(f"{name}{number}").random() / 50

    async def job(work: Work) -> None:
        await memory.write(work, prepared)
        await asyncio.sleep(hold)

    await brain.write(job)
    await factories.thread(brain, f"{name}-{number}", title=f"Loop {number}")
    try:
        await factories.pin(brain, f"{name} was here, round {number}.", expected_version=await version(brain))
    except Conflict:
        await factories.page(brain, f"{name} page {number}", core=number % 2 == 0)


async def version(brain: Brain) -> int:
    """The version of the pin that all writers share."""
    payload = await brain.read(session.start)
    return next((pin["version"] for pin in payload.data["pins"]), 0)


async def main(dsn: str, namespace: str, name: str, rounds: int) -> None:
    brain = factories.brain_on(dsn, namespace=namespace, client=name)
    for number in range(rounds):
        await write(brain, name, number)
    await brain.close()


if __name__ == "__main__":
    dsn, namespace, name, rounds = sys.argv[1:]
    runtime.run(lambda: main(dsn, namespace, name, int(rounds)))
