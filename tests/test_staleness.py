"""Which of two close rows is the newer: what moves, what never moves, and which questions ask for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.ranking import CLOSE, TOP
from brain.staleness import Dated, asks_for_the_present, newer_first

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def row(doc: int, score: float, age: int, text: str) -> Dated:
    """A row from so many days ago."""
    return Dated(doc, score, DAY - timedelta(days=age), text)


def order(*rows: Dated) -> list[int]:
    raised = newer_first(rows)
    return sorted(raised, key=lambda doc: (-raised[doc], doc))


OLD = row(1, 1.0, 30, "I own 3 bikes")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (row(2, 0.9, 1, "I own 4 bikes now"), [2, 1]),
        (row(2, CLOSE, 1, "I own 4 bikes now"), [2, 1]),
        (row(2, CLOSE - 0.01, 1, "I own 4 bikes now"), [1, 2]),
        (row(2, 0.9, 1, "My 3 bikes are in the shed"), [1, 2]),
        (row(2, 0.9, 1, "I own bikes"), [1, 2]),
        (row(2, 0.9, 60, "I own 4 bikes now"), [1, 2]),
        (row(2, 0.9, 1, "[2026-02-28 14:05] I own 3 bikes"), [1, 2]),
        (row(2, 0.9, 1, "[2026-02-28 14:05] I own 4 bikes"), [2, 1]),
        (row(2, 0.9, 1, "On [2026-02-28] I owned 3 bikes"), [2, 1]),
        (row(2, 0.9, 1, "I own 3 bikes and 1 car"), [2, 1]),
    ],
)
def test_the_newer_of_two_close_rows_comes_first_when_it_states_another_number(
    other: Dated, expected: list[int]
) -> None:
    assert order(OLD, other) == expected


def test_an_older_row_without_a_number_is_not_replaced() -> None:
    assert order(row(1, 1.0, 30, "I own some bikes"), row(2, 0.9, 1, "I own 4 bikes")) == [1, 2]


def test_a_stamp_on_the_older_row_is_no_statement_either() -> None:
    assert order(row(1, 1.0, 30, "[2026-01-30] I own some bikes"), row(2, 0.9, 1, "I own 4 bikes")) == [1, 2]


def test_the_newest_of_three_comes_first() -> None:
    rows = [OLD, row(2, 0.8, 10, "I own 4 bikes"), row(3, 0.7, 1, "I own 5 bikes")]
    assert order(*rows) == [3, 2, 1]


def test_a_raised_row_does_not_pass_a_newer_one_that_was_in_front_of_it() -> None:
    rows = [OLD, row(2, 0.8, 1, "The bikes are in the shed"), row(3, 0.7, 10, "I own 4 bikes")]
    assert order(*rows) == [2, 3, 1]


def test_of_two_rows_of_one_instant_the_later_written_is_the_newer() -> None:
    assert order(row(1, 1.0, 5, "4 bikes"), row(2, 0.9, 5, "5 bikes")) == [2, 1]
    assert order(row(1, 0.9, 5, "4 bikes"), row(2, 1.0, 5, "5 bikes")) == [2, 1]


@pytest.mark.parametrize(
    "question",
    [
        "How many bikes do I own?", "how much is the rent", "How often do I water the fern?", "what is my weight?",
        "Which gym do I go to", "When is the dentist?", "Where is the spare key?", "What's my locker number?",
        "Who is my dentist?", "  \u201cHow old is the cat?\u201d",
    ],
)  # fmt: skip
def test_a_question_about_now_asks_for_the_present(question: str) -> None:
    assert asks_for_the_present(question)


@pytest.mark.parametrize(
    "question",
    [
        "How many bikes did I own?", "what was my weight?", "Which gyms were near?", "When had she left?",
        "Where did I put the key?", "Who was my dentist?", "bikes", "bike count", "I own 4 bikes", "tell me of it",
        "show how many bikes I own", "howitzer", "whatever", "", "?", "\u90e8\u7f72\u6587\u6863",
    ],
)  # fmt: skip
def test_a_question_about_the_past_and_what_is_no_question_do_not(question: str) -> None:
    assert not asks_for_the_present(question)


texts = st.sampled_from(["I own bikes", "I own 3 bikes", "I own 4 bikes", "3 or 4 bikes", "[2026-01-01] bikes", "5"])
drawn = st.lists(
    st.builds(row, st.integers(1, 99), st.sampled_from([0.1, 0.3, 0.5, 0.6, 0.8, 0.9, 1.0]), st.integers(0, 4), texts),
    max_size=TOP,
    unique_by=lambda each: each.doc,
)


def age(each: Dated) -> tuple[datetime, int]:
    return each.occurred, each.doc


@given(drawn)
def test_no_row_is_lost_added_or_lowered(rows: list[Dated]) -> None:
    raised = newer_first(rows)
    assert raised.keys() == {each.doc for each in rows}
    assert all(raised[each.doc] >= each.score for each in rows)


@given(drawn, st.randoms(use_true_random=False))
def test_the_order_in_which_rows_come_does_not_matter(rows: list[Dated], rng: object) -> None:
    shuffled = rng.sample(rows, len(rows))  # type: ignore[attr-defined]
    assert newer_first(shuffled) == newer_first(rows)


@given(drawn)
def test_an_older_row_never_overtakes_a_newer_one(rows: list[Dated]) -> None:
    raised = newer_first(rows)
    for older in rows:
        for newer in rows:
            if age(older) < age(newer) and older.score < newer.score:
                assert raised[older.doc] < raised[newer.doc]


@given(drawn)
def test_of_two_close_rows_the_newer_with_another_number_is_always_first(rows: list[Dated]) -> None:
    raised = newer_first(rows)
    for older in rows:
        for newer in rows:
            numbers = [set("345") & set(each.text.removeprefix("[2026-01-01]")) for each in (older, newer)]
            close = newer.score >= CLOSE * older.score
            if age(older) < age(newer) and close and numbers[0] and numbers[1] - numbers[0]:
                assert raised[newer.doc] > raised[older.doc]


@given(drawn)
def test_a_row_that_is_close_to_no_older_one_keeps_its_score(rows: list[Dated]) -> None:
    raised = newer_first(rows)
    for each in rows:
        older = [other for other in rows if age(other) < age(each)]
        if all(each.score < CLOSE * other.score for other in older):
            assert raised[each.doc] == each.score


@given(drawn)
def test_rows_of_one_text_keep_their_scores(rows: list[Dated]) -> None:
    same = [replace(each, text="I own 3 bikes") for each in rows]
    assert newer_first(same) == {each.doc: each.score for each in same}
