"""weigh_claims: the server looks up layers and dates; the caller says only what it read and what it recalls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from brain.errors import BrainError, InvalidInput, NotFound, Refused
from brain.runtime import Brain
from brain.services import pins, wiki
from brain.services.memory import Draft
from tests.memories import ask, brain_on, now, remember


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


@pytest.fixture
def brain(store: Database) -> Brain:
    return brain_on(store)


async def weigh(brain: Brain, *claims: tuple[str, str], **more: Any) -> dict[str, Any]:
    pairs = [{"ref": ref, "value": value} for ref, value in claims]
    return dict((await ask(brain, "weigh_claims", claims=pairs, **more)).data)


async def fact(brain: Brain, text: str, occurred: str) -> str:
    [written] = await remember(brain, Draft(text=text, occurred=occurred, allow_duplicate=True))
    return f"memory:{written.fact.id}"


async def pin(brain: Brain, state: str, day: int) -> str:
    """A pin of February 2026, as a human's import asserts it."""
    at = datetime(2026, 2, day, tzinfo=UTC)
    await brain.write(lambda work: pins.write(work, state=state, scope="lane:work", known_at=at))
    return "pin:work"


async def record(brain: Brain, value: str, date: str) -> str:
    answer = await ask(brain, "log_record", kind="invoice", title="Marlow 14", date=date, value=value, unit="EUR")
    return str(answer.data["row"]["ref"])


async def rule(brain: Brain, text: str) -> str:
    return str((await ask(brain, "set_constraint", rule=text, said=text)).data["row"]["ref"])


async def test_a_record_beats_a_newer_memory_and_asks_whether_it_needs_an_update(brain: Brain) -> None:
    invoice, memory = await record(brain, "1250.00", "2026-01-05"), await fact(brain, "It was 1300", "2026-03-01")
    verdict = await weigh(brain, (memory, "EUR 1,300"), (invoice, "1250.00 EUR"))
    assert verdict["outcome"] == "settled"
    assert verdict["winner"] == {
        "ref": f"{invoice}@1",
        "layer": "record",
        "value": "1250.00 EUR",
        "at": "2026-01-05T00:00:00Z",
    }
    assert [(flag["ref"], flag["newer"]) for flag in verdict["flags"]] == [(f"{memory}@1", True)]


@pytest.mark.parametrize(("occurred", "outcome"), [("2026-01-10", "settled"), ("2026-03-01", "contested")])
async def test_only_a_newer_event_contests_a_pin(brain: Brain, occurred: str, outcome: str) -> None:
    ref, memory = await pin(brain, "Ships in May", 1), await fact(brain, "Ships in March", occurred)
    verdict = await weigh(brain, (ref, "May"), (memory, "March"))
    assert verdict["outcome"] == outcome
    assert (verdict["winner"] is None) is (outcome == "contested")
    assert {side[0]["ref"] for side in verdict["sides"]} == {"pin:work@1", f"{memory}@1"}


async def test_writing_an_old_fact_again_does_not_make_it_contest_a_pin(brain: Brain) -> None:
    await fact(brain, "Kestrel ships in March", "2026-01-10")
    ref = await pin(brain, "Kestrel ships in May", 1)
    again = await ask(brain, "write_memory", text="Kestrel ships in March")
    verdict = await weigh(brain, (ref, "May"), (again.data["row"]["ref"], "March"))
    assert (verdict["outcome"], verdict["winner"]["ref"]) == ("settled", "pin:work@1")


async def test_a_newer_pin_is_weighed_at_its_own_date(brain: Brain) -> None:
    await pin(brain, "Ships in May", 1)
    memory = await fact(brain, "Ships in March", "2026-02-10")
    assert (await weigh(brain, ("pin:work", "May"), (memory, "March")))["outcome"] == "contested"
    at = datetime(2026, 2, 20, tzinfo=UTC)
    await brain.write(
        lambda work: pins.write(work, state="Ships in June", scope="lane:work", expected_version=1, known_at=at)
    )
    verdict = await weigh(brain, ("pin:work", "June"), (memory, "March"))
    assert verdict["winner"]["at"] == "2026-02-20T00:00:00Z"


async def test_a_rule_beats_everything_and_recall_beats_nothing(brain: Brain) -> None:
    refs = [await rule(brain, "Invoices go out in EUR"), await record(brain, "5", "2026-03-01")]
    verdict = await weigh(brain, (refs[1], "USD"), (refs[0], "EUR"), recall="GBP")
    assert (verdict["outcome"], verdict["winner"]["layer"]) == ("settled", "constraint")
    assert {flag["ref"] for flag in verdict["flags"]} == {f"{refs[1]}@1", "recall"}
    alone = await weigh(brain, recall="GBP")
    assert (alone["outcome"], alone["winner"]) == ("unsupported", None)


async def test_agreement_cites_the_highest_layer_whatever_the_spelling(brain: Brain) -> None:
    invoice, memory = await record(brain, "1250.00", "2026-01-05"), await fact(brain, "1250", "2026-01-05")
    verdict = await weigh(brain, (memory, "€1,250.00"), (invoice, "EUR 1250"), recall="1250 eur")
    assert (verdict["outcome"], verdict["winner"]["ref"]) == ("agreed", f"{invoice}@1")
    assert verdict["flags"] == []


async def test_the_caller_cannot_pass_authority_or_a_date(brain: Brain) -> None:
    memory = await fact(brain, "x", "2026-01-01")
    for extra in ("layer", "at", "origin", "date"):
        with pytest.raises(InvalidInput, match=f"no argument '{extra}'"):
            await ask(brain, "weigh_claims", claims=[{"ref": memory, "value": "x", extra: "constraint"}])
    with pytest.raises(NotFound):
        await weigh(brain, (memory.replace("memory:", "constraint:"), "x"))


async def test_a_retired_rule_claims_nothing(brain: Brain) -> None:
    ref = await rule(brain, "Never deploy on Fridays")
    before = (await now(brain)).isoformat()
    await ask(brain, "retire_constraint", ref=ref, said="fridays are fine now")
    for name in (ref, f"{ref}@1", f"{ref}@2"):
        with pytest.raises(InvalidInput, match="retired"):
            await weigh(brain, (name, "never"))
    assert (await weigh(brain, (ref, "never"), as_of=before))["outcome"] == "agreed"


async def test_a_version_that_was_rewritten_or_forgotten_claims_nothing(brain: Brain) -> None:
    memory = await fact(brain, "Ships in March", "2026-01-01")
    await ask(brain, "amend_memory", ref=memory, expected_version=1, reason="test", text="Ships in April")
    with pytest.raises(InvalidInput, match="rewritten") as refused:
        await weigh(brain, (f"{memory}@1", "March"))
    assert "@1" in refused.value.hint
    assert (await weigh(brain, (f"{memory}@2", "April")))["outcome"] == "agreed"
    await ask(brain, "forget_memory", ref=memory, reason="test")
    for name, error in ((f"{memory}@2", InvalidInput), (f"{memory}@3", InvalidInput), (memory, NotFound)):
        with pytest.raises(error):
            await weigh(brain, (name, "April"))


@pytest.mark.parametrize("ref", ["friction:1", "thread:tax", "recall:1", "note:1", "memory", "", "pin:"])
async def test_only_layers_that_make_claims_can_be_cited(brain: Brain, ref: str) -> None:
    with pytest.raises((InvalidInput, Refused)) as refused:
        await weigh(brain, (ref, "x"))
    assert refused.value.field == "claims[0].ref"


async def test_an_as_of_answer_uses_the_rows_of_that_instant(brain: Brain) -> None:
    await brain.write(lambda work: wiki.write(work, page="Marlow", body="Pays in EUR."))
    before = (await now(brain)).isoformat()
    await brain.write(lambda work: wiki.write(work, page="Marlow", body="Pays in USD.", expected_version=1))
    assert (await weigh(brain, ("wiki:marlow", "EUR"), as_of=before))["winner"]["ref"] == "wiki:marlow@1"
    assert (await weigh(brain, ("wiki:marlow", "USD")))["winner"]["ref"] == "wiki:marlow@2"
    with pytest.raises(NotFound):
        await weigh(brain, ("wiki:marlow", "EUR"), as_of="2020-01-01")


async def test_a_claim_needs_a_value_and_the_call_needs_a_claim(brain: Brain) -> None:
    memory = await fact(brain, "x", "2026-01-01")
    calls: list[dict[str, Any]] = [{"claims": [{"ref": memory, "value": " "}]}, {"claims": []}, {"recall": " "}]
    for arguments in calls:
        with pytest.raises(InvalidInput, match="claims"):
            await ask(brain, "weigh_claims", **arguments)
    with pytest.raises(BrainError, match="at most 20"):
        await weigh(brain, *[(memory, "x")] * 21)


async def test_the_order_of_the_claims_changes_nothing(brain: Brain) -> None:
    claims = [
        (await pin(brain, "Ships in May", 1), "May"),
        (await fact(brain, "Ships in March", "2026-03-01"), "March"),
        (await fact(brain, "Ships in April", "2026-01-01"), "April"),
    ]
    verdicts = [await weigh(brain, *order) for order in (claims, claims[::-1], claims[1:] + claims[:1])]
    assert verdicts[0] == verdicts[1] == verdicts[2]
