"""get_session_continuation, get_status."""

from __future__ import annotations

from pydantic import Field

from brain.render import counted
from brain.services import session, status
from brain.tools.common import Arguments, AsOf, Brain, Period, Result, Scope
from brain.tools.protocol import AnyTool, Tool


class SessionStart(Arguments):
    """Which session start to show."""

    scope: Scope = ""
    as_of: AsOf = ""
    since: Period = ""
    max_chars: int = Field(default=0, ge=0, le=500_000, description="Budget in characters; 0 for the usual one")


async def get_session_continuation(brain: Brain, given: SessionStart) -> Result:
    """Return the session start."""
    budget = given.max_chars or brain.settings.session_chars
    payload = await brain.read(
        lambda work: session.start(work, scope=given.scope, since=given.since, budget=budget), as_of=given.as_of
    )
    return Result(payload.text, payload.data)


class Status(Arguments):
    """Nothing to say beyond the instant."""

    as_of: AsOf = ""


async def get_status(brain: Brain, given: Status) -> Result:
    """Return what the brain holds."""
    found = await brain.read(lambda work: status.overview(work, brain.embedder), as_of=given.as_of)
    rows = ", ".join(f"{count} {name}" for name, count in found["visible_rows"].items())
    lines = [
        f"Brain {found['namespace']} as of {found['as_of']}: {rows}.",
        f"Bound to {found['project'] or 'no project'}; "
        + ("read-only." if found["read_only"] else f"may write: {found['write_scope']}."),
        f"Model {found['embedding_model']}; {counted(found['facts_without_vector'], 'fact')} without a vector.",
        f"Version {found['version']}, schema {found['schema']}, PostgreSQL {found['postgres']}, "
        f"pgvector {found['pgvector']}, days in {found['time_zone']}.",
    ]
    return Result("\n".join(lines), found)


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "get_session_continuation",
        "Session start",
        "Call first in every session: the user's hard rules, where each scope stands, quiet threads, CORE pages and the"
        " wiki index. as_of replays a past session start; since adds what others wrote after an instant.",
        SessionStart,
        get_session_continuation,
        reads_only=True,
    ),
    Tool(
        "get_status",
        "Status",
        "What this brain holds, what this process is bound to and may do, and whether facts wait for a vector.",
        Status,
        get_status,
        reads_only=True,
    ),
)
