"""Ranks, fusion and the bounded re-rank, as pure arithmetic."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

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

WIDE = ranking.Profile(weight=0.5, base=0.2, cap=0.5, damping=0.5, floor=0.8)
"""Invented, so that cosine 0.6 is similarity 0.5 and the evidence of 0.3 + half of 1.0 stands exactly."""
WORDS = ranking.Profile(weight=0.9, base=0.3, cap=0.5, damping=0.0, floor=0.32, words_only=True)
profiles = st.sampled_from([WIDE, WORDS, replace(WIDE, weight=1.0), replace(WIDE, weight=0.0, base=0.0, damping=0.0)])


def row(
    doc: int = 1, *, words: float | None = None, cosine: float | None = None, coverage: float = 0.0, length: int = 10
) -> ranking.Candidate:
    """A candidate with the score of each leg; None where the leg says nothing of it."""
    lexical = None if words is None else ranking.LegScore(1, words)
    return ranking.Candidate(doc, lexical, None if cosine is None else ranking.LegScore(1, cosine), coverage, length)


shares = st.integers(0, 20).map(lambda number: number / 20)
rows = st.builds(
    row,
    st.integers(1, 99),
    words=st.none() | st.floats(0, 40),
    cosine=st.none() | st.floats(-1, 1),
    coverage=shares,
    length=st.integers(0, 2_000),
)
candidates = st.lists(rows, max_size=8, unique_by=lambda each: each.doc)


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


# --- evidence and the floor


@pytest.mark.parametrize(("cosine", "expected"), [(1.0, 1.0), (0.6, 0.5), (0.2, 0.0), (0.1, 0.0), (-1.0, 0.0)])
def test_similarity_runs_from_unrelated_texts_to_equality(cosine: float, expected: float) -> None:
    assert ranking.similarity(row(cosine=cosine), WIDE) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given_row", "profile", "expected"),
    [
        (row(cosine=0.6, coverage=0.0), WIDE, 0.5 / 0.8),
        (row(cosine=0.6, coverage=0.6), WIDE, 1.0),
        (row(cosine=0.2, coverage=1.0), WIDE, 0.5 / 0.8),
        (row(cosine=1.0, coverage=1.0), WIDE, 1.5 / 0.8),
        (row(coverage=0.32), WIDE, 1.0),
        (row(coverage=0.16), WIDE, 0.5),
        (row(cosine=1.0, coverage=0.16), WORDS, 0.5),
        (row(cosine=-1.0, coverage=0.64), WORDS, 2.0),
    ],
)
def test_strength_is_the_evidence_over_the_floor(
    given_row: ranking.Candidate, profile: ranking.Profile, expected: float
) -> None:
    assert ranking.strength(given_row, profile) == pytest.approx(expected)


@given(profiles, shares, st.lists(st.floats(-1, 1), min_size=2, max_size=9))
def test_a_nearer_row_is_never_weaker(profile: ranking.Profile, coverage: float, cosines: list[float]) -> None:
    found = [ranking.strength(row(cosine=each, coverage=coverage), profile) for each in sorted(cosines)]
    assert all(low <= high for low, high in pairwise(found))


@given(profiles, st.none() | st.floats(-1, 1))
def test_a_row_that_covers_more_of_the_query_is_stronger(profile: ranking.Profile, cosine: float | None) -> None:
    found = [ranking.strength(row(cosine=cosine, coverage=number / 20), profile) for number in range(21)]
    assert all(low < high for low, high in pairwise(found))


@given(shares, st.floats(-1, 1))
def test_similarity_is_no_evidence_for_a_model_that_sees_words_only(coverage: float, cosine: float) -> None:
    with_vector, without = row(cosine=cosine, coverage=coverage), row(coverage=coverage)
    assert ranking.strength(with_vector, WORDS) == ranking.strength(without, WORDS)


@given(shares)
def test_a_row_without_a_vector_is_judged_by_its_words_under_every_model(coverage: float) -> None:
    assert ranking.strength(row(coverage=coverage), WIDE) == ranking.strength(row(coverage=coverage), WORDS)


def test_nothing_stands_where_no_row_reaches_the_floor() -> None:
    assert ranking.standing([row(1, cosine=0.83, coverage=0.0), row(2, coverage=0.31)], WIDE) == []
    assert ranking.standing([], WIDE) == []


def test_beside_a_row_that_stands_others_stand_from_half_the_floor_on() -> None:
    stands, companion, short = row(1, cosine=0.85), row(2, cosine=0.53), row(3, cosine=0.51)
    assert ranking.standing([short, stands, companion], WIDE) == [stands, companion]
    assert ranking.standing([short, companion], WIDE) == []
    by_words = [row(1, coverage=0.33), row(2, coverage=0.16), row(3, coverage=0.15)]
    assert ranking.standing(by_words, WORDS) == by_words[:2]


@given(candidates, profiles, st.randoms(use_true_random=False))
def test_what_stands_does_not_depend_on_the_order_of_the_candidates(
    found: list[ranking.Candidate], profile: ranking.Profile, rng: Random
) -> None:
    standing = ranking.standing(found, profile)
    shuffled = rng.sample(found, len(found))
    assert {each.doc for each in ranking.standing(shuffled, profile)} == {each.doc for each in standing}
    assert standing == [each for each in found if each in standing]
    assert not standing or max(ranking.strength(each, profile) for each in standing) >= 1


# --- fusion


def test_both_legs_count_by_their_share_of_the_best() -> None:
    found = [row(1, words=8.0, cosine=0.6), row(2, words=4.0, cosine=1.0), row(3, cosine=0.6), row(4, words=2.0)]
    scores = ranking.fuse(found, WIDE, ideal=4.0)
    assert scores == pytest.approx({1: 0.5 + 0.25, 2: 0.25 + 0.5, 3: 0.25, 4: 0.125})


def test_a_best_score_that_is_weak_in_itself_is_not_full_evidence() -> None:
    """The best BM25 counts against half the ideal, the best similarity against the cap."""
    assert ranking.fuse([row(1, words=2.0)], WIDE, ideal=8.0) == {1: 0.5}
    assert ranking.fuse([row(1, cosine=0.4)], WIDE, ideal=8.0) == pytest.approx({1: 0.5 * 0.25 / 0.5})


def test_without_any_vector_the_words_order_alone() -> None:
    assert ranking.fuse([row(1, words=3.0), row(2, words=1.5)], WIDE, ideal=0.0) == {1: 1.0, 2: 0.5}


def test_the_words_of_a_text_four_times_too_long_count_half() -> None:
    found = [row(1, words=3.0, cosine=0.2, length=100), row(2, words=3.0, cosine=0.2, length=400)]
    assert ranking.fuse(found, replace(WIDE, weight=1.0), ideal=0.0) == {1: 1.0, 2: 0.5}
    assert ranking.fuse(found, replace(WORDS, weight=1.0), ideal=0.0) == {1: 1.0, 2: 1.0}


def test_nothing_to_fuse_gives_no_scores_and_no_evidence_gives_zero() -> None:
    assert ranking.fuse([], WIDE, ideal=3.0) == {}
    assert ranking.fuse([row(1)], replace(WIDE, cap=0.0), ideal=0.0) == {1: 0.0}


@given(candidates, profiles, st.floats(0, 50))
def test_a_fused_score_lies_between_zero_and_one(
    found: list[ranking.Candidate], profile: ranking.Profile, ideal: float
) -> None:
    scores = ranking.fuse(found, profile, ideal=ideal)
    assert scores.keys() == {each.doc for each in found}
    assert all(0 <= score <= 1 + 1e-12 for score in scores.values())


@given(candidates, profiles, st.floats(0, 50), st.randoms(use_true_random=False))
def test_a_fused_score_does_not_depend_on_the_order_of_the_candidates(
    found: list[ranking.Candidate], profile: ranking.Profile, ideal: float, rng: Random
) -> None:
    shuffled = rng.sample(found, len(found))
    assert ranking.fuse(shuffled, profile, ideal=ideal) == ranking.fuse(found, profile, ideal=ideal)


@given(candidates, profiles, rows, st.floats(0, 10), st.floats(0, 0.5))
def test_a_row_that_is_at_least_as_good_in_both_legs_is_never_behind(
    found: list[ranking.Candidate], profile: ranking.Profile, worse: ranking.Candidate, words: float, cosine: float
) -> None:
    before = (worse.lexical.score if worse.lexical else 0.0, worse.vector.score if worse.vector else -1.0)
    better = row(101, words=before[0] + words, cosine=min(1.0, before[1] + cosine), length=worse.length)
    scores = ranking.fuse([*found, worse._replace(doc=100), better], profile, ideal=3.0)
    assert scores[101] >= scores[100]


# --- the re-rank


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


MINUTE = datetime(2024, 3, 1, 12, 30, tzinfo=UTC)


@given(st.integers(0, 59_999_999), st.integers(0, 59_999_999), st.integers(0, 10**15))
def test_what_was_written_within_a_minute_is_equally_old_at_every_instant(first: int, second: int, later: int) -> None:
    as_of = MINUTE + timedelta(minutes=1, microseconds=later)
    ages = [ranking.age_days(MINUTE + timedelta(microseconds=each), as_of) for each in (first, second)]
    assert ages[0] == ages[1] == pytest.approx((60 + later / 1e6) / 86_400)


@given(st.integers(0, 10**15), st.integers(60_000_000, 10**15))
def test_what_came_a_minute_later_is_younger(later: int, gap: int) -> None:
    as_of = MINUTE + timedelta(microseconds=later + gap)
    assert ranking.age_days(MINUTE, as_of) > ranking.age_days(MINUTE + timedelta(microseconds=gap), as_of)


def test_constants_are_those_of_the_contract() -> None:
    assert (ranking.K1, ranking.B, ranking.RRF_K) == (1.2, 0.75, 60)


def test_without_any_vector_no_text_is_damped() -> None:
    found = [row(1, words=3.0, length=100), row(2, words=3.0, length=400)]
    assert ranking.fuse(found, WIDE, ideal=0.0) == {1: 1.0, 2: 1.0}
