"""The rule of visibility against the system: histories of both axes, beside a brute force that shares no code."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brain.layers import LAYERS, Record
from brain.repository import records as record_repository
from brain.repository import versions, visibility
from brain.runtime import Brain
from brain.services import amendments, facts, history, memory, trail
from brain.work import Work
from tests import factories

EPOCH = factories.instant("2020-01-01 00:00")
DAY = timedelta(days=1)
KEYS = 3
POINTS = 16


@dataclass(frozen=True)
class Claim:
    """One assertion of a generated history, in days after the epoch; None is unbounded."""

    key: int
    known: int
    start: int | None
    end: int | None
    tombstone: bool


def wins(log: list[tuple[int, Claim]], key: int, known: int, valid: int) -> int | None:
    """The number of the assertion that is visible at a point, or None: written from the rule's wording alone."""
    best: tuple[int, int] | None = None
    hidden = False
    for number, claim in log:
        applies = claim.key == key and claim.known <= known
        applies = applies and (claim.start is None or claim.start <= valid) and (claim.end is None or valid < claim.end)
        if applies and (best is None or (claim.known, number) >= best):
            best, hidden = (claim.known, number), claim.tombstone
    return None if best is None or hidden else best[1]


days = st.integers(0, 12)
bounds = st.none() | days


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    start, end = draw(bounds), draw(bounds)
    if start is not None and end is not None:
        start, end = min(start, end), max(start, end) + 1
    return Claim(draw(st.integers(0, KEYS - 1)), draw(days), start, end, draw(st.integers(0, 3)) == 0)


small = st.lists(claims(), min_size=2, max_size=12)


@st.composite
def long(draw: st.DrawFn) -> list[Claim]:
    """Up to 200 assertions from a seed, which costs hypothesis no more to draw than two."""
    random, size = Random(draw(st.integers(0, 2**32))), draw(st.integers(13, 200))
    found = []
    for _ in range(size):
        start, end = (random.choice([None, random.randrange(40)]) for _ in range(2))
        if start is not None and end is not None:
            start, end = min(start, end), max(start, end) + 1
        found.append(Claim(random.randrange(KEYS), random.randrange(40), start, end, random.random() < 0.25))
    return found


def day(number: int | None) -> datetime | None:
    return None if number is None else EPOCH + number * DAY


def fact_of(key: str, version: int, claim: Claim) -> Any:
    return factories.assertion(
        key, version, known_from=day(claim.known), valid_from=day(claim.start), valid_to=day(claim.end),
        tombstone=claim.tombstone,
    )  # fmt: skip


def record_of(key: str, version: int, claim: Claim) -> Record:
    known = EPOCH + claim.known * DAY
    return Record(
        id=key, version=version, doc=0, scope="global", origin="import", client="tests", session="first", model="",
        known_from=known, recorded_at=known, kind="invoice", title=key, title_key=key, date=EPOCH.date(),
        value=Decimal(version), unit="EUR", fields={}, source="", tombstone=claim.tombstone, reason="",
        valid_from=day(claim.start), valid_to=day(claim.end),
    )  # fmt: skip


async def store_history(work: Work, layer: str, keys: list[str], log: list[tuple[int, Claim]]) -> None:
    for number, claim in log:
        key = keys[claim.key]
        if layer == "memory":
            await facts.append(work, [fact_of(key, number, claim)])
        else:
            await record_repository.add(work, record_of(key, number, claim))


async def compare(work: Work, layer: str, keys: list[str], log: list[tuple[int, Claim]], random: Random) -> None:
    points = {(claim.known, bound) for _, claim in log for bound in (claim.start, claim.end) if bound is not None}
    chosen = random.sample(sorted(points), min(len(points), POINTS // 2))
    chosen += [(random.randrange(-1, 42), random.randrange(-1, 42)) for _ in range(POINTS - len(chosen))]
    query = f"SELECT t.id, t.version {versions.visible_from(LAYERS[layer])} AND v.id = ANY(%(ids)s)"
    for known, valid in chosen:
        params = {"ids": keys, "as_of": EPOCH + known * DAY, "valid_at": EPOCH + valid * DAY}
        rows = await work.dicts(query, params)
        expected = {keys[key]: found for key in range(KEYS) if (found := wins(log, key, known, valid)) is not None}
        assert {row["id"]: row["version"] for row in rows} == expected
        assert len(rows) == len(expected)


async def run_history(brain: Brain, layer: str, drawn: list[Claim], seed: int) -> None:
    name = factories.fresh_name("history")
    keys = [f"{name}-{key}" for key in range(KEYS)]
    log = list(enumerate(drawn, 1))
    await brain.write(lambda work: store_history(work, layer, keys, log))
    await brain.read(lambda work: compare(work, layer, keys, log, Random(seed)))


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Brain]:
    brain = factories.brain_on(module_dsn, origin="import")
    yield brain
    await brain.close()


def histories(examples: int) -> Any:
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
    )


@pytest.mark.parametrize("layer", ["memory", "record"])
@given(drawn=small, seed=st.integers(0, 2**32))
@histories(146)
async def test_short_histories_show_what_the_rule_says(store: Brain, layer: str, drawn: list[Claim], seed: int) -> None:
    await run_history(store, layer, drawn, seed)


@pytest.mark.parametrize("layer", ["memory", "record"])
@given(drawn=long(), seed=st.integers(0, 2**32))
@histories(4)
async def test_long_histories_show_what_the_rule_says(store: Brain, layer: str, drawn: list[Claim], seed: int) -> None:
    await run_history(store, layer, drawn, seed)


@pytest.mark.long
@pytest.mark.parametrize("layer", ["memory", "record"])
@given(drawn=small | long(), seed=st.integers(0, 2**32))
@histories(2_500)
async def test_five_thousand_histories_show_what_the_rule_says(
    store: Brain, layer: str, drawn: list[Claim], seed: int
) -> None:
    await run_history(store, layer, drawn, seed)


@pytest.mark.parametrize("layer", ["memory", "record"])
async def test_rectangles_that_are_derived_again_equal_those_that_grew(brain: Brain, layer: str) -> None:
    importing = factories.as_caller(brain, origin="import")
    random = Random(7)
    for _ in range(8):
        drawn = [
            Claim(
                key=random.randrange(KEYS),
                known=random.randrange(20),
                start=random.choice([None, 2, 5]),
                end=random.choice([None, 6, 9]),
                tombstone=random.random() < 0.3,
            )
            for _ in range(20)
        ]
        await run_history(importing, layer, drawn, random.randrange(2**32))

    async def stored(work: Work) -> set[Any]:
        table = f"{LAYERS[layer].table}_visible"
        query = (
            f"SELECT id, doc, known_from, known_to, valid_from, valid_to FROM {table} WHERE namespace = %(namespace)s"
        )
        return {tuple(row.values()) for row in await work.dicts(query, {}) if row["known_from"] != row["known_to"]}

    async def derive(work: Work) -> None:
        for key in sorted({row[0] for row in await stored(work)}):
            await visibility.rebuild(work, LAYERS[layer], key)

    grown = await brain.read(stored)
    assert len(grown) > 50
    assert await brain.read(lambda work: visibility.mismatched_keys(work, LAYERS[layer])) == []
    await brain.write(derive)
    assert await brain.read(stored) == grown


@pytest.mark.parametrize("layer", ["memory", "record"])
async def test_a_rectangle_that_was_tampered_with_is_found(module_dsn: str, brain: Brain, layer: str) -> None:
    row = await factories.WRITERS[layer](brain)
    other = await factories.WRITERS[layer](brain, **({"text": "Other."} if layer == "memory" else {"title": "Other"}))
    await brain.read(lambda work: visibility.mismatched_keys(work, LAYERS[layer]))
    with factories.application(module_dsn, brain.caller.namespace) as connection:
        connection.execute(f"DELETE FROM {LAYERS[layer].table}_visible WHERE id = %s", [row.id])  # type: ignore[arg-type]
        connection.commit()
    assert await brain.read(lambda work: visibility.mismatched_keys(work, LAYERS[layer])) == [row.id]
    await brain.write(lambda work: visibility.rebuild(work, LAYERS[layer], row.id))
    assert await brain.read(lambda work: visibility.mismatched_keys(work, LAYERS[layer])) == []
    assert other.version == 1


async def grid(work: Work, key: str) -> list[list[str]]:
    """The texts of a key that are visible at each of eight by six points."""
    found = []
    for known in range(8):
        work.as_of = EPOCH + known * DAY
        for valid in range(6):
            page = await trail.walk(work, valid_at=day(valid))
            found.append([each.text for each in page.facts if each.key == key])
    return found


async def test_assertions_of_an_import_may_arrive_out_of_order(brain: Brain) -> None:
    """The same history, in order and shuffled, through write_memory as a human's import makes it."""
    importing = factories.as_caller(brain, origin="import")
    drafts = [
        memory.Draft(
            text=f"Rate {number}.",
            known_at=EPOCH + known * DAY,
            valid_from=day(start),
            valid_to=day(end),
            allow_duplicate=True,
        )
        for number, (known, start, end) in enumerate([(1, 0, None), (3, 2, 4), (5, 3, None), (6, 1, 2)])
    ]
    answers = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]):
        key = factories.fresh_name("rate")
        prepared = await memory.prepare(brain.embedder, [replace(drafts[n], key=key) for n in order])
        for each in prepared:
            await importing.write(lambda work, each=each: memory.write(work, each))  # type: ignore[misc]

        answers.append(await brain.read(lambda work, key=key: grid(work, key)))  # type: ignore[misc]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][5 * 6 + 2] == ["Rate 1."]
    assert answers[0][7 * 6 + 1] == ["Rate 3."]
    assert await brain.read(lambda work: visibility.mismatched_keys(work, LAYERS["memory"])) == []


async def test_history_shows_when_each_assertion_stopped_being_seen_anywhere(brain: Brain) -> None:
    row = await factories.fact(brain, "Ten.", key="price", occurred="2025-01-01")
    bounded = await factories.fact(brain, "Nine.", key="price", valid_from="2025-03-01", valid_to="2025-04-01")
    gone, _ = await brain.write(lambda work: amendments.forget(work, name="price", reason="Sold out."))

    async def ends(as_of: Any = None) -> list[Any]:
        found = await brain.read(lambda work: history.of(work, "price"), as_of=as_of)
        return [each.known_to for each in found.versions]

    assert await ends() == [gone.known_from, gone.known_from, None]
    assert await ends(bounded.known_from) == [None, None]
    shown = history.shown(await brain.read(lambda work: history.of(work, "price")))
    assert shown[2]["hid"] == [f"memory:{row.id}@1", f"memory:{row.id}@2"]


async def test_a_version_that_was_never_visible_ended_when_it_began(brain: Brain) -> None:
    importing = factories.as_caller(brain, origin="import")
    known = EPOCH + 5 * DAY
    for text in ("First.", "Second."):
        await factories.fact(importing, text, key="tie", known_at=known, valid_from="2020-01-01")
    found = await brain.read(lambda work: history.of(work, "tie"))
    assert [(each.row.version, each.known_to) for each in found.versions] == [(1, known), (2, None)]
