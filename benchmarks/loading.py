"""Writing the texts of a public data set through the service that the tools use."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks import common
from brain.runtime import Brain
from brain.services import memory, scopes
from brain.services.memory import Draft

BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load gave: the name of each stored row, how fast it went, and the server's version."""

    name_of: dict[int, str]
    rows: int
    seconds: float
    server: str

    @property
    def rows_per_second(self) -> float:
        """Rows checked, embedded, indexed and committed a second."""
        return round(self.rows / self.seconds, 1)


async def load(brain: Brain, drafts: Sequence[tuple[str, Draft]]) -> Loaded:
    """Store named drafts in batches, with their projects registered by hand: similar names look like slips."""
    for scope in dict.fromkeys(draft.scope for _, draft in drafts):
        await brain.write(partial(scopes.add, text=scope))
    name_of: dict[int, str] = {}
    began = time.perf_counter()
    for start in range(0, len(drafts), BATCH):
        batch = drafts[start : start + BATCH]
        prepared = await memory.prepare(brain.embedder, [draft for _, draft in batch])
        written = await brain.write(partial(memory.write_many, prepared=prepared))
        name_of |= {result.fact.doc: name for (name, _), result in zip(batch, written, strict=True)}
    seconds = time.perf_counter() - began
    common.note(f"Loaded {len(drafts)} rows in {seconds:.0f} s with {brain.embedder.model}.")
    return Loaded(name_of, len(drafts), seconds, await common.tidy(brain))
