"""set_pin."""

from __future__ import annotations

from pydantic import Field

from brain.services import pins
from brain.tools.common import Arguments, Brain, Cites, Expected, Result, Scope, write_result
from brain.tools.protocol import AnyTool, Tool


class SetPin(Arguments):
    """Where a scope stands."""

    state: str = Field(description="Where it stands now")
    next: str = Field(default="", description="What is next")
    blocked_on: str = Field(default="", description="What it waits for")
    scope: Scope = ""
    cites: Cites = []
    expected_version: Expected = 0


async def set_pin(brain: Brain, given: SetPin) -> Result:
    """Rewrite a pin."""
    row, changed = await brain.write(
        lambda work: pins.write(
            work,
            state=given.state,
            next_step=given.next,
            blocked_on=given.blocked_on,
            scope=given.scope,
            cites=given.cites,
            expected_version=given.expected_version,
        )
    )
    return write_result(pins.LAYER, row, ("rewritten" if row.version > 1 else "created") if changed else "unchanged")


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "set_pin",
        "Set the pin of a scope",
        "Rewrite where a scope stands and what is next: one slot a scope (default: this project). Pass the version that"
        " you read; a conflict returns the current content to merge with.",
        SetPin,
        set_pin,
        reads_only=False,
        destructive=True,
        idempotent=True,
    ),
)
