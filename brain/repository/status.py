"""What a brain holds and what it runs on."""

from __future__ import annotations

from typing import Any

from brain.work import Work, named_queries

_SQL = named_queries("status")


async def counts(work: Work) -> dict[str, int]:
    """Return how many rows of each layer are visible."""
    [row] = await work.dicts(_SQL["counts"], {})
    return row


async def pending(work: Work, model: str) -> int:
    """Return how many facts wait for a vector of this model."""
    [number] = await work.values(_SQL["pending"], {"model": model})
    return int(number)


async def pending_texts(work: Work, model: str, limit: int) -> list[dict[str, Any]]:
    """Return some texts that wait for a vector of this model."""
    return await work.dicts(_SQL["pending_texts"], {"model": model, "limit": limit})


async def server(work: Work) -> dict[str, Any]:
    """Return the versions of the server, the extension and the schema, and whether row-level security binds us."""
    [row] = await work.dicts(_SQL["server"], {})
    return row
