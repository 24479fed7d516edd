"""Hashed words and word pairs: deterministic, offline, without a model; similarity is lexical.

The hashing trick with a signed hash (Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

from brain.embedders.base import Vector, usable
from brain.embedders.floors import floor_of
from brain.text import ANALYSIS_VERSION, query_terms

_PAIR_WEIGHT = 0.5


class LocalHash:
    """Vectors of the terms of a text, hashed into a fixed width."""

    floor = floor_of("local-hash")

    def __init__(self, *, dimensions: int = 256, language: str = "english") -> None:
        self.dimensions = dimensions
        self._language = language

    @property
    def model(self) -> str:
        """Name of the model, with everything that changes its vectors."""
        return f"local-hash-{self.dimensions}-{self._language}-a{ANALYSIS_VERSION}"

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        """Return one vector a text, None for a text without words; never fails."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector | None:
        words = query_terms(text, self._language).terms
        vector = [0.0] * self.dimensions
        features = Counter(words)
        for feature, count in features.items():
            self._add(vector, feature, 1 + math.log(count))
        for left, right in set(pairwise(words)):
            self._add(vector, f"{left} {right}", _PAIR_WEIGHT)
        return usable(vector, self.dimensions)

    def _add(self, vector: Vector, feature: str, weight: float) -> None:
        slot, sign = _place(feature, self.dimensions)
        vector[slot] += sign * weight


@lru_cache(maxsize=100_000)
def _place(feature: str, dimensions: int) -> tuple[int, int]:
    number = int.from_bytes(blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    return (number >> 1) % dimensions, 1 if number & 1 else -1
