"""Synthetic facts whose words are as unevenly common as in natural text, and vectors made of these words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt

from brain.embedders import Vector
from brain.embedders.floors import floor_of

Matrix = npt.NDArray[np.float32]

WORDS: Final = 30_000
LENGTH: Final = 34
"""Words in a text."""
ASKED: Final = 5
"""Words in a query."""
FUNCTION_WORDS: Final = 50
"""The most common words, each in more than one text of twenty: they stand for those that a question leaves out."""
KINDS: Final = ("rare", "middling", "common")
_SLOPE: Final = 0.9
_LATENT: Final = 24
"""The words' directions lie near a space of so many dimensions, as those of sentence models do."""
_NOISE: Final = 0.3
_SEED: Final = 7


class Vocabulary:
    """Pronounceable words; the n-th is used in proportion to 1 / n^0.9."""

    def __init__(self) -> None:
        chance = random.Random(_SEED)
        words: dict[str, None] = {}
        while len(words) < WORDS:
            syllables = (chance.choice("bcdfghklmnprst") + chance.choice("aeiou") for _ in range(chance.randint(2, 5)))
            words["".join(syllables) + "k"] = None
        self.words = list(words)
        self.place = {word: place for place, word in enumerate(self.words)}
        self._weights = list(accumulate((place + 1) ** -_SLOPE for place in range(WORDS)))

    def text(self, chance: random.Random) -> str:
        """Return a random text."""
        return " ".join(chance.choices(self.words, cum_weights=self._weights, k=LENGTH))

    def query(self, text: str, kind: str) -> str:
        """Return a query that a text answers: its rarest words, its most common content words, or those between."""
        content = {word for word in text.split() if self.place[word] >= FUNCTION_WORDS}
        words = sorted(content, key=self.place.__getitem__)
        start = {"common": 0, "middling": (len(words) - ASKED) // 2, "rare": len(words) - ASKED}[kind]
        return " ".join(words[start : start + ASKED])


class WordVectors:
    """A stand-in for a sentence model: the sum of a text's words, each a fixed direction; costs next to nothing.

    Texts are near one another as far as they share words or words of near meaning.
    """

    dimensions = 384

    def __init__(self, vocabulary: Vocabulary, name: str) -> None:
        self.model = f"{name}-{self.dimensions}"
        self.floor = floor_of(self.model)
        self._place = vocabulary.place
        random = np.random.default_rng(_SEED)
        meanings = random.standard_normal((WORDS, _LATENT)) @ random.standard_normal((_LATENT, self.dimensions))
        noise = random.standard_normal((WORDS, self.dimensions))
        self._directions = (meanings / _LATENT**0.5 + _NOISE * noise).astype(np.float32)

    def matrix(self, texts: Sequence[str]) -> Matrix:
        """Return one vector of length one a text, of zeros where no word is known."""
        summed = np.stack([self._directions[self._places(text)].sum(axis=0) for text in texts])
        norms = np.linalg.norm(summed, axis=1, keepdims=True)
        scaled: Matrix = (summed / np.maximum(norms, 1e-12)).astype(np.float32)
        return scaled

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        """Return one vector a text, None where no word is known."""
        return [vector.tolist() if vector.any() else None for vector in self.matrix(texts)] if texts else []

    def _places(self, text: str) -> list[int]:
        return [self._place[word] for word in text.split() if word in self._place]
