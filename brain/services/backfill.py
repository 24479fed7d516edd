"""Vectors for facts that were stored while the model could not be reached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from brain.embedders import Embedder, Vector
from brain.repository import memory, status
from brain.services import models
from brain.services.facts import searchable
from brain.work import Work

Transaction = Callable[[Callable[[Work], Awaitable[Any]]], Awaitable[Any]]


async def run(read: Transaction, write: Transaction, embedder: Embedder, *, batch: int = 64) -> int:
    """Embed what waits, batch by batch, and return how many texts got their row; safe to repeat and to interrupt.

    The model is called between transactions. Raises Unavailable when it still cannot be reached, and
    ConfigurationError when it is not the one in use.
    """
    done = 0
    while True:
        waiting: list[dict[str, Any]] = await read(lambda work: _waiting(work, embedder, batch))
        if not waiting:
            return done
        vectors = await embedder.embed([searchable(row["title"], row["text"]) for row in waiting])
        rows = {row["content"]: vector for row, vector in zip(waiting, vectors, strict=True)}
        await write(lambda work, rows=rows: _add(work, embedder, rows))  # type: ignore[misc]
        done += len(rows)


async def _waiting(work: Work, embedder: Embedder, batch: int) -> list[dict[str, Any]]:
    await models.matches(work, embedder)
    return await status.pending_texts(work, embedder.model, batch)


async def _add(work: Work, embedder: Embedder, rows: Mapping[Any, Vector | None]) -> None:
    await models.matches(work, embedder)
    await memory.add_embeddings(work, embedder.model, rows)
