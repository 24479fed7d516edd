"""The honesty floor measured on a brain: what is asked, chosen and kept, and what no floor lets in."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any
from xml.etree import ElementTree

import pytest
from pydantic import SecretStr

from brain.cli import curve
from brain.config import Settings
from brain.database import Database
from brain.errors import InvalidInput
from brain.repository import models
from brain.runtime import Brain
from brain.services import calibration
from brain.services.calibration import Point, choose
from brain.services.memory import Draft
from brain.text import ANALYSIS_VERSION
from tests import factories
from tests.memories import Table, as_bytes, ask, brain_on, found, now, remember

MUSIC = (
    "sonata violin orchestra tempo rehearsal cello chord melody concert choir tuning conductor symphony bow tenor opera"
)
BREAD = "flour oven dough yeast sourdough butter crust loaf sugar pastry cream vanilla almond icing recipe whisk"


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


def sentences(words: str, count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)
    return [f"The {' '.join(drawn.sample(words.split(), 7))} of day {number}" for number in range(count)]


async def fill(brain: Brain) -> None:
    """Two scopes that are about different things."""
    for scope, words in (("lane:work", MUSIC), ("lane:personal", BREAD)):
        texts = sentences(words, 40, len(scope))
        await remember(brain, *(Draft(text=each, key=f"{scope} {each}", scope=scope) for each in texts))


async def calibrate(brain: Brain, floor: float) -> None:
    measured = models.Calibration(floor, hits=50, kept=50, foreigners=50, answered=0)
    await brain.write(lambda work: models.add_calibration(work, brain.embedder.model, ANALYSIS_VERSION, measured))


# --- what is asked


def test_a_question_has_the_rarest_content_words_of_its_fact_in_the_order_of_the_text() -> None:
    text = "The Kestrel report of March went to Marlow, Finch and the harbour office in Porto"
    fact = factories.assertion("k", 1, known_from=factories.instant("2026-01-01 00:00"), text=text)
    rarity = {"kestrel": 40, "report": 30, "march": 20, "go": 25}
    words = calibration.words_of_question(fact, rarity, "english")
    rare = ["Marlow", "Finch", "harbour", "office", "Porto", "March"]
    assert 4 <= len(words) <= 6
    assert set(words) <= set(rare)
    assert words == [word for word in text.replace(",", "").split() if word in words]


@pytest.mark.parametrize(
    ("text", "asked"), [("Tom likes tea", False), ("周三改用蓝色门禁卡", True), ("the and of to", False)]
)
def test_a_fact_is_asked_for_when_it_has_four_words_or_a_script_without_spaces(text: str, asked: bool) -> None:
    fact = factories.assertion("k", 1, known_from=factories.instant("2026-01-01 00:00"), text=text)
    assert bool(calibration.words_of_question(fact, {}, "english")) is asked


# --- what is chosen


def points(*figures: tuple[float, int, int]) -> list[Point]:
    return [Point(*each) for each in figures]


@pytest.mark.parametrize(
    ("curve_", "floor", "reached"),
    [
        ([(0.2, 100, 40), (0.3, 99, 1), (0.4, 97, 0), (0.5, 80, 0)], 0.3, True),
        ([(0.2, 100, 1), (0.25, 98, 0), (0.3, 90, 0), (0.4, 80, 0)], 0.25, True),
        ([(0.2, 100, 40), (0.3, 90, 10), (0.4, 80, 2), (0.5, 60, 0)], 0.4, False),
        ([(0.2, 100, 90), (0.3, 90, 80), (0.4, 80, 70)], 0.4, False),
    ],
)
def test_the_floor_nearest_to_the_default_that_reaches_both_aims_is_chosen(
    curve_: list[tuple[float, int, int]], floor: float, reached: bool
) -> None:
    chosen, both = choose(points(*curve_), 100, 100, 0.32)
    assert (chosen.floor, both) == (floor, reached)


async def test_scopes_about_different_things_are_told_apart(store: Database) -> None:
    brain = brain_on(store)
    await fill(brain)
    report = await calibration.measure(brain.read, brain.embedder)
    assert (report.scopes, report.reached) == (["lane:personal", "lane:work"], True)
    assert (report.hits + report.missed, report.foreigners) == (80, 80)
    assert report.current.floor == report.default == 0.32
    kept, answered = [each.kept for each in report.curve], [each.answered for each in report.curve]
    assert len(report.curve) == 15
    assert (kept, answered) == (sorted(kept, reverse=True), sorted(answered, reverse=True))
    assert (await calibration.measure(brain.read, brain.embedder)) == report


async def test_a_fact_that_both_scopes_hold_is_no_foreign_question(store: Database) -> None:
    brain = brain_on(store)
    for scope in ("lane:work", "lane:personal"):
        drafts = [Draft(text=each, key=f"{scope} {each}", scope=scope) for each in sentences(MUSIC, 12, 3)]
        await remember(brain, *drafts)
    with pytest.raises(InvalidInput, match="there are 24 and 0"):
        await calibration.measure(brain.read, brain.embedder)


async def test_the_questions_of_a_file_are_asked_in_every_scope(store: Database) -> None:
    brain = brain_on(store)
    await fill(brain)
    foreign = [f"how deep is lake number {number}" for number in range(12)]
    report = await calibration.measure(brain.read, brain.embedder, foreign=foreign)
    assert report.foreigners == 24
    one = await calibration.measure(brain.read, brain.embedder, foreign=foreign, scope="lane:work")
    assert (one.foreigners, one.scopes) == (12, ["lane:work"])


async def test_too_few_questions_are_refused(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, "The Kestrel dashboard exports its tables to DuckDB")
    with pytest.raises(InvalidInput, match="there are 1 and 0") as refused:
        await calibration.measure(brain.read, brain.embedder)
    assert "--negatives FILE" in refused.value.hint


def test_the_picture_is_a_drawing_of_every_point() -> None:
    steps = [Point(round(0.08 + 0.04 * step, 2), 40 - step, 15 - step) for step in range(15)]
    report = calibration.Report(
        "a <model>", 1, 0.32, steps[6], steps[5], steps, 40, 0, 20, reached=True, scopes=["global"]
    )
    drawing = ElementTree.fromstring(curve.picture(report))
    assert len(drawing.findall("{*}circle")) == 30
    assert "a <model>" in "".join(drawing.itertext())
    assert len(curve.bars(report)) == 16


# --- since when it holds


@pytest.mark.parametrize(("floor", "query", "before", "after"), [
    (0.9, "Kestrel dashboard colours", ["kestrel"], []),
    (0.1, "Kestrel colours shapes sizes seasons", [], ["kestrel"]),
])  # fmt: skip
async def test_a_calibrated_floor_changes_what_stands_and_a_replay_keeps_the_floor_of_its_time(
    store: Database, floor: float, query: str, before: list[str], after: list[str]
) -> None:
    brain = brain_on(store)
    await remember(brain, Draft(text="The Kestrel dashboard exports its tables to DuckDB", key="kestrel"))
    await remember(brain, *(Draft(text=each, key=each) for each in sentences(BREAD, 10, 1)))
    then = (await now(brain)).isoformat()
    asked: dict[str, Any] = {"query": query, "as_of": then}
    answer = await ask(brain, "read_memory", **asked)
    assert [hit["key"] for hit in answer.data["hits"]] == before
    await calibrate(brain, floor)
    changed = await ask(brain, "read_memory", query=query)
    assert [hit["key"] for hit in changed.data["hits"]] == after
    assert changed.data["diagnosis"]["floor"] == {"evidence": floor, "words": floor}
    assert as_bytes(await ask(brain, "read_memory", **asked)) == as_bytes(answer)
    await calibrate(brain, 0.32)
    assert await found(brain, query) == before


async def test_a_floor_holds_for_its_model_and_analysis_only(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, "The Kestrel dashboard exports its tables to DuckDB")
    measured = models.Calibration(0.9, 1, 1, 1, 0)
    await brain.write(lambda work: models.add_calibration(work, "another", ANALYSIS_VERSION, measured))
    await brain.write(lambda work: models.add_calibration(work, brain.embedder.model, ANALYSIS_VERSION + 1, measured))
    assert (await ask(brain, "read_memory", query="Kestrel")).data["diagnosis"]["floor"]["evidence"] == 0.32


async def test_a_model_that_knows_meaning_keeps_the_floor_for_words(store: Database) -> None:
    brain = brain_on(store, embedder=Table({"east": [1.0, 0.0, 0.0], "eastward": [0.8, 0.6, 0.0]}))
    await remember(brain, Draft(text="east", key="east"))
    assert await found(brain, "eastward") == ["east"]
    await calibrate(brain, 0.85)
    answer = await ask(brain, "read_memory", query="eastward")
    assert (answer.data["hits"], answer.data["reason"]) == ([], "below_floor")
    assert answer.data["diagnosis"]["floor"] == {"evidence": 0.85, "words": 0.32}
    assert await found(brain, "east") == ["east"]


# --- what no floor lets in


WEAK = ["the and of", "who is it", "report", "kestrel", "kestrel report", "the kestrel"]


async def common(brain: Brain) -> None:
    """Forty facts that all name Kestrel, half of which name a report."""
    texts = [f"Kestrel and the {'report' if n % 2 else 'invoice'} of {word}" for n, word in enumerate(forty())]
    await remember(brain, *(Draft(text=each, key=each) for each in texts))


def forty() -> list[str]:
    return [f"{first}{second}" for first in "bcdfghkl" for second in ("arno", "elto", "iska", "ombe", "urvi")]


@pytest.mark.parametrize("query", WEAK)
async def test_stop_words_and_common_words_carry_no_hit_at_the_lowest_floor(store: Database, query: str) -> None:
    brain = brain_on(store)
    await common(brain)
    await calibrate(brain, 0.01)
    assert await found(brain, query) == []
    assert len(await found(brain, "barno")) == 1


@pytest.mark.parametrize("query", WEAK)
async def test_words_lift_no_weak_similarity_over_the_floor(store: Database, query: str) -> None:
    words = forty()
    texts = [f"Kestrel and the {'report' if n % 2 else 'invoice'} of {word}" for n, word in enumerate(words)]
    vectors = {each: [0.45, 0.893, 0.0] for each in texts} | {each: [1.0, 0.0, 0.0] for each in WEAK}
    brain = brain_on(store, embedder=Table(vectors, floor=0.5))
    await common(brain)
    assert await found(brain, query) == []


async def test_a_question_of_stop_words_is_near_to_nothing(store: Database) -> None:
    up = [1.0, 0.0, 0.0]
    brain = brain_on(store, embedder=Table({"Kestrel exports": up, "who is it": up}))
    await remember(brain, "Kestrel exports")
    answer = await ask(brain, "read_memory", query="who is it")
    assert answer.data["hits"] == []
    assert answer.data["diagnosis"]["vector"] == {"status": "no_vector_for_query", "candidates": 0}
