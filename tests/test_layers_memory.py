"""Write rules of memory: idempotent by key and by content, append-only, one successor, nothing lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from brain.errors import ConfigurationError, Conflict, InvalidInput, NotFound, Refused
from brain.layers import LAYERS
from brain.repository import models as model_rows
from brain.repository import versions
from brain.runtime import Brain
from brain.services import amendments, backfill, history, memory, models, status, trail
from tests import factories
from tests.memories import Table

TEXT = "Kestrel exports with DuckDB."


async def walk(brain: Brain, as_of: Any = None, **filters: Any) -> list[str]:
    found = await brain.read(lambda work: trail.walk(work, **filters), as_of=as_of)
    return [each.text for each in found.facts]


async def versions_of(brain: Brain, ref: str) -> int:
    return len((await brain.read(lambda work: history.of(work, ref))).versions)


async def test_the_same_key_and_content_returns_the_first_write(brain: Brain) -> None:
    first = await factories.written(brain, TEXT, key="export")
    again = await factories.written(brain, TEXT, key="export")
    assert (first.outcome, again.outcome) == ("created", "unchanged")
    assert again.fact == first.fact


async def test_the_same_key_with_other_content_is_a_new_version_and_says_so(brain: Brain) -> None:
    first = await factories.written(brain, TEXT, key="export")
    second = await factories.written(brain, "Kestrel exports with Postgres.", key="export")
    assert (second.outcome, second.fact.version, second.fact.id) == ("new_version", 2, first.fact.id)
    assert await walk(brain) == ["Kestrel exports with Postgres."]
    assert await walk(brain, first.fact.known_from) == [TEXT]


async def test_a_version_that_was_not_read_is_refused_with_the_current_content(brain: Brain) -> None:
    await factories.fact(brain, TEXT, key="export")
    await factories.fact(brain, "Kestrel exports with Postgres.", key="export", expected_version=1)
    with pytest.raises(Conflict) as caught:
        await factories.fact(brain, "Kestrel exports by hand.", key="export", expected_version=1)
    assert caught.value.current["text"] == "Kestrel exports with Postgres."
    with pytest.raises(NotFound):
        await factories.fact(brain, "Another.", key="unheard", expected_version=1)


@pytest.mark.parametrize(
    "text", [TEXT, f"  {TEXT.upper()} ", "Kestrel\u00a0exports with DuckDB.", "Ｋestrel exports with DuckDB."]
)
async def test_the_same_content_under_another_key_returns_the_fact_that_is_there(brain: Brain, text: str) -> None:
    first = await factories.written(brain, TEXT, key="export")
    twin = await factories.written(brain, text, key="other")
    assert (twin.outcome, twin.fact) == ("deduplicated", first.fact)
    allowed = await factories.written(brain, text, key="other", allow_duplicate=True)
    assert (allowed.outcome, allowed.fact.key) == ("created", "other")


async def test_the_same_content_in_another_scope_is_another_fact(brain: Brain) -> None:
    await factories.fact(brain, TEXT, scope="lane:work")
    assert (await factories.written(brain, TEXT, scope="lane:school")).outcome == "created"


async def test_writing_an_old_fact_again_does_not_make_it_newer(brain: Brain) -> None:
    first = await factories.fact(brain, TEXT, key="export", occurred="2026-01-10", tags=["kestrel"])
    for given in ({}, {"key": "export"}, {"key": "export", "tags": ["kestrel"]}, {"key": "export", "importance": 5}):
        again = await factories.fact(brain, TEXT, **given)
        assert (again.id, again.occurred) == (first.id, first.occurred)


async def test_near_duplicates_are_reported_and_never_merged(brain: Brain) -> None:
    first = await factories.fact(brain, "Marlow paid invoice 14 of 1250 EUR.")
    near = await factories.written(brain, "Invoice 14 of 1250 EUR: Marlow paid.")
    assert near.outcome == "created"
    other = await factories.written(brain, "Marlow paid invoice 15 of 1250 EUR.")
    assert other.near == ()
    reported = [each["ref"] for each in near.near]
    assert reported in ([], [f"memory:{first.id}"])
    same_words = await factories.written(brain, "Marlow paid invoice 14 of 1250 EUR!!")
    assert f"memory:{first.id}" in [each["ref"] for each in same_words.near]
    assert len(await walk(brain)) == 4


async def test_a_batch_with_a_repeated_key_and_content_stores_each_once(brain: Brain) -> None:
    drafts = [
        memory.Draft(text="One.", key="a"),
        memory.Draft(text="One.", key="a"),
        memory.Draft(text="Two.", key="a"),
        memory.Draft(text="two."),
        memory.Draft(text="Three."),
        memory.Draft(text="THREE."),
    ]
    prepared = await memory.prepare(brain.embedder, drafts)
    written = await brain.write(lambda work: memory.write_many(work, prepared))
    assert [each.outcome for each in written] == [
        "created", "unchanged", "new_version", "deduplicated", "created", "deduplicated",
    ]  # fmt: skip
    assert sorted(await walk(brain)) == ["Three.", "Two."]


async def test_a_batch_is_stored_whole_or_not_at_all(brain: Brain) -> None:
    await factories.fact(brain, "Fixed.", key="fixed")
    prepared = await memory.prepare(
        brain.embedder,
        [memory.Draft(text="Loose."), memory.Draft(text="Clash.", key="fixed", expected_version=7)],
    )
    with pytest.raises(Conflict):
        await brain.write(lambda work: memory.write_many(work, prepared))
    assert await walk(brain) == ["Fixed."]


@pytest.mark.parametrize(("first", "twin"), [("café", "cafe\u0301"), ("CORE", "CO\u200bRE"), ("plain", " plain ")])
async def test_two_spellings_of_one_key_are_one_fact(brain: Brain, first: str, twin: str) -> None:
    one = await factories.fact(brain, "One.", key=first)
    two = await factories.fact(brain, "Two.", key=twin)
    assert (two.id, two.version) == (one.id, 2)


@pytest.mark.parametrize(
    "text", ["null", "true", "123", '{"a":1}', "[1, 2]", " spaced \r\n", "a\\u0000b", "👩‍👩‍👧 e\u0301"]
)
async def test_a_text_comes_back_byte_for_byte(brain: Brain, text: str) -> None:
    row = await factories.fact(brain, text, reference=text, said=text)
    [found] = (await brain.read(trail.walk)).facts
    assert (found.text, found.reference, found.said) == (text, text, text)
    assert found == row


async def test_defaults_and_stamps_of_a_fact(brain: Brain) -> None:
    row = await factories.fact(brain, TEXT)
    assert (row.kind, row.importance, row.confidence, row.trigger) == ("fact", 3, Decimal(1), "autonomous")
    assert (row.origin, row.client, row.session, row.model) == ("model", "tests", "first", "test-model")
    assert row.occurred == row.known_from == row.valid_from
    assert row.key == row.id


@pytest.mark.parametrize(
    ("origin", "said", "stamped"),
    [("model", "", "model"), ("model", "remember it", "user"), ("import", "", "import"), ("human", "", "human"),
     ("import", "he said", "import"), ("human", "I say", "human")],
)  # fmt: skip
async def test_the_origin_comes_from_the_launch_and_the_quote_alone(
    brain: Brain, origin: str, said: str, stamped: str
) -> None:
    row = await factories.fact(factories.as_caller(brain, origin=origin), TEXT, said=said, trigger="explicit")
    assert row.origin == stamped


async def test_only_an_import_may_assert_that_something_was_known_earlier(brain: Brain) -> None:
    earlier = factories.instant("2024-05-01 12:00")
    with pytest.raises(Refused) as caught:
        await factories.fact(brain, TEXT, known_at=earlier)
    assert caught.value.field == "known_at"
    row = await factories.fact(factories.as_caller(brain, origin="import"), TEXT, known_at=earlier)
    assert row.known_from == earlier < row.recorded_at
    assert await walk(brain, "2024-05-02") == [TEXT]
    assert await walk(brain, "2024-04-30") == []
    future = row.recorded_at + timedelta(days=1)
    with pytest.raises(InvalidInput):
        await factories.fact(factories.as_caller(brain, origin="import"), "Other.", known_at=future)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"text": " "}, "text"),
        ({"text": "x" * 16_001}, "text"),
        ({"kind": "rumour"}, "kind"),
        ({"trigger": "magic"}, "trigger"),
        ({"importance": 0}, "importance"),
        ({"importance": 6}, "importance"),
        ({"confidence": "1.1"}, "confidence"),
        ({"confidence": "NaN"}, "confidence"),
        ({"confidence": "sNaN"}, "confidence"),
        ({"confidence": "Infinity"}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"evidence": [{"description": "x"}] * 6}, "evidence"),
        ({"evidence": [{"description": ""}]}, "evidence.description"),
        ({"tags": [""]}, "tags"),
        ({"tags": [f"t{number}" for number in range(21)]}, "tags"),
        ({"title": "x" * 201}, "title"),
        ({"key": "\u200b"}, "key"),
        ({"key": "a\nb"}, "key"),
        ({"occurred": "yesterday"}, "occurred"),
        ({"occurred": "2026-03-01T10:00:00"}, "occurred"),
        ({"occurred": "9999-12-31T23:59:00-05:00"}, "occurred"),
        ({"valid_from": "2026-03-02", "valid_to": "2026-03-02"}, "valid_to"),
        ({"occurred": "2026-03-02", "valid_to": "2026-03-01"}, "valid_to"),
        ({"supersedes": "memory:nowhere"}, "supersedes"),
        ({"scope": "lane:nowhere"}, "scope"),
        ({"scope": "work"}, "scope"),
    ],
)
async def test_a_refusal_names_the_field(brain: Brain, given: dict[str, Any], field: str) -> None:
    with pytest.raises((InvalidInput, NotFound)) as caught:
        await factories.fact(brain, **({"text": TEXT} | given))
    assert caught.value.field == field
    assert await walk(brain) == []


async def test_a_successor_ends_its_predecessor_where_it_begins(brain: Brain) -> None:
    old = await factories.fact(brain, "Ana lives in Porto.", occurred="2024-01-01")
    new = await factories.fact(brain, "Ana lives in Lisbon.", occurred="2025-06-01", supersedes=f"memory:{old.id}")
    assert new.supersedes == old.id
    assert await walk(brain) == ["Ana lives in Lisbon."]
    assert await walk(brain, valid_at="2025-05-31") == ["Ana lives in Porto."]
    assert await walk(brain, valid_at="2025-06-01") == ["Ana lives in Lisbon."]
    assert await walk(brain, new.known_from - timedelta(microseconds=1)) == ["Ana lives in Porto."]


async def test_a_fact_has_one_successor_and_none_backwards_in_time(brain: Brain) -> None:
    old = await factories.fact(brain, "Ana lives in Porto.", occurred="2024-01-01")
    for occurred in ("2023-01-01", "2024-01-01"):
        with pytest.raises(InvalidInput, match="later") as caught:
            await factories.fact(brain, "Ana lives in Faro.", occurred=occurred, supersedes=old.id)
        assert caught.value.field == "supersedes"
    await factories.fact(brain, "Ana lives in Lisbon.", occurred="2025-06-01", supersedes=old.id)
    with pytest.raises((Refused, NotFound)) as again:
        await factories.fact(brain, "Ana lives in Braga.", occurred="2025-07-01", supersedes=old.id)
    assert again.value.field == "supersedes"
    assert await walk(brain) == ["Ana lives in Lisbon."]


async def test_a_fact_whose_validity_is_over_leaves_ordinary_reads(brain: Brain) -> None:
    await factories.fact(brain, "The sale is on.", occurred="2025-01-01", valid_to="2025-02-01")
    assert await walk(brain) == []
    assert await walk(brain, valid_at="2025-01-31") == ["The sale is on."]


async def test_forgetting_is_a_tombstone_that_earlier_instants_do_not_see(brain: Brain) -> None:
    row = await factories.fact(brain, TEXT, key="export")
    gone, changed = await brain.write(lambda work: amendments.forget(work, name="export", reason="Wrong."))
    again, repeated = await brain.write(lambda work: amendments.forget(work, name="export", reason="Wrong."))
    assert (changed, repeated, again.version) == (True, False, gone.version)
    assert await walk(brain) == []
    assert await walk(brain, row.known_from) == [TEXT]
    shown = history.shown(await brain.read(lambda work: history.of(work, "export")))
    assert [(each["version"], each.get("hid")) for each in shown] == [(1, None), (2, [f"memory:{row.id}@1"])]
    with pytest.raises(NotFound):
        await brain.write(lambda work: amendments.forget(work, name="nowhere", reason="Wrong."))
    with pytest.raises(InvalidInput):
        await brain.write(lambda work: amendments.forget(work, name="export", reason=" "))


async def test_a_forgotten_fact_can_be_written_again(brain: Brain) -> None:
    await factories.fact(brain, TEXT, key="export")
    await brain.write(lambda work: amendments.forget(work, name="export", reason="Wrong."))
    again = await factories.written(brain, TEXT, key="export")
    assert (again.outcome, again.fact.version) == ("new_version", 3)
    assert await walk(brain) == [TEXT]


async def test_forgetting_a_period_leaves_the_rest(brain: Brain) -> None:
    row = await factories.fact(brain, TEXT, occurred="2025-01-01")
    period = {"valid_from": "2025-03-01", "valid_to": "2025-04-01"}
    await brain.write(lambda work: amendments.forget(work, name=row.id, reason="Paused.", **period))
    assert await walk(brain, valid_at="2025-03-15") == []
    assert await walk(brain, valid_at="2025-04-01") == [TEXT]
    await brain.write(lambda work: amendments.restore(work, name=row.id))
    assert await walk(brain, valid_at="2025-03-15") == [TEXT]


async def test_restoring_brings_back_everything_that_the_tombstone_hid(brain: Brain) -> None:
    row = await factories.fact(brain, "Ten.", key="price", occurred="2025-01-01")
    await factories.fact(brain, "Nine.", key="price", valid_from="2025-03-01", valid_to="2025-04-01")
    await brain.write(lambda work: amendments.forget(work, name="price", reason="Mistake."))
    await brain.write(lambda work: amendments.restore(work, name="price"))
    assert await walk(brain, valid_at="2025-02-01") == ["Ten."]
    assert await walk(brain, valid_at="2025-03-01") == ["Nine."]
    assert await walk(brain, valid_at="2025-05-01") == ["Ten."]
    assert row.key == "price"


async def test_what_was_not_forgotten_cannot_be_restored(brain: Brain) -> None:
    row = await factories.fact(brain, TEXT)
    with pytest.raises(Refused) as caught:
        await brain.write(lambda work: amendments.restore(work, name=row.id))
    assert caught.value.field == "ref"


async def test_a_key_belongs_to_one_scope(brain: Brain) -> None:
    await factories.fact(brain, TEXT, key="export", scope="lane:work")
    assert (await factories.fact(brain, "Other.", key="export")).scope == "lane:work"
    with pytest.raises(Refused) as caught:
        await factories.fact(brain, "Third.", key="export", scope="lane:school")
    assert caught.value.field == "scope"


async def test_a_fact_survives_a_model_that_fails_and_its_vector_follows(brain: Brain) -> None:
    offline = replace(brain, embedder=factories.Unreachable())
    written = await factories.written(offline, TEXT, key="export")
    assert (written.outcome, written.pending) == ("created", True)
    found = await brain.read(lambda work: status.overview(work, brain.embedder))
    assert found["facts_without_vector"] == 1
    for done in (1, 0):
        assert await backfill.run(brain.read, brain.write, brain.embedder) == done
    found = await brain.read(lambda work: status.overview(work, brain.embedder))
    assert found["facts_without_vector"] == 0
    row = await brain.read(lambda work: versions.get(work, LAYERS["memory"], written.fact.id))
    assert row == written.fact


async def switch_to(brain: Brain) -> None:
    """Put a brain's model in use, as a reindex does at its end."""
    await brain.write(lambda work: model_rows.activate(work, models.of(brain.embedder)))


async def test_what_waits_is_never_embedded_with_another_model_than_the_one_in_use(brain: Brain) -> None:
    """The text waits for a model that is no longer the one in use."""
    before = Table(failing=True)
    await factories.fact(replace(brain, embedder=before), TEXT, key="export")
    before.failing = False
    await switch_to(brain)
    with pytest.raises(ConfigurationError, match="indexed with"):
        await backfill.run(brain.read, brain.write, before)
    assert before.asked == [TEXT]


async def test_a_back_fill_stops_when_the_brain_switches_to_another_model_meanwhile(brain: Brain) -> None:
    old = Table(failing=True)
    await factories.fact(replace(brain, embedder=old), TEXT, key="export")
    old.failing = False

    async def switching(job: Any) -> Any:
        await switch_to(brain)
        return await brain.write(job)

    with pytest.raises(ConfigurationError, match="indexed with"):
        await backfill.run(brain.read, switching, old)
