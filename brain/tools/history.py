"""get_history, get_digest."""

from __future__ import annotations

from pydantic import Field

from brain.render import counted
from brain.services import digest, history
from brain.tools.common import Arguments, AsOf, Brain, Period, Result, Scope, row_text
from brain.tools.protocol import AnyTool, Tool


class GetHistory(Arguments):
    """Whose history to show."""

    ref: str = Field(description="layer:id, or the key of a memory")
    as_of: AsOf = ""


async def get_history(brain: Brain, given: GetHistory) -> Result:
    """Show every version of a row."""
    found = await brain.read(lambda work: history.of(work, given.ref), as_of=given.as_of)
    shown = history.shown(found)
    lines = [f"{found.ref} has {counted(len(shown), 'version')}, oldest first.", *(row_text(each) for each in shown)]
    return Result("\n".join(lines), {"ref": found.ref, "versions": shown})


class GetDigest(Arguments):
    """Which period to sum up."""

    since: Period
    until: Period = ""
    scope: Scope = ""
    as_of: AsOf = ""


async def get_digest(brain: Brain, given: GetDigest) -> Result:
    """Sum up a period."""
    found = await brain.read(
        lambda work: digest.of(work, since=given.since, until=given.until, scope=given.scope), as_of=given.as_of
    )
    return Result(found.markdown, found.data())


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "get_history",
        "History of a row",
        "Every version of any row: what it said from when to when, who wrote it and why, and what a tombstone hid.",
        GetHistory,
        get_history,
        reads_only=True,
    ),
    Tool(
        "get_digest",
        "Digest of a period",
        "New, changed, superseded and forgotten facts and moved pins, pages, threads and records of a period.",
        GetDigest,
        get_digest,
        reads_only=True,
    ),
)
