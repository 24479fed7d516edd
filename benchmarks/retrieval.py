"""Measures of retrieval: how much of what should be found stands how high."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, TypeVar

T = TypeVar("T")

DEPTHS: Final = (5, 10, 20)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one search found of what it should find."""

    group: str
    recall: tuple[float, ...]
    """Share of the wanted that is among the first hits, at each of DEPTHS."""
    reciprocal_rank: float


def outcome(group: str, found: Sequence[T], wanted: Collection[T]) -> Outcome:
    """Compare hits, best first, with what was wanted, at least one."""
    recall = tuple(len(set(found[:depth]) & set(wanted)) / len(set(wanted)) for depth in DEPTHS)
    first = next((place for place, each in enumerate(found, 1) if each in wanted), None)
    return Outcome(group, recall, 1 / first if first else 0.0)


def summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return mean recall at each depth and the mean reciprocal rank over searches, at least one."""
    means = {
        f"recall_at_{depth}": round(fmean(each.recall[place] for each in outcomes), 4)
        for place, depth in enumerate(DEPTHS)
    }
    return means | {"mrr": round(fmean(each.reciprocal_rank for each in outcomes), 4), "n": len(outcomes)}


def by_group(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Return the summary of each group."""
    grouped: dict[str, list[Outcome]] = {}
    for each in outcomes:
        grouped.setdefault(each.group, []).append(each)
    return {group: summary(members) for group, members in sorted(grouped.items())}
