"""BM25 of the words leg against the formula and a library: `python -m benchmarks.bm25 [--data FOLDER] --json OUT`.

Texts are XQuAD's paragraphs in both languages, where its folder is named, and random corpora whose rows are changed
and forgotten while they are searched, now and as of earlier instants. Every score of both plans of the words leg is
compared with the formula written out here, and with the library bm25s in double precision where it is installed; an
order must follow the score, ties by document number. Only the terms of the texts come from the product.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks import common, loading, references, xquad
from brain import runtime
from brain.config import Settings
from brain.repository import search as repository
from brain.repository.search import LexicalHit
from brain.runtime import Brain
from brain.services import amendments, memory, scopes
from brain.services.memory import Draft
from brain.text import query_terms, terms
from brain.work import Work

K1, B = 1.2, 0.75
EXACT: Final = 1e-9
EVERYTHING: Final = 1_000_000
CORPORA, ROWS, ROUNDS, QUERIES = 10, 150, 3, 40
SEED: Final = 5
PLANS: Final = {"by running counts": False, "over the visible rows": True}

Texts = dict[int, Counter[str]]
"""The terms of each visible row, by document number."""


@dataclass(slots=True)
class Compared:
    """What the comparison found so far, by plan."""

    scores: int = 0
    searches: int = 0
    different_rows: int = 0
    """Searches that found other rows than the formula."""
    different_order: int = 0
    formula_error: float = 0.0
    library_error: float | None = None


def bm25(texts: Texts, query: Sequence[str]) -> dict[int, float]:
    """Okapi BM25 with the idf that never turns negative, of each text with a term of the query."""
    lengths = {doc: counts.total() for doc, counts in texts.items()}
    average = sum(lengths.values()) / max(len(lengths), 1)
    scores: dict[int, float] = {}
    for term in query:
        holders = [doc for doc, counts in texts.items() if counts[term]]
        idf = math.log(1 + (len(texts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for doc in holders:
            tf = texts[doc][term]
            gain = idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * lengths[doc] / average))
            scores[doc] = scores.get(doc, 0.0) + gain
    return scores


class Library:
    """The same scores by bm25s, which leaves out the constant factor k1 + 1."""

    def __init__(self, texts: Texts) -> None:
        import bm25s

        self._docs = list(texts)
        self._index = bm25s.BM25(k1=K1, b=B, method="lucene", dtype="float64")
        self._index.index([sorted(counts.elements()) for counts in texts.values()], show_progress=False)

    def scores(self, query: Sequence[str]) -> dict[int, float]:
        """Return the score of every text."""
        known = [term for term in query if term in self._index.vocab_dict]
        if not known:
            return {}
        found = self._index.get_scores(known)
        return {doc: float(score) * (K1 + 1) for doc, score in zip(self._docs, found, strict=True)}


def library(texts: Texts) -> Library | None:
    """Return the library over some texts, where it is installed and there is something to index."""
    usable = not references.missing("bm25s") and any(texts.values())
    return Library(texts) if usable else None


async def compare(
    brain: Brain,
    scope: str,
    texts: Texts,
    queries: Sequence[str],
    compared: dict[str, Compared],
    as_of: datetime | None = None,
) -> None:
    """Search for every query by both plans and compare every score."""
    other = library(texts)
    for query in queries:
        asked = query_terms(query).terms
        if not asked:
            continue
        expected, again = bm25(texts, asked), other.scores(asked) if other else None
        for plan, general in PLANS.items():
            hits = await brain.read(partial(_lexical, scope=scope, terms=asked, general=general), as_of=as_of)
            _note(compared[plan], hits, expected, again)


async def _lexical(work: Work, scope: str, terms: Sequence[str], general: bool) -> list[LexicalHit]:
    covered = await scopes.for_reading(work, scope)
    visible = repository.Visible(
        scopes=list(covered.numbers), numbers=list(covered.numbers.values()), valid_at=work.as_of
    )
    found = await repository.lexical(work, visible, terms, floor=0, depth=EVERYTHING, general=general)
    return found.hits


def _note(
    noted: Compared, hits: Sequence[LexicalHit], expected: dict[int, float], again: dict[int, float] | None
) -> None:
    noted.searches += 1
    noted.scores += len(hits)
    noted.different_rows += {hit.doc for hit in hits} != set(expected)
    noted.different_order += [hit.doc for hit in hits] != _ordered(hits, expected)
    noted.formula_error = max([noted.formula_error, *(_error(hit, expected) for hit in hits)])
    if again is not None:
        noted.library_error = max([noted.library_error or 0.0, *(_error(hit, again) for hit in hits)])


def _error(hit: LexicalHit, expected: dict[int, float]) -> float:
    return abs(hit.score - expected.get(hit.doc, math.inf))


def _ordered(hits: Sequence[LexicalHit], expected: dict[int, float]) -> list[int]:
    """Return the order by the formula; scores that only rounding tells apart are ties, in order of document number."""
    grid = {doc: round(score / EXACT) for doc, score in expected.items()}
    by_score = sorted(expected, key=lambda doc: (-expected[doc], doc))
    order: list[int] = []
    for doc in by_score:
        if order and grid[order[-1]] - grid[doc] <= 1:
            grid[doc] = grid[order[-1]]
        order.append(doc)
    return sorted(order, key=lambda doc: (-grid[doc], doc))


async def paragraphs(brain: Brain, folder: Path, limit: int | None, compared: dict[str, Compared]) -> None:
    """Compare on XQuAD's paragraphs: every question in both languages."""
    sets = xquad.read(folder)
    loaded = await loading.load(brain, xquad.drafts(sets))
    docs = list(loaded.name_of)
    queries = [query for each in sets for query, _ in each.questions[:limit]]
    for each in sets:
        own, docs = docs[: len(each.texts)], docs[len(each.texts) :]
        texts = {doc: Counter(terms(text)) for doc, text in zip(own, each.texts, strict=True)}
        await compare(brain, each.scope, texts, queries, compared)


async def random_corpus(brain: Brain, number: int, compared: dict[str, Compared]) -> None:
    """Compare on one random corpus between rounds of changes, and again as of the end of each round."""
    chance, scope = random.Random(SEED + number), f"project:random-{number:03}"
    words = [f"w{place}x" for place in range(chance.choice((20, 200, 2_000)))]
    weights = [1 / (place + 1) for place in range(len(words))]

    def text() -> str:
        return " ".join(chance.choices(words, weights, k=chance.randint(1, 40)))

    await brain.write(partial(scopes.add, text=scope))
    visible: dict[str, tuple[int, str]] = {}
    snapshots: list[tuple[datetime, Texts]] = []
    for _ in range(ROUNDS):
        await _change(brain, scope, chance, visible, text)
        texts = {doc: Counter(terms(each)) for doc, each in sorted(visible.values())}
        queries = [" ".join(chance.sample(words, chance.randint(1, 6))) for _ in range(QUERIES)]
        await compare(brain, scope, texts, queries, compared)
        snapshots.append((await brain.read(_instant), texts))
    for instant, texts in snapshots:
        await compare(brain, scope, texts, queries[: QUERIES // 4], compared, instant)


async def _change(brain: Brain, scope: str, chance: random.Random, visible: Any, text: Any) -> None:
    """Write new and changed rows, and forget some."""
    drafts = [
        Draft(text=text(), key=f"{scope} k{chance.randrange(2 * ROWS)}", scope=scope, allow_duplicate=True)
        for _ in range(ROWS)
    ]
    prepared = await memory.prepare(brain.embedder, drafts)
    for draft, result in zip(drafts, await brain.write(partial(memory.write_many, prepared=prepared)), strict=True):
        visible[draft.key] = result.fact.doc, draft.text
    for key in chance.sample(sorted(visible), len(visible) // 10):
        await brain.write(partial(amendments.forget, name=key, reason="no longer so"))
        del visible[key]


async def _instant(work: Work) -> datetime:
    return work.as_of


async def measure(settings: Settings, folder: Path | None, limit: int | None, corpora: int) -> dict[str, Any]:
    """Compare on every corpus."""
    brain = common.open_brain(settings)
    try:
        compared = {name: {plan: Compared() for plan in PLANS} for name in ("paragraphs", "random corpora")}
        if folder:
            await paragraphs(brain, folder, limit, compared["paragraphs"])
        for number in range(corpora):
            await random_corpus(brain, number, compared["random corpora"])
        server = await common.tidy(brain)
        return results(compared) | {"machine": common.machine(server, brain.embedder)}
    finally:
        await brain.close()


def results(compared: dict[str, dict[str, Compared]]) -> dict[str, Any]:
    """Return the figures of each plan and corpus, and the worst of all in `bars`."""
    every = [each for plans in compared.values() for each in plans.values() if each.searches]
    by_library = [each.library_error for each in every if each.library_error is not None]
    figures = {
        corpus: {plan: _figures(each) for plan, each in plans.items() if each.searches}
        for corpus, plans in compared.items()
    }
    return {
        "bars": {
            "max_error": max(each.formula_error for each in every),
            "max_library_error": max(by_library, default=None),
            "different_rows": sum(each.different_rows for each in every),
            "different_order": sum(each.different_order for each in every),
        },
        "corpora": {corpus: plans for corpus, plans in figures.items() if plans},
    }


def _figures(noted: Compared) -> dict[str, Any]:
    names = ("searches", "scores", "formula_error", "library_error", "different_rows", "different_order")
    return {name: getattr(noted, name) for name in names}


def show(found: dict[str, Any]) -> None:
    """Print the figures as a table."""
    rows = [
        [f"{corpus}, {plan}", *(_shown(each[name]) for name in each)]
        for corpus, plans in found["corpora"].items()
        for plan, each in plans.items()
    ]
    columns = ["", "searches", "scores", "most off the formula", "most off bm25s", "other rows", "other order"]
    common.table("BM25 of the words leg", columns, rows)


def _shown(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.1e}" if isinstance(figure, float) else str(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = common.parser("bm25", __doc__)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="the published XQuAD files, to compare on as well")
    parser.add_argument("--limit", type=int, help="ask only the first questions of each language")
    parser.add_argument("--corpora", type=int, default=CORPORA, help="how many random corpora (%(default)s)")
    options: argparse.Namespace = parser.parse_args(arguments)
    folder = common.required_data(options) if options.data else None
    with common.fresh_settings(options) as settings:
        found = runtime.run(lambda: measure(settings, folder, options.limit, options.corpora))
    show(found)
    common.finish(options, found)


if __name__ == "__main__":
    main()
