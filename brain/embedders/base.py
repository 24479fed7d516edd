"""The protocol that every embedding provider implements, and what all providers share."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

Vector = list[float]


class Embedder(Protocol):
    """Turns texts into vectors of one model; no provider is called while a transaction is open."""

    @property
    def model(self) -> str:
        """Name of the model, with everything that changes its vectors."""

    @property
    def dimensions(self) -> int:
        """Width of every vector."""

    @property
    def floor(self) -> float:
        """The cosine similarity from which a hit of this model stands on its own."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        """Return one vector a text, or None where the model has no usable one.

        Raises Unavailable when the provider cannot be reached.
        """


@dataclass(frozen=True, slots=True)
class Estimate:
    """What embedding some texts would take, counted without calling the provider."""

    texts: int
    characters: int
    requests: int


def usable(vector: Sequence[float], dimensions: int) -> Vector | None:
    """Return the vector scaled to length one, or None when it is not finite, has another width or no direction."""
    if len(vector) != dimensions or not all(math.isfinite(each) for each in vector):
        return None
    norm = math.sqrt(math.fsum(each * each for each in vector))
    return [each / norm for each in vector] if 1e-12 < norm < math.inf else None


def fingerprint(*parts: object) -> str:
    """Eight hexadecimal digits that change with the parts, for what changes vectors beside the model itself."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:8]


def has_words(text: str) -> bool:
    """Whether a text has a letter or digit; without one, every text is alike to most sentence models."""
    return any(each.isalnum() for each in text)


def batches(texts: Sequence[str], most: int, characters: int) -> Iterator[slice]:
    """Cut texts, in order, into runs of at most `most` texts and, beyond the first text of a run, `characters`."""
    start = size = 0
    for at, text in enumerate(texts):
        if at > start and (at - start >= most or size + len(text) > characters):
            yield slice(start, at)
            start, size = at, 0
        size += len(text)
    if start < len(texts):
        yield slice(start, len(texts))
