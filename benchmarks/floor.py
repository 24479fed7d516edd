"""What the honesty floor keeps and what it turns away: `python -m benchmarks.floor --data FILE --json OUT`.

Reads the public LoCoMo conversations. Questions with an answer are asked inside their own conversation; what must
find nothing is asked beside them: questions of one conversation in another, adversarial questions (the same people,
facts swapped), nonsense, technical questions that no conversation touches, and stop words. A foreign question that
names somebody who also speaks where it is asked (three people are called John) is no fair "should find nothing", so
foreign questions are reported with and without these. Of the foreign pairs a sample with a fixed seed is asked.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from benchmarks import asking, common, conversations, legs, loading, models
from benchmarks.conversations import ADVERSARIAL, Asked, Conversation
from benchmarks.loading import Loaded
from benchmarks.locomo import chosen, drafts, scope_of, share
from brain import ranking
from brain.runtime import Brain
from brain.text import query_terms

SAMPLE: Final = 2_000
"""Foreign pairs that are asked."""
SEED: Final = 11
ALL_HITS: Final = 100
TOP: Final = 10
"""Evidence counts as a hit when it is among so many, ordered without the floor."""

ANSWERABLE, FOREIGN, DISTINCT, SAME_NAME = "answerable", "foreign", "foreign, other names", "foreign, same name"
NONSENSE, TECHNICAL, STOP_WORDS = "nonsense", "technical", "stop words"
ODD: Final = {
    NONSENSE: (
        "xqzt flurb wobblewock", "asdf qwer zxcv", "colorless green ideas sleep furiously", "???",
        "brillig slithy toves gimble", "ljkh 99187 zzyx",
    ),
    TECHNICAL: (
        "quantum chromodynamics lattice gauge", "Fibonacci heap amortized decrease-key",
        "tax treaty between Luxembourg and Bolivia", "DNS resolver timeout in Kubernetes pods",
        "kernel panic after upgrading to btrfs", "how many moons does Jupiter have", "best mortgage rate in Ohio",
    ),
    STOP_WORDS: ("the and of to", "what is it", "who are you", "why did you do that", "how about that"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Searched:
    """One search: the best evidence of any row as a multiple of the floor, and whether anything was found."""

    group: str
    query: str
    strength: float
    empty: bool


def foreign_pairs(corpus: Sequence[Conversation], most: int) -> Iterator[tuple[Asked, Conversation]]:
    """Yield questions with a conversation that is not their own: all pairs, or a sample of them."""
    pairs = [(question, other) for each in corpus for question in each.asked for other in corpus if other is not each]
    yield from random.Random(SEED).sample(pairs, most) if most < len(pairs) else pairs


def names_a_speaker(question: str, conversation: Conversation) -> bool:
    """Whether a question has a term of the name of somebody who speaks in a conversation."""
    speakers = " ".join(conversation.speakers)
    return bool(set(query_terms(question).terms) & set(query_terms(speakers).terms))


async def search(brain: Brain, group: str, query: str, conversation: Conversation) -> Searched:
    """Search a conversation as the tools do."""
    answer = await asking.answered(brain, query, scope_of(conversation.name), ALL_HITS)
    return Searched(group, query, asking.strength(answer), not answer.hits)


async def kept(brain: Brain, loaded: Loaded, question: Asked) -> list[float]:
    """For each turn of evidence that is a hit without the floor, return its strength, or 0 where it was not kept."""
    scope = scope_of(question.conversation)
    vector = await legs.query_vector(brain.embedder, question.text)
    fusable = await brain.read(lambda work: legs.fusable(work, question.text, vector, brain.embedder, scope=scope))
    best = fusable.order(fusable.profile.weight)[:TOP]
    answer = await asking.answered(brain, question.text, scope, ALL_HITS)
    found = {hit.fact.doc: hit.strength for hit in answer.hits}
    return [found.get(doc, 0.0) for doc in best if loaded.name_of[doc] in question.evidence]


async def measure(brain: Brain, corpus: Sequence[Conversation], limit: int | None, most_foreign: int) -> dict[str, Any]:
    """Load the conversations and ask everything."""
    loaded = await loading.load(brain, drafts(corpus))
    by_name = {each.name: each for each in corpus}
    searched: list[Searched] = []
    hits: list[float] = []
    for question in chosen(corpus, limit):
        answerable = question.category != ADVERSARIAL
        group = ANSWERABLE if answerable else ADVERSARIAL
        searched.append(await search(brain, group, question.text, by_name[question.conversation]))
        if answerable:
            hits += await kept(brain, loaded, question)
    for question, other in foreign_pairs(corpus, most_foreign):
        group = SAME_NAME if names_a_speaker(question.text, other) else DISTINCT
        searched.append(await search(brain, group, question.text, other))
    for group, queries in ODD.items():
        searched += [await search(brain, group, query, each) for query in queries for each in corpus]
    return results(searched, hits, brain) | {"machine": common.machine(loaded.server, brain.embedder)}


def results(searched: Sequence[Searched], hits: Sequence[float], brain: Brain) -> dict[str, Any]:
    """Return the figures: of each group how often nothing is found, and how well strength tells it apart."""
    of_group: dict[str, list[Searched]] = {}
    for each in searched:
        of_group.setdefault(each.group, []).append(each)
    of_group[FOREIGN] = of_group.get(DISTINCT, []) + of_group.get(SAME_NAME, [])
    positives = [each.strength for each in of_group.get(ANSWERABLE, [])]
    groups = {
        group: {
            "n": len(listed),
            "nothing": share(each.empty for each in listed),
            "auroc": auroc(positives, [each.strength for each in listed]) if group != ANSWERABLE else None,
        }
        for group, listed in of_group.items()
    }
    floors = {"evidence": brain.embedder.floor, "words": ranking.WORDS_FLOOR}
    odd = {group: _by_query(of_group.get(group, []), queries) for group, queries in ODD.items()}
    return {
        "groups": groups,
        "odd": odd,
        "hits": len(hits),
        "hits_kept": share(each > 0 for each in hits),
        "hits_on_their_own": share(each >= 1 for each in hits),
        "floor": floors,
    }


def _by_query(searched: Sequence[Searched], queries: Sequence[str]) -> dict[str, float | None]:
    """Return for each query in how many of the conversations it finds nothing."""
    return {query: share(each.empty for each in searched if each.query == query) for query in queries}


def auroc(positives: Sequence[float], negatives: Sequence[float]) -> float | None:
    """Return the chance that a random positive is above a random negative, ties half (Hanley and McNeil 1982)."""
    if not positives or not negatives:
        return None
    ordered = np.sort(np.array(negatives))
    values = np.array(positives)
    below = np.searchsorted(ordered, values, "left")
    tied = np.searchsorted(ordered, values, "right") - below
    return round(float(np.mean(below + tied / 2)) / len(negatives), 4)


def bars(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of the main model that documents quote."""
    main = models.main_of(found)
    groups = main["groups"]
    return {
        "hits_kept": main["hits_kept"],
        "foreign_nothing": groups[FOREIGN]["nothing"],
        "foreign_nothing_other_names": groups.get(DISTINCT, {}).get("nothing"),
    }


def show(name: str, found: dict[str, Any]) -> None:
    """Print the figures of one model as a table."""
    floor = found["floor"]
    order = (ANSWERABLE, FOREIGN, DISTINCT, SAME_NAME, ADVERSARIAL, NONSENSE, TECHNICAL, STOP_WORDS)
    rows = [
        [group, each["n"], common.percent(each["nothing"]), "-" if each["auroc"] is None else f"{each['auroc']:.3f}"]
        for group, each in sorted(found["groups"].items(), key=lambda item: order.index(item[0]))
    ]
    title = f"{name}: floor {floor['evidence']} (words alone {floor['words']})"
    common.table(title, ["questions", "n", "find nothing, %", "AUROC against answerable"], rows)
    leaky = [query for queries in found["odd"].values() for query, nothing in queries.items() if nothing < 1]
    print(f"Odd queries that find something somewhere: {', '.join(leaky) or 'none'}")
    print(
        f"Hits kept: {common.percent(found['hits_kept'])} % of {found['hits']} turns of evidence in the top {TOP};"
        f" without companions {common.percent(found['hits_on_their_own'])} %"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = models.parser("floor", __doc__)
    common.add_data(parser, "the published locomo10.json")
    parser.add_argument("--limit", type=int, help="ask only so many questions in their own conversations")
    parser.add_argument("--foreign", type=int, default=SAMPLE, help="how many foreign pairs to ask (%(default)s)")
    options: argparse.Namespace = parser.parse_args(arguments)
    corpus = conversations.read(common.required_data(options))
    common.note(f"Of the foreign pairs, a sample of {options.foreign} is asked (seed {SEED}).")
    found = models.measure_each(options, lambda brain: measure(brain, corpus, options.limit, options.foreign))
    for name, each in found.items():
        show(name, each)
    common.finish(options, {"bars": bars(found), "foreign_pairs": options.foreign, "seed": SEED, "models": found})


if __name__ == "__main__":
    main()
