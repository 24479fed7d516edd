"""What a search asks of the database: each statement with its time, its plan, and the tables that it scans whole."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final

from psycopg import AsyncCursor

from brain.work import PLAIN, Params, Under, Work, named_queries

VERSIONS: Final = frozenset({"memory", "memory_visible", "postings"})
"""Tables that grow with every version of a fact; none may be scanned whole."""
FILES: Final = ("search", "memory", "models", "scopes")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as it was run."""

    name: str
    seconds: float
    """As the client saw it, with the round trip."""
    plan: Mapping[str, Any] | None = None

    @property
    def scanned_whole(self) -> set[str]:
        """Tables of versions that the plan scans sequentially."""
        nodes = _nodes(self.plan["Plan"]) if self.plan else iter(())
        scans = {str(node.get("Relation Name")) for node in nodes if node["Node Type"] == "Seq Scan"}
        return scans & VERSIONS

    @property
    def server_ms(self) -> float:
        """Planning and execution inside the server."""
        return float(self.plan["Planning Time"] + self.plan["Execution Time"]) if self.plan else 0.0


class Recorder(Work):
    """A unit of work that notes what it runs; explaining runs every statement once more, for its plan."""

    __slots__ = ("explaining", "statements")

    @classmethod
    def over(cls, work: Work, *, explaining: bool = False) -> Recorder:
        """Return a recorder in the transaction of a unit of work."""
        made = cls(**{each.name: getattr(work, each.name) for each in fields(Work)})
        made.statements = []
        made.explaining = explaining
        return made

    statements: list[Statement]
    explaining: bool

    async def _run(
        self, cursor: AsyncCursor[Any], query: str, params: Params, under: Under = PLAIN
    ) -> AsyncCursor[Any]:
        plan = await self._explain(query, params, under) if self.explaining else None
        began = time.perf_counter()
        ran = await Work._run(self, cursor, query, params, under)
        self.statements.append(Statement(name_of(query), time.perf_counter() - began, plan))
        return ran

    async def _explain(self, query: str, params: Params, under: Under) -> Mapping[str, Any]:
        explained = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {query}"
        cursor = await Work._run(self, self.connection.cursor(), explained, params, under)
        row = await cursor.fetchone()
        assert row is not None
        found: Mapping[str, Any] = row[0][0]
        return found


def name_of(query: str) -> str:
    """Return the name of a statement, or its beginning where it has none."""
    return _names().get(_first_line(query), " ".join(query.split())[:40])


@cache
def _names() -> dict[str, str]:
    """Return the names by the first line, the comment: below it, parts may be put in when a statement is run."""
    return {_first_line(query): name for file in FILES for name, query in named_queries(file).items()}


def _first_line(query: str) -> str:
    return query.strip().partition("\n")[0]


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)
