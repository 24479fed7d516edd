"""Corrections, deletions, restorations and successions of facts: what shows when, and what history keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from brain.errors import BrainError, Conflict, InvalidInput, NotFound, Refused
from brain.layers import Assertion
from brain.runtime import Brain
from brain.services import amendments, status
from brain.services.memory import Draft
from tests.memories import Table, ask, bound, brain_on, found, now, remember

JANUARY, FEBRUARY, MARCH, APRIL = "2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01"


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


@pytest.fixture
async def brain(store: Database) -> AsyncIterator[Brain]:
    """A brain with one fact, `export`, that holds from January; afterwards its rectangles agree with its log."""
    brain = brain_on(store, origin="model")
    await remember(brain, Draft(text="The export uses DuckDB", key="export", occurred=JANUARY, tags=["tech"]))
    yield brain
    checks = await brain.read(lambda work: status.checks(work, brain.embedder))
    assert [check for check in checks if not check.ok and "visibility" in check.name] == []


async def text_at(brain: Brain, valid_at: str, *, as_of: str = "", key: str = "export") -> str | None:
    try:
        answer = await ask(brain, "get_memory", ref=key, valid_at=valid_at, as_of=as_of)
    except NotFound:
        return None
    return str(answer.data["memory"]["text"])


async def shown(brain: Brain, key: str = "export") -> list[str | None]:
    """The text in each of the first four months of 2026, and now."""
    months = [await text_at(brain, f"2026-0{month}-15", key=key) for month in (1, 2, 3, 4)]
    return [*months, await text_at(brain, "", key=key)]


async def amend(brain: Brain, version: int, **change: Any) -> dict[str, Any]:
    arguments = {"ref": "export", "reason": "test", "expected_version": version} | change
    return dict((await ask(brain, "amend_memory", **arguments)).data)


async def forget(brain: Brain, **arguments: Any) -> dict[str, Any]:
    return dict((await ask(brain, "forget_memory", **({"ref": "export", "reason": "test"} | arguments))).data)


async def restore(brain: Brain, name: str = "export") -> Assertion:
    return await brain.write(lambda work: amendments.restore(work, name=name))


async def history(brain: Brain, ref: str = "export", **arguments: Any) -> list[dict[str, Any]]:
    return list((await ask(brain, "get_history", ref=ref, **arguments)).data["versions"])


# --- amend


async def test_a_corrected_text_replaces_the_old_one_and_earlier_instants_keep_it(brain: Brain) -> None:
    before = (await now(brain)).isoformat()
    amended = await amend(brain, 1, text="The export uses Postgres", reason="misheard")
    assert (amended["outcome"], amended["row"]["version"]) == ("amended", 2)
    assert await shown(brain) == ["The export uses Postgres"] * 5
    assert await text_at(brain, "", as_of=before) == "The export uses DuckDB"
    assert await found(brain, "duckdb") == []
    assert await found(brain, "duckdb", as_of=before) == ["export"]
    first, second = await history(brain)
    assert (first["known_to"], second["reason"]) == (second["known_from"], "misheard")


async def test_metadata_changes_and_the_rest_stays(brain: Brain) -> None:
    row = (
        await amend(
            brain, 1, title="Storage", kind="decision", tags=["Data"], importance=5, confidence=0.25, reference="mail 4"
        )
    )["row"]
    changed = {name: row[name] for name in ("title", "kind", "tags", "importance", "confidence", "reference")}
    assert changed == {
        "title": "Storage",
        "kind": "decision",
        "tags": ["data"],
        "importance": 5,
        "confidence": "0.250",
        "reference": "mail 4",
    }
    assert (row["key"], row["text"], row["occurred"]) == ("export", "The export uses DuckDB", "2026-01-01T00:00:00Z")
    cleared = (await amend(brain, 2, tags=[], title=""))["row"]
    assert (cleared["tags"], cleared["title"], cleared["importance"]) == ([], "", 5)


async def test_a_correction_of_an_interval_shows_only_inside_it(brain: Brain) -> None:
    await amend(brain, 1, text="The export used CSV", valid_from=FEBRUARY, valid_to=MARCH)
    duck = "The export uses DuckDB"
    assert await shown(brain) == [duck, "The export used CSV", duck, duck, duck]


async def test_a_later_amendment_leaves_corrected_and_forgotten_periods_alone(brain: Brain) -> None:
    await amend(brain, 1, text="The export used CSV", valid_from=FEBRUARY, valid_to=MARCH)
    await forget(brain, valid_from=MARCH, valid_to=APRIL)
    amended = await amend(brain, 3, text="The export uses Postgres")
    new = "The export uses Postgres"
    assert await shown(brain) == [new, "The export used CSV", None, new, new]
    assert amended["row"]["version"] == (await history(brain))[-1]["version"]
    assert (await amend(brain, amended["row"]["version"], importance=4))["row"]["text"] == new
    assert await shown(brain) == [new, "The export used CSV", None, new, new]


async def test_an_amendment_that_changes_nothing_is_no_version(brain: Brain) -> None:
    assert (await amend(brain, 1, text="The export uses DuckDB", tags=["TECH"]))["outcome"] == "unchanged"
    assert len(await history(brain)) == 1


async def test_another_version_is_a_conflict_with_the_current_content(brain: Brain) -> None:
    await amend(brain, 1, importance=4)
    with pytest.raises(Conflict, match="version 2") as conflict:
        await amend(brain, 1, text="Lost update")
    assert conflict.value.current["importance"] == 4
    assert len(await history(brain)) == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, "text"),
        ({"text": "   "}, "text"),
        ({"kind": "rumour"}, "kind"),
        ({"occurred": "yesterday"}, "occurred"),
        ({"valid_from": MARCH, "valid_to": FEBRUARY}, "valid_to"),
        ({"valid_to": "infinity"}, "valid_to"),
        ({"importance": 6}, "importance"),
        ({"confidence": 1.5}, "confidence"),
    ],
)
async def test_a_change_that_is_not_accepted_names_its_field(brain: Brain, change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await amend(brain, 1, **change)
    assert refused.value.field == field
    assert len(await history(brain)) == 1


async def test_a_ref_with_a_version_names_the_same_fact(brain: Brain) -> None:
    ref = (await history(brain))[0]["ref"]
    await amend(brain, 1, ref=f"{ref}@1", importance=4)
    assert (await ask(brain, "get_memory", ref=f"{ref}@1")).data["memory"]["importance"] == 3
    assert (await ask(brain, "get_memory", ref=f"{ref}@2")).data["memory"]["importance"] == 4
    assert (await forget(brain, ref=f"{ref}@2"))["outcome"] == "forgotten"


@pytest.mark.parametrize("key", ["kestrel:db", "a@2", "https://example.com/x", "memory notes"])
async def test_a_key_with_signs_of_a_ref_is_found_by_every_tool(store: Database, key: str) -> None:
    brain = brain_on(store)
    await remember(brain, Draft(text="A fact under an unusual key", key=key))
    assert (await ask(brain, "get_memory", ref=key)).data["memory"]["key"] == key
    assert [each["key"] for each in await history(brain, key)] == [key]
    await amend(brain, 1, ref=key, importance=5)
    await forget(brain, ref=key)
    assert [each["tombstone"] for each in await history(brain, key)] == [False, False, True]


@pytest.mark.parametrize("ref", ["nothing", "memory:nothing", "memory:nothing@3"])
async def test_what_does_not_exist_cannot_be_amended_forgotten_or_shown(brain: Brain, ref: str) -> None:
    for tool, more in (
        ("amend_memory", {"reason": "test", "expected_version": 1, "text": "x"}),
        ("forget_memory", {"reason": "test"}),
        ("get_memory", {}),
        ("get_history", {}),
    ):
        with pytest.raises(NotFound):
            await ask(brain, tool, ref=ref, **more)


async def test_a_correction_is_found_by_meaning_at_once_or_after_the_back_fill(store: Database) -> None:
    embedder = Table({"old": [1.0, 0.0, 0.0], "new": [0.0, 1.0, 0.0], "new?": [0.0, 1.0, 0.0]})
    brain = brain_on(store, embedder=embedder)
    await remember(brain, Draft(text="old", key="fact"))
    await ask(brain, "amend_memory", ref="fact", expected_version=1, reason="test", text="new")
    assert await found(brain, "new?") == ["fact"]
    embedder.failing = True
    await ask(brain, "amend_memory", ref="fact", expected_version=2, reason="test", text="newest")
    assert await found(brain, "newest") == ["fact"]
    assert (await ask(brain, "get_status")).data["facts_without_vector"] == 1


# --- forget and restore


async def test_a_forgotten_fact_is_gone_now_and_still_there_before(brain: Brain) -> None:
    before = (await now(brain)).isoformat()
    assert (await forget(brain, reason="wrong"))["outcome"] == "forgotten"
    assert await shown(brain) == [None] * 5
    assert await found(brain, "export duckdb") == []
    assert await text_at(brain, "", as_of=before) == "The export uses DuckDB"
    _, tombstone = await history(brain)
    ref = tombstone["ref"]
    assert (tombstone["tombstone"], tombstone["reason"], tombstone["hid"]) == (True, "wrong", [f"{ref}@1"])


async def test_forgetting_again_changes_nothing(brain: Brain) -> None:
    await forget(brain, valid_from=FEBRUARY, valid_to=MARCH)
    await forget(brain, valid_from=MARCH, valid_to=APRIL)
    for start, end in ((FEBRUARY, MARCH), (MARCH, APRIL)):
        assert (await forget(brain, valid_from=start, valid_to=end))["outcome"] == "unchanged"
    assert len(await history(brain)) == 3
    await forget(brain)
    assert (await forget(brain))["outcome"] == "unchanged"
    assert len(await history(brain)) == 4


async def test_forgetting_what_is_not_visible_is_an_error(brain: Brain) -> None:
    with pytest.raises(NotFound, match="visible in that period"):
        await forget(brain, valid_from="2020-01-01", valid_to="2021-01-01")
    await forget(brain)
    with pytest.raises(NotFound, match="visible in that period"):
        await forget(brain, valid_from=FEBRUARY)
    with pytest.raises(NotFound):
        await amend(brain, 2, text="Back again")


async def test_forgetting_needs_a_reason_and_a_period_that_runs_forwards(brain: Brain) -> None:
    with pytest.raises(InvalidInput, match="reason"):
        await forget(brain, reason=" ")
    with pytest.raises(InvalidInput, match="valid_to"):
        await forget(brain, valid_from=MARCH, valid_to=MARCH)


async def test_a_forgotten_period_is_a_hole(brain: Brain) -> None:
    await forget(brain, valid_from=FEBRUARY, valid_to=APRIL)
    duck = "The export uses DuckDB"
    assert await shown(brain) == [duck, None, None, duck, duck]
    await restore(brain)
    assert await shown(brain) == [duck] * 5


async def test_restoring_brings_back_everything_that_was_hidden(brain: Brain) -> None:
    await amend(brain, 1, text="The export used CSV", valid_from=FEBRUARY, valid_to=MARCH)
    before = await shown(brain)
    await forget(brain)
    assert await shown(brain) == [None] * 5
    await restore(brain)
    assert await shown(brain) == before
    with pytest.raises(Refused):
        await restore(brain)


async def test_each_restoring_undoes_one_more_forgetting_until_nothing_is_hidden(brain: Brain) -> None:
    duck = "The export uses DuckDB"
    await forget(brain, valid_from=FEBRUARY, valid_to=MARCH)
    await forget(brain, valid_from=MARCH, valid_to=APRIL)
    assert await shown(brain) == [duck, None, None, duck, duck]
    await restore(brain)
    assert await shown(brain) == [duck, None, duck, duck, duck]
    await restore(brain)
    assert await shown(brain) == [duck] * 5
    with pytest.raises(Refused, match="nothing forgotten"):
        await restore(brain)
    assert len(await history(brain)) == 5


async def test_a_forgotten_period_inside_a_forgotten_fact_is_restored_second(brain: Brain) -> None:
    duck = "The export uses DuckDB"
    await forget(brain, valid_from=FEBRUARY, valid_to=MARCH)
    await forget(brain)
    await restore(brain)
    assert await shown(brain) == [duck, None, duck, duck, duck]
    await restore(brain)
    assert await shown(brain) == [duck] * 5


async def test_restoring_leaves_alone_what_was_written_into_the_hole(brain: Brain) -> None:
    duck = "The export uses DuckDB"
    await forget(brain)
    await remember(
        brain, Draft(text="The export used CSV", key="export", occurred=FEBRUARY, valid_from=FEBRUARY, valid_to=MARCH)
    )
    assert await shown(brain) == [None, "The export used CSV", None, None, None]
    await restore(brain)
    assert await shown(brain) == [duck, "The export used CSV", duck, duck, duck]


async def test_what_was_never_forgotten_cannot_be_restored(brain: Brain) -> None:
    with pytest.raises(Refused, match="nothing forgotten"):
        await restore(brain)


async def test_an_import_of_an_older_assertion_does_not_stand_in_the_way_of_restoring(brain: Brain) -> None:
    known = await now(brain)
    await forget(brain)
    human = replace(brain, caller=replace(brain.caller, origin="import"))
    older = Draft(text="The export uses SQLite", key="export", occurred=JANUARY, known_at=known)
    await remember(human, older)
    assert [each["tombstone"] for each in await history(brain)] == [False, True, False]
    assert await text_at(brain, "") is None
    await restore(brain)
    assert await text_at(brain, "") == "The export uses SQLite"


async def test_a_superseded_fact_is_restored_only_after_its_successor_was_forgotten(brain: Brain) -> None:
    duck = "The export uses DuckDB"
    successor = (await replace_export(brain, occurred=MARCH))["row"]["ref"]
    with pytest.raises(Refused, match=f"superseded by {successor}; forget that fact first"):
        await restore(brain)
    assert await shown(brain) == [duck, duck, None, None, None]
    await forget(brain, ref="new")
    await restore(brain)
    assert await shown(brain) == [duck] * 5
    with pytest.raises(Refused, match="supersedes memory:"):
        await restore(brain, "new")
    await forget(brain, valid_from=MARCH)
    await restore(brain, "new")
    assert await shown(brain, "new") == [None, None, *["The export uses Postgres"] * 3]


async def test_what_was_forgotten_of_a_superseded_fact_comes_back_without_the_succession(brain: Brain) -> None:
    duck = "The export uses DuckDB"
    await forget(brain, valid_from=FEBRUARY, valid_to="2026-02-20")
    await replace_export(brain, occurred=MARCH)
    await restore(brain)
    assert await shown(brain) == [duck, duck, None, None, None]


async def test_history_says_what_each_tombstone_hid_and_only_what_was_known_then(brain: Brain) -> None:
    await amend(brain, 1, text="The export used CSV", valid_from=FEBRUARY, valid_to=MARCH)
    await forget(brain, valid_from=FEBRUARY)
    between = (await now(brain)).isoformat()
    await forget(brain)
    ref = (await history(brain))[0]["ref"]
    assert {each["version"]: each.get("hid") for each in await history(brain)} == {
        1: None,
        2: None,
        3: [f"{ref}@1", f"{ref}@2"],
        4: [f"{ref}@1"],
    }
    then = await history(brain, as_of=between)
    assert [each["version"] for each in then] == [1, 2, 3]
    assert then[0]["known_to"] is None
    with pytest.raises(NotFound, match="not known"):
        await history(brain, as_of="2020-01-01")


# --- supersedes


async def replace_export(brain: Brain, **given: Any) -> dict[str, Any]:
    arguments = {"text": "The export uses Postgres", "key": "new", "supersedes": "memory:export"} | given
    return dict((await ask(brain, "write_memory", **arguments)).data)


async def test_a_successor_closes_its_predecessor_where_it_begins(brain: Brain) -> None:
    await replace_export(brain, occurred=MARCH)
    duck = "The export uses DuckDB"
    assert await shown(brain) == [duck, duck, None, None, None]
    assert await shown(brain, "new") == [None, None, *["The export uses Postgres"] * 3]
    ended = (await history(brain))[-1]
    assert ended["valid_from"] == "2026-03-01T00:00:00Z"
    assert ended["reason"].startswith("superseded by memory:")


async def test_there_is_one_successor_and_repeating_its_write_changes_nothing(brain: Brain) -> None:
    first = await replace_export(brain, occurred=MARCH)
    again = await replace_export(brain, occurred=MARCH)
    assert (again["outcome"], again["row"]["ref"]) == ("unchanged", first["row"]["ref"])
    assert len(await history(brain)) == 2
    with pytest.raises(BrainError, match="supersedes"):
        await replace_export(brain, key="other", text="The export uses SQLite")
    with pytest.raises(InvalidInput, match="supersedes"):
        await replace_export(brain, supersedes="new")


async def test_a_text_that_is_stored_does_not_become_a_successor_without_a_word(brain: Brain) -> None:
    stored = await remember(brain, Draft(text="The export uses Postgres", key="stored", occurred=JANUARY))
    with pytest.raises(InvalidInput, match="allow_duplicate") as refused:
        await replace_export(brain, key="")
    assert (refused.value.field, f"memory:{stored[0].fact.id}" in str(refused.value)) == ("supersedes", True)
    assert await text_at(brain, "") == "The export uses DuckDB"
    written = await replace_export(brain, key="", allow_duplicate=True)
    assert written["outcome"] == "created"
    assert await text_at(brain, "") is None


async def test_repeating_a_succession_without_a_key_changes_nothing(brain: Brain) -> None:
    first = await replace_export(brain, key="")
    again = await replace_export(brain, key="")
    assert (again["outcome"], again["row"]["ref"]) == ("deduplicated", first["row"]["ref"])
    assert len(await history(brain)) == 2


@pytest.mark.parametrize("start", ["2025-12-31", JANUARY])
async def test_a_successor_never_begins_before_its_predecessor(brain: Brain, start: str) -> None:
    with pytest.raises(InvalidInput, match="begin later"):
        await replace_export(brain, occurred=start)
    assert await text_at(brain, "") == "The export uses DuckDB"
    assert await found(brain, "postgres") == []


async def test_only_a_visible_fact_can_be_superseded(brain: Brain) -> None:
    await forget(brain)
    with pytest.raises(NotFound, match="supersedes"):
        await replace_export(brain)


async def test_a_process_amends_and_forgets_only_where_it_may_write(store: Database) -> None:
    writer = brain_on(store)
    await remember(writer, Draft(text="A fact of work", key="export", scope="lane:work"))
    caller = brain_on(store, namespace=writer.caller.namespace, origin="model", write_scope="project")
    reader = bound(caller, "kestrel")
    for call in (amend(reader, 1, text="Changed"), forget(reader), replace_export(reader, scope="project:kestrel")):
        with pytest.raises(Refused, match="scope"):
            await call
    assert await text_at(reader, "") == "A fact of work"
