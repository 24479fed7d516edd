"""Brains, stub models and facts for the tests of search and tools: one database a module, one namespace a test."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from brain.caller import Caller
from brain.config import Settings
from brain.database import Database
from brain.embedders import Embedder, LocalHash, Vector
from brain.errors import Unavailable
from brain.names import Scope
from brain.runtime import Brain
from brain.services import memory
from brain.services.memory import Draft, Written
from brain.tools import catalogue
from brain.tools.protocol import AnyTool, Result

TOOLS: Mapping[str, AnyTool] = {tool.name: tool for tool in catalogue.ALL}
_numbers = itertools.count(1)


@dataclass
class Table:
    """A model that knows only the texts it is told; of any other text it has no usable vector."""

    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    model: str = "table"
    dimensions: int = 3
    floor: float = 0.5
    failing: bool = False
    asked: list[str] = field(default_factory=list)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        self.asked += texts
        if self.failing:
            raise Unavailable("The embedding service cannot be reached.")
        return [list(self.vectors[text]) if text in self.vectors else None for text in texts]


def brain_on(
    database: Database, *, namespace: str = "", embedder: Embedder | None = None, origin: Any = "human", **caller: Any
) -> Brain:
    """A brain in a namespace of its own, unless one is named."""
    who = Caller(namespace=namespace or f"test-{next(_numbers)}", client="tests", session="s1", origin=origin, **caller)
    return Brain(Settings(), database, embedder or LocalHash(), who)


def bound(brain: Brain, project: str) -> Brain:
    """The same brain for a process that is bound to a project."""
    return replace(brain, caller=replace(brain.caller, project=Scope("project", project)))


async def remember(brain: Brain, *drafts: Draft | str) -> list[Written]:
    """Write facts in one transaction, as the tools and imports do."""
    given = [Draft(text=each, key=each) if isinstance(each, str) else each for each in drafts]
    prepared = await memory.prepare(brain.embedder, given)
    return await brain.write(lambda work: memory.write_many(work, prepared))


async def ask(brain: Brain, tool: str, **arguments: Any) -> Result:
    """Call a tool as a client would, without the protocol; raises its errors."""
    return await TOOLS[tool].answer(brain, arguments)


async def found(brain: Brain, query: str, **arguments: Any) -> list[str]:
    """The keys of the hits of a search, in order."""
    answer = await ask(brain, "read_memory", query=query, **arguments)
    return [hit["key"] for hit in answer.data["hits"]]


async def now(brain: Brain) -> datetime:
    """The instant that a read would call now."""

    async def as_of(work: Any) -> datetime:
        instant: datetime = work.as_of
        return instant

    return await brain.read(as_of)


def as_bytes(result: Result) -> bytes:
    """An answer as a client receives it."""
    return json.dumps([result.text, result.data], ensure_ascii=False).encode()
