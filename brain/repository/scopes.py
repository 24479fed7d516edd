"""The registry of scopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brain.database import Work, named_queries

_SQL = named_queries("scopes")


async def known(work: Work) -> list[str]:
    """Return the registered scopes, oldest first."""
    return await work.values(_SQL["known"], {})


async def numbered(work: Work, scopes: Sequence[str] | None) -> dict[str, int]:
    """Return the numbers of the named scopes that are registered, or of all."""
    rows = await work.dicts(_SQL["numbered"], {"scopes": list(scopes) if scopes is not None else None})
    return {row["scope"]: row["number"] for row in rows}


async def register(work: Work, scope: str) -> None:
    """Add a scope that is not registered yet."""
    await work.run(_SQL["register"], {"scope": scope, "client": work.caller.client})


async def overview(work: Work) -> list[dict[str, Any]]:
    """Return each scope with when and by whom it was registered, and how many facts are visible in it."""
    return await work.dicts(_SQL["overview"], {})
