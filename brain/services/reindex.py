"""Embedding a whole brain again with another model: online, resumable, with the switch at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from brain.database import Work
from brain.embedders import Embedder
from brain.repository import memory
from brain.repository import models as repository
from brain.services import models
from brain.services.facts import searchable

Transaction = Callable[[Callable[[Work], Awaitable[Any]]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did: texts in all, texts embedded now, and whether the brain switched to the model."""

    texts: int
    embedded: int
    switched: bool


async def run(
    read: Transaction,
    write: Transaction,
    embedder: Embedder,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    batch: int = 64,
) -> Report:
    """Embed every text that this model has no row for, then make it the model in use.

    Writers go on with the model before; what they add is caught up before the switch, which happens in the
    transaction that finds nothing missing. An interrupted run goes on where it stopped. The model is called between
    transactions. Raises Unavailable when it cannot be reached.
    """
    total = await read(repository.distinct_texts)
    before = await read(repository.active)
    done = 0
    while True:
        missing: dict[int, UUID] = await read(lambda work: repository.missing_texts(work, embedder.model, batch))
        if missing:
            await _embed(read, write, embedder, missing)
            done += len(missing)
            progress(done, total)
        elif await write(lambda work: _switch(work, embedder)):
            return Report(total, done, before is None or before.model != embedder.model)


async def _embed(read: Transaction, write: Transaction, embedder: Embedder, missing: dict[int, UUID]) -> None:
    facts = await read(lambda work: memory.by_doc(work, list(missing)))
    texts = {missing[doc]: searchable(fact.title, fact.text) for doc, fact in facts.items()}
    vectors = await embedder.embed(list(texts.values()))
    rows = dict(zip(texts, vectors, strict=True))
    await write(lambda work: memory.add_embeddings(work, embedder.model, rows))


async def _switch(work: Work, embedder: Embedder) -> bool:
    """Make the model the one in use, unless a writer added a text meanwhile."""
    if await repository.missing_texts(work, embedder.model, 1):
        return False
    await repository.activate(work, models.of(embedder))
    return True
