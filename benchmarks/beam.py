"""Probing questions about long chats: `python -m benchmarks.beam --data FOLDER --json OUT`.

Reads the public BEAM chats. Each message is one memory, each chat a project; every question with evidence is asked
inside its own chat. For a knowledge update, the message with the new value should stand above the one with the old.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from benchmarks import asking, common, loading, models, retrieval
from benchmarks.asking import FUSED, LIMIT, RETURNED
from benchmarks.loading import Loaded
from benchmarks.probes import Chat, Probe, read
from benchmarks.retrieval import Outcome
from brain.runtime import Brain
from brain.services.facts import LONGEST_TEXT
from brain.services.memory import Draft

IN_ALL: Final = "all abilities"
MEASURES: Final = ("recall_at_5", "recall_at_10", "recall_at_20", "mrr")


def scope_of(chat: Chat) -> str:
    """Return the project that a chat becomes."""
    return f"project:chat-{chat.name}"


def drafts(chats: Sequence[Chat]) -> list[tuple[str, Draft]]:
    """Return every message as a memory, by its id; of a longer text, the part that a memory may hold."""
    return [
        (
            message.id,
            Draft(
                text=message.text[:LONGEST_TEXT],
                key=f"{chat.name} {message.id}",
                kind="event",
                scope=scope_of(chat),
                occurred=message.sent_at,
                allow_duplicate=True,
            ),
        )
        for chat in chats
        for message in chat.messages
    ]


def stands_above(found: Sequence[str], probe: Probe) -> bool:
    """Whether the first updated message was found, and before any stale one."""
    first = next((each for each in found if each in probe.updated | probe.stale), None)
    return first in probe.updated


class Tally:
    """What was measured so far: outcomes by system, and of the updates how many stand above by system."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[Outcome]] = {}
        self.above: Counter[str] = Counter()
        self.updates = self.same = 0

    def count(self, probe: Probe) -> None:
        """Count a question that asks for an updated value; where old and new are one message there is no order."""
        self.updates += bool(probe.updated and not probe.updated & probe.stale)
        self.same += bool(probe.updated & probe.stale)

    def add(self, system: str, probe: Probe, found: Sequence[str]) -> None:
        """Note what one system found."""
        outcome = retrieval.outcome(probe.ability, found, probe.evidence)
        self.outcomes.setdefault(system, []).append(outcome)
        if probe.updated and not probe.updated & probe.stale:
            self.above[system] += stands_above(found, probe)

    def results(self) -> dict[str, Any]:
        """Return the figures by system."""
        systems = {
            system: retrieval.by_group(each) | {IN_ALL: retrieval.summary(each)}
            for system, each in self.outcomes.items()
        }
        return {
            "systems": systems,
            "updates": {"questions": self.updates, "same_message": self.same, "above": dict(self.above)},
        }


async def measure(brain: Brain, chats: Sequence[Chat]) -> dict[str, Any]:
    """Load the chats and ask their questions."""
    loaded, tally = await loading.load(brain, drafts(chats)), Tally()
    for chat in chats:
        texts = [message.text for message in chat.messages]
        systems = asking.reference_systems(texts)
        for probe in chat.probes:
            tally.count(probe)
            await _ask(brain, loaded, chat, probe, tally)
            for system, find in systems.items():
                tally.add(system, probe, [chat.messages[place].id for place in find(probe.text, LIMIT)])
    return tally.results() | {"machine": common.machine(loaded.server, brain.embedder)}


async def _ask(brain: Brain, loaded: Loaded, chat: Chat, probe: Probe, tally: Tally) -> None:
    found = await asking.ask(brain, probe.text, scope_of(chat))
    for system, docs in found.systems.items():
        tally.add(system, probe, [loaded.name_of[doc] for doc in docs])


def bars(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of the main model that documents quote: fused as the legs are, without a floor."""
    main = models.main_of(found)
    at_10 = {system: figures[IN_ALL]["recall_at_10"] for system, figures in main["systems"].items()}
    updates = main["updates"]
    asked = updates["questions"]
    return {
        "updated_above_stale": round(updates["above"].get(RETURNED, 0) / asked, 4) if asked else None,
        "fused_recall_at_10": at_10[FUSED],
        "returned_recall_at_10": at_10[RETURNED],
        "best_leg_recall_at_10": asking.best(at_10, asking.LEGS),
        "best_reference_recall_at_10": asking.best(at_10, asking.REFERENCES),
    }


def show(name: str, found: dict[str, Any]) -> None:
    """Print the figures of one model as tables."""
    systems, updates = found["systems"], found["updates"]
    rows = asking.figure_rows(systems, IN_ALL, MEASURES)
    for row in rows:
        row.append(f"{updates['above'].get(row[0], 0)} of {updates['questions']}")
    title = f"{name}: {systems[RETURNED][IN_ALL]['n']} questions, in %"
    common.table(title, ["", "R@5", "R@10", "R@20", "MRR", "updated above stale"], rows)
    abilities = sorted(set(systems[RETURNED]) - {IN_ALL})
    columns = list(systems)
    by_ability = [
        [ability, *(common.percent(systems[system][ability]["recall_at_10"]) for system in columns)]
        for ability in abilities
    ]
    common.table(f"{name}: recall at 10 by ability, in %", ["", *columns], by_ability)
    print(f"Updates whose old and new value stand in one message, where there is no order: {updates['same_message']}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = models.parser("beam", __doc__)
    common.add_data(parser, "the folder of the published chats, gzipped")
    options: argparse.Namespace = parser.parse_args(arguments)
    chats = read(common.required_data(options))
    found = models.measure_each(options, lambda brain: measure(brain, chats))
    for name, each in found.items():
        show(name, each)
    common.finish(options, {"bars": bars(found), "models": found})


if __name__ == "__main__":
    main()
