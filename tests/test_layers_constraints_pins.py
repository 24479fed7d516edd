"""Write rules of constraints and pins: the user's own word, one slot a scope, the version that was read."""

from __future__ import annotations

import pytest

from brain.errors import Conflict, InvalidInput, NotFound, Refused
from brain.runtime import Brain
from brain.services import constraints, history, pins
from tests import factories


async def rules(brain: Brain, **when: object) -> list[str]:
    found = await brain.read(lambda work: constraints.active(work, None), **when)
    return [each.rule for each in found]


@pytest.mark.parametrize("said", ["", "   ", "\n"])
async def test_a_rule_is_added_only_with_the_users_words(brain: Brain, said: str) -> None:
    with pytest.raises(Refused, match="said must quote") as caught:
        await factories.constraint(brain, said=said)
    assert caught.value.field == "said"
    assert await rules(brain) == []


async def test_a_rule_keeps_the_words_and_is_stamped_as_the_users(brain: Brain) -> None:
    row = await factories.constraint(brain, reason="Sunday is family day.")
    assert (row.said, row.origin, row.client, row.session, row.model) == (
        factories.SAID, "user", "tests", "first", "test-model",
    )  # fmt: skip
    assert (row.scope, row.status, row.version, row.reason) == ("global", "active", 1, "Sunday is family day.")
    assert row.known_from == row.recorded_at


async def test_the_same_active_rule_is_not_added_twice(brain: Brain) -> None:
    first = await factories.constraint(brain)
    again = await factories.constraint(brain, f"  {factories.RULE.upper()} ")
    assert (again.id, again.version) == (first.id, 1)
    assert await rules(brain) == [factories.RULE]
    elsewhere = await factories.constraint(brain, scope="lane:work")
    assert elsewhere.id != first.id


async def test_a_rule_is_retired_only_with_the_users_words_and_stays_readable(brain: Brain) -> None:
    row = await factories.constraint(brain)
    with pytest.raises(Refused, match="said must quote"):
        await brain.write(lambda work: constraints.retire(work, ref=f"constraint:{row.id}", said=" "))
    before = await brain.read(_now)
    gone, changed = await brain.write(
        lambda work: constraints.retire(work, ref=row.id, said="drop the sunday rule", reason="New job.")
    )
    assert (changed, gone.status, gone.version) == (True, "retired", 2)
    assert await rules(brain) == []
    assert await rules(brain, as_of=before) == [factories.RULE]
    found = await brain.read(lambda work: history.of(work, f"constraint:{row.id}"))
    shown = history.shown(found)
    assert [(each["status"], each["said"], each["reason"]) for each in shown] == [
        ("active", factories.SAID, ""),
        ("retired", "drop the sunday rule", "New job."),
    ]
    assert shown[0]["known_to"] == shown[1]["known_from"]
    assert shown[1]["known_to"] is None


async def test_retiring_a_rule_again_changes_nothing(brain: Brain) -> None:
    row = await factories.constraint(brain)
    await brain.write(lambda work: constraints.retire(work, ref=row.id, said="drop it"))
    again, changed = await brain.write(lambda work: constraints.retire(work, ref=row.id, said="really, drop it"))
    assert (again.version, again.said, changed) == (2, "drop it", False)


async def test_a_retired_rule_may_be_added_anew(brain: Brain) -> None:
    row = await factories.constraint(brain)
    await brain.write(lambda work: constraints.retire(work, ref=row.id, said="drop it"))
    new = await factories.constraint(brain)
    assert new.id != row.id
    assert await rules(brain) == [factories.RULE]


async def test_retiring_what_is_no_rule_names_the_field(brain: Brain) -> None:
    with pytest.raises(NotFound) as missing:
        await brain.write(lambda work: constraints.retire(work, ref="constraint:none", said="drop it"))
    with pytest.raises(Refused) as wrong:
        await brain.write(lambda work: constraints.retire(work, ref="pin:work", said="drop it"))
    assert (missing.value.field, wrong.value.field) == ("ref", "ref")


async def _now(work: object) -> object:
    return work.as_of  # type: ignore[attr-defined]


async def current(brain: Brain, **when: object) -> list[tuple[str, int, str]]:
    found = await brain.read(lambda work: pins.listing(work, None), **when)
    return [(each.id, each.version, each.state) for each in found]


async def test_a_scope_has_one_pin_that_is_rewritten_in_place(brain: Brain) -> None:
    first = await factories.pin(brain, "Drafting.", scope="lane:work", next_step="Send it.", blocked_on="Figures.")
    second = await factories.pin(brain, "Sent.", scope="lane:work", expected_version=1)
    assert (first.id, second.id, second.version) == ("work", "work", 2)
    assert (second.next, second.blocked_on) == ("", "")
    assert await current(brain) == [("work", 2, "Sent.")]
    assert await current(brain, as_of=first.known_from) == [("work", 1, "Drafting.")]


async def test_pins_come_global_first_then_lanes_then_projects(brain: Brain) -> None:
    for scope in ("project:kestrel", "lane:work", "global", "lane:personal"):
        await factories.pin(brain, scope, scope=scope)
    assert [each[0] for each in await current(brain)] == ["global", "personal", "work", "project:kestrel"]


@pytest.mark.parametrize("expected", [0, 2, 7])
async def test_a_stale_pin_write_is_refused_with_the_current_content(brain: Brain, expected: int) -> None:
    await factories.pin(brain, "Drafting.", scope="lane:work", next_step="Send it.")
    with pytest.raises(Conflict, match="stands at version 1") as caught:
        await factories.pin(brain, "Lost.", scope="lane:work", expected_version=expected)
    assert caught.value.field == "expected_version"
    assert (caught.value.current["state"], caught.value.current["version"]) == ("Drafting.", 1)
    assert "expected_version 1" in caught.value.hint
    assert await current(brain) == [("work", 1, "Drafting.")]


async def test_a_pin_that_says_the_same_is_left_as_it_is(brain: Brain) -> None:
    first = await factories.pin(brain, "Drafting.")
    row, changed = await brain.write(lambda work: pins.write(work, state="Drafting."))
    assert (changed, row.version, row.known_from) == (False, 1, first.known_from)


async def test_expecting_a_version_of_a_pin_that_does_not_exist_is_not_found(brain: Brain) -> None:
    with pytest.raises(NotFound) as caught:
        await factories.pin(brain, scope="lane:work", expected_version=3)
    assert caught.value.field == "expected_version"


async def test_a_negative_version_is_refused(brain: Brain) -> None:
    with pytest.raises(InvalidInput) as caught:
        await factories.pin(brain, expected_version=-1)
    assert caught.value.field == "expected_version"


async def test_an_empty_state_is_refused(brain: Brain) -> None:
    with pytest.raises(InvalidInput) as caught:
        await factories.pin(brain, "  ")
    assert caught.value.field == "state"


async def test_a_pin_is_as_weak_as_the_weakest_row_that_it_cites(brain: Brain) -> None:
    human = factories.as_caller(brain, origin="human")
    imported = await factories.fact(factories.as_caller(brain, origin="import"), "An imported fact.")
    said = await factories.constraint(brain)
    own = await factories.fact(brain, "A fact of the model's own.")
    row = await factories.pin(human, "One.", cites=[f"memory:{imported.id}", f"constraint:{said.id}"])
    assert row.origin == "import"
    assert row.cites == [f"memory:{imported.id}@1", f"constraint:{said.id}@1"]
    row = await factories.pin(human, "Two.", cites=[f"memory:{own.id}"], expected_version=1)
    assert row.origin == "model"
    row = await factories.pin(human, "Three.", cites=[f"constraint:{said.id}"], expected_version=2)
    assert row.origin == "user"
    row = await factories.pin(brain, "Four.", cites=[f"constraint:{said.id}"], expected_version=3)
    assert row.origin == "model"


@pytest.mark.parametrize(
    ("ref", "error"),
    [("memory:nowhere", NotFound), ("nonsense", InvalidInput), ("diary:1", InvalidInput), ("pin:work@9", NotFound)],
)
async def test_a_citation_must_lead_somewhere(brain: Brain, ref: str, error: type[Exception]) -> None:
    await factories.pin(brain, "Work.", scope="lane:work")
    with pytest.raises(error) as caught:
        await factories.pin(brain, cites=[ref])
    assert caught.value.field == "cites"  # type: ignore[attr-defined]


async def test_a_citation_may_name_a_scope_or_a_page_as_a_person_writes_it(brain: Brain) -> None:
    await factories.pin(brain, "Work.", scope="lane:work")
    await factories.page(brain, "Marlow & Finch")
    row = await factories.pin(brain, cites=["pin:lane:work", "wiki:Marlow & Finch"])
    assert row.cites == ["pin:work@1", "wiki:marlow-finch@1"]


async def test_the_failure_log_cannot_be_cited(brain: Brain) -> None:
    row = await factories.friction(brain)
    with pytest.raises(Refused) as caught:
        await factories.pin(brain, cites=[f"friction:{row.id}"])
    assert caught.value.field == "cites"
