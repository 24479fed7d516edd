"""A budget of characters, counted in UTF-8 bytes and spent on whole items: nothing is ever cut in the middle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

RESERVE = 1_500
"""Characters kept free for the frame of an answer and for saying what was left out."""


@dataclass(frozen=True, slots=True)
class Item:
    """One whole thing that is shown or left out."""

    text: str
    data: dict[str, Any]

    @property
    def size(self) -> int:
        """Size of text and structured content together, in UTF-8 bytes.

        In plain English that is the number of characters; other scripts take more bytes a character, as they take more
        of the tokens that a client counts.
        """
        return len(self.text.encode()) + len(json.dumps(self.data, ensure_ascii=False).encode()) + 4


class Budget:
    """What is left to spend."""

    def __init__(self, characters: int, *, reserve: int = RESERVE) -> None:
        self.left = characters - reserve

    def fit(self, items: Iterable[Item]) -> list[Item]:
        """Return the items that fit, in order; one that does not fit is passed over for smaller ones after it."""
        kept = []
        for item in items:
            if item.size <= self.left:
                kept.append(item)
                self.left -= item.size
        return kept

    def fit_first(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items that fit up to the first that does not: what is left out is one stretch at the end."""
        for place, item in enumerate(items):
            if item.size > self.left:
                return items[:place]
            self.left -= item.size
        return items
