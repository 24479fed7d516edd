"""Running counts of what was written and closed, beside a scan of what is visible: the same statistics and scores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brain import migrate, ranking
from brain.errors import ConfigurationError
from brain.layers import Fact
from brain.repository import closings, scopes, search
from brain.repository.search import Visible
from brain.runtime import Brain
from brain.services import amendments, facts
from brain.work import Work
from tests import factories

EPOCH = factories.instant("2020-01-01 00:00")
HOUR = timedelta(hours=1)
WORDS = ("kestrel", "heron", "marlow", "export", "invoice", "lake")
SCOPES = ("global", "lane:work")
INSTANTS = 12
DEPTH = 2


@dataclass(frozen=True)
class Claim:
    """One assertion: recorded an hour after the one before, known then or up to some hours earlier."""

    key: int
    earlier: int
    start: int | None
    end: int | None
    tombstone: bool
    words: tuple[str, ...]


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    start, end = (draw(st.none() | st.integers(0, 30)) for _ in range(2))
    if start is not None and end is not None:
        start, end = min(start, end), max(start, end) + 1
    return Claim(
        key=draw(st.integers(0, 3)),
        earlier=draw(st.sampled_from([0, 0, 0, 1, 5])),
        start=start,
        end=end,
        tombstone=draw(st.integers(0, 4)) == 0,
        words=tuple(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))),
    )


def fact_of(number: int, claim: Claim) -> Fact:
    recorded = EPOCH + number * HOUR
    made: Fact = factories.assertion(
        f"key-{claim.key}",
        number,
        text=f"{' '.join(claim.words)} {number}",
        scope=SCOPES[claim.key % 2],
        known_from=recorded - claim.earlier * HOUR,
        valid_from=None if claim.start is None else EPOCH + claim.start * HOUR,
        valid_to=None if claim.end is None else EPOCH + claim.end * HOUR,
        tombstone=claim.tombstone,
    )
    return replace(made, recorded_at=recorded)


async def both_plans(work: Work, terms: list[str], floor: float, guarded: bool) -> tuple[Any, Any]:
    numbers = await scopes.known(work)
    asked = [each for each in SCOPES if each in numbers]
    visible = Visible(scopes=asked, numbers=[numbers[each] for each in asked], valid_at=work.as_of)
    return (
        await search.lexical(work, visible, terms, floor=floor, depth=DEPTH, guarded=guarded),
        await search.lexical(work, visible, terms, floor=floor, depth=DEPTH, guarded=guarded, general=True),
    )


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Brain]:
    brain = factories.brain_on(module_dsn, origin="import")
    yield brain
    await brain.close()


@given(drawn=st.lists(claims(), min_size=1, max_size=14), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
async def test_running_counts_give_what_a_scan_of_the_visible_rows_gives(
    store: Brain, drawn: list[Claim], seed: int
) -> None:
    brain = factories.as_caller(store, namespace=factories.fresh_name("counts"))
    random = Random(seed)

    async def write(work: Work) -> None:
        rows = [fact_of(number, claim) for number, claim in enumerate(drawn, 1)]
        size = random.choice([1, 2, len(rows)])
        for start in range(0, len(rows), size):
            await facts.append(work, rows[start : start + size])

    async def compare(work: Work) -> None:
        for _ in range(INSTANTS):
            work.as_of = EPOCH + random.randrange(len(drawn) + 20) * HOUR + random.choice([-1, 0, 1]) * HOUR / 4
            terms = random.sample(WORDS, random.randint(1, 4))
            counted, scanned = await both_plans(
                work, sorted(terms), random.choice([0.0, 0.3, 1.0]), random.random() < 0.5
            )
            assert counted == scanned

    await brain.write(write)
    assert await brain.read(closings.mismatched) == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "SMALL_CORPUS", random.choice([0, ranking.SMALL_CORPUS]))
        patch.setattr(ranking, "MOST_COMMON", random.choice([1, ranking.MOST_COMMON]))
        patch.setattr(search, "_SAMPLED_FROM", random.choice([0, 2, search._SAMPLED_FROM]))
        patch.setattr(search, "_SAMPLE", random.choice([2, 3]))
        patch.setattr(search, "_SCAN_RATIO", random.choice([search._SCAN_RATIO, 1_000.0]))
        await brain.read(compare)


async def stored(brain: Brain, columns: str, table: str) -> list[tuple[Any, ...]]:
    query = f"SELECT {columns} FROM {table} WHERE namespace = %(namespace)s ORDER BY doc"
    return [tuple(row.values()) for row in await brain.read(lambda work: work.dicts(query, {}))]


async def test_a_rewritten_and_a_forgotten_fact_are_closed_once_and_by_the_row_that_hid_them(brain: Brain) -> None:
    first = await factories.fact(brain, "Kestrel exports by hand.", key="export")
    second = await factories.fact(brain, "Kestrel exports to a lake.", key="export")
    other = await factories.fact(brain, "Heron has no export.", key="heron")
    await brain.write(lambda work: amendments.forget(work, name="heron", reason="Wrong."))
    query = (
        "SELECT doc, closer, docs_before, terms_before FROM memory_closed WHERE namespace = %(namespace)s ORDER BY doc"
    )
    rows = [tuple(row.values()) for row in await brain.read(lambda work: work.dicts(query, {}))]
    assert rows == [(first.doc, second.doc, 0, 0), (other.doc, other.doc + 1, 1, first.length)]


async def test_a_fact_that_ends_with_time_is_looked_at_and_never_counted_as_closed(brain: Brain) -> None:
    ending = await factories.fact(brain, "Kestrel rents a room.", key="room", valid_to="2199-01-01")
    past = await factories.fact(
        brain, "Kestrel rented a boat.", key="boat", valid_from="2020-01-01", valid_to="2021-01-01"
    )
    await factories.fact(brain, "Kestrel rents a hall.", key="room")
    assert await stored(brain, "doc", "memory_timed") == [(ending.doc,)]
    assert await stored(brain, "doc", "memory_closed") == [(past.doc,)]


async def test_a_closing_that_was_lost_or_invented_is_found(module_dsn: str, brain: Brain) -> None:
    first = await factories.fact(brain, "Kestrel exports by hand.", key="export")
    await factories.fact(brain, "Kestrel exports to a lake.", key="export")
    standing = await factories.fact(brain, "Heron has no export.", key="heron")
    assert await brain.read(closings.mismatched) == []
    with psycopg.connect(module_dsn, autocommit=True) as owner:
        owner.execute("DELETE FROM memory_closed WHERE namespace = %s", [brain.caller.namespace])
        owner.execute(
            "INSERT INTO memory_closed VALUES (%s, 'global', %s, %s, 4, 7, 0)",
            [brain.caller.namespace, standing.doc, standing.doc],
        )
    assert await brain.read(closings.mismatched) == [first.doc, standing.doc]


async def counted(brain: Brain) -> list[Any]:
    """Everything that is kept of closings, in a form that does not depend on the order of storage."""
    postings = (
        "SELECT term, scope, doc, closer, closed_before FROM postings WHERE namespace = %(namespace)s"
        " AND closer IS NOT NULL ORDER BY term, scope, doc"
    )
    return [
        await stored(brain, "*", "memory_closed"),
        await stored(brain, "*", "memory_timed"),
        [tuple(row.values()) for row in await brain.read(lambda work: work.dicts(postings, {}))],
    ]


async def test_the_migration_counts_the_closings_of_a_brain_that_is_there_already(dsn: str) -> None:
    brain = factories.brain_on(dsn)
    for text in ("Kestrel exports by hand.", "Kestrel exports to a lake.", "Kestrel exports nothing."):
        await factories.fact(brain, text, key="export")
    await factories.fact(brain, "Heron has no export.", key="heron", scope="lane:work")
    await brain.write(lambda work: amendments.forget(work, name="heron", reason="Wrong."))
    await factories.fact(brain, "Kestrel rented a boat.", occurred="2020-01-01", valid_to="2021-01-01")
    await factories.fact(brain, "Kestrel rents a room.", key="room", valid_to="2199-01-01")
    before = await counted(brain)
    assert [len(each) for each in before[:2]] == [4, 1]
    await brain.close()
    assert migrate.downgrade(dsn, "0001") == ["0002"]
    assert migrate.upgrade(dsn) == ["0002"]
    again = factories.brain_on(dsn, namespace=brain.caller.namespace)
    assert await counted(again) == before
    assert await again.read(closings.mismatched) == []
    await again.close()


async def test_a_row_whose_words_are_analysed_otherwise_by_now_cannot_be_closed_unnoticed(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    await factories.fact(brain, "Kestrel exports by hand.", key="export")
    analysed = facts.analysis.terms
    for changed in (lambda text, language: [*analysed(text, language), "more"], lambda text, language: ["x"] * 4):
        monkeypatch.setattr(facts.analysis, "terms", changed)
        with pytest.raises(ConfigurationError, match="another text analysis"):
            await brain.write(lambda work: amendments.forget(work, name="export", reason="Wrong."))
    monkeypatch.setattr(facts.analysis, "terms", analysed)
    await brain.write(lambda work: amendments.forget(work, name="export", reason="Wrong."))
    assert len(await stored(brain, "doc", "memory_closed")) == 1
