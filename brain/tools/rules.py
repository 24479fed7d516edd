"""set_constraint, retire_constraint."""

from __future__ import annotations

from pydantic import Field

from brain.services import constraints
from brain.tools.common import Arguments, Brain, Result, Said, Scope, write_result
from brain.tools.protocol import AnyTool, Tool


class SetConstraint(Arguments):
    """A standing rule on the user's word."""

    rule: str = Field(description="The rule, one sentence")
    said: Said
    scope: Scope = "global"
    reason: str = Field(default="", description="Why, if the user said so")


async def set_constraint(brain: Brain, given: SetConstraint) -> Result:
    """Add a rule."""
    row, new = await brain.write(
        lambda work: constraints.add(work, rule=given.rule, said=given.said, scope=given.scope, reason=given.reason)
    )
    return write_result(constraints.LAYER, row, "created" if new else "unchanged")


class RetireConstraint(Arguments):
    """A rule that the user took back."""

    ref: str = Field(description="constraint:<id>")
    said: Said
    reason: str = Field(default="", description="Why, if the user said so")


async def retire_constraint(brain: Brain, given: RetireConstraint) -> Result:
    """Retire a rule."""
    row, changed = await brain.write(
        lambda work: constraints.retire(work, ref=given.ref, said=given.said, reason=given.reason)
    )
    return write_result(constraints.LAYER, row, "retired" if changed else "unchanged")


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "set_constraint",
        "Add a hard rule",
        "Add a standing rule that is shown in every session. Only when the user stated it: quote their words in said.",
        SetConstraint,
        set_constraint,
        reads_only=False,
        idempotent=True,
    ),
    Tool(
        "retire_constraint",
        "Retire a hard rule",
        "Take a rule out of force. Only when the user said so: quote their words in said. It stays in history.",
        RetireConstraint,
        retire_constraint,
        reads_only=False,
        destructive=True,
        idempotent=True,
    ),
)
