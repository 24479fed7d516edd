"""The registry of scopes."""

from __future__ import annotations

from typing import Any

from brain.work import LOOK_UPS, Work, named_queries

_SQL = named_queries("scopes")


async def known(work: Work) -> dict[str, int]:
    """Return the registered scopes with their numbers, oldest first."""
    return {row["scope"]: row["number"] for row in await work.dicts(_SQL["known"], {}, under=LOOK_UPS)}


async def register(work: Work, scope: str) -> None:
    """Add a scope that is not registered yet."""
    await work.run(_SQL["register"], {"scope": scope, "client": work.caller.client})


async def overview(work: Work) -> list[dict[str, Any]]:
    """Return each scope with when and by whom it was registered, and how many facts are visible in it."""
    return await work.dicts(_SQL["overview"], {})
