"""Ranks, fusion and the bounded re-rank, as pure arithmetic."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain import ranking
from brain.services.facts import KINDS

scores = st.dictionaries(st.integers(1, 50), st.sampled_from([0.5, 1.0, 1.5, 2.0, 7.25]), max_size=30)
ages = st.floats(0, 20_000)
importances = st.integers(1, 5)
confidences = st.floats(0, 1)
kinds = st.sampled_from(KINDS)


@given(scores)
def test_a_rank_counts_the_better_scores_and_tied_scores_share_it(given_scores: dict[int, float]) -> None:
    legs = ranking.legs(given_scores)
    assert {doc: leg.score for doc, leg in legs.items()} == given_scores
    for doc, leg in legs.items():
        assert leg.rank == 1 + sum(other > given_scores[doc] for other in given_scores.values())


@given(scores)
def test_the_order_in_which_a_leg_reports_changes_no_rank(given_scores: dict[int, float]) -> None:
    assert ranking.legs(given_scores) == ranking.legs(dict(reversed(given_scores.items())))


def test_no_rows_have_no_ranks() -> None:
    assert ranking.legs({}) == {}


@given(kinds, importances, confidences, ages)
def test_the_re_rank_stays_within_a_few_percent(kind: str, importance: int, confidence: float, age: float) -> None:
    factor = ranking.adjustment(kind=kind, importance=importance, confidence=confidence, age_days=age)
    assert 0.9 <= factor <= 1.1


@given(kinds, importances, confidences, ages)
def test_the_important_the_certain_and_the_recent_are_never_put_back(
    kind: str, importance: int, confidence: float, age: float
) -> None:
    def factor(**changes: float) -> float:
        base = {"importance": importance, "confidence": confidence, "age_days": age} | changes
        return ranking.adjustment(
            kind=kind, importance=int(base["importance"]), confidence=base["confidence"], age_days=base["age_days"]
        )

    by_importance = [factor(importance=number) for number in range(1, 6)]
    by_confidence = [factor(confidence=number / 10) for number in range(11)]
    by_age = [factor(age_days=number) for number in (0, 1, 30, 365, 3_650, 36_500)]
    assert all(low < high for low, high in pairwise(by_importance))
    assert all(low < high for low, high in pairwise(by_confidence))
    assert all(low >= high for low, high in pairwise(by_age))


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_of_the_future_is_as_recent_as_today(kind: str) -> None:
    today, later = (
        ranking.adjustment(kind=kind, importance=3, confidence=1, age_days=age) for age in (0.0, -1_000_000.0)
    )
    assert today == later


def test_constants_are_those_of_the_contract() -> None:
    assert (ranking.K1, ranking.B, ranking.RRF_K) == (1.2, 0.75, 60)
