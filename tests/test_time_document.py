"""docs/time.md: its examples run, and its pictures are what a brain answers."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from psycopg.conninfo import make_conninfo

from brain.runtime import Brain
from brain.times import visible
from scripts import time_figures
from scripts.time_figures import Story

DOCUMENT = Path(__file__).parent.parent / "docs" / "time.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
async def story(dsn: str) -> Story:
    """The history of the pictures, in a database of its own: its clock is set."""
    return await time_figures.tell(make_conninfo(dsn))


async def test_the_examples_of_the_document_run_in_their_order(brain: Brain) -> None:
    blocks = BLOCK.findall(DOCUMENT.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"brain": brain}
    for number, block in enumerate(blocks):
        code = compile(block, f"block {number} of time.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(code, names)
        if inspect.isawaitable(running):
            await running
    assert len(blocks) == 4


async def test_the_pictures_are_those_that_the_script_draws(story: Story) -> None:
    drawn = time_figures.pictures(story)
    kept = {path.name: path.read_text(encoding="utf-8") for path in time_figures.FOLDER.glob("time-*.svg")}
    assert kept == drawn
    for text in drawn.values():
        assert ElementTree.fromstring(text).tag.endswith("svg")


async def test_every_answer_in_the_pictures_is_the_one_of_the_rule(story: Story) -> None:
    log = [bar.assertion for bar in story.bars]
    labels = {bar.assertion.doc: bar.label for bar in story.bars}
    assert len(story.answers) > 60
    for (as_of, valid_at), text in story.answers.items():
        expected = visible(log, as_of, valid_at)
        assert text == (labels[expected.doc] if expected else "")
    for rectangle in story.visible:
        found = visible(log, rectangle.known_from, rectangle.valid.start or time_figures.FIRST)
        assert found is not None
        assert found.doc == rectangle.doc
