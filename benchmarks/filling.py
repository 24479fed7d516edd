"""Loading a synthetic history into a brain, each assertion as it was recorded, with its vector."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.histories import SCOPES, Revision
from brain.embedders import Vector
from brain.layers import Fact
from brain.refs import new_id
from brain.repository import memory as repository
from brain.runtime import Brain
from brain.services import facts, models, scopes
from brain.work import Work

Matrix = npt.NDArray[np.float32]

BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Filled:
    """The document number and the stored vector of each revision, in order; a row of zeros stands for no vector."""

    docs: list[int]
    vectors: Matrix
    seconds: float


async def fill(brain: Brain, history: Sequence[Revision]) -> Filled:
    """Store a history in the order in which it is recorded."""
    for scope in SCOPES:
        if scope.startswith("project:"):
            await brain.write(partial(_register, scope=scope))
    identities = {each.key: new_id(each.known_from) for each in reversed(history)}
    versions: dict[str, int] = {}
    docs: list[int] = []
    vectors = np.zeros((len(history), brain.embedder.dimensions), dtype=np.float32)
    began = time.perf_counter()
    for start in range(0, len(history), BATCH):
        batch = history[start : start + BATCH]
        embedded = await brain.embedder.embed([each.text for each in batch])
        numbered = []
        for place, (each, vector) in enumerate(zip(batch, embedded, strict=True), start):
            versions[each.key] = versions.get(each.key, 0) + 1
            numbered.append((each, identities[each.key], versions[each.key]))
            if vector is not None:
                vectors[place] = stored(vector)
        docs += await brain.write(partial(_store, brain=brain, batch=numbered, vectors=embedded))
    return Filled(docs, vectors, time.perf_counter() - began)


def stored(vector: Vector) -> Matrix:
    """Return a vector as the store keeps it, in single precision."""
    return np.array(json.loads(repository.vector_text(vector)), dtype=np.float32)


async def _register(work: Work, scope: str) -> None:
    await scopes.add(work, scope)


async def _store(
    work: Work, brain: Brain, batch: Sequence[tuple[Revision, str, int]], vectors: Sequence[Vector | None]
) -> list[int]:
    work.next_instant()
    await models.check_active(work, brain.embedder)
    rows = [_fact(work, *each) for each in batch]
    model = brain.embedder.model
    new = {row.content: vector for row, vector in zip(rows, vectors, strict=True)}
    known = await repository.embedded(work, model, new)
    await repository.add_embeddings(work, model, {key: vector for key, vector in new.items() if key not in known})
    return [stored.doc for stored in await facts.append(work, rows)]


def _fact(work: Work, revision: Revision, identity: str, version: int) -> Fact:
    caller = work.caller
    return Fact(
        id=identity,
        version=version,
        doc=0,
        scope=revision.scope,
        key=revision.key,
        text=revision.text,
        title="",
        kind=revision.kind,
        tags=[],
        importance=revision.importance,
        confidence=Decimal(revision.confidence),
        evidence=[],
        supersedes="",
        trigger="explicit",
        reference="",
        said="",
        reason="no longer so" if revision.tombstone else "",
        tombstone=revision.tombstone,
        occurred=revision.occurred,
        valid_from=revision.valid_from,
        valid_to=revision.valid_to,
        known_from=revision.known_from,
        recorded_at=revision.recorded_at,
        origin=caller.origin,
        client=caller.client,
        session=caller.session,
        model=caller.model,
        content=facts.content_of("", revision.text),
        words=facts.words_of("", revision.text, work.language),
        length=0,
        docs_before=0,
        terms_before=0,
    )
