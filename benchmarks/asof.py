"""What does asking about the past cost? `python -m benchmarks.asof --json OUT`.

The same questions are asked of the same synthetic history, now and as of a random past instant, in turn.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from benchmarks import common, filling
from benchmarks.histories import Asked, Author
from brain import runtime
from brain.config import Settings
from brain.runtime import Brain
from brain.services import search

SIZES: Final = (10_000, 100_000)
REVISIONS_A_KEY: Final = 5
QUESTIONS: Final = 200
WARM_UP: Final = 10


async def timed(brain: Brain, prepared: search.Prepared, as_of: datetime | None) -> tuple[float, int]:
    """Return the seconds of one search and how many rows it covered."""
    began = time.perf_counter()
    answer = await brain.read(lambda work: search.run(work, prepared), as_of=as_of)
    return time.perf_counter() - began, int(answer.diagnosis["rows_searched"])


async def compare(brain: Brain, questions: Sequence[Asked]) -> dict[str, Any]:
    """Ask every question now and as of its cut-off, in changing order, and compare the medians."""
    order = random.Random(len(questions))
    now: list[tuple[float, int]] = []
    past: list[tuple[float, int]] = []
    warm_up = questions[:WARM_UP]
    for place, asked in enumerate([*warm_up, *questions]):
        question = search.Question(query=asked.text, scope=asked.scope)
        prepared = await search.prepare(brain.embedder, question)
        found = {}
        for as_of in order.sample([None, asked.as_of], 2):
            found[as_of] = await timed(brain, prepared, as_of)
        if place >= len(warm_up):
            now.append(found[None])
            past.append(found[asked.as_of])
    return {"now": _figures(now), "past": _figures(past), "ratio": round(_median(past) / _median(now), 3)}


async def measure(settings: Settings, sizes: Sequence[int], questions: int, seed: int) -> dict[str, Any]:
    """Compare at each number of revisions, each in a namespace of its own."""
    found, server, embedder = {}, "", None
    for size in sizes:
        brain = common.open_brain(settings.model_copy(update={"namespace": f"{settings.namespace}-{size}"}))
        try:
            author = Author(seed)
            history = author.history(size // REVISIONS_A_KEY, size)
            common.note(f"Loading {size} revisions ...")
            filled = await filling.fill(brain, history)
            server, embedder = await common.tidy(brain), brain.embedder
            found[size] = await compare(brain, list(author.questions(history, questions)))
            found[size]["load_seconds"] = round(filled.seconds, 1)
        finally:
            await brain.close()
    assert embedder is not None
    return {
        "bars": {f"ratio_{size}": figures["ratio"] for size, figures in found.items()},
        "questions": questions,
        "sizes": {str(size): figures for size, figures in found.items()},
        "machine": common.machine(server, embedder),
    }


def show(found: dict[str, Any]) -> None:
    """Print medians and their ratio at each size."""
    rows = [
        [
            size,
            *(each[when][figure] for when in ("now", "past") for figure in ("ms_median", "ms_p95", "rows_median")),
            each["ratio"],
        ]
        for size, each in found["sizes"].items()
    ]
    columns = [f"{when}: {figure}" for when in ("now", "past") for figure in ("median ms", "p95 ms", "rows searched")]
    common.table("Searching now and as of a past instant", ["revisions", *columns, "ratio of medians"], rows)


def _median(timings: Sequence[tuple[float, int]]) -> float:
    return statistics.median(seconds for seconds, _ in timings)


def _figures(timings: Sequence[tuple[float, int]]) -> dict[str, float]:
    seconds = sorted(each for each, _ in timings)
    return {
        "ms_median": round(1000 * _median(timings), 2),
        "ms_p95": round(1000 * seconds[int(0.95 * (len(seconds) - 1))], 2),
        "rows_median": statistics.median(rows for _, rows in timings),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = common.parser("asof", __doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of revisions, comma separated")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    sizes = [int(each) for each in options.sizes.split(",")]
    with common.fresh_settings(options) as settings:
        found = runtime.run(lambda: measure(settings, sizes, options.questions, options.seed))
    show(found)
    common.finish(options, found)


if __name__ == "__main__":
    main()
