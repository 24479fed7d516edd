"""Two backends of the vector leg, the database and numpy: `python -m benchmarks.backends --json OUT`.

Brains of random texts, and of small whole-numbered vectors in few dimensions, where many similarities are equal. Every
random search is ranked by the product's own exact statement and by numpy over the same stored vectors; the tie rule
(equal similarities by document number) must make both rankings the same, to the last bit of every score.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks import common, loading
from benchmarks.filling import stored
from brain import runtime
from brain.config import Settings
from brain.embedders import Embedder, Vector
from brain.repository import search as repository
from brain.repository.memory import vector_text
from brain.runtime import Brain
from brain.services import scopes
from brain.services.memory import Draft
from brain.work import Work

SEARCHES: Final = 10_000
ROWS: Final = 400
SCOPES: Final = ("project:first", "project:second", "lane:work")
BATCH: Final = 100
SEED: Final = 9

Integers = npt.NDArray[np.int64]


class Dice:
    """Random vectors of few small whole numbers, the same for the same text: many are equally near."""

    model = "dice-6"
    dimensions = 6
    floor = 1.0

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        """Return a vector of thrown dice for each text; one without direction is none."""
        return [_thrown(text) for text in texts]


def _thrown(text: str) -> Vector | None:
    dice = random.Random(text)
    numbers = [float(dice.randint(-2, 2)) for _ in range(Dice.dimensions)]
    return numbers if any(numbers) else None


@dataclass(frozen=True, slots=True)
class Memory:
    """The stored vectors of one brain with their document numbers and scopes."""

    docs: Integers
    scopes: npt.NDArray[np.str_]
    vectors: Integers

    def nearest(self, asked: Integers, within: Sequence[str], depth: int) -> list[tuple[int, float]]:
        """Rank by cosine similarity, ties by document number; sums are whole, so their order does not matter."""
        kept = np.isin(self.scopes, within)
        vectors, docs = self.vectors[kept], self.docs[kept]
        norms = (vectors**2).sum(axis=1).astype(np.float64) * float((asked**2).sum())
        cosines = np.clip((vectors @ asked).astype(np.float64) / np.sqrt(norms), -1.0, 1.0)
        distances = 1.0 - cosines
        order = np.lexsort((docs, distances))[:depth]
        return [(int(docs[place]), float(1.0 - distances[place])) for place in order]


@dataclass(frozen=True, slots=True)
class Search:
    """One random search."""

    vector: Vector
    scopes: tuple[str, ...]
    depth: int


async def fill(brain: Brain, rows: int, chance: random.Random) -> Memory:
    """Store random texts in several scopes; return what numpy ranks."""
    drafts = [
        Draft(text=_text(chance), key=f"k{place}", scope=chance.choice(SCOPES), allow_duplicate=True)
        for place in range(rows)
    ]
    loaded = await loading.load(brain, [(draft.scope, draft) for draft in drafts])
    vectors = await brain.embedder.embed([draft.text for draft in drafts])
    rows_with = [
        (doc, scope, stored(vector))
        for (doc, scope), vector in zip(loaded.name_of.items(), vectors, strict=True)
        if vector is not None
    ]
    docs, names, numbers = zip(*rows_with, strict=True)
    return Memory(np.array(docs), np.array(names), np.stack(numbers).astype(np.int64))


def _text(chance: random.Random) -> str:
    return " ".join(f"word{chance.randrange(300)}" for _ in range(chance.randint(3, 12)))


async def searches(embedder: Embedder, count: int, chance: random.Random) -> list[Search]:
    """Return random searches that have a vector."""
    texts = [_text(chance) for _ in range(count)]
    vectors = await embedder.embed(texts, query=True)
    return [
        Search(vector, tuple(chance.sample(SCOPES, chance.randint(1, len(SCOPES)))), chance.randint(1, ROWS))
        for vector in vectors
        if vector is not None
    ]


async def compare(brain: Brain, rows: int, count: int, chance: random.Random) -> dict[str, Any]:
    """Rank every search by both backends."""
    memory = await fill(brain, rows, chance)
    asked = await searches(brain.embedder, count, chance)
    different = ties = compared = 0
    for start in range(0, len(asked), BATCH):
        batch = asked[start : start + BATCH]
        for search, found in zip(batch, await brain.read(partial(_rank, brain=brain, batch=batch)), strict=True):
            vector = stored(search.vector).astype(np.int64)
            expected = memory.nearest(vector, search.scopes, search.depth)
            different += found != expected
            compared += len(found)
            ties += len(found) - len({score for _, score in found})
    return {"searches": len(asked), "different": different, "hits": compared, "tied_hits": ties, "rows": rows}


async def _rank(work: Work, brain: Brain, batch: Sequence[Search]) -> list[list[tuple[int, float]]]:
    covered = await scopes.for_reading(work, "all")
    ranked = []
    for search in batch:
        numbers = [covered.numbers[scope] for scope in search.scopes]
        visible = repository.Visible(scopes=search.scopes, numbers=numbers, valid_at=work.as_of)
        asked = vector_text(search.vector)
        hits = await repository.compared(work, visible, asked, model=brain.embedder.model, depth=search.depth)
        ranked.append([(hit.doc, hit.score) for hit in hits])
    return ranked


async def measure(settings: Settings, rows: int, limit: int) -> dict[str, Any]:
    """Compare with random texts and with dice, half of the searches each."""
    chance = random.Random(SEED)
    texts = common.open_brain(settings)
    try:
        dice = replace(texts, embedder=Dice(), caller=replace(texts.caller, namespace=f"{texts.caller.namespace}-dice"))
        began = datetime.now(UTC)
        found = {
            texts.embedder.model: await compare(texts, rows, limit - limit // 2, chance),
            Dice.model: await compare(dice, rows, limit // 2, chance),
        }
        server = await common.tidy(texts)
    finally:
        await texts.close()
    return {
        "bars": {
            "searches": sum(each["searches"] for each in found.values()),
            "different_rankings": sum(each["different"] for each in found.values()),
        },
        "models": found,
        "seconds": round((datetime.now(UTC) - began).total_seconds(), 1),
        "machine": common.machine(server, texts.embedder),
    }


def show(found: dict[str, Any]) -> None:
    """Print the figures as a table."""
    columns = ["vectors", "rows", "searches", "hits", "tied hits", "different rankings"]
    names = ("rows", "searches", "hits", "tied_hits", "different")
    rows = [[model, *(each[name] for name in names)] for model, each in found["models"].items()]
    common.table("Exact cosine in the database and in numpy", columns, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = common.parser("backends", __doc__)
    parser.add_argument("--limit", type=int, default=SEARCHES, help="how many random searches (%(default)s)")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows a brain holds (%(default)s)")
    options: argparse.Namespace = parser.parse_args(arguments)
    with common.fresh_settings(options) as settings:
        found = runtime.run(lambda: measure(settings, options.rows, options.limit))
    show(found)
    common.finish(options, found)


if __name__ == "__main__":
    main()
