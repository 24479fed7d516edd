"""Finding evidence in long conversations: `python -m benchmarks.locomo --data FILE --json OUT`.

Reads the public LoCoMo conversations. Each turn is one memory with its date, each conversation a project; every
question with listed evidence is asked inside its own conversation, and once in another one, where nothing is right.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from typing import Any, Final

from benchmarks import common, conversations, legs, references, retrieval
from benchmarks.conversations import ADVERSARIAL, Asked, Conversation
from benchmarks.retrieval import Outcome
from brain import runtime
from brain.config import Settings
from brain.names import Scope, slug
from brain.runtime import Brain
from brain.services import memory, scopes, search

BATCH: Final = 200
DEPTH: Final = 100
"""How many hits each search returns; the mean reciprocal rank looks as far."""
FUSED, UNFLOORED, WORDS, MEANING = "fused", "fused, without floor", "words leg", "vector leg"
FTS5, BM25S = "SQLite FTS5", "bm25s"
IN_ALL: Final = "categories 1-4"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the load gave: the turn of each stored row, and how fast it went."""

    turn_of: dict[int, str]
    rows: int
    seconds: float


@dataclass(slots=True)
class Tally:
    """What was measured so far: outcomes by system, foreign searches by category, seconds by search."""

    outcomes: dict[str, list[Outcome]]
    foreign: list[tuple[str, bool]]
    seconds: list[float]


def scope_of(conversation: str) -> str:
    """Return the project that a conversation becomes."""
    return str(Scope("project", slug(conversation, field="project")))


def chosen(corpus: Sequence[Conversation], limit: int | None) -> list[Asked]:
    """Return the questions, taken from the conversations in turn when there is a limit."""
    if limit is None:
        return [question for each in corpus for question in each.questions]
    in_turn = chain.from_iterable(zip_longest(*(each.questions for each in corpus)))
    return list(islice((each for each in in_turn if each is not None), limit))


async def load(brain: Brain, corpus: Sequence[Conversation]) -> Loaded:
    """Write every turn through the service that the tools use."""
    for each in corpus:
        await _register(brain, scope_of(each.name))
    drafts = [(turn.id, _draft(each, turn)) for each in corpus for turn in each.turns]
    turn_of: dict[int, str] = {}
    began = time.perf_counter()
    for start in range(0, len(drafts), BATCH):
        batch = drafts[start : start + BATCH]
        prepared = await memory.prepare(brain.embedder, [draft for _, draft in batch])
        written = await brain.write(partial(memory.write_many, prepared=prepared))
        turn_of |= {result.fact.doc: turn for (turn, _), result in zip(batch, written, strict=True)}
    return Loaded(turn_of, len(drafts), time.perf_counter() - began)


async def _register(brain: Brain, scope: str) -> None:
    """Register a project by hand: the names of conversations look like slips of one another."""
    await brain.write(lambda work: scopes.add(work, scope))


def _draft(conversation: Conversation, turn: conversations.Turn) -> memory.Draft:
    return memory.Draft(
        text=turn.text,
        key=f"{conversation.name} {turn.id}",
        kind="event",
        scope=scope_of(conversation.name),
        occurred=turn.said_at,
        allow_duplicate=True,
    )


async def ask(brain: Brain, loaded: Loaded, question: Asked, tally: Tally) -> None:
    """Search for a question inside its own conversation, as the tools do and by each leg alone."""
    asked = search.Question(query=question.text, scope=scope_of(question.conversation), limit=DEPTH)
    began = time.perf_counter()
    prepared = await search.prepare(brain.embedder, asked)
    answer = await brain.read(lambda work: search.run(work, prepared))
    tally.seconds.append(time.perf_counter() - began)
    vector, model = await legs.query_vector(brain.embedder, asked.query), brain.embedder.model
    unfloored = await brain.read(
        lambda work: legs.unfloored(work, asked.query, vector, brain.embedder, scope=asked.scope)
    )
    alone = await brain.read(
        lambda work: legs.alone(work, asked.query, vector, model=model, scope=asked.scope, depth=DEPTH)
    )
    found = {
        FUSED: [hit.fact.doc for hit in answer.hits],
        UNFLOORED: unfloored[:DEPTH],
        WORDS: [doc for doc, _ in alone.words],
        MEANING: [doc for doc, _ in alone.meaning],
    }
    for system, docs in found.items():
        _add(tally, system, question, [loaded.turn_of[doc] for doc in docs])


async def ask_elsewhere(brain: Brain, corpus: Sequence[Conversation], question: Asked, tally: Tally) -> None:
    """Search for a question in the conversation after its own, where nothing should be found."""
    names = [each.name for each in corpus]
    other = names[(names.index(question.conversation) + 1) % len(names)]
    prepared = await search.prepare(
        brain.embedder, search.Question(query=question.text, scope=scope_of(other), limit=1)
    )
    answer = await brain.read(lambda work: search.run(work, prepared))
    tally.foreign.append((question.category, not answer.hits))


def ask_references(corpus: Sequence[Conversation], questions: Sequence[Asked], tally: Tally) -> None:
    """Search for every question with the reference systems over the same texts."""
    for each in corpus:
        texts = [turn.text for turn in each.turns]
        systems = {FTS5: references.fts5(texts), BM25S: references.bm25s(texts)}
        for question in (question for question in questions if question.conversation == each.name):
            for system, find in systems.items():
                if find is not None:
                    _add(tally, system, question, [each.turns[place].id for place in find(question.text, DEPTH)])


def _add(tally: Tally, system: str, question: Asked, found: Sequence[str]) -> None:
    outcome = retrieval.outcome(question.category, found, question.evidence)
    tally.outcomes.setdefault(system, []).append(outcome)


def summarised(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures of one system by category, and over all categories with a right answer."""
    answerable = [each for each in outcomes if each.group != ADVERSARIAL]
    return retrieval.by_group(outcomes) | ({IN_ALL: retrieval.summary(answerable)} if answerable else {})


def share(truths: Iterable[bool]) -> float | None:
    """Return the share of what is true, or None of nothing."""
    listed = list(truths)
    return round(sum(listed) / len(listed), 4) if listed else None


def results(loaded: Loaded, tally: Tally) -> dict[str, Any]:
    """Return everything measured, with the figures that documents quote in `bars`."""
    systems = {system: summarised(outcomes) for system, outcomes in tally.outcomes.items()}
    at_10 = {system: figures.get(IN_ALL, {}).get("recall_at_10") for system, figures in systems.items()}
    known = {system: value for system, value in at_10.items() if value is not None}
    return {
        "bars": {
            "recall_at_10": at_10[FUSED],
            "reference_recall_at_10": at_10[FTS5],
            "foreign_nothing_share": share(empty for group, empty in tally.foreign if group != ADVERSARIAL),
            "rows_per_second": round(loaded.rows / loaded.seconds, 1),
            "fused_recall_at_10": at_10[FUSED],
            "best_leg_recall_at_10": max((known[each] for each in (WORDS, MEANING) if each in known), default=None),
            "best_reference_recall_at_10": max((known[each] for each in (FTS5, BM25S) if each in known), default=None),
        },
        "systems": systems,
        "foreign_nothing_by_category": {
            group: share(empty for each, empty in tally.foreign if each == group)
            for group in sorted({group for group, _ in tally.foreign})
        },
        "load": {"rows": loaded.rows, "seconds": round(loaded.seconds, 2)},
        "search_ms_median": round(1000 * statistics.median(tally.seconds), 2),
    }


async def measure(settings: Settings, corpus: Sequence[Conversation], limit: int | None) -> dict[str, Any]:
    """Load the conversations and ask their questions."""
    brain = common.open_brain(settings)
    try:
        loaded = await load(brain, corpus)
        server = await common.tidy(brain)
        questions, tally = chosen(corpus, limit), Tally({}, [], [])
        common.note(f"Loaded {loaded.rows} turns in {loaded.seconds:.0f} s; asking {len(questions)} questions ...")
        for question in questions:
            await ask(brain, loaded, question, tally)
            if len(corpus) > 1:
                await ask_elsewhere(brain, corpus, question, tally)
        ask_references(corpus, questions, tally)
        return results(loaded, tally) | {"machine": common.machine(server, brain.embedder)}
    finally:
        await brain.close()


def show(found: dict[str, Any]) -> None:
    """Print the figures as tables."""
    names = ("recall_at_5", "recall_at_10", "recall_at_20", "mrr")
    for group in (IN_ALL, *conversations.CATEGORIES.values()):
        of_group = {system: figures[group] for system, figures in found["systems"].items() if group in figures}
        if of_group:
            questions = next(iter(of_group.values()))["n"]
            rows = [
                [system, *(common.percent(figures[name]) for name in names)] for system, figures in of_group.items()
            ]
            common.table(f"{group}, {questions} questions, in %", ["", "R@5", "R@10", "R@20", "MRR"], rows)
    bars = found["bars"]
    print(f"Questions of another conversation that find nothing: {common.percent(bars['foreign_nothing_share'])} %")
    print(f"Rows loaded a second: {bars['rows_per_second']}; a search takes {found['search_ms_median']} ms (median)")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = common.parser("locomo", __doc__)
    common.add_data(parser, "the published locomo10.json")
    parser.add_argument("--limit", type=int, help="ask only so many questions, from the conversations in turn")
    options: argparse.Namespace = parser.parse_args(arguments)
    corpus = conversations.read(common.required_data(options))
    with common.fresh_settings(options) as settings:
        found = runtime.run(lambda: measure(settings, corpus, options.limit))
    show(found)
    common.finish(options, found)


if __name__ == "__main__":
    main()
