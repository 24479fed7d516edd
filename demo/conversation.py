"""The assistant's side of the walk-through: tool calls over MCP, and expectations that stop it when they fail."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from demo.screen import Screen
from demo.story import Calendar


class Unexpected(Exception):
    """The brain did not answer as the walk-through says that it does."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered: the text for the model, and the same as structured content."""

    text: str
    data: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of both, byte for byte as they came."""
        return hashlib.sha256(f"{self.text}\0{json.dumps(self.data, ensure_ascii=False)}".encode()).hexdigest()

    def first(self, section: str) -> Mapping[str, Any]:
        """Return the first item of a list; raise Unexpected when the list is empty."""
        if not self.data[section]:
            raise Unexpected(f"the answer has no {section}.")
        return dict(self.data[section][0])

    def row(self, section: str, ref: str) -> Mapping[str, Any]:
        """Return an item of a session start by its ref; raise Unexpected when it is not there."""
        for item in self.data[section]:
            if item["ref"] == ref:
                return dict(item)
        raise Unexpected(f"{ref} is not among the {section} of the session start.")


@dataclass(slots=True)
class Conversation:
    """One session of an assistant with its brain, and what it has learned so far."""

    client: Client
    screen: Screen
    calendar: Calendar
    answers: dict[str, Answer] = field(default_factory=dict)
    """Answers that a later step comes back to, by a name."""
    checks: int = 0

    async def call(self, tool: str, *, most: int = 12, around: str = "", keep: str = "", **arguments: Any) -> Answer:
        """Call a tool and show call and answer, the latter shortened; raise Unexpected when it is refused.

        keep remembers the answer under a name.
        """
        result = await self._send(tool, arguments)
        text = _text(result)
        self.screen.answer(text, most=most, around=around)
        if result.is_error:
            raise Unexpected(f"{tool} was refused: {text}")
        answer = Answer(text, result.structured_content or {})
        if keep:
            self.answers[keep] = answer
        return answer

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that is to refuse, show both, and return the refusal; raise Unexpected when it accepts."""
        result = await self._send(tool, arguments)
        text = _text(result)
        self.screen.answer(text, most=12)
        if not result.is_error:
            raise Unexpected(f"{tool} accepted what it should refuse.")
        return text

    def expect(self, held: object, claim: str) -> None:
        """Raise Unexpected unless the claim held."""
        if not held:
            raise Unexpected(f"this was to hold, and does not: {claim}.")
        self.checks += 1

    async def _send(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        self.screen.call(tool, arguments)
        return await self.client.call_tool(tool, arguments)


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))
