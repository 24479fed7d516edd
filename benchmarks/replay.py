"""Does the past stay what it was? `python -m benchmarks.replay --json OUT`.

While four processes write at random to all seven layers, a recorder keeps what the brain answers: session starts as
text and as data, searches to the last bit of their scores, and the other reading tools. Afterwards every answer is
asked for again as of the instant that it reported, before and after many later writes, and compared byte for byte.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from benchmarks import common
from benchmarks.workload import KEYS, WORDS, Workload, ask
from brain import runtime
from brain.config import Settings
from brain.errors import BrainError
from brain.layers import LAYERS
from brain.names import Scope
from brain.repository import search as legs
from brain.runtime import Brain
from brain.services import memory, scopes
from brain.text import query_terms
from brain.tools.protocol import Result
from brain.work import Work

WRITERS: Final = 4
INSTANTS: Final = 100
WRITES: Final = 3_000
LATER: Final = 10_000
PATIENCE_SECONDS: Final = 120
BATCH: Final = 500
DEPTH: Final = 100
EXAMPLES: Final = 10
AROUND: Final = 160
KINDS: Final = ("payloads", "searches", "plans", "reads")

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was asked, the instant that the answer reported, and the answer."""

    kind: str
    asked: Arguments
    as_of: str
    answer: bytes


@dataclass(slots=True)
class Replayed:
    """How many answers were asked for again, and those that came out differently."""

    compared: Counter[str] = field(default_factory=Counter)
    differing: list[tuple[Recorded, Recorded]] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Return how many answers of a kind differ."""
        return sum(before.kind == kind for before, _ in self.differing)


def as_bytes(result: Result) -> bytes:
    """Return text and data together, every character and every digit."""
    return json.dumps([result.text, result.data], ensure_ascii=False).encode()


async def session_start(brain: Brain, asked: Arguments, as_of: str = "") -> Recorded:
    """Ask for a session start, by default as of now."""
    result = await ask(brain, "get_session_continuation", **asked, as_of=as_of)
    return Recorded("payloads", asked, result.data["as_of"], as_bytes(result))


async def searched(brain: Brain, asked: Arguments, as_of: str = "") -> Recorded:
    """Search, by default as of now; scores are written with every digit that tells one number from another."""
    result = await ask(brain, "read_memory", **asked, as_of=as_of)
    return Recorded("searches", asked, result.data["diagnosis"]["as_of"], as_bytes(result))


async def words_leg(brain: Brain, asked: Arguments, as_of: str = "", *, general: bool = False) -> Recorded:
    """Run the words leg by itself, in its ordinary plan or by scanning what is visible."""

    async def job(work: Work) -> Recorded:
        covered = await scopes.for_reading(work, "")
        visible = legs.Visible(list(covered.numbers), list(covered.numbers.values()), work.as_of)
        terms = query_terms(asked["query"], work.language).terms
        found = await legs.lexical(work, visible, terms, floor=0.0, depth=DEPTH, general=general)
        lines = [f"{hit.doc} {hit.score.hex()} {hit.coverage.hex()}" for hit in found.hits]
        lines.append(f"{found.weights} {found.candidates} {found.best_below.hex()}")
        return Recorded("plans", asked, work.as_of.isoformat(), "\n".join(lines).encode())

    return await brain.read(job, as_of=as_of)


async def read(brain: Brain, asked: Arguments, as_of: str) -> Recorded:
    """Ask any other reading tool; a refusal is an answer, too."""
    try:
        answer = as_bytes(await ask(brain, asked["tool"], **asked["arguments"], as_of=as_of))
    except BrainError as error:
        answer = str(error).encode()
    return Recorded("reads", asked, as_of, answer)


class Recorder:
    """Asks the same kinds of questions at each instant and keeps the answers."""

    def __init__(self, brain: Brain, seed: int) -> None:
        self.brain = brain
        self.random = random.Random(seed)
        self.kept: list[Recorded] = []
        self._last = ""

    async def capture(self) -> None:
        """Keep what the brain answers at this instant, while others write."""
        changed_since = {"since": self._last} if self._last else {}
        for asked in ({}, {"scope": "project:kestrel"}, {"max_chars": 1_500}, changed_since):
            self.kept.append(await session_start(self.brain, asked))
        self._last = self.kept[-1].as_of
        for asked in self._questions():
            self.kept.append(await searched(self.brain, asked))
        query = {"query": " ".join(self.random.sample(WORDS, 3))}
        self.kept.append(await words_leg(self.brain, query))
        for asked in self._reads():
            self.kept.append(await read(self.brain, asked, self._last))

    def _questions(self) -> Iterator[Arguments]:
        yield {"query": " ".join(self.random.sample(WORDS, 2))}
        yield {"query": self.random.choice(WORDS), "scope": "lane:work", "limit": 50}
        yield {"query": self.random.choice(WORDS), "kinds": ["event", "decision"], "scope": "all"}

    def _reads(self) -> Iterator[Arguments]:
        key = f"fact-{self.random.randrange(KEYS)}"
        yield {"tool": "get_history", "arguments": {"ref": key}}
        yield {"tool": "get_memory", "arguments": {"ref": key}}
        yield {"tool": "read_records", "arguments": {"scope": "all"}}
        yield {"tool": "list_threads", "arguments": {}}
        yield {"tool": "read_wiki", "arguments": {"page": f"Subject {self.random.randrange(12)}"}}
        yield {"tool": "walk_trail", "arguments": {"tags": [self.random.choice(WORDS)], "newest_first": True}}
        yield {"tool": "get_digest", "arguments": {"since": self._last[:10]}}


def write_until_enough(settings: Settings, seed: int, taken: Any, enough: Any) -> None:
    """Write at random until the recorder has enough; the body of each writing process."""

    async def job() -> None:
        brain = runtime.open_brain(settings, origin="model", client=f"writer-{seed}")
        try:
            workload = Workload(brain, seed)
            while not enough.is_set():
                if await workload.step():
                    taken.release()
        finally:
            await brain.close()

    runtime.run(job)


@contextmanager
def writing(settings: Settings, seed: int) -> Iterator[Any]:
    """Yield a semaphore that every write of four processes releases; they end with the block.

    Raises RuntimeError when one of them failed.
    """
    context = multiprocessing.get_context("spawn")
    taken, enough = context.Semaphore(0), context.Event()
    processes = [
        context.Process(target=write_until_enough, args=(settings, seed + number, taken, enough), daemon=True)
        for number in range(WRITERS)
    ]
    for each in processes:
        each.start()
    try:
        yield taken
    finally:
        enough.set()
        for each in processes:
            each.join(PATIENCE_SECONDS)
    if any(each.exitcode != 0 for each in processes):
        raise RuntimeError("A writing process failed.")


async def record(brain: Brain, settings: Settings, *, instants: int, writes: int, seed: int) -> list[Recorded]:
    """Keep the answers at instants spread at random over the writes."""
    recorder, gaps = Recorder(brain, seed), random.Random(seed)
    with writing(settings, seed) as taken:
        for _ in range(instants):
            for _ in range(gaps.randint(0, 2 * writes // instants)):
                if not taken.acquire(timeout=PATIENCE_SECONDS):
                    raise RuntimeError("The writing processes stopped.")
            await recorder.capture()
    return recorder.kept


async def replay(brain: Brain, kept: Sequence[Recorded]) -> Replayed:
    """Ask for everything again as of the instant that it reported, and the words leg in both of its plans."""
    found = Replayed()
    again = {"payloads": session_start, "searches": searched, "plans": words_leg, "reads": read}
    for before in kept:
        after = [await again[before.kind](brain, before.asked, before.as_of)]
        if before.kind == "plans":
            after.append(await words_leg(brain, before.asked, before.as_of, general=True))
        found.compared[before.kind] += 1
        found.differing += [(before, each) for each in after if each.answer != before.answer]
    return found


async def write_later(brain: Brain, rows: int, seed: int) -> None:
    """Write many facts more, with words old and new."""
    later = random.Random(seed)
    for start in range(0, rows, BATCH):
        drafts = [
            memory.Draft(
                text=f"{' '.join(later.choices(WORDS, k=8))} later{start + number}",
                key=f"later-{start + number}",
                scope=later.choice(["global", "lane:work", "project:kestrel"]),
                tags=[later.choice(WORDS)],
            )
            for number in range(min(BATCH, rows - start))
        ]
        prepared = await memory.prepare(brain.embedder, drafts)
        await brain.write(partial(memory.write_many, prepared=prepared))


async def rows_written(brain: Brain) -> int:
    """Count the versions of every layer."""
    count = " + ".join(
        f"(SELECT count(*) FROM {layer.table} WHERE namespace = %(namespace)s)" for layer in LAYERS.values()
    )

    async def job(work: Work) -> int:
        [rows] = await work.values(f"SELECT {count}", {})
        return int(rows)

    return await brain.read(job)


async def measure(settings: Settings, *, instants: int, writes: int, later: int, seed: int) -> dict[str, Any]:
    """Record, replay, write more, replay again."""
    brain = runtime.open_brain(settings, origin="model", client="recorder", project=Scope("project", "kestrel"))
    try:
        await Workload(brain, seed).step()
        kept = await record(brain, settings, instants=instants, writes=writes, seed=seed)
        written = await rows_written(brain)
        first = await replay(brain, kept)
        await write_later(brain, later, seed)
        second = await replay(brain, kept)
        server = await common.tidy(brain)
    finally:
        await brain.close()
    differing = {kind: first.count(kind) + second.count(kind) for kind in KINDS}
    return {
        "bars": {"instants": instants, "writes": written, "later_writes": later}
        | {f"differing_{kind}": count for kind, count in differing.items()},
        "processes": WRITERS,
        "compared": {kind: first.compared[kind] for kind in KINDS},
        "examples": examples(first, second),
        "machine": common.machine(server, brain.embedder),
    }


def examples(*replays: Replayed) -> list[Arguments]:
    """Return the first differences, each with the place where the two answers part."""
    pairs = [pair for found in replays for pair in found.differing][:EXAMPLES]
    return [
        {
            "kind": before.kind,
            "asked": before.asked,
            "as_of": before.as_of,
            "parted": parted(before.answer, after.answer),
        }
        for before, after in pairs
    ]


def parted(before: bytes, after: bytes) -> list[str]:
    """Return what stands around the first byte in which two answers differ."""
    place = next((n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before))
    around = slice(max(place - AROUND, 0), place + AROUND)
    return [before[around].decode(errors="replace"), after[around].decode(errors="replace")]


def show(found: dict[str, Any]) -> None:
    """Print how many answers were compared and how many differ."""
    bars = found["bars"]
    title = f"{bars['instants']} instants during {bars['writes']} writes, again after {bars['later_writes']} more"
    rows = [[kind, 2 * found["compared"][kind], bars[f"differing_{kind}"]] for kind in KINDS]
    common.table(title, ["answers", "replayed", "differing"], rows)
    for each in found["examples"]:
        print(each)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = common.parser("replay", __doc__)
    parser.add_argument("--instants", type=int, default=INSTANTS)
    parser.add_argument("--writes", type=int, default=WRITES, help="about so many writes while the recorder captures")
    parser.add_argument("--later", type=int, default=LATER, help="facts written before everything is replayed again")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    sizes = {name: getattr(options, name) for name in ("instants", "writes", "later", "seed")}
    with common.fresh_settings(options) as settings:
        found = runtime.run(lambda: measure(settings, **sizes))
    show(found)
    common.finish(options, found)


if __name__ == "__main__":
    main()
