"""What the brain answered at an instant, it answers as of that instant for ever, whatever was written meanwhile."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import replay
from benchmarks.workload import ask
from brain.runtime import Brain
from brain.services import constraints
from tests import factories
from tests.memories import now


@pytest.fixture
def own_database(module_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", module_dsn)


def check(out: Path, instants: int) -> None:
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["examples"] == []
    bars = found["bars"]
    assert {kind: bars[f"differing_{kind}"] for kind in replay.KINDS} == dict.fromkeys(replay.KINDS, 0)
    assert (bars["instants"], found["processes"]) == (instants, 4)
    assert bars["writes"] > 8 * instants
    assert found["compared"] == {
        "payloads": 4 * instants,
        "searches": 3 * instants,
        "plans": instants,
        "reads": 7 * instants,
    }


@pytest.mark.usefixtures("own_database")
def test_every_answer_during_a_random_workload_is_replayed_byte_for_byte(tmp_path: Path) -> None:
    out = tmp_path / "replay.json"
    replay.main(["--instants", "12", "--writes", "160", "--later", "100", "--json", str(out)])
    check(out, 12)


@pytest.mark.long
@pytest.mark.usefixtures("own_database")
def test_a_hundred_instants_are_replayed_byte_for_byte_after_ten_thousand_later_rows(tmp_path: Path) -> None:
    out = tmp_path / "replay.json"
    replay.main(["--json", str(out)])
    check(out, 100)


async def test_the_comparison_finds_a_payload_and_a_search_that_were_tampered_with(brain: Brain) -> None:
    await factories.constraint(brain)
    await factories.fact(brain, "Kestrel exports with DuckDB.")
    start = await replay.session_start(brain, {})
    searched = await replay.searched(brain, {"query": "Kestrel exports"})
    assert re.search(rb'"score": 0\.\d{12,}', searched.answer)
    untouched = await replay.replay(brain, [start, searched])
    assert untouched.differing == []
    before = [
        replay.Recorded(each.kind, each.asked, each.as_of, each.answer.replace(b"e", b"E", 1))
        for each in (start, searched)
    ]
    tampered = await replay.replay(brain, before)
    assert (tampered.count("payloads"), tampered.count("searches")) == (1, 1)


async def test_a_write_that_is_under_way_is_in_no_answer_that_is_given_meanwhile(brain: Brain) -> None:
    await factories.constraint(brain, "Never work on a Sunday.")
    during: list[replay.Recorded] = []

    async def slow(work: Any) -> None:
        await constraints.add(work, rule="Never mail at night.", said="please never mail at night")
        during.append(await replay.session_start(brain, {}))

    await brain.write(slow)
    assert b"mail at night" not in during[0].answer
    replayed = await replay.replay(brain, during)
    assert replayed.differing == []
    assert b"mail at night" in (await replay.session_start(brain, {})).answer


async def test_a_fact_that_was_rewritten_later_is_found_by_its_key_in_the_past(brain: Brain) -> None:
    await factories.fact(brain, "The office is on floor two.", key="office")
    then = (await now(brain)).isoformat()
    before = await ask(brain, "get_history", ref="office", as_of=then)
    await factories.fact(brain, "The office is on floor nine.", key="office")
    assert await ask(brain, "get_history", ref="office", as_of=then) == before
    assert (await ask(brain, "get_memory", ref="office", as_of=then)).data["memory"]["text"].endswith("floor two.")


async def test_a_key_that_came_later_changes_no_name_of_the_past(brain: Brain) -> None:
    await factories.fact(brain, "The office is on floor two.", key="office")
    then = (await now(brain)).isoformat()
    tools = ("get_history", "get_memory")
    before = [await ask(brain, tool, ref="office@1", as_of=then) for tool in tools]
    await factories.fact(brain, "An address that looks like a version.", key="office@1")
    assert [await ask(brain, tool, ref="office@1", as_of=then) for tool in tools] == before
