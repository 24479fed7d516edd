"""docs/search.md: its example is built and asked, and every table and answer in it is what the product says."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from brain.embedders import LocalHash
from brain.repository import scopes
from brain.repository import search as legs
from brain.runtime import Brain
from brain.services.memory import Draft
from brain.text import query_terms, terms
from brain.work import Work
from tests import factories
from tests.memories import Table, ask, brain_on, remember

DOCUMENT = (Path(__file__).parent.parent / "docs" / "search.md").read_text(encoding="utf-8")
KESTREL, BUILDS = "project:kestrel", "project:builds"
BEFORE, NOW = "2026-03-01T00:00:00Z", "2026-03-21T00:00:00Z"
RATE, BOAT = "What is the hourly rate for Marlow?", "When does the boat to Norway leave?"
NOBODY = "What is the hourly rate for Okonkwo?"

FACTS = {
    "duckdb": ("2026-01-12", "The Kestrel dashboard exports its reports with DuckDB"),
    "backup": ("2026-01-14", "Backups of Kestrel run every night at 02:30"),
    "rate-old": ("2026-01-20", "The hourly rate for Marlow is 80 EUR"),
    "review": ("2026-01-22", "Marlow reviews every invoice on Fridays"),
    "login": ("2026-01-25", "The login check lives in src/api/login.py"),
    "ferry": ("2026-01-28", "The ferry to Norway leaves at 7:45"),
    "cabin": ("2026-01-28", "We booked a cabin with a window for the crossing"),
}
LATER = {"rate-new": ("2026-03-10", "Marlow agreed to an hourly rate of 95 EUR")}
TEXTS = {key: text for key, (_, text) in (FACTS | LATER).items()}
MEANINGS = {
    BOAT: [1.0, 0.0, 0.0],
    TEXTS["ferry"]: [0.48, 0.64, 0.6],
    TEXTS["cabin"]: [0.36, 0.48, 0.8],
    TEXTS["backup"]: [0.28, 0.96, 0.0],
} | {TEXTS[key]: [0.0, 1.0, 0.0] for key in ("duckdb", "rate-old", "review", "login", "rate-new")}
"""Vectors of the second model of the document, with their cosines to the question as first number."""


@dataclass(frozen=True)
class Example:
    """The brain of the document under the default model, and the same facts under a model that knows meaning."""

    words: Brain
    meaning: Brain


@pytest.fixture(scope="module")
async def example(module_dsn: str) -> AsyncIterator[Example]:
    database = Database(Settings(database_url=SecretStr(module_dsn)))
    words = brain_on(database, namespace="words", embedder=LocalHash())
    meaning = brain_on(database, namespace="meaning", embedder=Table(MEANINGS, floor=0.62))
    for clock, facts in (("2026-02-01 12:00", FACTS), ("2026-03-20 12:00", LATER)):
        factories.freeze(module_dsn, factories.instant(clock))
        for brain in (words, meaning):
            await remember(
                brain, *(Draft(text=text, key=key, occurred=day, scope=KESTREL) for key, (day, text) in facts.items())
            )
    await remember(
        words, *(Draft(text=f"Kestrel build {each} passed", key=f"build-{each}", scope=BUILDS) for each in range(1, 21))
    )
    factories.freeze(module_dsn, factories.instant("2026-03-21 00:00:00.000001"))
    yield Example(words, meaning)
    await database.close()


async def search(brain: Brain, query: str, **arguments: Any) -> dict[str, Any]:
    return dict((await ask(brain, "read_memory", query=query, **({"scope": KESTREL} | arguments))).data)


def cells(name: str) -> list[list[str]]:
    """The rows of the document's table behind a marker, as plain text."""
    _, found, rest = DOCUMENT.partition(f"<!-- tested: {name} -->\n")
    assert found, name
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines]


def number(value: float) -> str:
    return f"{value:.4f}"


# --- what the product says, as the document shows it

ANALYSED = (
    "went to the children's café", "Straße, STRASSE", "fooBarBaz", "src/api/login.py", "C++ and C#", "1,200.50 EUR",
    "v3.10", "2026-03-10", "at 02:30", "门禁卡", "ภาษา", "👍🏽",
)  # fmt: skip


async def analysed(example: Example) -> list[list[str]]:
    return [[text, " ".join(terms(text))] for text in ANALYSED]


async def facts(example: Example) -> list[list[str]]:
    return [[key, day, text, str(len(terms(text)))] for key, (day, text) in (FACTS | LATER).items()]


async def asked(example: Example) -> list[list[str]]:
    rows = []
    for text in (RATE, NOBODY, "What is it?"):
        query = query_terms(text)
        rows.append([text, " ".join(query.terms), " ".join(sorted(query.names)), " ".join(query.ignored)])
    return rows


async def weights(example: Example) -> list[list[str]]:
    found = (await words_leg(example.words, RATE, KESTREL)).weights
    columns = zip(found.terms, found.frequencies, found.idfs, strict=True)
    return [[term, str(rows), number(idf)] for term, rows, idf in columns]


async def essential(example: Example) -> list[list[str]]:
    found = (await words_leg(example.words, "Kestrel build 7", BUILDS)).weights
    columns = zip(found.terms, found.frequencies, found.idfs, found.rare, found.essential, strict=True)
    return [[term, str(rows), number(idf), yes(rare), yes(needed)] for term, rows, idf, rare, needed in columns]


async def scores(example: Example) -> list[list[str]]:
    hits = (await search(example.words, RATE))["hits"]
    best = sorted(hits, key=lambda hit: hit["lexical"]["rank"])
    return [
        [hit["key"], number(hit["lexical"]["score"]), number(hit["coverage"]), f"{hit['strength']:.2f}"] for hit in best
    ]


async def steps(example: Example) -> list[list[str]]:
    """Fusion and factor from what the legs said of each row; the product is the score of all but the raised row."""
    hits = sorted((await search(example.words, RATE))["hits"], key=lambda hit: hit["lexical"]["rank"])
    ideal = math.fsum(idf(term, TEXTS) for term in query_terms(RATE).terms)
    bm25 = [hit["lexical"]["score"] for hit in hits]
    nearness = [max(0.0, hit["vector"]["score"] - 0.3) / 0.7 for hit in hits]
    rows = []
    for hit, score, near in zip(hits, bm25, nearness, strict=True):
        left, right = score / max(*bm25, ideal / 2), near / max(*nearness, 0.5)
        fused, factor = 0.9 * left + 0.1 * right, aged(hit["key"])
        raised = hit["key"] == "rate-new"
        assert (hit["score"] == pytest.approx(fused * factor, abs=1e-9)) is not raised
        rows.append([hit["key"], *map(number, (left, near, right, fused, factor, fused * factor))])
    return rows


async def order(example: Example) -> list[list[str]]:
    hits = (await search(example.words, RATE))["hits"]
    return [
        [hit["key"], *(f"{hit[leg]['rank']}: {hit[leg]['score']:.4f}" for leg in ("lexical", "vector")),
         number(hit["score"])]
        for hit in hits
    ]  # fmt: skip


async def floor(example: Example) -> list[list[str]]:
    rows = []
    for query, scope in (
        (RATE, KESTREL), (NOBODY, KESTREL), (NOBODY.replace("Okonkwo", "okonkwo"), KESTREL), ("What is it?", KESTREL),
        ("What about the xylophone?", KESTREL), ("Has Kestrel passed?", BUILDS), ("Kestrel build 7", BUILDS),
    ):  # fmt: skip
        data = await search(example.words, query, scope=scope)
        below = data["diagnosis"]["below_floor"]
        best = max([hit["coverage"] for hit in data["hits"]], default=below["best_coverage"])
        rows.append([query, scope, number(best), data["reason"], " ".join(hit["key"] for hit in data["hits"])])
    return rows


async def meaning(example: Example) -> list[list[str]]:
    data = await search(example.meaning, BOAT)
    shown = [
        [hit["key"], number(hit["vector"]["score"]), number(hit["coverage"]), f"{hit['strength']:.2f}",
         number(hit["score"])]
        for hit in data["hits"]
    ]  # fmt: skip
    below = data["diagnosis"]["below_floor"]
    assert (below["candidates"], below["best_coverage"]) == (1, 0.0)
    return [*shown, ["backup", number(below["best_cosine"]), number(0), f"{below['best_strength']:.2f}", ""]]


async def modes(example: Example) -> list[list[str]]:
    rows = []
    for query in ("hourly rate Marlow", "login.py 02:30", "What is it?"):
        for mode in ("hybrid", "strict", "auto"):
            data = await search(example.words, query, mode=mode)
            rows.append([query, mode, data["reason"], " ".join(hit["key"] for hit in data["hits"])])
    return rows


async def variants(example: Example) -> list[list[str]]:
    hits = (await search(example.words, "invoices on Fridays", query_variants=["who reviews for Marlow"]))["hits"]
    return [[hit["key"], f"{hit['score']:.6f}"] for hit in hits]


async def past(example: Example) -> list[list[str]]:
    rows = []
    for as_of in (BEFORE, NOW):
        data = await search(example.words, RATE, as_of=as_of)
        bm25 = {hit["key"]: hit["lexical"]["score"] for hit in data["hits"]}
        keys = " ".join(hit["key"] for hit in data["hits"])
        rows.append([as_of, str(data["diagnosis"]["rows_searched"]), number(bm25["rate-old"]), keys])
    return rows


TABLES = {
    each.__name__: each
    for each in (
        facts, analysed, asked, past, weights, scores, essential, meaning, floor, steps, order, modes, variants
    )
}  # fmt: skip


def idf(term: str, texts: Mapping[str, str]) -> float:
    """The formula of the document, counted over the texts."""
    holders = sum(term in terms(text) for text in texts.values())
    return math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))


def bm25(key: str, query: str, texts: Mapping[str, str]) -> float:
    """The formula of the document, term by term."""
    counts = Counter(terms(texts[key]))
    average = sum(len(terms(text)) for text in texts.values()) / len(texts)
    spread = 1.2 * (0.25 + 0.75 * counts.total() / average)
    return math.fsum(
        idf(term, texts) * counts[term] * 2.2 / (counts[term] + spread) for term in query_terms(query).terms
    )


def coverage(key: str, query: str, texts: Mapping[str, str]) -> float:
    """The formula of the document: a name that no text contains weighs three times."""
    asked_for, holders = query_terms(query), {term for text in texts.values() for term in terms(text)}
    heavy = asked_for.names - holders
    mass = math.fsum(idf(term, texts) * (3 if term in heavy else 1) for term in asked_for.terms)
    return math.fsum(idf(term, texts) for term in asked_for.terms if term in terms(texts[key])) / mass


def aged(key: str) -> float:
    """The factor of a fact of middling importance and full confidence at the instant of the example."""
    day, _ = (FACTS | LATER)[key]
    days = (datetime.fromisoformat(NOW) - factories.instant(day)).total_seconds() / 86_400
    return 1 + 0.02 * (math.pow(0.5, days / 730) - 0.5)


def yes(value: bool) -> str:
    return "yes" if value else "no"


async def words_leg(brain: Brain, query: str, scope: str, *, general: bool = False) -> legs.Lexical:
    """The words leg alone, as the default model asks it."""

    async def job(work: Work) -> legs.Lexical:
        visible = legs.Visible([scope], [(await scopes.known(work))[scope]], work.as_of)
        return await legs.lexical(
            work, visible, query_terms(query).terms, floor=0.16, depth=200, guarded=True, general=general
        )

    found: legs.Lexical = await brain.read(job)
    return found


@pytest.mark.parametrize("name", TABLES)
async def test_a_table_of_the_document_is_what_the_product_answers(example: Example, name: str) -> None:
    assert cells(name) == await TABLES[name](example)


def test_the_document_has_no_other_tested_table() -> None:
    assert set(re.findall(r"<!-- tested: (\w+) -->", DOCUMENT)) == {*TABLES, "nothing"}


async def test_the_empty_answer_of_the_document_is_the_one_that_is_given(example: Example) -> None:
    given = (await ask(example.words, "read_memory", query=NOBODY, scope=KESTREL)).text
    [shown] = re.findall(r"<!-- tested: nothing -->\n```text\n(.*?)```", DOCUMENT, re.DOTALL)
    assert " ".join(shown.split()) == " ".join(given.split())


# --- the numbers of the words leg, from the formulas


def test_the_weights_in_the_document_follow_from_the_formula() -> None:
    expected = [
        [term, str(sum(term in terms(text) for text in TEXTS.values())), number(idf(term, TEXTS))]
        for term in sorted(query_terms(RATE).terms)
    ]
    assert cells("weights") == expected


def test_the_scores_in_the_document_follow_from_the_formula() -> None:
    for key, score, covered, strength in cells("scores"):
        assert score == number(bm25(key, RATE, TEXTS))
        assert covered == number(coverage(key, RATE, TEXTS))
        assert strength == f"{coverage(key, RATE, TEXTS) / 0.32:.2f}"


def test_the_score_as_of_the_past_follows_from_the_rows_of_that_time() -> None:
    earlier = {key: TEXTS[key] for key in FACTS}
    expected = [number(bm25("rate-old", RATE, texts)) for texts in (earlier, TEXTS)]
    assert [row[2] for row in cells("past")] == expected


def test_the_coverage_of_a_question_about_nobody_follows_from_the_weight_of_its_name() -> None:
    shown = {query: best for query, _, best, *_ in cells("floor")}
    for query in (RATE, NOBODY, NOBODY.replace("Okonkwo", "okonkwo")):
        assert shown[query] == number(max(coverage(key, query, TEXTS) for key in TEXTS))


def test_the_strength_of_both_legs_together_follows_from_the_formula() -> None:
    for key, cosine, covered, strength, _ in cells("meaning"):
        assert float(cosine) == MEANINGS[TEXTS[key]][0]
        assert covered == number(coverage(key, BOAT, TEXTS))
        assert strength == f"{(float(cosine) + coverage(key, BOAT, TEXTS) / 2) / 0.62:.2f}"


async def test_the_fused_score_under_the_second_model_follows_from_the_formula(example: Example) -> None:
    hits = {hit["key"]: hit for hit in (await search(example.meaning, BOAT))["hits"]}
    best = max(bm25(key, BOAT, TEXTS) for key in TEXTS)
    for key, hit in hits.items():
        fused = 0.45 * bm25(key, BOAT, TEXTS) / best + 0.55 * MEANINGS[TEXTS[key]][0] / 0.48
        assert hit["score"] == pytest.approx(fused * aged(key), abs=1e-6)


async def test_both_plans_of_the_words_leg_give_the_same_answer(example: Example) -> None:
    for query, scope in ((RATE, KESTREL), (NOBODY, KESTREL), ("Kestrel build 7", BUILDS), ("build", BUILDS)):
        quick = await words_leg(example.words, query, scope)
        scanned = await words_leg(example.words, query, scope, general=True)
        assert quick == scanned


async def test_a_question_that_names_the_past_leaves_the_older_fact_in_front(example: Example) -> None:
    hits = (await search(example.words, "What was the hourly rate for Marlow?"))["hits"]
    assert [hit["key"] for hit in hits][:2] == ["rate-old", "rate-new"]
