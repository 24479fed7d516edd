"""Scopes and the failure log: who may write where, near misses of names, artifacts, and what only a human settles."""

from __future__ import annotations

import pytest

from brain.errors import InvalidInput, NotFound, Refused
from brain.names import Scope
from brain.runtime import Brain
from brain.services import friction, history, scopes, session, trail
from tests import factories


async def known(brain: Brain) -> list[str]:
    return [each["scope"] for each in await brain.read(scopes.overview)]


async def test_a_new_brain_knows_global_and_three_lanes(brain: Brain) -> None:
    await factories.fact(brain)
    assert await known(brain) == ["global", "lane:work", "lane:personal", "lane:school"]


@pytest.mark.parametrize("name", ["Kestrel", "kestrel ", "KESTREL", "Ｋｅｓｔｒｅｌ", "kes\u200btrel"])
async def test_spellings_of_one_project_are_one_project(brain: Brain, name: str) -> None:
    await factories.pin(brain, scope="project:kestrel")
    row = await factories.fact(brain, scope=f"project:{name}")
    assert row.scope == "project:kestrel"
    assert (await known(brain))[4:] == ["project:kestrel"]


@pytest.mark.parametrize("name", ["kestrel-dashboard", "kestral", "kstrel", "k-e-s-t-r-e-l"])
async def test_a_near_miss_of_a_project_is_refused_with_the_known_name(brain: Brain, name: str) -> None:
    await factories.pin(brain, scope="project:kestrel")
    with pytest.raises(InvalidInput, match="did you mean project:kestrel") as caught:
        await factories.fact(brain, scope=f"project:{name}")
    assert caught.value.field == "scope"
    assert f"brain scope add project:{name}" in caught.value.hint
    with pytest.raises(InvalidInput):
        await brain.read(lambda work: trail.walk(work, scope=f"project:{name}"))
    added = await brain.write(lambda work: scopes.add(work, f"project:{name}"))
    assert added == (f"project:{name}", True)
    assert (await factories.fact(brain, scope=f"project:{name}")).scope == f"project:{name}"


async def test_a_project_of_another_name_registers_itself(brain: Brain) -> None:
    await factories.pin(brain, scope="project:kestrel")
    await factories.pin(brain, scope="project:heron")
    assert (await known(brain))[4:] == ["project:kestrel", "project:heron"]


async def test_a_refused_write_registers_no_project(brain: Brain) -> None:
    await factories.fact(brain)
    with pytest.raises(InvalidInput):
        await factories.thread(brain, title="", scope="project:kestrel")
    assert len(await known(brain)) == 4


async def test_an_unknown_lane_lists_the_known_ones_until_a_human_adds_it(brain: Brain) -> None:
    await factories.fact(brain)
    with pytest.raises(InvalidInput, match="lane:work, lane:personal, lane:school") as caught:
        await factories.pin(brain, scope="lane:health")
    assert caught.value.hint == "A human adds lanes: brain scope add lane:health"
    assert await brain.write(lambda work: scopes.add(work, "lane:Health")) == ("lane:health", True)
    assert await brain.write(lambda work: scopes.add(work, "lane:health")) == ("lane:health", False)
    assert (await factories.pin(brain, scope="lane:health")).id == "health"


async def test_lanes_may_be_added_to_a_brain_that_nobody_wrote_to(brain: Brain) -> None:
    assert await brain.write(lambda work: scopes.add(work, "lane:health")) == ("lane:health", True)
    assert (await known(brain))[-1] == "lane:health"


async def test_a_lane_is_found_in_any_case(brain: Brain) -> None:
    assert (await factories.pin(brain, scope="Lane: Work")).scope == "lane:work"


@pytest.mark.parametrize("scope", ["work", "lane:", "project:", "team:x", "global:x", "lane:\u200b", "all"])
async def test_a_scope_of_another_form_is_refused(brain: Brain, scope: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await factories.pin(brain, scope=scope)
    assert caught.value.field == "scope"


async def test_a_write_without_a_scope_goes_to_the_project_of_the_process(brain: Brain) -> None:
    bound = factories.as_caller(brain, project=Scope("project", "kestrel"))
    assert (await factories.fact(bound, "One.")).scope == "project:kestrel"
    assert (await factories.fact(brain, "Two.")).scope == "global"
    assert (await factories.constraint(bound)).scope == "global"


@pytest.mark.parametrize(
    ("reach", "allowed"),
    [
        ("project", {"project:kestrel"}),
        ("lane", {"project:kestrel", "lane:work"}),
        ("all", {"project:kestrel", "lane:work", "global", "project:heron"}),
    ],
)
async def test_a_write_scope_bounds_every_layer(brain: Brain, reach: str, allowed: set[str]) -> None:
    await factories.one_of_each(brain)
    bound = factories.as_caller(brain, project=Scope("project", "kestrel"), write_scope=reach)
    for layer, write in factories.WRITERS.items():
        for scope in ("project:kestrel", "lane:work", "global", "project:heron"):
            given = {"wiki": {"page": f"Page {scope}"}, "thread": {"key": f"thread {scope}"}}.get(layer, {})
            given |= {"record": {"title": scope}}.get(layer, {}) | {
                "pin": {"expected_version": int(scope == "global")}
            }.get(layer, {})
            if scope in allowed:
                assert (await write(bound, scope=scope, **given)).scope == scope
            else:
                with pytest.raises(Refused) as caught:
                    await write(bound, scope=scope, **given)
                assert caught.value.field == "scope"


async def test_a_bounded_writer_does_not_rewrite_a_row_of_another_scope(brain: Brain) -> None:
    rows = await factories.one_of_each(brain)
    bound = factories.as_caller(brain, project=Scope("project", "kestrel"), write_scope="project")
    with pytest.raises(Refused):
        await factories.thread(bound, expected_version=1)
    with pytest.raises(Refused):
        await factories.page(bound, body="New.", expected_version=1)
    with pytest.raises(Refused):
        await factories.record(bound, value="1")
    with pytest.raises(Refused):
        await factories.fact(bound, "Other.", key=rows["memory"].key)


@pytest.mark.parametrize("layer", factories.WRITERS)
async def test_a_read_only_process_writes_nothing(brain: Brain, layer: str) -> None:
    with pytest.raises(Refused, match="read-only"):
        await factories.WRITERS[layer](factories.as_caller(brain, read_only=True))


@pytest.mark.parametrize(
    ("artifact", "why"),
    [
        ("", "missing"),
        ("  \n ", "missing"),
        ("KeyError", "at least 15"),
        ("The totals were wrong", "restates"),
        ("wrong were the totals; with tax, Totals!", "restates"),
        ("TOTALS WITH TAX, the totals", "restates"),
        ("!!!!!!!!!!!!!!!!!!!!!", "restates"),
        ("\u200b" * 30, "restates"),
    ],
)
async def test_friction_without_a_concrete_artifact_is_refused(brain: Brain, artifact: str, why: str) -> None:
    with pytest.raises(Refused, match=why) as caught:
        await factories.friction(brain, artifact=artifact)
    assert caught.value.field == "artifact"
    assert "verbatim" in caught.value.message


@pytest.mark.parametrize(
    "artifact", ["totals.py:3: KeyError: 'vat'", "exit status 1, wrong totals", "結果が違います: 合計が 1250 ではない"]
)
async def test_friction_with_verbatim_output_is_stored_as_new(brain: Brain, artifact: str) -> None:
    row = await factories.friction(brain, artifact=artifact, category="tool")
    assert (row.status, row.version, row.artifact, row.category) == ("new", 1, artifact, "tool")


@pytest.mark.parametrize("field", ["happened", "expected"])
async def test_friction_says_what_happened_and_what_was_expected(brain: Brain, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await factories.friction(brain, **{field: " "})
    assert caught.value.field == field


async def test_the_same_open_entry_is_returned_and_a_settled_one_is_not(brain: Brain) -> None:
    human = factories.as_caller(brain, origin="human")
    first = await factories.friction(brain)
    assert (await factories.friction(brain)).id == first.id
    await human.write(lambda work: friction.triage(work, ref=first.id, status="fixed"))
    assert (await factories.friction(brain)).id != first.id


@pytest.mark.parametrize("origin", ["model", "import"])
async def test_only_a_human_settles_friction(brain: Brain, origin: str) -> None:
    row = await factories.friction(brain)
    other = factories.as_caller(brain, origin=origin)
    with pytest.raises(Refused) as caught:
        await other.write(lambda work: friction.triage(work, ref=row.id, status="fixed"))
    assert caught.value.field == "status"
    human = factories.as_caller(brain, origin="human")
    settled = await human.write(
        lambda work: friction.triage(work, ref=f"friction:{row.id}", status="Fixed", note="PR 7")
    )
    assert (settled.status, settled.version, settled.note, settled.origin) == ("fixed", 2, "PR 7", "human")
    with pytest.raises(InvalidInput, match="new, triaged, fixed, dismissed"):
        await human.write(lambda work: friction.triage(work, ref=row.id, status="closed"))
    with pytest.raises(NotFound):
        await human.write(lambda work: friction.triage(work, ref="none", status="fixed"))


async def test_friction_reaches_neither_history_nor_a_session(brain: Brain) -> None:
    row = await factories.friction(brain, "A complaint about xyzzy.")
    with pytest.raises(Refused) as caught:
        await brain.read(lambda work: history.of(work, f"friction:{row.id}"))
    assert caught.value.field == "ref"
    other = factories.as_caller(brain, session="second")
    payload = await other.read(lambda work: session.start(work, since="2000-01-01"))
    assert "xyzzy" not in payload.text + str(payload.data)
    seen = await brain.read(lambda work: history.of(work, f"friction:{row.id}", for_human=True))
    assert len(seen.versions) == 1
