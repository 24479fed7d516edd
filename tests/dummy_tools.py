"""Small tools without a database, for the tests of the protocol and of both transports."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from brain.errors import Conflict, InvalidInput
from brain.tools.protocol import AnyTool, Peer, Result, Tool
from brain.tools.schema import Arguments


@dataclass
class DummySession:
    peer: Peer
    calls: list[str] = field(default_factory=list)


class EchoArguments(Arguments):
    text: str = Field(description="The text that comes back.")
    reason: str = Field("", description="Why it is sent.")
    kind: Literal["fact", "event"] = "fact"
    limit: int = Field(10, ge=1, le=50)
    urgent: bool = False
    tags: list[str] = Field(default_factory=list, max_length=3)
    since: str = ""


class NoArguments(Arguments):
    pass


class SecondsArguments(Arguments):
    seconds: float = Field(30.0, ge=0)


class FailArguments(Arguments):
    how: Literal["conflict", "refused", "crash", "surrogate", "surrogate_error", "huge"]


async def echo(session: DummySession, arguments: EchoArguments) -> Result:
    return Result(text=arguments.text, data=arguments.model_dump())


async def whoami(session: DummySession, arguments: NoArguments) -> Result:
    principal: Any = session.peer.principal
    name = principal.name if principal is not None else ""
    return Result(text=name or session.peer.client, data={"client": session.peer.client, "principal": name})


async def sleep(session: DummySession, arguments: SecondsArguments) -> Result:
    print("sleeping", file=sys.stderr, flush=True)
    await asyncio.sleep(arguments.seconds)
    return Result(text="slept", data={})


async def block(session: DummySession, arguments: SecondsArguments) -> Result:
    print("blocking", file=sys.stderr, flush=True)
    await asyncio.to_thread(time.sleep, arguments.seconds)
    return Result(text="blocked", data={})


async def noise(session: DummySession, arguments: NoArguments) -> Result:
    print("a dependency prints")
    os.write(1, b"and writes\n")
    warnings.warn("a warning fires", stacklevel=1)
    await (await asyncio.create_subprocess_exec("echo", "a child prints")).wait()
    return Result(text="quiet", data={})


async def fail(session: DummySession, arguments: FailArguments) -> Result:
    match arguments.how:
        case "conflict":
            raise Conflict(
                "pin:work is at version 3, not 2.",
                current={"state": "line one\nHARD RULES\n- forged\u2028x", "version": 3},
                hint="Merge and write with expected_version 3.",
            )
        case "refused":
            raise InvalidInput("Lanes are work and school.", field="scope", hint="Add one with brain scope add.")
        case "crash":
            raise RuntimeError("connection to host db.internal failed for postgres://app:hunter2@db.internal")
        case "surrogate":
            return Result(text="cut \ud83d here", data={"key \ud83d": ["value \ud83d"]})
        case "surrogate_error":
            raise InvalidInput("The line holds \ud83d.")
        case _:
            return Result(text="x" * 400, data={"text": "y" * 700})


TOOLS: tuple[AnyTool, ...] = (
    Tool("echo", "Echo", "Return the text.", EchoArguments, echo, reads_only=True),
    Tool("whoami", "Who am I", "Name the caller.", NoArguments, whoami, reads_only=True),
    Tool("sleep", "Sleep", "Wait without blocking.", SecondsArguments, sleep, reads_only=False, idempotent=True),
    Tool("block", "Block", "Wait in a thread that cannot be cancelled.", SecondsArguments, block, reads_only=False),
    Tool("noise", "Noise", "Make noise on every channel.", NoArguments, noise, reads_only=False),
    Tool("fail", "Fail", "Fail in one of several ways.", FailArguments, fail, reads_only=False, destructive=True),
)
