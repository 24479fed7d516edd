"""Vectors for facts that were stored while the model could not be reached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from brain.database import Work
from brain.embedders import Embedder
from brain.repository import memory, status
from brain.services.facts import searchable

Transaction = Callable[[Callable[[Work], Awaitable[Any]]], Awaitable[Any]]


async def run(read: Transaction, write: Transaction, embedder: Embedder, *, batch: int = 64) -> int:
    """Embed what waits, batch by batch, and return how many texts got their row; safe to repeat and to interrupt.

    The model is called between transactions. Raises Unavailable when it still cannot be reached.
    """
    done = 0
    while True:
        waiting: list[dict[str, Any]] = await read(lambda work: status.pending_texts(work, embedder.model, batch))
        if not waiting:
            return done
        vectors = await embedder.embed([searchable(row["title"], row["text"]) for row in waiting])
        rows = {row["content"]: vector for row, vector in zip(waiting, vectors, strict=True)}
        await write(lambda work, rows=rows: memory.add_embeddings(work, embedder.model, rows))  # type: ignore[misc]
        done += len(rows)
