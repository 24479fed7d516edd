"""walk_trail: facts by event time, filtered and paged, without any search."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from brain.errors import InvalidInput
from brain.runtime import Brain
from brain.services import cursors
from brain.services.memory import Draft
from tests.memories import ask, bound, brain_on, now, remember


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


async def walk(brain: Brain, **arguments: Any) -> dict[str, Any]:
    return dict((await ask(brain, "walk_trail", **arguments)).data)


async def keys(brain: Brain, **arguments: Any) -> list[str]:
    return [fact["key"] for fact in (await walk(brain, **arguments))["facts"]]


async def test_last_night_in_order_is_exactly_what_happened_last_night(store: Database) -> None:
    brain = brain_on(store)
    older = [
        Draft(text=f"What happened last night, number {n}", key=f"old{n}", occurred=f"2026-0{n % 2 + 1}-1{n % 9}")
        for n in range(200)
    ]
    night = [
        Draft(text=f"Step {n} of the release", key=f"night{n}", occurred=f"2026-03-01T2{n % 4}:0{n}:00Z")
        for n in (3, 1, 0, 2)
    ] + [
        Draft(text="Rolled back", key="night5", occurred="2026-03-02T01:30:00Z"),
        Draft(text="Went to bed", key="night6", occurred="2026-03-02T02:00:00Z"),
    ]
    await remember(brain, *older, *night)
    data = await walk(brain, since="2026-03-01T18:00:00Z", until="2026-03-02T06:00:00Z")
    assert [fact["key"] for fact in data["facts"]] == ["night0", "night1", "night2", "night3", "night5", "night6"]
    assert data["filters"] == {
        "scopes": ["all"],
        "since": "2026-03-01T18:00:00Z",
        "until": "2026-03-02T06:00:00Z",
        "order": "oldest first",
    }
    assert "cursor" not in data


async def test_the_period_is_half_open_and_order_can_be_turned(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, *(Draft(text=f"day {n}", key=f"d{n}", occurred=f"2026-01-0{n}") for n in range(1, 6)))
    assert await keys(brain, since="2026-01-02", until="2026-01-04") == ["d2", "d3"]
    assert await keys(brain, since="2026-01-02", newest_first=True) == ["d5", "d4", "d3", "d2"]


async def test_equal_event_times_keep_the_order_of_writing(store: Database) -> None:
    brain = brain_on(store)
    order = ["m", "a", "z", "b"]
    await remember(brain, *(Draft(text=f"same day {key}", key=key, occurred="2026-01-01") for key in order))
    assert await keys(brain) == order
    assert await keys(brain, newest_first=True) == order[::-1]


async def test_an_entity_keeps_facts_that_contain_all_its_words(store: Database) -> None:
    brain = brain_on(store)
    await remember(
        brain,
        Draft(text="Marlow & Finch signed", key="both", title=""),
        Draft(text="signed at last", key="title", title="Finch and Marlow"),
        Draft(text="Marlow called", key="one"),
        Draft(text="蓝色门禁卡", key="zh"),
    )
    assert await keys(brain, entity="Marlow Finch") == ["both", "title"]
    assert await keys(brain, entity="marlow") == ["both", "title", "one"]
    assert await keys(brain, entity="门禁卡") == ["zh"]
    assert await keys(brain, entity="nobody") == []


async def test_tags_kinds_and_scope_narrow_the_trail(store: Database) -> None:
    brain = bound(brain_on(store), "kestrel")
    await remember(
        brain,
        Draft(text="one", key="a", tags=["Red"], kind="event"),
        Draft(text="two", key="b", tags=["red", "blue"], kind="fact", scope="lane:work"),
        Draft(text="three", key="c", scope="project:merlin"),
    )
    assert await keys(brain) == ["a", "b"]
    assert await keys(brain, scope="all") == ["a", "b", "c"]
    assert await keys(brain, tags=["RED"]) == ["a", "b"]
    assert await keys(brain, tags=["red", "blue"]) == ["b"]
    assert await keys(brain, kinds=["event"]) == ["a"]
    assert await keys(brain, scope="lane:work", kinds=["event"]) == []
    with pytest.raises(InvalidInput, match="kinds"):
        await walk(brain, kinds=["rumour"])


async def test_forgotten_and_ended_facts_leave_the_trail_and_past_instants_keep_them(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, *(Draft(text=f"day {n}", key=f"d{n}", occurred=f"2026-01-0{n}") for n in range(1, 4)))
    before = (await now(brain)).isoformat()
    await ask(brain, "forget_memory", ref="d1", reason="test")
    await ask(brain, "forget_memory", ref="d2", reason="test", valid_from="2026-02-01")
    await ask(brain, "write_memory", text="day three", key="d3", occurred="2026-01-09")
    assert await keys(brain) == ["d3"]
    assert await keys(brain, valid_at="2026-01-15") == ["d2", "d3"]
    assert await keys(brain, as_of=before) == ["d1", "d2", "d3"]


@pytest.mark.parametrize("newest_first", [False, True])
async def test_pages_join_to_the_whole_trail_while_others_write(store: Database, newest_first: bool) -> None:
    brain = brain_on(store)
    await remember(
        brain, *(Draft(text=f"fact {n}", key=f"k{n:02}", occurred=f"2026-01-0{n // 4 + 1}") for n in range(11))
    )
    whole = await keys(brain, newest_first=newest_first)
    assert len(whole) == 11
    data = await walk(brain, limit=3, newest_first=newest_first)
    seen = [fact["key"] for fact in data["facts"]]
    for change in range(3):
        await remember(brain, Draft(text=f"late news {change}", key=f"new{change}", occurred="2026-01-02"))
        await ask(brain, "forget_memory", ref=whole[-1 - change], reason="test")
        data = await walk(brain, limit=3, newest_first=newest_first, cursor=data["cursor"])
        seen += [fact["key"] for fact in data["facts"]]
    assert seen == whole
    assert "cursor" not in data


async def test_an_age_counts_back_from_the_instant_of_the_answer(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, Draft(text="long ago", key="old", occurred="2019-01-01"), Draft(text="just now", key="new"))
    assert await keys(brain, since="7d") == ["new"]


async def test_a_cursor_pins_its_instant_and_only_that(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, "one", "two")
    cursor = (await walk(brain, limit=1))["cursor"]
    with pytest.raises(InvalidInput, match="as_of"):
        await walk(brain, cursor=cursor, as_of="2026-01-01")
    for wrong in ("x", cursor[:-3], cursors.pack(await now(brain), 3)):
        with pytest.raises(InvalidInput, match="cursor"):
            await walk(brain, cursor=wrong)


@pytest.mark.parametrize("limit", [0, 201])
async def test_a_limit_out_of_range_is_refused(store: Database, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await walk(brain_on(store), limit=limit)
