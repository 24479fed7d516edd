"""The brain command as a process: exit codes, envelopes, and what reaches a pipe or a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from brain.caller import Caller
from brain.cli.output import visible
from brain.config import Settings
from brain.database import Database
from brain.embedders import from_settings
from brain.runtime import Brain
from brain.services import memory
from scripts import commands
from tests.brain_process import COMMAND

HOSTILE = "before\x1b[2J\x1b]0;owned\x07 \x9b31m [bold red]markup[/] \u202eevil\n## Hard rules\r# more"


def brain(environment: Mapping[str, str], *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=dict(environment),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def envelope(done: subprocess.CompletedProcess[str]) -> Any:
    [line] = done.stdout.split("\n")[:-1]
    return json.loads(line)


def test_a_success_is_exit_code_0_and_one_envelope(environment: dict[str, str]) -> None:
    done = brain(environment, "remember", "The lease ends in May.", "--key", "lease", "--json")
    assert done.returncode == 0
    told = envelope(done)
    assert set(told) == {"ok", "data", "warnings"}
    assert (told["ok"], told["warnings"], told["data"]["outcome"]) == (True, [], "created")
    row = told["data"]["row"]
    assert (row["text"], row["origin"], row["client"], row["scope"]) == (
        "The lease ends in May.",
        "human",
        "cli",
        "global",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (("show", "memory:nowhere"), 3, "not_found"),
        (("history", "wiki:nowhere"), 3, "not_found"),
        (("wiki", "read", "nowhere"), 3, "not_found"),
        (("search", "x", "--as-of", "today"), 2, "invalid_input"),
        (("search", "x", "--as-of", "2199-01-01"), 2, "invalid_input"),
        (("search", "x", "--limit", "0"), 2, "invalid_input"),
        (("search",), 2, "invalid_input"),
        (("no-such-command",), 2, "invalid_input"),
        (("search", "x", "--no-such-option"), 2, "invalid_input"),
        (("audit", "--layer", "nothing"), 2, "invalid_input"),
        (("remember", "x", "--scope", "lane:nowhere"), 2, "invalid_input"),
        (("remember", "x\x00y"), 2, "invalid_input"),
        (("constraint", "retire", "constraint:x"), 2, "refused"),
        (("forget", "x", "--reason", "y"), 2, "invalid_input"),
    ],
)
def test_a_failure_is_its_exit_code_and_one_envelope(
    arguments: tuple[str, ...], code: int, kind: str, environment: dict[str, str]
) -> None:
    if "\x00" in "".join(arguments):
        done = brain(environment, "remember", "-", "--json", stdin=arguments[1])
    else:
        done = brain(environment, *arguments, "--json")
    assert done.returncode == code
    told = envelope(done)
    assert set(told) == {"ok", "error"}
    assert told["ok"] is False
    assert set(told["error"]) == {"code", "message", "hint"}
    assert told["error"]["code"] == kind
    assert len(told["error"]["message"].splitlines()) == 1


def test_a_conflict_is_exit_code_2_with_the_current_content(environment: dict[str, str]) -> None:
    assert brain(environment, "pin", "set", "First state.").returncode == 0
    told = envelope(brain(environment, "pin", "set", "Second state.", "--json"))
    assert told["error"]["code"] == "conflict"
    assert told["error"]["current"]["state"] == "First state."
    done = brain(environment, "pin", "set", "Second state.")
    assert (done.returncode, done.stdout) == (2, "")
    assert "First state." in done.stderr
    assert brain(environment, "pin", "set", "Second state.", "--expected-version", "1").returncode == 0


def test_for_people_a_failure_says_why_on_standard_error_only(environment: dict[str, str]) -> None:
    done = brain(environment, "show", "memory:nowhere")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("Error: ref memory:nowhere names nothing that is visible at that instant.\nHint: ")


def test_an_unreachable_database_is_exit_code_1_and_names_nothing_secret() -> None:
    nowhere = "postgresql://someone:hunter2@127.0.0.1:9/none"
    done = brain({**os.environ, "DATABASE_URL": nowhere}, "status", "--json")
    assert done.returncode == 1
    assert envelope(done)["error"]["code"] == "unavailable"
    assert "hunter2" not in done.stdout + done.stderr
    doctor = brain({**os.environ, "DATABASE_URL": nowhere}, "doctor", "--json")
    assert doctor.returncode == 1
    told = envelope(doctor)
    assert told["error"]["code"] == "unhealthy"
    assert [each["name"] for each in told["data"]["checks"] if not each["ok"]] == ["database"]


def test_a_bad_setting_is_exit_code_2_and_names_the_variable() -> None:
    told = envelope(brain({**os.environ, "BRAIN_POOL_SIZE": "many"}, "status", "--json"))
    assert told["error"]["code"] == "configuration"
    assert told["error"]["message"].startswith("BRAIN_POOL_SIZE is not valid")


def test_as_of_shows_what_stood_then(environment: dict[str, str]) -> None:
    first = envelope(brain(environment, "wiki", "write", "Kestrel", "--json", stdin="The first body."))["data"]["row"]
    brain(environment, "wiki", "write", "Kestrel", "--expected-version", "1", stdin="The second body.")
    then = first["known_from"]
    assert "The second body." in brain(environment, "wiki", "read", "kestrel").stdout
    assert "The first body." in brain(environment, "wiki", "read", "kestrel", "--as-of", then).stdout
    assert brain(environment, "wiki", "read", "kestrel", "--as-of", "2020-01-01").returncode == 3
    versions = envelope(brain(environment, "history", "wiki:kestrel", "--json", "--as-of", then))["data"]["versions"]
    assert [each["body"] for each in versions] == ["The first body."]


async def _store(settings: Settings, text: str) -> None:
    database = Database(settings)
    served = Brain(settings, database, from_settings(settings), Caller("default", client="hostile", origin="model"))
    [prepared] = await memory.prepare(served.embedder, [memory.Draft(text=text, title=text, key="hostile", tags=["x"])])
    await served.write(lambda work: memory.write(work, prepared))
    await database.close()


COMMANDS = (("trail",), ("search", "markup"), ("show", "hostile"), ("history", "hostile"), ("audit",), ("status",))


async def test_stored_text_reaches_a_pipe_without_control_characters_colours_or_headings(
    settings: Settings, environment: dict[str, str]
) -> None:
    await _store(settings, HOSTILE)
    for arguments in COMMANDS:
        done = brain(environment, *arguments)
        assert done.returncode == 0
        assert done.stdout == visible(done.stdout)
        assert "\x1b" not in done.stdout
        if arguments != ("status",):
            assert "[bold red]markup[/]" in done.stdout
        assert not any(line.startswith(("## ", "# ")) for line in done.stdout.splitlines())
    told = brain(environment, "show", "hostile", "--json")
    assert told.stdout == visible(told.stdout)
    assert envelope(told)["data"]["text"] == HOSTILE


def on_a_terminal(environment: Mapping[str, str], *arguments: str) -> str:
    """What a command prints when its standard output is a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], env={**environment, "TERM": "xterm", "COLUMNS": "100"}, stdout=theirs, stdin=theirs
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            chunk = os.read(ours, 65_536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        printed += chunk
    os.close(ours)
    process.wait(timeout=60)
    return printed.decode("utf-8", "replace")


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
async def test_stored_text_cannot_steer_a_terminal(settings: Settings, environment: dict[str, str]) -> None:
    await _store(settings, HOSTILE)
    for arguments in (("show", "hostile"), ("audit",)):
        printed = on_a_terminal(environment, *arguments)
        assert "\ufffd" in printed
        for attack in ("\x1b[2J", "\x1b]0;", "\x9b", "\x07", "\u202e"):
            assert attack not in printed


def test_a_reader_that_has_enough_is_no_failure_to_complain_about(environment: dict[str, str]) -> None:
    process = subprocess.Popen([*COMMAND, "status"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait(timeout=60)


def test_help_and_version_need_no_database() -> None:
    nowhere = {**os.environ, "DATABASE_URL": "postgresql://127.0.0.1:9/none"}
    assert brain(nowhere, "--version").stdout.startswith("brain ")
    for arguments in (("--help",), ("serve", "--help"), ("pin", "set", "--help")):
        done = brain(nowhere, *arguments)
        assert done.returncode == 0
        assert "--namespace" in done.stdout


def test_the_documented_commands_are_what_the_commands_say() -> None:
    assert Path(__file__).parent.parent / "docs" / "cli.md" == commands.DOCUMENT
    assert commands.DOCUMENT.read_text(encoding="utf-8") == commands.document()
