"""The scripted walk-through: an MCP client that talks to a real server process over stdio, about an invented user."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from mcp import Client, MCPError, StdioServerParameters
from mcp_types import Implementation

from brain import config
from brain.errors import BrainError, Refused
from brain.names import parse_scope
from brain.render import counted
from brain.runtime import Brain, open_brain, run
from demo.conversation import Conversation, Unexpected
from demo.screen import Screen
from demo.seed import fill
from demo.steps import STEPS
from demo.story import PROJECT, Calendar, story

SERVER: Final = (sys.executable, "-c", "from brain.cli.main import run; run()", "serve")
"""What `brain serve` runs, also where that script is not installed."""

CLIENT: Final = "demo-assistant"

_SETTINGS: Final[Mapping[str, Any]] = {
    "project": PROJECT,
    "client": "",
    "session": "",
    "model": "",
    "read_only": False,
    "write_scope": "all",
    "time_zone": "UTC",
    "language": "english",
    "embedder": "local-hash",
    "embed_model": "",
    "embed_dimensions": "",
    "session_chars": 24_000,
    "auto_migrate": True,
}
"""What the story relies on, whatever the user's own settings say."""

_ANSWER_SECONDS: Final = 60.0
_NAMES: Final = 20


def main(plain: bool = False, *, seed_only: bool = False) -> int:
    """Fill a new namespace with the story and walk through it; return the exit code.

    plain leaves out colours. seed_only stops when the namespace is filled.
    """
    screen = Screen(plain=plain)
    failure = ""
    try:
        run(lambda: _demo(screen, seed_only=seed_only))
    except* (BrainError, Unexpected) as failures:
        failure = _first(failures)
    except* (MCPError, OSError) as failures:
        failure = f"the server process did not answer: {_first(failures)}"
    if failure:
        screen.failed(failure)
    return 1 if failure else 0


async def _demo(screen: Screen, *, seed_only: bool) -> None:
    began = time.monotonic()
    now = datetime.now(UTC)
    screen.say("Layered memory: the walk-through", "bold")
    screen.say(
        "Juniper Vale is a freelance analyst. She, her clients and every figure are invented. An assistant has kept her"
        " memory for five months; today it talks with her again, over MCP, with a real server process."
    )
    brain, writes = await _filled(now)
    try:
        namespace = brain.caller.namespace
        where = "the database of DATABASE_URL" if brain.settings.database_url else "the embedded Postgres"
        screen.say(f"Filled the new namespace {namespace} in {where} with {writes} dated writes.")
        if not seed_only:
            checks = await _walk(screen, namespace, Calendar(now.date()))
            _summarise(screen, checks, time.monotonic() - began)
        _farewell(screen, namespace)
    finally:
        await brain.close()


async def _filled(now: datetime) -> tuple[Brain, int]:
    """Return the first namespace of this second that is free, filled, with the number of writes."""
    entries = story(now.date())
    stem = f"demo-{now:%Y%m%d-%H%M%S}"
    for number in range(1, _NAMES):
        name = stem if number == 1 else f"{stem}-{number}"
        settings = config.load(**{**_SETTINGS, "namespace": name, "client": "import"})
        brain = open_brain(settings, origin="import", project=parse_scope(PROJECT, field="project"))
        try:
            return brain, await fill(brain, entries)
        except Refused:
            await brain.close()
        except BaseException:
            await brain.close()
            raise
    raise Refused("Many demos start in this very second; try again.")


async def _walk(screen: Screen, namespace: str, calendar: Calendar) -> list[int]:
    """Go through the steps with a client of the server process; return how many expectations held in each."""
    server = StdioServerParameters(command=SERVER[0], args=list(SERVER[1:]), env=_environment(namespace))
    who = Implementation(name=CLIENT, version="1")
    passed = []
    async with Client(server, client_info=who, read_timeout_seconds=_ANSWER_SECONDS) as client:
        talk = Conversation(client, screen, calendar)
        for number, step in enumerate(STEPS, 1):
            before = talk.checks
            screen.heading(f"{number}  {step.title}")
            try:
                await step.run(talk)
            except LookupError as error:
                raise Unexpected(f"an answer in this step lacks {error}.") from error
            passed.append(talk.checks - before)
            screen.shows(step.shows, passed[-1])
    return passed


def _environment(namespace: str) -> dict[str, str]:
    """This process's environment, with the story's settings over the user's own."""
    given = {f"BRAIN_{name.upper()}": str(value) for name, value in {**_SETTINGS, "namespace": namespace}.items()}
    return config.environment_without("BRAIN_NAMESPACE") | given


def _summarise(screen: Screen, checks: Sequence[int], seconds: float) -> None:
    screen.heading("Summary")
    for number, (step, passed) in enumerate(zip(STEPS, checks, strict=True), 1):
        screen.line(f"{number:>2}  {step.title:<46}{counted(passed, 'check')} passed", "")
    screen.say(f"All {len(STEPS)} steps held, {sum(checks)} checks, {seconds:.1f} seconds.", "bold green")


def _farewell(screen: Screen, namespace: str) -> None:
    script = _script()
    screen.say("")
    screen.say("Look around in it; nothing was deleted, and your own brain was not touched:")
    screen.line(f"{script} --namespace {namespace} session --project {PROJECT.removeprefix('project:')}")
    screen.say("Connect Claude Code to your own brain:")
    screen.line(f"claude mcp add brain -- {script} serve")


def _script() -> str:
    """The brain command as a shell takes it: the one of this environment, else the one on the path."""
    beside = Path(sys.executable).with_name("brain")
    return shlex.quote(str(beside) if beside.exists() else shutil.which("brain") or "brain")


def _first(failures: BaseExceptionGroup[BaseException]) -> str:
    """Return the message of the first failure in a group."""
    failure = failures.exceptions[0]
    if isinstance(failure, BaseExceptionGroup):
        return _first(failure)
    return f"{failure} {failure.hint}".rstrip() if isinstance(failure, BrainError) else str(failure)


if __name__ == "__main__":
    sys.exit(main())
