"""touch_thread, list_threads."""

from __future__ import annotations

from pydantic import Field

from brain.render import counted, quoted
from brain.services import inputs, scopes, threads
from brain.tools.common import Arguments, AsOf, Brain, Expected, Result, Said, Scope, write_result
from brain.tools.protocol import AnyTool, Tool
from brain.work import Work


class TouchThread(Arguments):
    """An open loop that was opened or talked about."""

    key: str = Field(description="Stable short name")
    title: str = Field(default="", description="The open loop; needed when new")
    scope: Scope = ""
    status: str = Field(default="", description="open, waiting, paused, done or dropped; a change needs said")
    cadence_days: int = Field(
        default=0, ge=0, le=3_660, description="Days of silence that are normal; 0 keeps it (7 when new)"
    )
    note: str = Field(default="", description="What is known now")
    said: Said = ""
    expected_version: Expected = 0


async def touch_thread(brain: Brain, given: TouchThread) -> Result:
    """Open or touch a thread."""
    row = await brain.write(
        lambda work: threads.touch(
            work,
            key=given.key,
            title=given.title,
            scope=given.scope,
            status=given.status,
            cadence_days=given.cadence_days,
            note=given.note,
            said=given.said,
            expected_version=given.expected_version,
        )
    )
    return write_result(threads.LAYER, row, "rewritten" if row.version > 1 else "created")


class ListThreads(Arguments):
    """Which threads to list."""

    scope: Scope = ""
    status: str = Field(default="", description="One status; default all unfinished ones")
    quiet_only: bool = Field(default=False, description="Only those silent for longer than their cadence")
    as_of: AsOf = ""


async def list_threads(brain: Brain, given: ListThreads) -> Result:
    """List threads, the longest silent first."""
    statuses = (
        (inputs.choice(given.status, threads.STATUSES, field="status"),) if given.status.strip() else threads.UNFINISHED
    )

    async def job(work: Work) -> list[threads.Quiet]:
        covered = await scopes.for_reading(work, given.scope)
        return await threads.listing(work, covered.scopes, statuses=statuses)

    found = [each for each in await brain.read(job, as_of=given.as_of) if each.is_quiet or not given.quiet_only]
    text = [
        f"- thread:{each.thread.id}@{each.thread.version} [{each.thread.scope}] {each.thread.status}, last touched"
        f" {counted(each.days, 'day')} ago (cadence {counted(each.thread.cadence_days, 'day')})"
        f"{', quiet: ask the user' if each.is_quiet else ''}\n{quoted(each.thread.title)}"
        for each in found
    ]
    data = [
        inputs.shown(threads.LAYER, each.thread) | {"days_since_touch": each.days, "quiet": each.is_quiet}
        for each in found
    ]
    return Result("\n".join(text) or "No such threads.", {"threads": data, "statuses": list(statuses)})


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "touch_thread",
        "Open or touch a thread",
        "Open a loop, or note that it was talked about. A status changes only on what the user said (said); silence"
        " never moves one. What you leave out stays as it was.",
        TouchThread,
        touch_thread,
        reads_only=False,
        destructive=True,
    ),
    Tool(
        "list_threads",
        "List threads",
        "Open loops, the longest silent first. Quiet ones are stale pictures to ask about, never verdicts.",
        ListThreads,
        list_threads,
        reads_only=True,
    ),
)
