"""Write rules of threads: a status moves only on what the user said, and silence moves nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from brain.errors import Conflict, InvalidInput, Refused
from brain.runtime import Brain
from brain.services import threads
from tests import factories


async def listed(brain: Brain, **when: object) -> list[tuple[str, int, str]]:
    found = await brain.read(lambda work: threads.listing(work, None), **when)
    return [(each.thread.id, each.thread.version, each.thread.status) for each in found]


async def test_a_new_thread_is_open_with_a_week_of_cadence(brain: Brain) -> None:
    row = await factories.thread(brain, "Tax Return", scope="lane:personal", note="Ask Ana.")
    assert (row.id, row.version, row.status, row.cadence_days) == ("tax-return", 1, "open", 7)
    assert (row.scope, row.note, row.said, row.origin) == ("lane:personal", "Ask Ana.", "", "model")


@pytest.mark.parametrize("title", ["", "  "])
async def test_a_new_thread_needs_a_title(brain: Brain, title: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await factories.thread(brain, title=title)
    assert caught.value.field == "title"


@pytest.mark.parametrize("status", ["waiting", "paused", "done", "dropped"])
async def test_a_status_changes_only_with_the_users_words(brain: Brain, status: str) -> None:
    await factories.thread(brain)
    with pytest.raises(Refused, match="said must quote") as caught:
        await factories.thread(brain, status=status, expected_version=1)
    assert caught.value.field == "said"
    with pytest.raises(Refused):
        await factories.thread(brain, "another", status=status)
    row = await factories.thread(brain, status=status, said=f"it is {status}", expected_version=1)
    assert (row.status, row.version, row.said, row.origin) == (status, 2, f"it is {status}", "user")


async def test_a_finished_thread_is_reopened_only_with_the_users_words(brain: Brain) -> None:
    await factories.thread(brain)
    await factories.thread(brain, status="done", said="filed", expected_version=1)
    with pytest.raises(Refused):
        await factories.thread(brain, status="open", expected_version=2)
    touched = await factories.thread(brain, note="Filed by post.", expected_version=2)
    assert touched.status == "done"


async def test_an_unknown_status_lists_the_known_ones(brain: Brain) -> None:
    with pytest.raises(InvalidInput, match="open, waiting, paused, done, dropped") as caught:
        await factories.thread(brain, status="closed", said="close it")
    assert caught.value.field == "status"


@pytest.mark.parametrize("days", [-1, 3_661])
async def test_a_cadence_outside_its_range_is_refused(brain: Brain, days: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        await factories.thread(brain, cadence_days=days)
    assert caught.value.field == "cadence_days"


async def test_a_touch_keeps_what_it_leaves_out(brain: Brain) -> None:
    first = await factories.thread(brain, cadence_days=3, note="Ask Ana.")
    for blank in ("", "   "):
        row = await factories.thread(brain, title=blank, expected_version=first.version)
        assert (row.title, row.cadence_days, row.note, row.status) == ("File the tax return", 3, "Ask Ana.", "open")
        first = row
    assert await listed(brain) == [("tax-return", 3, "open")]


async def test_a_stale_touch_is_refused_with_the_current_content(brain: Brain) -> None:
    await factories.thread(brain, note="Current.")
    with pytest.raises(Conflict) as caught:
        await factories.thread(brain, note="Lost.")
    assert (caught.value.current["note"], caught.value.current["version"]) == ("Current.", 1)


async def test_a_thread_does_not_change_its_scope(brain: Brain) -> None:
    await factories.thread(brain, scope="lane:work")
    with pytest.raises(Refused) as caught:
        await factories.thread(brain, scope="lane:school", expected_version=1)
    assert caught.value.field == "scope"


async def test_the_list_holds_unfinished_threads_the_longest_silent_first_and_remembers_the_past(brain: Brain) -> None:
    for key in ("one", "two", "three"):
        last = await factories.thread(brain, key)
    await factories.thread(brain, "one", expected_version=1)
    await factories.thread(brain, "two", status="done", said="two is done", expected_version=1)
    assert await listed(brain) == [("three", 1, "open"), ("one", 2, "open")]
    assert await listed(brain, as_of=last.known_from) == [("one", 1, "open"), ("two", 1, "open"), ("three", 1, "open")]


@pytest.mark.parametrize("status", ["open", "waiting", "paused", "done", "dropped"])
async def test_silence_makes_an_unfinished_thread_quiet_and_moves_nothing(brain: Brain, status: str) -> None:
    importing = factories.as_caller(brain, origin="import")
    ago = await brain.read(_days_ago)
    words = {} if status == "open" else {"status": status, "said": f"it is {status}"}
    await factories.thread(importing, cadence_days=7, known_at=ago, **words)
    quiet = await brain.read(lambda work: threads.quiet(work, None))
    assert [(each.thread.status, each.days) for each in quiet] == (
        [] if status in ("done", "dropped") else [(status, 8)]
    )
    await factories.thread(brain, expected_version=1)
    assert await brain.read(lambda work: threads.quiet(work, None)) == []


async def _days_ago(work: object) -> object:
    return work.as_of - timedelta(days=8)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("ago", "quiet"), [(timedelta(days=2), True), (timedelta(days=1), False)])
async def test_a_thread_is_quiet_only_after_its_cadence_is_over(brain: Brain, ago: timedelta, quiet: bool) -> None:
    now = await brain.read(_now)
    importing = factories.as_caller(brain, origin="import")
    await factories.thread(importing, cadence_days=1, known_at=now - ago)
    assert len(await brain.read(lambda work: threads.quiet(work, None))) == int(quiet)


async def _now(work: object) -> object:
    return work.as_of  # type: ignore[attr-defined]
