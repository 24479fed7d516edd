"""read_memory, get_memory, walk_trail."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from brain.errors import InvalidInput
from brain.layers import Fact
from brain.render import counted, inline
from brain.services import answers, facts, history, inputs, rows, search, trail
from brain.tools.common import (
    Arguments,
    AsOf,
    Brain,
    Cursor,
    Labels,
    Limit,
    Period,
    Result,
    ValidAt,
    fact_text,
    row_text,
)
from brain.tools.protocol import AnyTool, Tool
from brain.work import Work

_KINDS = f"Only these of {', '.join(facts.KINDS)}"


class ReadMemory(Arguments):
    """A search."""

    query: str = Field(description="Words or a question; never operators")
    query_variants: list[str] = Field(default=[], max_length=5, description="Up to 5 other wordings, fused by rank")
    scope: str = Field(default="", description="A scope, or all; default global, lanes and this project")
    kinds: list[str] = Field(default=[], description=_KINDS)
    tags: Labels = []
    since: Period = ""
    until: Period = ""
    mode: str = Field(
        default="hybrid", description="hybrid; strict: every word must occur; auto: strict, else the rarest words"
    )
    limit: Limit = 10
    as_of: AsOf = ""
    valid_at: ValidAt = ""
    cursor: Cursor = ""
    view: str = Field(default="full", description="full, or compact without metadata")
    max_chars: int = Field(default=0, ge=0, le=500_000, description="Budget in characters; 0 for none")


async def read_memory(brain: Brain, given: ReadMemory) -> Result:
    """Search the memory layer."""
    question = search.Question(
        query=given.query,
        query_variants=given.query_variants,
        scope=given.scope,
        kinds=given.kinds,
        tags=given.tags,
        since=given.since,
        until=given.until,
        valid_at=given.valid_at,
        mode=given.mode,
        limit=given.limit,
        cursor=given.cursor,
    )
    as_of = _as_of(given.as_of, search.pinned(question))
    prepared = await search.prepare(brain.embedder, question)
    answer = await brain.read(lambda work: search.run(work, prepared), as_of=as_of)
    shown = answers.show(answer, view=given.view, max_chars=given.max_chars)
    return Result(shown.text, shown.data)


class GetMemory(Arguments):
    """Which fact to show."""

    ref: str = Field(description="memory:<id>, or the key")
    as_of: AsOf = ""
    valid_at: ValidAt = ""


async def get_memory(brain: Brain, given: GetMemory) -> Result:
    """Show one fact with its versions."""

    async def job(work: Work) -> tuple[Fact, history.History]:
        _, fact = await rows.find(work, given.ref, valid_at=given.valid_at)
        if not isinstance(fact, Fact):
            raise InvalidInput("ref must name a fact; get_history shows the rows of other layers.", field="ref")
        return fact, await history.of(work, f"memory:{fact.id}")

    fact, past = await brain.read(job, as_of=given.as_of)
    shown = inputs.shown(facts.LAYER, fact)
    earlier = history.shown(past)
    lines = [row_text(shown), f"{counted(len(earlier), 'version')}; get_history shows them."]
    brief = [
        {
            name: each.get(name)
            for name in ("version", "known_from", "known_to", "origin", "client", "reason", "tombstone")
        }
        for each in earlier
    ]
    return Result("\n".join(lines), {"memory": shown, "versions": brief})


class WalkTrail(Arguments):
    """Which stretch of the trail to walk."""

    scope: str = Field(default="", description="A scope, or all; default global, lanes and this project")
    tags: Labels = []
    kinds: list[str] = Field(default=[], description=_KINDS)
    entity: str = Field(default="", description="Only facts that contain all of these words")
    since: Period = ""
    until: Period = ""
    newest_first: bool = Field(default=False, description="Order")
    limit: int = Field(default=50, ge=1, le=200, description="Most items")
    as_of: AsOf = ""
    valid_at: ValidAt = ""
    cursor: Cursor = ""


async def walk_trail(brain: Brain, given: WalkTrail) -> Result:
    """Walk facts by event time."""
    as_of = _as_of(given.as_of, trail.pinned(given.cursor))
    arguments = given.model_dump(exclude={"as_of"})
    found = await brain.read(lambda work: trail.walk(work, **arguments), as_of=as_of)
    filters = "; ".join(f"{name} {inline(str(value))}" for name, value in found.filters.items())
    lines = [f"{counted(len(found.facts), 'fact')} by event time; {filters}."]
    lines += [fact_text(fact) for fact in found.facts]
    lines += [f"More: cursor {found.cursor}"] if found.cursor else []
    data: dict[str, Any] = {
        "facts": [inputs.shown(facts.LAYER, fact) for fact in found.facts],
        "filters": found.filters,
    }
    return Result("\n".join(lines), data | ({"cursor": found.cursor} if found.cursor else {}))


def _as_of(given: str, pinned: Any) -> Any:
    """Return the instant of a page: the one that its cursor pins."""
    if pinned is None:
        return given
    if given.strip():
        raise InvalidInput("as_of must be left out with a cursor, which pins the instant.", field="as_of")
    return pinned


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "read_memory",
        "Search memory",
        "Search facts by words and meaning. When nothing stands above the honesty floor it says so, with the evidence:"
        " then say that you do not know. as_of answers as the brain stood then.",
        ReadMemory,
        read_memory,
        reads_only=True,
    ),
    Tool(
        "get_memory",
        "Show a memory",
        "One fact with its evidence and versions.",
        GetMemory,
        get_memory,
        reads_only=True,
    ),
    Tool(
        "walk_trail",
        "Walk the trail",
        "What happened, in order of event time, in a scope, by tag or about an entity. No search: nothing is missing.",
        WalkTrail,
        walk_trail,
        reads_only=True,
    ),
)
