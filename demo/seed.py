"""Fills a new brain with the story, through the services and as a human's import would: every write has its date."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from brain.errors import Refused
from brain.runtime import Brain
from brain.services import constraints, friction, memory, pins, records, threads, wiki
from brain.work import Work
from demo.story import Entry


async def fill(brain: Brain, entries: Sequence[Entry]) -> int:
    """Write a story into a brain that does not exist yet, in one transaction; return the number of writes.

    Raises Refused when the namespace already holds a brain.
    """
    facts = [entry for entry in entries if entry.does == "memory"]
    drafts = [memory.Draft(known_at=entry.known_at, **entry.fields) for entry in facts]
    prepared = await memory.prepare(brain.embedder, drafts)

    async def job(work: Work) -> int:
        if not work.created:
            raise Refused(f"The namespace {work.namespace} already holds a brain; the demo fills a new one.")
        waiting = iter(prepared)
        for entry in entries:
            if entry.does == "memory":
                await memory.write(work, next(waiting))
            else:
                await _WRITERS[entry.does](work, entry)
        return len(entries)

    return await brain.write(job)


async def _retire(work: Work, entry: Entry) -> None:
    [rule] = [each for each in await constraints.active(work, None) if each.rule == entry.fields["rule"]]
    await constraints.retire(work, ref=rule.id, said=entry.fields["said"], known_at=entry.known_at)


async def _log_friction(work: Work, entry: Entry) -> None:
    """The failure log has no past: its entries count from the import on."""
    await friction.log(work, **entry.fields)


def _dated(service: Callable[..., Awaitable[Any]]) -> Callable[[Work, Entry], Awaitable[None]]:
    async def write(work: Work, entry: Entry) -> None:
        await service(work, known_at=entry.known_at, **entry.fields)

    return write


_WRITERS: Mapping[str, Callable[[Work, Entry], Awaitable[None]]] = {
    "constraint": _dated(constraints.add),
    "retire": _retire,
    "record": _dated(records.log),
    "pin": _dated(pins.write),
    "wiki": _dated(wiki.write),
    "thread": _dated(threads.touch),
    "friction": _log_friction,
}
