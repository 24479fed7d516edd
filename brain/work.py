"""One transaction as the repository sees it: its instant, its namespace, and the statements that it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from psycopg import AsyncConnection, AsyncCursor, sql
from psycopg.rows import AsyncRowFactory, RowMaker, class_row, dict_row, scalar_row

from brain.caller import Caller

T = TypeVar("T")
Params = Mapping[str, Any]
Under = Mapping[str, str]
"""Settings of the server by name, for one statement."""

PLAIN: Under = {"enable_nestloop": "on", "enable_seqscan": "on", "enable_sort": "on", "plan_cache_mode": "auto"}
"""The planner weighs everything, each time."""
LOOK_UPS: Under = {"enable_seqscan": "off", "plan_cache_mode": "force_generic_plan"}
"""Rows are found by indexes however many there are, so that a connection plans the statement once."""

MICROSECOND = timedelta(microseconds=1)
"""The step of system time."""


@cache
def named_queries(file: str) -> Mapping[str, str]:
    """Return the queries of `sql/<file>.sql`: blocks that begin with `-- name: <name>`; without indentation."""
    text = files("brain.sql").joinpath(f"{file}.sql").read_text(encoding="utf-8")
    blocks = (block.partition("\n") for block in text.split("-- name:")[1:])
    return {name.strip(): "\n".join(map(str.strip, body.strip().splitlines())) for name, _, body in blocks}


def literal(text: str) -> str:
    """Return a text as an SQL literal, for the few places that a parameter cannot reach."""
    return sql.Literal(text).as_string()


def _row_of(row: type[T]) -> AsyncRowFactory[T]:
    """Make named tuples by position where their columns come in order, which is quicker than by name."""

    def factory(cursor: AsyncCursor[Any]) -> RowMaker[T]:
        columns = tuple(column.name for column in cursor.description or ())
        in_order = getattr(row, "_fields", ()) == columns  # of a named tuple
        return (lambda values: row(*values)) if in_order else class_row(row)(cursor)

    return factory


@dataclass(slots=True)
class Work:
    """One transaction in one namespace: everything it reads is as of one instant."""

    connection: AsyncConnection[Any]
    caller: Caller
    as_of: datetime
    zone: ZoneInfo
    language: str
    created: bool = False
    """The namespace came into being with this transaction."""
    stamped: datetime | None = None
    """The newest system time given out by this transaction."""
    settings: dict[str, str] = field(default_factory=lambda: dict(PLAIN))
    """Settings of the server as this transaction's last statement had them."""

    @property
    def namespace(self) -> str:
        """The namespace that every query names."""
        return self.caller.namespace

    def next_instant(self) -> datetime:
        """Return a fresh system time, later than every one given out in this namespace, and read as of it."""
        self.stamped = self.as_of if self.stamped is None else self.stamped + MICROSECOND
        self.as_of = self.stamped
        return self.stamped

    async def all(self, row: type[T], query: str, params: Params, *, under: Under = PLAIN) -> list[T]:
        """Run a query, under settings of the server if any are named, and return every row as `row`."""
        return await (
            await self._run(self.connection.cursor(row_factory=_row_of(row)), query, params, under)
        ).fetchall()

    async def one(self, row: type[T], query: str, params: Params) -> T | None:
        """Run a query and return the first row as a dataclass or named tuple, or None."""
        return await (await self._run(self.connection.cursor(row_factory=_row_of(row)), query, params)).fetchone()

    async def dicts(self, query: str, params: Params, *, under: Under = PLAIN) -> list[dict[str, Any]]:
        """Run a query, under settings of the server if any are named, and return every row as a dictionary."""
        return await (await self._run(self.connection.cursor(row_factory=dict_row), query, params, under)).fetchall()

    async def values(self, query: str, params: Params, *, under: Under = PLAIN) -> list[Any]:
        """Run a query, under settings of the server if any are named, and return the first column."""
        return await (await self._run(self.connection.cursor(row_factory=scalar_row), query, params, under)).fetchall()

    async def run(self, query: str, params: Params) -> int:
        """Run a statement and return how many rows it touched."""
        return (await self._run(self.connection.cursor(), query, params)).rowcount

    async def _run(
        self, cursor: AsyncCursor[Any], query: str, params: Params, under: Under = PLAIN
    ) -> AsyncCursor[Any]:
        given = {"namespace": self.namespace, "as_of": self.as_of, **params}
        wanted = {**PLAIN, **under}
        changed = {name: value for name, value in wanted.items() if self.settings.get(name) != value}
        if not changed:
            return await cursor.execute(query.encode(), given)
        calls = ", ".join(f"set_config({literal(name)}, {literal(value)}, true)" for name, value in changed.items())
        async with self.connection.pipeline():  # both in one round trip
            await self.connection.execute(f"SELECT {calls}".encode())
            await cursor.execute(query.encode(), given)
        self.settings.update(changed)
        return cursor
