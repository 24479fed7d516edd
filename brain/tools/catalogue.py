"""All tools in the order in which clients list them, beside the words that teach the protocol on connect."""

from __future__ import annotations

from brain.tools import claims, friction, history, memory, pins, recall, records, rules, session, threads, wiki
from brain.tools.instructions import INSTRUCTIONS
from brain.tools.protocol import AnyTool

__all__ = ["ALL", "INSTRUCTIONS"]

ALL: tuple[AnyTool, ...] = (
    *session.TOOLS,
    *rules.TOOLS,
    *pins.TOOLS,
    *threads.TOOLS,
    *wiki.TOOLS,
    *memory.TOOLS,
    *recall.TOOLS,
    *records.TOOLS,
    *friction.TOOLS,
    *claims.TOOLS,
    *history.TOOLS,
)
