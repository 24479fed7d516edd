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


SAMPLES: Mapping[str, Any] = {
    "rule": "Never email clients on a Sunday",
    "said": "please never mail clients on sundays",
    "reason": "the user said so",
    "state": "The draft is sent",
    "key": "kestrel-db",
    "title": "File the tax return",
    "page": "Marlow & Finch",
    "body": "A client since 2024.",
    "text": "The Kestrel dashboard uses DuckDB",
    "ref": "memory:kestrel-db",
    "query": "what does the dashboard use?",
    "kind": "note",
    "date": "2026-02-01",
    "happened": "The search found nothing",
    "expected": "A hit for the dashboard",
    "artifact": "Traceback: KeyError 'vat' in line 3 of totals.py",
    "category": "tool",
    "expected_version": 1,
    "since": "2026-01-01",
    "until": "2026-12-31",
    "claims": [],
    "recall": "It uses DuckDB",
    "useful": "useful",
    "report": "useful",
    "verdict": "useful",
}
"""An accepted value for every argument that some tool cannot do without."""

NEEDED: Mapping[str, Sequence[str]] = {
    "amend_memory": ("text",),
    "set_constraint": ("said",),
    "touch_thread": ("title",),
    "weigh_claims": ("recall",),
}
"""Optional arguments without which a call would say nothing."""


_OWN: Mapping[str, Mapping[str, Any]] = {
    "read_wiki": {"page": "Kestrel"},
    "retire_constraint": {"ref": "constraint:none"},
    "set_pin": {"scope": "lane:work"},
}


def accepted(tool: AnyTool) -> dict[str, Any]:
    """The smallest call that a tool accepts on a brain that `furnish` filled."""
    names = [*tool.schema.get("required", []), *NEEDED.get(tool.name, ())]
    return {name: SAMPLES[name] for name in names} | dict(_OWN.get(tool.name, {}))


async def furnish(brain: Brain) -> dict[str, str]:
    """Write one row of each layer with the samples; return the ref of each."""
    refs = {}
    calls: dict[str, dict[str, Any]] = {
        "write_memory": {"text": SAMPLES["text"], "key": SAMPLES["key"]},
        "set_constraint": {"rule": "Invoices go out in EUR", "said": SAMPLES["said"]},
        "set_pin": {"state": "First state"},
        "touch_thread": {"key": "tax", "title": SAMPLES["title"]},
        "write_wiki": {"page": "Kestrel", "body": "A dashboard."},
        "log_record": {"kind": "invoice", "title": "Marlow 14", "date": "2026-02-01", "value": "5", "unit": "EUR"},
    }
    for tool, arguments in calls.items():
        refs[tool] = str((await ask(brain, tool, **arguments)).data["row"]["ref"])
    return refs
