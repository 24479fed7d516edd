"""get_history."""

from __future__ import annotations

from pydantic import Field

from brain.render import counted
from brain.services import history
from brain.tools.common import Arguments, AsOf, Brain, Result, row_text
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


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "get_history",
        "History of a row",
        "Every version of any row: what it said from when to when, who wrote it and why, and what a tombstone hid.",
        GetHistory,
        get_history,
        reads_only=True,
    ),
)
