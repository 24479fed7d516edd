"""log_friction."""

from __future__ import annotations

from pydantic import Field

from brain.services import friction
from brain.tools.common import Arguments, Brain, Result, Scope
from brain.tools.protocol import AnyTool, Tool


class LogFriction(Arguments):
    """A failure with its evidence."""

    happened: str = Field(description="What happened")
    expected: str = Field(description="What was expected")
    artifact: str = Field(description="Verbatim output, a tool result or a file line that shows it")
    category: str = Field(default="other", description="tool, memory, instructions, environment or other")
    scope: Scope = ""


async def log_friction(brain: Brain, given: LogFriction) -> Result:
    """Log a failure."""
    row, new = await brain.write(
        lambda work: friction.log(
            work,
            happened=given.happened,
            expected=given.expected,
            artifact=given.artifact,
            category=given.category,
            scope=given.scope,
        )
    )
    outcome = "created" if new else "unchanged"
    text = f"Logged friction:{row.id} for a human to settle." if new else f"Already logged as friction:{row.id}."
    return Result(text, {"outcome": outcome, "ref": f"friction:{row.id}"})


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "log_friction",
        "Log friction",
        "Log a failure of your own or of your tools, with a verbatim artifact. A human reads it; no tool does.",
        LogFriction,
        log_friction,
        reads_only=False,
        idempotent=True,
    ),
)
