"""System time comes from the database and only ever grows, whatever its clock does; newer means by event time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from brain.layers import LAYERS
from brain.repository import audit, versions
from brain.runtime import Brain
from brain.services import claims, session, trail
from brain.times import parse_instant
from brain.work import Work
from tests import factories

NOON = factories.instant("2026-03-01 12:00")
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def clock(module_dsn: str) -> Iterator[str]:
    """The database whose clock a test may set; afterwards it runs again."""
    yield module_dsn
    factories.set_clock(module_dsn)


@pytest.fixture
async def frozen(clock: str, brain: Brain) -> Brain:
    """A brain whose database's clock stands still at noon."""
    factories.freeze(clock, NOON)
    return brain


async def instants(brain: Brain) -> list[datetime]:
    """The system time of every write, in the order of the commits."""
    return [each.recorded_at for each in await brain.read(audit.writes)]


async def instant_of(work: Work) -> datetime:
    return work.as_of


def assert_strictly_increasing(moments: list[datetime]) -> None:
    assert all(earlier < later for earlier, later in pairwise(moments))


async def test_a_frozen_clock_still_gives_every_write_its_own_instant(frozen: Brain) -> None:
    rows = [await factories.thread(frozen, f"thread-{number}") for number in range(5)]
    assert [row.known_from for row in rows] == [NOON + number * MICROSECOND for number in range(5)]
    for number, row in enumerate(rows):
        listed = await frozen.read(lambda work: versions.listing(work, LAYERS["thread"]), as_of=row.known_from)
        assert len(listed) == number + 1


async def test_a_read_under_a_frozen_clock_sees_what_was_written_before_it_and_nothing_later(frozen: Brain) -> None:
    before = await frozen.read(instant_of)
    await factories.pin(frozen, "One.")
    between = await frozen.read(instant_of)
    await factories.pin(frozen, "Two.", expected_version=1)

    async def state(as_of: datetime) -> list[str]:
        rows = await frozen.read(lambda work: versions.listing(work, LAYERS["pin"]), as_of=as_of)
        return [row.state for row in rows]

    assert await state(before) == []
    assert await state(between) == ["One."]
    assert await state(await frozen.read(instant_of)) == ["Two."]


async def test_two_writes_of_one_transaction_have_different_instants(frozen: Brain) -> None:
    async def twice(work: Work) -> list[Any]:
        return [work.next_instant(), work.next_instant(), work.next_instant()]

    first = await frozen.write(twice)
    second = await frozen.write(twice)
    assert_strictly_increasing(first + second)


async def test_a_clock_that_is_set_back_does_not_take_system_time_with_it(clock: str, brain: Brain) -> None:
    factories.freeze(clock, NOON)
    first = await factories.pin(brain, "At noon.")
    factories.freeze(clock, NOON - timedelta(hours=1))
    second = await factories.pin(brain, "An hour earlier by the clock.", expected_version=1)
    third = await factories.fact(brain, "Also then.")
    assert (second.known_from, third.known_from) == (NOON + MICROSECOND, NOON + 2 * MICROSECOND)
    assert_strictly_increasing(await instants(brain))

    async def state(as_of: Any = None) -> list[str]:
        return [row.state for row in await brain.read(lambda work: versions.listing(work, LAYERS["pin"]), as_of=as_of)]

    assert await state() == ["An hour earlier by the clock."]
    assert await state(first.known_from) == ["At noon."]
    assert await state(NOON - timedelta(minutes=30)) == []
    factories.freeze(clock, NOON + timedelta(hours=1))
    assert (await factories.fact(brain, "Later.")).known_from == NOON + timedelta(hours=1)


async def test_a_session_start_replays_across_a_clock_that_was_set_back(clock: str, brain: Brain) -> None:
    factories.freeze(clock, NOON)
    await factories.pin(brain, "At noon.")
    factories.freeze(clock, NOON - timedelta(hours=1))
    then = await brain.read(session.start)
    await factories.pin(brain, "Later.", expected_version=1)
    again = await brain.read(session.start, as_of=then.data["as_of"])
    assert (again.text, again.data) == (then.text, then.data)


async def test_newer_goes_by_when_it_held_and_not_by_when_it_was_written(clock: str, brain: Brain) -> None:
    factories.freeze(clock, NOON)
    old = await factories.fact(brain, "The draft is not sent.", occurred="2026-01-10", key="draft")
    factories.freeze(clock, NOON + timedelta(days=1))
    pin = await factories.pin(brain, "The draft is sent.")
    factories.freeze(clock, NOON + timedelta(hours=23))
    again = await factories.fact(brain, "The draft is not sent.", key="other")
    assert again.id == old.id
    claim = [(f"pin:{pin.id}", "sent"), (f"memory:{old.id}", "not sent")]
    settled = await brain.read(lambda work: claims.weigh(work, claims=claim))
    assert (settled.verdict.outcome, settled.verdict.winner.ref) == ("settled", f"pin:{pin.id}@1")
    newer = await factories.fact(brain, "The draft came back.", occurred="2026-03-02T12:00:00.000001Z")
    claim = [(f"pin:{pin.id}", "sent"), (f"memory:{newer.id}", "came back")]
    contested = await brain.read(lambda work: claims.weigh(work, claims=claim))
    assert (contested.verdict.outcome, contested.verdict.winner) == ("contested", None)


async def test_a_tie_of_event_times_is_told_apart_by_the_order_of_writing(frozen: Brain) -> None:
    for number in range(4):
        await factories.fact(frozen, f"Fact {number}", occurred="2026-02-01")
    found = await frozen.read(trail.walk)
    assert [each.text for each in found.facts] == [f"Fact {number}" for number in range(4)]
    found = await frozen.read(lambda work: trail.walk(work, newest_first=True))
    assert [each.text for each in found.facts] == [f"Fact {number}" for number in (3, 2, 1, 0)]


@pytest.mark.parametrize("waiting", ["a first write", "a later write"])
@pytest.mark.parametrize("clock_stands", [False, True])
async def test_an_instant_that_was_read_never_misses_a_write_that_was_under_way(
    clock: str, brain: Brain, waiting: str, clock_stands: bool
) -> None:
    """A writer takes its instant, a reader asks, the writer commits: the reader's instant must not come after it."""
    if clock_stands:
        factories.freeze(clock, NOON)
    if waiting == "a later write":
        await factories.fact(brain, "Before.")
    name = brain.caller.namespace
    with factories.application(clock, name) as writer:
        row = writer.execute("SELECT instant FROM brain_begin_write(%s, 'UTC', 'english')", [name]).fetchone()
        assert row is not None
        taken = row[0]
        assert await brain.read(instant_of) < taken
        writer.execute("UPDATE namespaces SET last_known = %s WHERE namespace = %s", [taken, name])
        writer.commit()
        writer.execute("SELECT 1")
    assert await brain.read(instant_of) >= taken


async def test_a_session_starts_while_a_first_write_takes_long_and_replays_after_it(
    module_dsn: str, brain: Brain
) -> None:
    name = brain.caller.namespace
    with factories.application(module_dsn, name) as writer:
        row = writer.execute("SELECT instant FROM brain_begin_write(%s, 'UTC', 'english')", [name]).fetchone()
        assert row is not None
        starts = [await brain.read(session.start) for _ in range(2)]
        assert all(parse_instant(each.data["as_of"], field="as_of") < row[0] for each in starts)
        writer.execute("UPDATE namespaces SET last_known = %s WHERE namespace = %s", [row[0], name])
        writer.commit()
    await factories.one_of_each(brain)
    for then in starts:
        again = await brain.read(session.start, as_of=then.data["as_of"])
        assert (again.text, again.data) == (then.text, then.data)


async def test_a_first_write_that_is_rolled_back_leaves_the_clock_alone(module_dsn: str, brain: Brain) -> None:
    name = brain.caller.namespace
    with factories.application(module_dsn, name) as writer:
        writer.execute("SELECT instant FROM brain_begin_write(%s, 'UTC', 'english')", [name])
        before = await brain.read(instant_of)
        writer.rollback()
    assert await brain.read(instant_of) > before
    assert (await factories.fact(brain, "First after all.")).known_from > before


async def test_first_writes_of_two_brains_do_not_shape_each_others_instants(clock: str, brain: Brain) -> None:
    """Both take the same instant, for which each holds a lock."""
    factories.freeze(clock, NOON)
    names = [brain.caller.namespace, factories.fresh_name("other")]
    with factories.application(clock, names[0]) as one, factories.application(clock, names[1]) as other:
        for writer, name in zip((one, other), names, strict=True):
            row = writer.execute("SELECT instant FROM brain_begin_write(%s, 'UTC', 'english')", [name]).fetchone()
            assert row == (NOON,)
        assert await brain.read(instant_of) == NOON - MICROSECOND


async def test_asking_for_an_instant_that_a_writer_may_still_take_waits_for_it(module_dsn: str, brain: Brain) -> None:
    await factories.fact(brain, "Before.")
    name = brain.caller.namespace
    with factories.application(module_dsn, name) as writer:
        writer.execute("SELECT instant FROM brain_begin_write(%s, 'UTC', 'english')", [name])
        with factories.application(module_dsn, name) as reader:
            reader.execute("SET LOCAL lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                reader.execute("SELECT * FROM brain_begin_read(%s, brain_clock())", [name])
