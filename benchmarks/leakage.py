"""Does the future leak into past answers? `python -m benchmarks.leakage --json OUT`.

A synthetic history is searched at random cut-offs. Every answer is compared with what a fresh store would give that
holds only the rows known then, and so are the answers of the shortcuts that other designs take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from benchmarks import common, filling, histories, legs, truth
from benchmarks.histories import Asked, Author
from benchmarks.truth import Corpus, Evidence, Row, Scores
from brain import runtime
from brain.config import Settings
from brain.embedders import Vector
from brain.embedders.floors import profile_of
from brain.ranking import Profile
from brain.runtime import Brain
from brain.services import search

TOP: Final = 5
SMALL: Final = (400, 1_000)
LARGE: Final = (20_000, 100_000)
QUESTIONS: Final = 300
STORE, LATEST, KNOWN = "this store", "latest version only", "known by the cut-off, then filtered"
GLOBAL: Final = {"one index, top 20, then filtered": 20, "one index, top 50, then filtered": 50,
                 "one index, top 100, then filtered": 100, "one index, all, then filtered": None}  # fmt: skip
LEGS: Final = ("words", "meaning", "fused")
COLUMNS: Final = ("differs", "order_differs", "future", "lost")

Top = dict[str, list[int]]
"""The first documents of each leg and of the fused result."""


@dataclass(slots=True)
class Count:
    """How many searches went wrong in which way."""

    searches: int = 0
    wrong: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, 0))

    def add(self, found: Sequence[int], right: Sequence[int], *, future: bool) -> None:
        """Compare one answer with the right one."""
        self.searches += 1
        self.wrong["differs"] += set(found) != set(right)
        self.wrong["order_differs"] += list(found) != list(right)
        self.wrong["future"] += future
        self.wrong["lost"] += len(found) < len(right)

    def shares(self) -> dict[str, float]:
        """Return the share of searches in each column."""
        return {name: round(count / self.searches, 4) for name, count in self.wrong.items()}


@dataclass(slots=True)
class Report:
    """What was found at one size."""

    counts: dict[tuple[str, str], Count] = field(default_factory=dict)
    score_error: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LEGS, 0.0))
    answered: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LEGS, 0))

    def add(self, system: str, found: Top, right: Top, corpus: Corpus, asked: Asked) -> None:
        """Compare the answers of one system to one question."""
        for leg in LEGS:
            future = any(corpus.by_doc[doc].revision.known_from > asked.as_of for doc in found[leg])
            self.counts.setdefault((system, leg), Count()).add(found[leg], right[leg], future=future)


class Case:
    """One question with everything that is needed to answer it in any way."""

    def __init__(self, corpus: Corpus, asked: Asked, vector: Vector | None, profile: Profile) -> None:
        self.corpus, self.asked, self.vector, self.profile = corpus, asked, vector, profile
        exact = None if vector is None else filling.stored(vector).astype(np.float64)
        self._cosines = corpus.cosines(exact)
        self.visible = corpus.visible(asked)
        self.evidence = self.scored(self.visible)

    def scored(self, rows: Sequence[Row]) -> Evidence:
        """Score rows with their own statistics."""
        return self.corpus.evidence(rows, self.asked.text, self._cosines)

    def fused(self, evidence: Evidence) -> Scores:
        """Return the final scores that some evidence leads to."""
        return truth.fused(self.corpus, evidence, self.asked, self.profile)

    def top(self, evidence: Evidence) -> Top:
        """Return the first documents that some evidence leads to."""
        final = self.fused(evidence)
        return {
            "words": truth.order(evidence.words, TOP),
            "meaning": truth.order(evidence.meaning, TOP),
            "fused": truth.order(final, TOP, lambda doc: self.corpus.by_doc[doc].revision.key),
        }

    def filtered(self, evidence: Evidence, most: int | None) -> Evidence:
        """Return the evidence of a search that cuts each leg off first and hides what is not visible afterwards."""
        visible = {row.doc for row in self.visible}
        words, meaning = (
            {doc: scores[doc] for doc in (scores if most is None else truth.order(scores, most)) if doc in visible}
            for scores in (evidence.words, evidence.meaning)
        )
        return replace(evidence, words=words, meaning=meaning)


async def compare(brain: Brain, corpus: Corpus, questions: Sequence[Asked]) -> Report:
    """Ask every question of this store and of the shortcuts, and compare with the truth."""
    report = Report()
    profile = profile_of(brain.embedder.model)
    latest = {scope: corpus.latest(scope) for scope in ("all", *histories.SCOPES)}
    every = {scope: corpus.known(scope) for scope in ("all", *histories.SCOPES)}
    for asked in questions:
        vector = await legs.query_vector(brain.embedder, asked.text)
        case = Case(corpus, asked, vector, profile)
        right = case.top(case.evidence)
        for leg in LEGS:
            report.answered[leg] += bool(right[leg])
        report.add(STORE, await _ours(brain, case, report), right, corpus, asked)
        report.add(LATEST, case.top(case.scored(latest[asked.scope])), right, corpus, asked)
        everything = case.scored(every[asked.scope])
        for system, most in GLOBAL.items():
            report.add(system, case.top(case.filtered(everything, most)), right, corpus, asked)
        known = case.scored(corpus.known(asked.scope, asked.as_of))
        report.add(KNOWN, case.top(case.filtered(known, None)), right, corpus, asked)
    return report


async def _ours(brain: Brain, case: Case, report: Report) -> Top:
    """Ask this store, each leg alone and fused, and note how far its scores are from the truth."""
    asked, embedder = case.asked, brain.embedder
    question = search.Question(query=asked.text, scope=asked.scope, valid_at=asked.valid_at, limit=TOP)
    prepared = await search.prepare(embedder, question)
    answer = await brain.read(lambda work: search.run(work, prepared), as_of=asked.as_of)
    alone = await brain.read(
        lambda work: legs.alone(
            work,
            asked.text,
            case.vector,
            model=embedder.model,
            scope=asked.scope,
            depth=TOP,
            valid_at=asked.valid_at,
        ),
        as_of=asked.as_of,
    )
    found = {
        "words": alone.words,
        "meaning": alone.meaning,
        "fused": [(hit.fact.doc, hit.score) for hit in answer.hits],
    }
    right = {"words": case.evidence.words, "meaning": case.evidence.meaning, "fused": case.fused(case.evidence)}
    for leg, hits in found.items():
        errors = (abs(score - right[leg].get(doc, 0.0)) for doc, score in hits)
        report.score_error[leg] = max(report.score_error[leg], *errors, 0.0)
    return {leg: [doc for doc, _ in hits] for leg, hits in found.items()}


async def measure(settings: Settings, sizes: Sequence[tuple[int, int]], questions: int, seed: int) -> dict[str, Any]:
    """Compare at each size of keys and revisions, each in a namespace of its own beside another one."""
    reports, loads, server, embedder = {}, {}, "", None
    for keys, revisions in sizes:
        name = f"{settings.namespace}-{revisions}"
        brain = common.open_brain(settings.model_copy(update={"namespace": name}))
        other = common.open_brain(settings.model_copy(update={"namespace": f"{name}-other"}))
        try:
            await filling.fill(other, Author(seed + 1).history(SMALL[0], SMALL[1]))
            author = Author(seed)
            history = author.history(keys, revisions)
            common.note(f"Loading {revisions} revisions of {keys} keys ...")
            filled = await filling.fill(brain, history)
            server, embedder = await common.tidy(brain), brain.embedder
            corpus = Corpus(history, filled)
            common.note(f"Loaded in {filled.seconds:.0f} s; asking {questions} questions ...")
            reports[revisions] = await compare(brain, corpus, list(author.questions(history, questions)))
            loads[revisions] = {"seconds": round(filled.seconds, 1), "per_second": round(revisions / filled.seconds, 1)}
        finally:
            await brain.close()
            await other.close()
    assert embedder is not None
    return results(reports, questions) | {"load": loads, "machine": common.machine(server, embedder)}


def results(reports: Mapping[int, Report], questions: int) -> dict[str, Any]:
    """Return everything that was compared, with the figures that documents quote in `bars`."""
    shares = {
        size: {
            leg: {system: count.shares() for (system, of), count in report.counts.items() if of == leg} for leg in LEGS
        }
        for size, report in reports.items()
    }
    ours = [shares[size][leg][STORE] for size in shares for leg in LEGS]
    small = shares[min(shares)]["fused"]
    bars = {f"{column}_top{TOP}": max(each[column] for each in ours) for column in COLUMNS}
    errors = {str(size): report.score_error for size, report in reports.items()}
    return {
        "bars": bars
        | {
            "max_score_error": max(error for each in errors.values() for error in each.values()),
            "latest_only_differs": small[LATEST]["differs"],
            "global_top20_differs": small[next(iter(GLOBAL))]["differs"],
            "known_then_filter_differs": small[KNOWN]["differs"],
        },
        "questions": questions,
        "sizes": {str(size): each for size, each in shares.items()},
        "score_error": errors,
        "with_an_answer": {str(size): report.answered for size, report in reports.items()},
    }


def show(found: dict[str, Any]) -> None:
    """Print one table for each size and leg."""
    titles = ["memories differ", "order differs", "future returned", "results lost"]
    for size, of_size in found["sizes"].items():
        for leg, systems in of_size.items():
            rows = [
                [system, *(common.percent(figures[column]) for column in COLUMNS)]
                for system, figures in systems.items()
            ]
            error = found["score_error"][size][leg]
            title = f"{leg}, {size} revisions: % of {found['questions']} searches, top {TOP}; score error {error:.1e}"
            common.table(title, ["", *titles], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = common.parser("leakage", __doc__)
    parser.add_argument("--small", action="store_true", help="leave out the large history")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with common.fresh_settings(options) as settings:
        sizes = [SMALL] if options.small else [SMALL, LARGE]
        found = runtime.run(lambda: measure(settings, sizes, options.questions, options.seed))
    show(found)
    common.finish(options, found)


if __name__ == "__main__":
    main()
