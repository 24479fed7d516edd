"""The trust order against a second statement of its rules, and normalisation against exact decimals and dates."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import brain.trust
from brain.trust import Claim, Layer, normalise, weigh

STORED = ("constraint", "record", "pin", "wiki", "memory")


def day(number: int | None) -> datetime | None:
    return None if number is None else datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=number)


def claim(layer: str, value: str, at: int | None = 0, ref: str = "") -> Claim:
    return Claim(Layer(layer), value, day(at), ref or f"{layer}:{value}{at}")


# --- the table of the module -------------------------------------------------------------------------------------

CASES = [
    ("nothing at all", [], "empty", None),
    ("recall alone", [("recall", "a", 9)], "unsupported", None),
    ("recall twice", [("recall", "a", 9), ("recall", "a", 8)], "unsupported", None),
    ("one memory alone", [("memory", "a", 1)], "agreed", "memory:a1"),
    (
        "all agree, the highest is cited",
        [("memory", "a", 9), ("record", "a", 1), ("pin", "a", 5)],
        "agreed",
        "record:a1",
    ),
    ("all agree, the newest of the layer is cited", [("pin", "a", 1), ("pin", "a", 3)], "agreed", "pin:a3"),
    ("recall agrees", [("memory", "a", 1), ("recall", "a", 9)], "agreed", "memory:a1"),
    ("newer recall disagrees", [("memory", "a", 1), ("recall", "b", 9)], "settled", "memory:a1"),
    ("recall against an undated pin", [("pin", "a", None), ("recall", "b", 9)], "settled", "pin:aNone"),
    ("constraint over newer record", [("constraint", "a", 1), ("record", "b", 9)], "settled", "constraint:a1"),
    ("record over newer memory", [("record", "a", 1), ("memory", "b", 9)], "settled", "record:a1"),
    ("record over memory of the same time", [("record", "a", 1), ("memory", "b", 1)], "settled", "record:a1"),
    ("record over undated memory", [("record", "a", 1), ("memory", "b", None)], "settled", "record:a1"),
    ("undated record over memory", [("record", "a", None), ("memory", "b", 1)], "settled", "record:aNone"),
    ("newer record of two", [("record", "a", 1), ("record", "b", 2), ("memory", "a", 9)], "settled", "record:b2"),
    ("records of the same time", [("record", "a", 1), ("record", "b", 1)], "contested", None),
    ("constraints of the same time", [("constraint", "a", 1), ("constraint", "b", 1)], "contested", None),
    ("lower layers break no tie", [("record", "a", 1), ("record", "b", 1), ("memory", "b", 9)], "contested", None),
    ("one of two records undated", [("record", "a", 1), ("record", "b", None)], "contested", None),
    ("pin over older memory", [("pin", "a", 2), ("memory", "b", 1)], "settled", "pin:a2"),
    ("pin against newer memory", [("pin", "a", 1), ("memory", "b", 2)], "contested", None),
    ("pin against memory of the same time", [("pin", "a", 1), ("memory", "b", 1)], "contested", None),
    ("pin against undated memory", [("pin", "a", 1), ("memory", "b", None)], "contested", None),
    ("undated pin against memory", [("pin", "a", None), ("memory", "b", 1)], "contested", None),
    ("pin against newer wiki", [("pin", "a", 1), ("wiki", "b", 2)], "contested", None),
    ("wiki over older memory", [("wiki", "a", 2), ("memory", "b", 1)], "settled", "wiki:a2"),
    ("wiki against newer memory", [("wiki", "a", 1), ("memory", "b", 2)], "contested", None),
    ("agreeing wiki does not shield a pin", [("pin", "a", 1), ("wiki", "a", 9), ("memory", "b", 2)], "contested", None),
    ("newer memory that agrees does not contest", [("pin", "a", 1), ("memory", "a", 9)], "agreed", "pin:a1"),
    ("newer of two pins", [("pin", "a", 1), ("pin", "b", 5)], "settled", "pin:b5"),
    ("memory between two pins", [("pin", "a", 1), ("pin", "b", 5), ("memory", "a", 3)], "settled", "pin:b5"),
    ("memory newer than both pins", [("pin", "a", 1), ("pin", "b", 5), ("memory", "c", 7)], "contested", None),
    ("memory repeats the older pin, later", [("pin", "a", 1), ("pin", "b", 5), ("memory", "a", 7)], "contested", None),
    ("memory repeats the newer pin", [("pin", "a", 1), ("pin", "b", 5), ("memory", "b", 7)], "settled", "pin:b5"),
    ("pins of the same time", [("pin", "a", 5), ("pin", "b", 5), ("memory", "a", 7)], "contested", None),
    ("each lower claim counts", [("pin", "a", 5), ("memory", "b", 6), ("memory", "a", 7)], "contested", None),
    ("newer of two memories", [("memory", "a", 1), ("memory", "b", 2)], "settled", "memory:b2"),
    ("memories of the same time", [("memory", "a", 1), ("memory", "b", 1)], "contested", None),
    ("a value and back again", [("memory", "a", 1), ("memory", "b", 2), ("memory", "a", 3)], "settled", "memory:a3"),
]


@pytest.mark.parametrize(("rows", "outcome", "winner"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_outcome_is_that_of_the_table(
    rows: Sequence[tuple[str, str, int]], outcome: str, winner: str | None
) -> None:
    for order in itertools.permutations(rows):
        verdict = weigh(claim(*row) for row in order)
        assert verdict.outcome == outcome
        assert (verdict.winner.ref if verdict.winner else None) == winner


def test_the_trust_order_is_that_of_the_contract() -> None:
    assert [str(layer) for layer in Layer] == ["constraint", "record", "pin", "wiki", "memory", "recall"]


def test_a_newer_lower_claim_is_flagged_and_says_that_the_record_may_need_an_update() -> None:
    verdict = weigh([claim("record", "EUR 1,200", 1, "record:1"), claim("memory", "€1300", 2, "memory:2")])
    (flag,) = verdict.flags
    assert flag.ref == "memory:2"
    assert flag.message.startswith("disagrees; correct it")
    assert "the record may need an update" in flag.message
    assert flag.newer
    assert verdict.agreeing == ("record:1",)
    assert verdict.disagreeing == ("memory:2",)
    assert verdict.advice == "Use record:1 and correct memory:2. Ask the user whether record:1 needs an update."


@pytest.mark.parametrize("at", [0, 1])
def test_a_lower_claim_that_is_not_newer_is_flagged_without_doubt_about_the_record(at: int) -> None:
    (flag,) = weigh([claim("record", "a", 1), claim("memory", "b", at)]).flags
    assert flag.message == "disagrees; correct it"
    assert not flag.newer


def test_an_unknown_date_under_a_record_is_said_to_be_unknown() -> None:
    for top, lower in ((1, None), (None, 1)):
        (flag,) = weigh([claim("record", "a", top), claim("memory", "b", lower)]).flags
        assert "date is unknown" in flag.message
        assert not flag.newer


def test_recall_is_flagged_and_is_never_newer() -> None:
    (flag,) = weigh([claim("record", "a", 1), claim("recall", "b", 9, "recall")]).flags
    assert flag.message.startswith("disagrees; correct it")
    assert not flag.newer


def test_a_contested_answer_shows_both_sides_with_their_dates_and_says_to_ask() -> None:
    rows = [claim("pin", "ships May", 0, "pin:work"), claim("memory", "ships June", 4, "memory:7")]
    verdict = weigh([*rows, claim("recall", "ships May", 9)])
    assert verdict.winner is None
    assert verdict.sides == ((rows[0],), (rows[1],))
    assert "pin:work (2026-03-01T00:00:00Z)" in verdict.reason
    assert "memory:7 (2026-03-05T00:00:00Z)" in verdict.reason
    assert verdict.advice.startswith("Ask the user")
    assert verdict.agreeing == ()
    assert verdict.disagreeing == ("pin:work", "memory:7")


def test_an_old_fact_written_again_does_not_contest_a_newer_pin() -> None:
    # The claim carries the event date of 10 January, whenever its text was last written.
    old_fact = Claim(Layer.memory, "Lisbon", datetime(2026, 1, 10, tzinfo=UTC), "memory:1")
    pin = Claim(Layer.pin, "Porto", datetime(2026, 2, 1, tzinfo=UTC), "pin:personal")
    assert weigh([old_fact, pin]).winner == pin


def test_event_times_compare_as_instants_not_as_clock_readings() -> None:
    east = timezone(timedelta(hours=14))
    pin = Claim(Layer.pin, "a", datetime(2026, 3, 2, 1, tzinfo=east), "pin:a")
    memory = Claim(Layer.memory, "b", datetime(2026, 3, 1, 12, tzinfo=UTC), "memory:b")
    assert weigh([pin, memory]).outcome == "contested"


def test_claims_that_differ_only_in_writing_agree() -> None:
    rows = [
        claim("record", "EUR 1,200.00"),
        claim("pin", "€1200"),
        claim("memory", " 1200  eur "),
        claim("recall", "1.200,00 €"),
    ]
    assert weigh(rows).outcome == "agreed"


def test_misuse_raises_value_error() -> None:
    with pytest.raises(ValueError, match="offset"):
        Claim(Layer.pin, "a", datetime(2026, 3, 1), "pin:a")
    with pytest.raises(ValueError, match="thread"):
        Claim("thread", "a", None, "thread:a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="text"):
        Claim(Layer.pin, 1200, None, "pin:a")  # type: ignore[arg-type]


def test_the_module_imports_nothing_but_the_standard_library() -> None:
    tree = ast.parse(Path(brain.trust.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


# --- properties --------------------------------------------------------------------------------------------------

rows_of_claims = st.lists(
    st.tuples(st.sampled_from([*STORED, "recall"]), st.sampled_from("abc"), st.none() | st.integers(1, 4)), max_size=7
).map(lambda rows: [claim(*row, ref=f"{row[0]}:{number}") for number, row in enumerate(rows)])  # fmt: skip


def expected(claims: Sequence[Claim]) -> tuple[str, str | None]:
    """The rules once more, as conditions that a value has to meet rather than as steps."""
    stored = [c for c in claims if c.layer != "recall"]
    if not stored:
        return ("unsupported" if claims else "empty"), None
    layer = next(name for name in STORED if any(c.layer == name for c in stored))
    top = [c for c in stored if c.layer == layer]

    def later(a: Claim, b: Claim) -> bool:
        return bool(a.at and b.at and a.at > b.at)

    for value in "abc":
        own = [c for c in top if c.value == value]
        held = bool(own) and all(any(later(c, d) for c in own) for d in top if d.value != value)
        if layer in ("pin", "wiki"):
            held = held and all(any(later(c, d) for c in own) for d in stored if d.value != value)
        if held:
            return ("agreed" if all(c.value == value for c in claims) else "settled"), value
    return "contested", None


@given(rows_of_claims)
@settings(max_examples=1000, deadline=None)
def test_every_verdict_follows_the_rules(claims: list[Claim]) -> None:
    verdict = weigh(claims)
    assert (verdict.outcome, verdict.winner.value if verdict.winner else None) == expected(claims)


@given(rows_of_claims, st.randoms(use_true_random=False))
@settings(max_examples=500, deadline=None)
def test_the_order_of_claims_changes_nothing(claims: list[Claim], random) -> None:  # type: ignore[no-untyped-def]
    assert weigh(random.sample(claims, len(claims))) == weigh(claims)


def test_the_order_of_claims_that_share_a_ref_and_a_time_changes_nothing() -> None:
    rows = [claim("memory", value, 1, "memory:1") for value in ("1200", "1,200", "1200.0")]
    assert {weigh(order).winner.value for order in itertools.permutations(rows)} == {"1,200"}  # type: ignore[union-attr]


@given(rows_of_claims)
@settings(max_examples=500, deadline=None)
def test_there_is_a_winner_exactly_when_the_answer_is_not_open(claims: list[Claim]) -> None:
    verdict = weigh(claims)
    assert (verdict.winner is not None) == (verdict.outcome in ("agreed", "settled"))
    if verdict.winner is None:
        assert verdict.agreeing == ()
        assert verdict.flags == ()
    else:
        assert verdict.winner.layer == min(claims, key=lambda c: list(Layer).index(c.layer)).layer
        assert verdict.winner.ref in verdict.agreeing
        assert sorted(verdict.agreeing + verdict.disagreeing) == sorted(c.ref for c in claims)
        assert verdict.disagreeing == tuple(flag.ref for flag in verdict.flags)
        assert all(flag.message.startswith("disagrees; correct it") for flag in verdict.flags)
    if verdict.outcome == "contested":
        assert len(verdict.sides) > 1
        assert "Ask the user" in verdict.advice
        assert sorted(verdict.disagreeing) == sorted(c.ref for c in claims if c.layer != "recall")


@given(rows_of_claims, st.sampled_from("abc"), st.none() | st.integers(1, 9))
@settings(max_examples=500, deadline=None)
def test_recall_never_wins_and_never_changes_what_is_stored(claims: list[Claim], value: str, at: int | None) -> None:
    stored = [c for c in claims if c.layer != "recall"]
    before, after = weigh(stored), weigh([*stored, claim("recall", value, at)])
    assert after.winner == before.winner
    assert after.winner is None or after.winner.layer != "recall"
    assert (after.outcome == "contested") == (before.outcome == "contested")


# --- normalisation -----------------------------------------------------------------------------------------------

SAME = [
    ["1200", "1,200", "1,200.00", "1200.0", "1.200,00", "１２００", "١٢٠٠", " 1200\n"],
    ["EUR 1,200", "€1200", "1200 eur", "1,200.00 €", "€ 1.200,00", "1200 Euros", "eur1200", "1200EUR", "1200,00 €"],
    ["$5.50", "USD 5.5", "5.50 usd", "US$5.5", "$5.50 USD"],
    ["$5 CAD", "CAD 5.00", "5 cad"],
    ["-€5", "€-5", "€ -5.00", "-5 EUR", "−5 eur"],
    ["¥500 JPY", "500 jpy"],
    ["2026-03-01", "1 March 2026", "March 1, 2026", "1st of March 2026", "Mar 1 2026", "01-Mar-2026", "2026/3/1",
     "1. March 2026"],
    ["2026-02-13", "13/02/2026", "02/13/2026", "13.02.2026"],
    ["2026-05-05", "05/05/2026", "5 May 2026"],
    ["5.50 kg", "5.5 KG", "5.500 kg"],
    ["50%", "50 %", "50.0%", "50,0 %"],
    ["0.5", "0.50"],
    ["0", "-0", "0.00"],
    ["1.200", "1.2", "1.20"],
    ["Invoice due 1 March 2026, EUR 1,200.00", "invoice DUE 2026-03-01,  €1200"],
    ["Straße", "STRASSE", "strasse"],
    ["café", "cafe\u0301", "CAFÉ"],
    ["ﬁle", "file"],
    ["a\u00a0b", "a b", "A\t b", "a\u200b b"],
    ["user’s", "user's"],
    ["12,50 €", "EUR 12.5"],
]  # fmt: skip

DIFFERENT = [
    ("01/02/2026", "2026-02-01"),
    ("01/02/2026", "2026-01-02"),
    ("1.200", "1200"),
    ("€1.200", "€1200"),
    ("€1.200", "€1.20"),
    ("EUR 1200", "USD 1200"),
    ("EUR 1200", "1200"),
    ("$5 CAD", "$5"),
    ("¥500", "500 JPY"),
    ("¥500 JPY", "¥500 CNY"),
    ("EUR 5 USD", "EUR 5"),
    ("Python 3.10", "Python 3.1"),
    ("007", "7"),
    ("12,50", "12.50"),
    ("1,20", "120"),
    ("1,2000", "12000"),
    ("1.2.3", "1.23"),
    ("10.100.200.250", "10100200250"),
    ("31 February 2026", "3 March 2026"),
    ("5", "-5"),
    ("50%", "50"),
    ("INV-001", "INV-1"),
    ("1 200", "1200"),
    ("9007199254740993", "9007199254740992"),
    ("0.1000000000000000055511151231257827", "0.1"),
    ("5 kg", "5 g"),
]


@pytest.mark.parametrize("writings", SAME, ids=[row[0] for row in SAME])
def test_writings_of_one_value_compare_equal(writings: list[str]) -> None:
    assert {normalise(writing) for writing in writings} == {normalise(writings[0])}


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_that_differ_or_have_two_readings_stay_apart(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


def test_groups_of_equal_writings_do_not_run_together() -> None:
    assert len({normalise(row[0]) for row in SAME}) == len(SAME)


@given(st.integers(-(10**30), 10**30), st.integers(0, 12))
def test_numbers_compare_as_exact_decimals_however_they_are_written(digits: int, places: int) -> None:
    number = Decimal(f"{digits}e-{places}")
    written, grouped = f"{number:f}", f"{digits // 10**places:,}"
    padded = f"{written}000" if "." in written else f"{written}.000"
    assert Decimal(normalise(written)) == number
    assert normalise(padded) == normalise(written)
    assert normalise(grouped) == str(digits // 10**places)


@given(st.decimals(-1000, 1000, places=2), st.decimals(-1000, 1000, places=3))
def test_two_decimals_compare_equal_exactly_when_they_are(one: Decimal, other: Decimal) -> None:
    assert (normalise(str(one)) == normalise(str(other))) == (one == other)
    assert normalise(str(one)) == normalise(f"{one}0")


MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]  # fmt: skip


@given(st.dates(date(1900, 1, 1), date(2200, 12, 31)))
def test_a_date_compares_equal_in_every_unambiguous_writing(when: date) -> None:
    month = MONTHS[when.month - 1]
    day_first, month_first = f"{when.day} {month} {when.year}", f"{month} {when.day}, {when.year}"
    short, slashed = f"{when.day:02} {month[:3].upper()}. {when.year}", f"{when.year}/{when.month}/{when.day}"
    for written in (day_first, month_first, short, slashed):
        assert normalise(written) == when.isoformat()


@given(st.dates(date(1900, 1, 1), date(2200, 12, 31)))
def test_a_numeric_date_is_read_only_when_it_has_one_reading(when: date) -> None:
    written = f"{when.day:02}/{when.month:02}/{when.year}"
    one_reading = when.day > 12 or when.day == when.month
    assert normalise(written) == (when.isoformat() if one_reading else written)


pieces = st.sampled_from(
    ["eur", "usd", "€", "$", "¥", "jpy", "us$", "cad", "euros", "5", "-", "-5", "0", "1,200", "1.200", "1.200,50",
     "12,50", "3.10", "007", "%", "march", "may.", "1", "1st", "31", "of", "/", "2026", "2026-03-01", "01/02/2026",
     "13.02.2026", "kg", "(", ")", ",", ".", "=", "eur=5", "x", "٣", "½", "\u0301", "\u200b", "İ", "ß", "’", "\ud800",
     "\x00"]
)  # fmt: skip
token_soup = st.lists(st.tuples(pieces, st.sampled_from(["", " ", "  ", "\u00a0"])), max_size=9).map(
    lambda parts: "".join(piece + gap for piece, gap in parts)
)
any_text = st.text(st.characters(), max_size=60) | token_soup


@given(any_text)
@example("1 feb 1,200")
@example("eur eur 5")
@settings(max_examples=1500, deadline=None)
def test_normalising_twice_changes_nothing_and_no_text_raises(value: str) -> None:
    once = normalise(value)
    assert normalise(once) == once


@given(any_text, any_text)
@settings(max_examples=500, deadline=None)
def test_agreement_is_symmetric(one: str, other: str) -> None:
    forth = weigh([claim("record", one, 1, "record:1"), claim("memory", other, 0, "memory:1")])
    back = weigh([claim("record", other, 1, "record:1"), claim("memory", one, 0, "memory:1")])
    assert forth.outcome == back.outcome


@given(any_text)
def test_case_and_white_space_never_make_a_difference(value: str) -> None:
    assert normalise(f"  {value}\n") == normalise(value)
    assert normalise(value.casefold()) == normalise(value)
