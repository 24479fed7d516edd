"""Valid defaults: a brain on a test's database, and functions that write one row of each layer through the services."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import sql
from pydantic import SecretStr

from brain.caller import Caller
from brain.config import Settings
from brain.database import Database
from brain.embedders import from_settings
from brain.embedders.base import Vector
from brain.embedders.local_hash import LocalHash
from brain.errors import Unavailable
from brain.layers import Constraint, Fact, Friction, Page, Pin, Record, Thread
from brain.runtime import Brain
from brain.services import constraints, facts, memory, pins, records, threads, wiki
from brain.services import friction as failures

_numbers = itertools.count(1)

RULE = "Never email clients on a Sunday."
SAID = "please never mail clients on sundays"
ARTIFACT = "Traceback: KeyError 'vat' in line 3 of totals.py"
ADVISORY_LOCKS = (
    "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
    " WHERE d.datname = current_database() AND l.locktype = 'advisory'"
)


def fresh_name(prefix: str) -> str:
    """A name that no other test of this process uses."""
    return f"{prefix}-{next(_numbers)}"


def brain_on(dsn: str, *, namespace: str = "", settings: dict[str, Any] | None = None, **caller: Any) -> Brain:
    """A brain on a database, in a namespace of its own; caller changes who writes."""
    name = namespace or fresh_name("brain")
    given = Settings(database_url=SecretStr(dsn), namespace=name, **(settings or {}))
    known = {"client": "tests", "session": "first", "model": "test-model", "origin": "model"}
    return Brain(given, Database(given), from_settings(given), Caller(namespace=name, **(known | caller)))


def as_caller(brain: Brain, **changes: Any) -> Brain:
    """The same brain, asked by another caller."""
    return replace(brain, caller=replace(brain.caller, **changes))


async def constraint(brain: Brain, rule: str = RULE, *, said: str = SAID, **given: Any) -> Constraint:
    row, _ = await brain.write(lambda work: constraints.add(work, rule=rule, said=said, **given))
    return row


async def pin(brain: Brain, state: str = "The draft is sent.", **given: Any) -> Pin:
    row, _ = await brain.write(lambda work: pins.write(work, state=state, **given))
    return row


async def page(
    brain: Brain, page: str = "Marlow Finch", body: str = "# Marlow Finch\n\nA client.", **given: Any
) -> Page:
    row, _ = await brain.write(lambda work: wiki.write(work, page=page, body=body, **given))
    return row


async def thread(brain: Brain, key: str = "tax-return", *, title: str = "File the tax return", **given: Any) -> Thread:
    return await brain.write(lambda work: threads.touch(work, key=key, title=title, **given))


async def record(
    brain: Brain, title: str = "Marlow 14", *, kind: str = "invoice", date: str = "2026-02-01", **given: Any
) -> Record:
    values = {"value": "1250.00", "unit": "EUR"} | given
    row, _ = await brain.write(lambda work: records.log(work, kind=kind, title=title, date=date, **values))
    return row


async def written(brain: Brain, text: str = "Kestrel exports with DuckDB.", **given: Any) -> memory.Written:
    """Write a fact and return it with what became of it."""
    [prepared] = await memory.prepare(brain.embedder, [memory.Draft(text=text, **given)])
    return await brain.write(lambda work: memory.write(work, prepared))


async def fact(brain: Brain, text: str = "Kestrel exports with DuckDB.", **given: Any) -> Fact:
    return (await written(brain, text, **given)).fact


async def friction(brain: Brain, happened: str = "The totals were wrong.", **given: Any) -> Friction:
    values = {"expected": "Totals with tax.", "artifact": ARTIFACT} | given
    row, _ = await brain.write(lambda work: failures.log(work, happened=happened, **values))
    return row


WRITERS: dict[str, Callable[[Brain], Awaitable[Any]]] = {
    "constraint": constraint,
    "record": record,
    "pin": pin,
    "wiki": page,
    "thread": thread,
    "memory": fact,
    "friction": friction,
}
"""A function that writes one row, for each layer."""


async def one_of_each(brain: Brain) -> dict[str, Any]:
    """Write one row of every layer."""
    return {layer: await write(brain) for layer, write in WRITERS.items()}


class Unreachable(LocalHash):
    """A model that cannot be reached."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        raise Unavailable("The embedding service cannot be reached.")


def instant(text: str) -> datetime:
    """An aware datetime in UTC, for example of `2026-03-01 12:30`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def assertion(key: str, version: int, *, known_from: datetime, **given: Any) -> Fact:
    """A complete assertion of a fact whose id is its key, for what no service lets a caller say."""
    text = given.pop("text", f"Assertion {version} of {key}")
    values: dict[str, Any] = {
        "id": key, "version": version, "scope": "global", "origin": "import", "client": "tests", "session": "first",
        "model": "", "known_from": known_from, "recorded_at": known_from, "doc": 0, "tombstone": False, "reason": "",
        "valid_from": None, "valid_to": None, "key": key, "text": text, "title": "", "kind": "fact", "tags": [],
        "importance": 3, "confidence": 1, "evidence": [], "supersedes": "", "trigger": "explicit", "reference": "",
        "said": "", "occurred": known_from, "content": facts.content_of("", text),
        "words": facts.words_of("", text, "english"), "length": 0, "docs_before": 0, "terms_before": 0,
    }  # fmt: skip
    return Fact(**(values | given))


@contextmanager
def application(dsn: str, namespace: str | None) -> Iterator[psycopg.Connection[Any]]:
    """A transaction as the application's role, in a namespace or, with None, in none; rolled back at the end."""
    with psycopg.connect(dsn) as connection:
        connection.execute("SET LOCAL ROLE brain_app")
        if namespace is not None:
            connection.execute(sql.SQL("SET LOCAL brain.namespace = {}").format(sql.Literal(namespace)))
        yield connection
        connection.rollback()


def set_clock(dsn: str, now: str = "clock_timestamp()") -> None:
    """Let the database's clock answer with a SQL expression."""
    with psycopg.connect(dsn) as connection:
        connection.execute(
            f"CREATE OR REPLACE FUNCTION brain_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT {now} $$"
        )


def freeze(dsn: str, moment: datetime) -> None:
    """Stop the database's clock."""
    set_clock(dsn, f"timestamptz '{moment.isoformat()}'")
