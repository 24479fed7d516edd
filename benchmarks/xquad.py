"""Paragraphs that answer a question, in English, in Chinese and across: `python -m benchmarks.xquad --data FOLDER`.

Reads the public XQuAD files of both languages. Each paragraph is one memory, each language a project; every question
is asked in its own language and in the other. Only the paragraph that it was written about counts as right.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchmarks import asking, common, loading, models, references
from benchmarks.asking import FUSED, LIMIT, MEANING, RETURNED, WORDS
from benchmarks.loading import Loaded
from benchmarks.references import Search
from brain.runtime import Brain
from brain.services.memory import Draft

LANGUAGES: Final = ("en", "zh")
DIRECTIONS: Final = [(asked, stored) for asked in LANGUAGES for stored in LANGUAGES]
UNICODE61, TRIGRAM, LIBRARY = "FTS5 unicode61", "FTS5 trigram", "bm25s"


@dataclass(frozen=True, slots=True)
class Paragraphs:
    """The paragraphs of one language, and its questions with the number of the paragraph that answers each."""

    language: str
    texts: list[str]
    questions: list[tuple[str, int]]

    @property
    def scope(self) -> str:
        """The project that they become."""
        return f"project:paragraphs-{self.language}"


def read(folder: Path) -> list[Paragraphs]:
    """Read `xquad.en.json` and `xquad.zh.json`. Raises ValueError or KeyError for another form."""
    return [_paragraphs(folder / f"xquad.{language}.json", language) for language in LANGUAGES]


def _paragraphs(path: Path, language: str) -> Paragraphs:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    questions = [(asked["question"], place) for place, each in enumerate(paragraphs) for asked in each["qas"]]
    return Paragraphs(language, [each["context"] for each in paragraphs], questions)


def drafts(sets: Sequence[Paragraphs]) -> list[tuple[str, Draft]]:
    """Return every paragraph as a memory, by its number."""
    return [
        (str(place), Draft(text=text, key=f"{each.language} {place}", scope=each.scope, allow_duplicate=True))
        for each in sets
        for place, text in enumerate(each.texts)
    ]


def reference_systems(texts: Sequence[str], language: str) -> dict[str, Search]:
    """Return the reference systems that are installed, over the same paragraphs."""
    built = {
        UNICODE61: references.fts5(texts, "unicode61"),
        TRIGRAM: references.fts5(texts, "trigram", references.trigrams),
        LIBRARY: references.jieba_bm25s(texts) if language == "zh" else references.bm25s(texts),
    }
    return {name: find for name, find in built.items() if find is not None}


async def measure(brain: Brain, sets: Sequence[Paragraphs], limit: int | None) -> dict[str, Any]:
    """Load both languages and ask every question in each."""
    loaded = await loading.load(brain, drafts(sets))
    directions: dict[str, Any] = {}
    for asked in sets:
        for stored in sets:
            ranks: dict[str, list[int]] = {}
            await _ask(brain, loaded, asked.questions[:limit], stored, ranks)
            directions[f"{asked.language} to {stored.language}"] = {
                system: figures(each) for system, each in ranks.items()
            }
    return {"directions": directions, "machine": common.machine(loaded.server, brain.embedder)}


async def _ask(
    brain: Brain, loaded: Loaded, questions: Sequence[tuple[str, int]], stored: Paragraphs, ranks: dict[str, list[int]]
) -> None:
    systems = reference_systems(stored.texts, stored.language)
    for query, right in questions:
        found = await asking.ask(brain, query, stored.scope)
        for system, docs in found.systems.items():
            places = [int(loaded.name_of[doc]) for doc in docs]
            ranks.setdefault(system, []).append(rank(places, right))
        for system, find in systems.items():
            ranks.setdefault(system, []).append(rank(find(query, LIMIT), right))


def rank(found: Sequence[int], right: int) -> int:
    """Return the place of what is right, from 1 on, or 0 when it was not found."""
    return found.index(right) + 1 if right in found else 0


def figures(ranks: Sequence[int]) -> dict[str, float]:
    """Return recall at 1 and 10 and the mean reciprocal rank."""
    return {
        "recall_at_1": round(fmean(each == 1 for each in ranks), 4),
        "recall_at_10": round(fmean(0 < each <= 10 for each in ranks), 4),
        "mrr": round(fmean(1 / each if each else 0.0 for each in ranks), 4),
        "n": len(ranks),
    }


def bars(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the fused figures of every model, and how far the fused one falls short of the better leg at worst."""
    gathered: dict[str, Any] = {}
    short = [0.0]
    for name, each in found.items():
        for direction, systems in each["directions"].items():
            key = f"{name}_{direction.replace(' to ', '_')}_recall_at_1".replace("-", "_")
            gathered[key] = systems[FUSED]["recall_at_1"]
            legs = max(systems[leg]["recall_at_1"] for leg in (WORDS, MEANING))
            short.append(round(legs - systems[FUSED]["recall_at_1"], 4))
    return gathered | {"most_below_better_leg": max(short)}


def show(name: str, found: dict[str, Any]) -> None:
    """Print the figures of one model as tables."""
    directions = found["directions"]
    systems = [RETURNED, FUSED, WORDS, MEANING, UNICODE61, TRIGRAM, LIBRARY]
    for measure, title in (("recall_at_1", "recall at 1"), ("recall_at_10", "recall at 10")):
        rows = [
            [system, *(common.percent(each.get(system, {}).get(measure)) for each in directions.values())]
            for system in systems
        ]
        common.table(f"{name}: {title}, in %", ["", *directions], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = models.parser("xquad", __doc__)
    common.add_data(parser, "the folder with the published xquad.en.json and xquad.zh.json")
    parser.add_argument("--limit", type=int, help="ask only the first questions of each language")
    options: argparse.Namespace = parser.parse_args(arguments)
    sets = read(common.required_data(options))
    found = models.measure_each(options, lambda brain: measure(brain, sets, options.limit))
    for name, each in found.items():
        show(name, each)
    for package in references.missing("bm25s", "jieba"):
        print(f"Skipped a reference: {package} is not installed.")
    common.finish(options, {"bars": bars(found), "models": found})


if __name__ == "__main__":
    main()
