"""The documents say what is so: links lead somewhere, names exist, examples run, figures say where they come from."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from brain.cli import serve as serving
from brain.cli.app import app
from brain.config import Settings
from brain.ranking import adjustment
from brain.services import retrieval, search
from brain.tools import stdio
from brain.tools.catalogue import ALL
from brain.tools.envelope import MESSAGE_LIMIT
from brain.tools.prompts import _PROMPTS
from brain.tools.server import RESULT_LIMIT
from brain.trust import Layer
from brain.web.limits import Rate
from demo.steps import STEPS
from tests import factories

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TOOLS = {tool.name: tool for tool in ALL}

_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_BUILT = re.compile(r"<!-- not built -->.*?<!-- /not built -->", re.DOTALL)
_MEASURED = re.compile(r"\d ?(?:ms|MB|%|MiB|seconds|rows per second|queries per second)\b")
_SOURCE = re.compile(r"`python -m benchmarks\.|python -m benchmarks\.|`make |`[A-Za-z_]+` in `|`brain ")


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def prose_of(path: Path) -> str:
    """A document without its fenced blocks."""
    return _FENCE.sub("", text_of(path))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path, language: str) -> list[str]:
    return [match["body"] for match in _FENCE.finditer(text_of(path)) if match["language"] == language]


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#{1,6} (.+)$", prose_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def code_of(path: Path) -> Iterator[str]:
    """What a document shows as code: spans, indented blocks and fenced shell, one line each."""
    prose = prose_of(path)
    for span in re.findall(r"`([^`]+)`", prose):
        yield " ".join(span.split())
    yield from (line.strip() for line in re.findall(r"^ {4}(\S.*)$", prose, re.MULTILINE))
    for block in (*blocks(path, "sh"), *blocks(path, "bash")):
        yield from block.splitlines()


def command_of(words: list[str]) -> tuple[click.Command | None, list[str]]:
    """The command that words name, and the words after its name."""
    found: Any = typer.main.get_command(app)
    rest = list(words)
    while rest and isinstance(found, click.Group | typer.core.TyperGroup):
        following = found.commands.get(rest[0])
        if following is None:
            return (None, rest) if found.name == "brain" or not rest[0].startswith("-") else (found, rest)
        found, rest = following, rest[1:]
    return found, rest


def options_of(command: Any) -> set[str]:
    if command.name == "serve":
        return {option for action in serving.parser()._actions for option in action.option_strings}
    return {option for parameter in command.params for option in parameter.opts} | {"--help"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_link_within_the_project_leads_somewhere(path: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(path)):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, anchor = target.partition("#")
        aimed = (path.parent / file).resolve() if file else path
        if not aimed.exists() or (anchor and anchor not in anchors(aimed)):
            broken.append(target)
    assert broken == []


def test_the_readme_leads_to_every_document() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#\s]+)", text_of(ROOT / "README.md")))
    assert linked == {name_of(path) for path in (ROOT / "docs").iterdir() if path.suffix in (".md", ".sql")}


def test_the_readme_names_every_tool_and_no_other() -> None:
    paragraph = re.search(r"^Tools: (.*?)\n\n", text_of(ROOT / "README.md"), re.MULTILINE | re.DOTALL)
    assert paragraph is not None
    assert sorted(re.findall(r"`(\w+)`", paragraph[1])) == sorted(TOOLS)


def test_what_the_readme_calls_not_built_is_not_there() -> None:
    listed = _NOT_BUILT.search(text_of(ROOT / "README.md"))
    assert listed is not None
    commands, _, rest = listed[0].partition(";")
    top = typer.main.get_command(app)
    assert isinstance(top, click.Group | typer.core.TyperGroup)
    assert set(re.findall(r"`([a-z-]+)`", commands)) & set(top.commands) == set()
    named = set(re.findall(r"`([a-z_]+)`", rest))
    assert named & (set(TOOLS) | set(search.MODES)) == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_command_that_a_document_shows_exists_with_its_options(path: Path) -> None:
    wrong = []
    for line in code_of(path):
        if not re.match(r"brain [a-z]", line):
            continue
        command, rest = command_of(line.split()[1:])
        given = {word.partition("=")[0] for word in rest if re.match(r"--[a-z]", word)}
        if command is None or given - options_of(command):
            wrong.append(line)
    assert wrong == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_make_target_and_module_that_a_document_shows_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
    shown = {match[1] for line in code_of(path) if (match := re.match(r"make ([a-z][a-z-]*)", line))}
    assert shown - targets == set()
    modules = set(re.findall(r"python -m (benchmarks\.\w+)", re.sub(r"\s+", " ", text_of(path))))
    assert {name for name in modules if importlib.util.find_spec(name) is None} == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_setting_that_a_document_names_exists(path: Path) -> None:
    known = {str(field.validation_alias or f"BRAIN_{name.upper()}") for name, field in Settings.model_fields.items()}
    named = set(re.findall(r"\bBRAIN_[A-Z_]*[A-Z]\b", text_of(path)))
    assert named - known == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_source_file_that_a_document_names_exists(path: Path) -> None:
    named = {
        match[0]
        for span in re.findall(r"`([^`\s]+)`", prose_of(path))
        if (match := re.fullmatch(r"(?:brain|tests|demo|benchmarks|scripts|migrations|requirements)/[\w./-]+", span))
    }
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_measured_figure_stands_beside_what_gives_it(path: Path) -> None:
    sections = re.split(r"^## ", prose_of(path), flags=re.MULTILINE)
    unexplained = [
        section.partition("\n")[0] for section in sections if _MEASURED.search(section) and not _SOURCE.search(section)
    ]
    assert unexplained == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_configuration_examples_can_be_parsed(path: Path) -> None:
    for block in blocks(path, "json"):
        json.loads(block)
    for block in blocks(path, "toml"):
        tomllib.loads(block)


def test_the_excerpt_of_the_demo_has_its_steps() -> None:
    excerpt = blocks(ROOT / "README.md", "text")[0]
    steps = {number: STEPS[int(number) - 1] for number in re.findall(r"^(\d+)  \S", excerpt, re.MULTILINE)}
    flowing = " ".join(excerpt.split())
    assert len(steps) == 2
    for number, step in steps.items():
        assert f"{number}  {step.title}" in excerpt
        assert f"Shows: {step.shows}" in flowing


@pytest.mark.parametrize(
    ("document", "phrase", "value"),
    [
        ("docs/failure-modes.md", "over 4 MiB (`MESSAGE_LIMIT`", MESSAGE_LIMIT == 4 * 2**20),
        ("docs/failure-modes.md", "over 500 000 characters (`RESULT_LIMIT`", RESULT_LIMIT == 500_000),
        ("docs/failure-modes.md", "more than 50 candidates in one leg", retrieval.DEPTH == 50),
        ("docs/security.md", "20 requests a second on average for the token, 100 at once", Rate() == Rate(20.0, 100)),
        ("docs/architecture.md", "two seconds to end (`EXIT_SECONDS`", stdio.EXIT_SECONDS == 2),
        ("docs/why.md", "(24000 characters unless set)", Settings.model_fields["session_chars"].default == 24_000),
    ],
)
def test_a_limit_in_the_documents_is_the_one_in_the_code(document: str, phrase: str, value: bool) -> None:
    assert phrase in " ".join(text_of(ROOT / document).split())
    assert value


def test_the_bounds_of_the_re_rank_are_the_documented_ones() -> None:
    assert "stays between 0.95 and 1.03" in text_of(ROOT / "docs/trust-and-staleness.md")
    least = adjustment(kind="note", importance=1, confidence=0, age_days=1e9)
    most = adjustment(kind="note", importance=5, confidence=1, age_days=0)
    assert (least, most) == (pytest.approx(0.95), pytest.approx(1.03))


def test_the_trust_order_is_the_documented_one() -> None:
    order = " > ".join(layer.value for layer in Layer)
    assert f"**{order}**" in text_of(ROOT / "docs/trust-and-staleness.md")


def test_the_protocols_name_every_prompt() -> None:
    opening = text_of(ROOT / "docs/protocols.md").partition("## Start")[0]
    assert set(re.findall(r"`(\w+)`", opening)) == set(_PROMPTS)


async def test_the_tool_calls_of_the_protocols_run_in_their_order(module_dsn: str) -> None:
    brain = factories.brain_on(module_dsn)
    called = {}
    try:
        for block in blocks(ROOT / "docs/protocols.md", "json"):
            call = json.loads(block)
            called[call["tool"]] = await TOOLS[call["tool"]].answer(brain, call["arguments"])
    finally:
        await brain.close()
    assert called["weigh_claims"].data["outcome"] == "contested"
    assert called["write_memory"].data["outcome"] == "created"
    assert called["forget_memory"].data["outcome"] == "forgotten"
    assert [each["tombstone"] for each in called["get_history"].data["versions"]] == [False, False, True]


@pytest.mark.parametrize(
    "command",
    sorted(
        {line for path in DOCUMENTS for line in re.findall(r"^ {4}(brain (?:doctor|migrate))$", text_of(path), re.M)}
    ),
)
def test_a_command_that_needs_nothing_runs(command: str, environment: dict[str, str]) -> None:
    run = [sys.executable, "-c", "from brain.cli.main import run; run()", *command.split()[1:]]
    done = subprocess.run(run, check=False, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_brain_survives_the_documented_dump_and_restore(tmp_path: Path) -> None:
    operations = text_of(ROOT / "docs/operations.md")
    snippets = dict(re.findall(r"<!-- tested: (\w+) -->\n```python\n(.*?)^```$", operations, re.MULTILINE | re.DOTALL))
    command = "from brain.cli.main import run; run()"

    def python(home: str, code: str, *arguments: str) -> str:
        environment = {**os.environ, "BRAIN_HOME": str(tmp_path / home)}
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            check=False, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    python("one", command, "remember", "The lamp is serviced in spring.", "--key", "lamp", "--scope", "global")
    python("one", snippets["dump"])
    python("two", snippets["restore"])
    assert "The lamp is serviced in spring." in python("two", command, "show", "lamp")
    assert "FAILED" not in python("two", command, "doctor")
