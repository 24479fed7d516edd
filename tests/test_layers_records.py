"""Write rules of records: one row a kind, title and date; exact decimals from end to end; figures by unit."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.errors import Conflict, InvalidInput, Refused
from brain.runtime import Brain
from brain.services import amendments, inputs, records
from tests import factories


async def read(brain: Brain, as_of: Any = None, **filters: Any) -> records.Found:
    return await brain.read(lambda work: records.read(work, **filters), as_of=as_of)


async def test_the_same_kind_title_and_date_is_one_record_with_versions(brain: Brain) -> None:
    first = await factories.record(brain, value="1250.00")
    second = await factories.record(brain, " MARLOW 14 ".strip(), kind="Invoice", value="1300.00")
    assert (second.id, second.version) == (first.id, 2)
    assert [str(each.value) for each in (await read(brain)).records] == ["1300.00"]
    assert [str(each.value) for each in (await read(brain, first.known_from)).records] == ["1250.00"]
    other = await factories.record(brain, date="2026-02-02")
    assert other.id != first.id


async def test_a_record_that_says_the_same_is_left_as_it_is(brain: Brain) -> None:
    given = {"kind": "invoice", "title": "Marlow 14", "date": "2026-02-01", "value": "1250.00", "unit": "EUR"}
    first, created = await brain.write(lambda work: records.log(work, **given))
    again, changed = await brain.write(lambda work: records.log(work, **given | {"value": "1250"}))
    assert (created, changed, again.version, again.doc) == (True, False, 1, first.doc)


async def test_a_stale_record_write_is_refused_with_the_current_content(brain: Brain) -> None:
    await factories.record(brain, value="1250.00")
    with pytest.raises(Conflict) as caught:
        await factories.record(brain, value="1.00", expected_version=2)
    assert caught.value.current["value"] == "1250.00"


@pytest.mark.parametrize(
    "value",
    ["1,250.00", "1e5", "NaN", "Infinity", "12 EUR", "٣", "0x10", "1_000", "1" * 25, "0." + "1" * 13, "--1", "."],
)
async def test_a_value_that_is_no_plain_decimal_is_refused(brain: Brain, value: str) -> None:
    with pytest.raises(InvalidInput, match="plain decimal") as caught:
        await factories.record(brain, value=value)
    assert caught.value.field == "value"


@pytest.mark.parametrize("value", ["0.1", "-0.10", "+3", "999999999999999999999999.999999999999", "0.000000000001"])
async def test_every_digit_of_a_value_comes_back(brain: Brain, value: str) -> None:
    await factories.record(brain, value=value)
    [row] = (await read(brain)).records
    assert isinstance(row.value, Decimal)
    assert row.value == Decimal(value)
    assert inputs.json_form(row.value) == value.removeprefix("+")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"value": "", "unit": "EUR"}, "unit"),
        ({"unit": "a unit of a long name indeed"}, "unit"),
        ({"title": ""}, "title"),
        ({"title": "\u200b"}, "title"),
        ({"kind": "!!"}, "kind"),
        ({"date": "2026-02-30"}, "date"),
        ({"date": "today"}, "date"),
        ({"date": "2026-02-01T00:00:00Z"}, "date"),
        ({"valid_from": "2026-02-02", "valid_to": "2026-02-01"}, "valid_to"),
        ({"valid_from": "infinity"}, "valid_from"),
        ({"fields": {str(number): "x" for number in range(31)}}, "fields"),
        ({"fields": {"": "x"}}, "fields"),
        ({"source": "x" * 501}, "source"),
    ],
)
async def test_a_refusal_names_the_field(brain: Brain, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await factories.record(brain, **given)
    assert caught.value.field == field
    assert (await read(brain)).records == []


async def test_a_record_does_not_change_its_scope(brain: Brain) -> None:
    await factories.record(brain, scope="lane:work")
    with pytest.raises(Refused) as caught:
        await factories.record(brain, scope="lane:school", value="1")
    assert caught.value.field == "scope"


async def test_free_fields_come_back_as_they_were_given(brain: Brain) -> None:
    given = {"net": "1050.42", "paid": "false", "memo": 'a "quoted" \\u0000 text', "código": "ñ"}
    await factories.record(brain, fields=given, source="mail of 3 May")
    [row] = (await read(brain)).records
    assert (row.fields, row.source) == (given, "mail of 3 May")


async def test_reads_filter_by_kind_title_period_and_scope(brain: Brain) -> None:
    for number, (kind, day, scope) in enumerate(
        [("invoice", "01", "lane:work"), ("invoice", "15", "lane:work"), ("rent", "15", "lane:personal")]
    ):
        await factories.record(brain, f"Number {number}", kind=kind, date=f"2026-03-{day}", scope=scope)

    async def titles(**filters: Any) -> list[str]:
        return [each.title for each in (await read(brain, **filters)).records]

    assert await titles() == ["Number 0", "Number 1", "Number 2"]
    assert await titles(kind="Invoice") == ["Number 0", "Number 1"]
    assert await titles(title="number 2") == ["Number 2"]
    assert await titles(title="%") == []
    assert await titles(since="2026-03-15") == ["Number 1", "Number 2"]
    assert await titles(until="2026-03-15") == ["Number 0"]
    assert await titles(scope="lane:personal") == ["Number 2"]
    assert await titles(limit=1, offset=1) == ["Number 1"]
    assert (await read(brain, limit=1, offset=1)).total == 3


amounts = st.tuples(
    st.sampled_from(["invoice", "expense"]),
    st.sampled_from(["EUR", "USD", "h", ""]),
    st.decimals(min_value=-(10**20), max_value=10**20, places=12, allow_nan=False) | st.decimals(-1000, 1000, places=2),
)


@given(st.lists(amounts, min_size=1, max_size=12))
@settings(max_examples=15, deadline=None)
async def test_figures_are_exact_and_never_cross_units(store: Brain, drawn: list[tuple[str, str, Decimal]]) -> None:
    project = f"project:{factories.fresh_name('ledger')}x{abs(hash(store.caller.namespace))}"
    expected: dict[tuple[str, str], list[Decimal]] = defaultdict(list)
    for number, (kind, unit, value) in enumerate(drawn):
        title = f"{project} {number}"
        await factories.record(store, title, kind=kind, value=format(value, "f"), unit=unit, scope=project)
        expected[kind, unit].append(value)
    found = await read(store, scope=project)
    assert {
        (each["kind"], each["unit"]): (each["rows"], each["values"], Fraction(each["sum"]), each["min"], each["max"])
        for each in found.figures
    } == {group: (len(of), len(of), sum(map(Fraction, of)), min(of), max(of)) for group, of in expected.items()}
    assert all(isinstance(each["sum"], Decimal) for each in found.figures)
    assert "E" not in json.dumps([inputs.json_form(each["sum"]) for each in found.figures])


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> Any:
    brain = factories.brain_on(module_dsn)
    yield brain
    await brain.close()


async def test_a_tenth_and_two_tenths_are_three_tenths(brain: Brain) -> None:
    await factories.record(brain, "One", value="0.1")
    await factories.record(brain, "Two", value="0.2")
    await factories.record(brain, "None", value="", unit="")
    figures = (await read(brain)).figures
    assert [(each["unit"], each["rows"], each["values"], str(each["sum"])) for each in figures] == [
        ("", 1, 0, "None"), ("EUR", 2, 2, "0.3"),
    ]  # fmt: skip


async def test_a_bounded_correction_holds_only_in_its_interval(brain: Brain) -> None:
    await factories.record(brain, value="100")
    await factories.record(brain, value="90", valid_from="2026-02-01", valid_to="2026-03-01")

    async def at(when: str) -> list[str]:
        return [str(each.value) for each in (await read(brain, valid_at=when)).records]

    assert await at("2026-01-31") == ["100"]
    assert await at("2026-02-01") == ["90"]
    assert await at("2026-02-28T23:59:59.999999Z") == ["90"]
    assert await at("2026-03-01") == ["100"]


async def test_a_forgotten_record_leaves_reads_and_the_past_still_has_it(brain: Brain) -> None:
    row = await factories.record(brain)
    tombstone, changed = await brain.write(
        lambda work: amendments.forget(work, name=f"record:{row.id}", reason="Booked twice.")
    )
    assert (changed, tombstone.version) == (True, 2)
    assert (await read(brain)).records == []
    assert len((await read(brain, tombstone.known_from - timedelta(microseconds=1))).records) == 1
    back = await factories.record(brain)
    assert (back.id, back.version) == (row.id, 3)
    assert [each.version for each in (await read(brain)).records] == [3]


async def test_restoring_brings_back_everything_that_the_tombstone_hid(brain: Brain) -> None:
    row = await factories.record(brain, value="100")
    await factories.record(brain, value="90", valid_from="2026-02-01", valid_to="2026-03-01")
    name = f"record:{row.id}"
    await brain.write(lambda work: amendments.forget(work, name=name, reason="A mistake."))
    await brain.write(lambda work: amendments.restore(work, name=name))
    for when, value in (("2026-01-15", "100"), ("2026-02-15", "90"), ("2026-03-15", "100")):
        assert [str(each.value) for each in (await read(brain, valid_at=when)).records] == [value]
