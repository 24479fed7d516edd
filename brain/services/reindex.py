"""Embedding a whole brain again with another model: online, resumable, with the switch at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from brain import embedders
from brain.embedders import Embedder, Estimate
from brain.errors import ConfigurationError
from brain.repository import memory
from brain.repository import models as repository
from brain.services import models
from brain.services.facts import searchable
from brain.text import ANALYSIS_VERSION
from brain.work import Work

Transaction = Callable[[Callable[[Work], Awaitable[Any]]], Awaitable[Any]]
Texts = dict[UUID, str]

BATCH = 64


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did: facts and texts in all, texts embedded now, and whether the brain switched to the model."""

    facts: int
    texts: int
    embedded: int
    switched: bool


async def run(
    read: Transaction,
    write: Transaction,
    embedder: Embedder,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
    batch: int = BATCH,
) -> Report:
    """Embed every text that this model has no row for, then make it the model in use.

    Writers go on with the model before; what they add is caught up before the switch, which happens in the
    transaction that finds nothing missing. An interrupted run goes on where it stopped. The model is called between
    transactions. Raises Unavailable when it cannot be reached, and ConfigurationError for a brain whose words were
    indexed by another text analysis.
    """
    before = await read(repository.active)
    if before is not None and before.analysis != ANALYSIS_VERSION:
        raise ConfigurationError(
            f"The words of this brain were indexed by text analysis {before.analysis}; this program has"
            f" {ANALYSIS_VERSION} and renews only vectors.",
            hint="Use the program that wrote this brain.",
        )
    extent: repository.Extent = await read(lambda work: repository.extent(work, embedder.model))
    if before is None and not extent.texts:
        return Report(0, 0, 0, False)
    had, done = extent.texts - extent.missing, 0
    progress(had, extent.texts)
    while True:
        async for texts in _missing(read, embedder, batch):
            await _embed(write, embedder, texts)
            done += len(texts)
            progress(had + done, max(extent.texts, had + done))
        if await write(lambda work: _switch(work, embedder)):
            return Report(extent.facts, max(extent.texts, had + done), done, before != models.of(embedder))


async def estimate(read: Transaction, embedder: Embedder, *, batch: int = BATCH) -> Estimate:
    """Count what a run would send, without calling the model or writing anything."""
    total, seen = Estimate(0, 0, 0), set[UUID]()
    async for texts in _missing(read, embedder, batch):
        found = embedders.estimate(embedder, [text for content, text in texts.items() if content not in seen])
        seen |= texts.keys()
        total = Estimate(
            total.texts + found.texts, total.characters + found.characters, total.requests + found.requests
        )
    return total


async def _missing(read: Transaction, embedder: Embedder, batch: int) -> AsyncIterator[Texts]:
    """Walk once through the texts without a row of the model, in the order in which they were written."""
    last = 0

    async def page(work: Work) -> tuple[int, Texts]:
        missing = await repository.missing_texts(work, embedder.model, batch, after=last)
        facts = await memory.by_doc(work, list(missing))
        return max(missing, default=0), {
            content: searchable(facts[doc].title, facts[doc].text) for doc, content in missing.items()
        }

    while True:
        last, texts = await read(page)
        if not texts:
            return
        yield texts


async def _embed(write: Transaction, embedder: Embedder, texts: Texts) -> None:
    vectors = await embedder.embed(list(texts.values()))
    rows = dict(zip(texts, vectors, strict=True))
    await write(lambda work: memory.add_embeddings(work, embedder.model, rows))


async def _switch(work: Work, embedder: Embedder) -> bool:
    """Make the model the one in use, unless a writer added a text meanwhile."""
    if await repository.missing_texts(work, embedder.model, 1):
        return False
    await repository.activate(work, models.of(embedder))
    return True
