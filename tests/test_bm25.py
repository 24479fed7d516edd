"""The lexical leg against BM25 written out from its formula, over rows that a brute-force rule calls visible."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from brain.errors import NotFound
from brain.runtime import Brain
from brain.services import amendments
from brain.services.memory import Draft
from brain.text import query_terms, terms
from tests.memories import ask, brain_on, now, remember

K1, B = 1.2, 0.75
EXACT = 1e-9
EPOCH = datetime(2025, 1, 1, tzinfo=UTC)
WORDS = [
    "export", "dashboard", "invoices", "invoice", "running", "the", "of", "café", "naïve", "fooBarBaz",
    "src/api/login.py", "C++", "42", "1,200.00", "2025-03-01", "门禁卡", "ภาษาไทย", "👍",
    "Kestrel", "kestrel's", "v1.2.3",
]  # fmt: skip
SCOPES = ("global", "lane:work", "lane:personal")
KINDS = ("fact", "event", "decision")
TAGS = ("red", "blue")


def bm25(texts: dict[str, str], query: str) -> dict[str, float]:
    """Okapi BM25 with the idf that never turns negative, of each text that has at least one word of the query."""
    documents = {key: Counter(terms(text)) for key, text in texts.items()}
    lengths = {key: sum(counts.values()) for key, counts in documents.items()}
    average = sum(lengths.values()) / max(len(lengths), 1)
    scores: dict[str, float] = {}
    for term in query_terms(query).terms:
        holders = [key for key, counts in documents.items() if counts[term]]
        idf = math.log(1 + (len(documents) - len(holders) + 0.5) / (len(holders) + 0.5))
        for key in holders:
            tf = documents[key][term]
            gain = idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * lengths[key] / average))
            scores[key] = scores.get(key, 0.0) + gain
    return scores


@dataclass(frozen=True)
class Assertion:
    """One line of the log that the test keeps of what it wrote."""

    known_from: datetime
    draft: Draft | None
    valid_from: datetime | None
    valid_to: datetime | None

    def holds(self, at: datetime) -> bool:
        return (self.valid_from or at) <= at and (self.valid_to is None or at < self.valid_to)


@dataclass
class Log:
    """What was written, and which of it is visible: of each key, the newest known that holds."""

    assertions: dict[str, list[Assertion]] = field(default_factory=dict)

    def add(self, key: str, assertion: Assertion) -> None:
        self.assertions.setdefault(key, []).append(assertion)

    def visible(self, as_of: datetime, valid_at: datetime) -> dict[str, Draft]:
        rows = {}
        for key, lines in self.assertions.items():
            known = [each for each in lines if each.known_from <= as_of and each.holds(valid_at)]
            newest = max(reversed(known), key=lambda each: each.known_from, default=None)  # ties: the later row
            if newest and newest.draft:
                rows[key] = newest.draft
        return rows


@dataclass(frozen=True)
class Step:
    key: str
    words: Sequence[str]
    scope: str
    kind: str
    tags: Sequence[str]
    day: int
    starts: int | None
    lasts: int | None
    known: int | None
    forget: bool


@dataclass(frozen=True)
class Query:
    words: Sequence[str]
    scope: str
    kinds: Sequence[str]
    tags: Sequence[str]
    since: int | None
    until: int | None
    cut: int
    valid_day: int | None
    strict: bool


days = st.integers(0, 30)
steps = st.builds(
    Step,
    key=st.sampled_from([f"k{number}" for number in range(9)]),
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=12),
    scope=st.sampled_from(SCOPES),
    kind=st.sampled_from(KINDS),
    tags=st.lists(st.sampled_from(TAGS), unique=True),
    day=days,
    starts=st.none() | days,
    lasts=st.none() | st.integers(1, 20),
    known=st.none() | st.none() | st.none() | days,
    forget=st.integers(0, 5).map(lambda number: number == 0),
)
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
unfiltered = st.builds(
    Query,
    words=words,
    scope=st.sampled_from(("all", *SCOPES)),
    kinds=st.just([]),
    tags=st.just([]),
    since=st.none(),
    until=st.none(),
    cut=st.integers(0, 100),
    valid_day=st.none(),
    strict=st.booleans(),
)
filtered = st.builds(
    Query,
    words=words,
    scope=st.sampled_from(("all", *SCOPES)),
    kinds=st.just([]) | st.lists(st.sampled_from(KINDS), min_size=1, max_size=2, unique=True),
    tags=st.just([]) | st.just(["red"]),
    since=st.none() | days,
    until=st.none() | days,
    cut=st.integers(0, 100),
    valid_day=st.none() | days,
    strict=st.booleans(),
)
queries = unfiltered | filtered


def day(number: int | None) -> datetime | None:
    return None if number is None else EPOCH + timedelta(days=number)


def text_of(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


async def replay(brain: Brain, history: Sequence[Step]) -> tuple[Log, list[datetime]]:
    """Write a history; return the log of it and instants to ask about: some long ago, and one after each step."""
    log, cuts = Log(), [EPOCH + timedelta(days=number, hours=1) for number in (5, 15, 25)]
    scopes: dict[str, str] = {}
    for step in history:
        if step.forget:
            await _forget(brain, log, step)
        else:
            scope = scopes.setdefault(step.key, step.scope)
            draft = Draft(
                text=" ".join(step.words),
                key=step.key,
                scope=scope,
                kind=step.kind,
                tags=step.tags,
                occurred=day(step.day),
                valid_from=day(step.starts),
                valid_to=day(step.starts + step.lasts) if step.starts is not None and step.lasts else None,
                allow_duplicate=True,
                known_at=day(step.known),
            )
            [written] = await remember(brain, draft)
            if written.outcome != "unchanged":
                fact = written.fact
                log.add(step.key, Assertion(fact.known_from, draft, fact.valid_from, fact.valid_to))
        cuts.append(await now(brain))
    return log, cuts


async def _forget(brain: Brain, log: Log, step: Step) -> None:
    start = day(step.starts)
    end = day(step.starts + step.lasts) if step.starts is not None and step.lasts else None
    try:
        row, changed = await brain.write(
            lambda work: amendments.forget(work, name=step.key, reason="test", valid_from=start, valid_to=end)
        )
    except NotFound:
        return
    if changed:
        log.add(step.key, Assertion(row.known_from, None, start, end))


def matches(query: Query, draft: Draft) -> bool:
    occurred, since, until = draft.occurred, day(query.since), day(query.until)
    assert isinstance(occurred, datetime)
    return (
        (query.scope in ("all", draft.scope))
        and (not query.kinds or draft.kind in query.kinds)
        and set(query.tags) <= set(draft.tags)
        and (since is None or occurred >= since)
        and (until is None or occurred < until)
    )


def expected_scores(log: Log, query: Query, as_of: datetime) -> tuple[dict[str, str], dict[str, float]]:
    rows = {
        key: draft.text
        for key, draft in log.visible(as_of, day(query.valid_day) or as_of).items()
        if matches(query, draft)
    }
    return rows, bm25(rows, " ".join(query.words))


async def check(brain: Brain, log: Log, cuts: Sequence[datetime], query: Query) -> None:
    as_of = cuts[query.cut % len(cuts)]
    rows, scores = expected_scores(log, query, as_of)
    data = (
        await ask(
            brain,
            "read_memory",
            query=" ".join(query.words),
            scope=query.scope,
            kinds=list(query.kinds),
            tags=list(query.tags),
            since=text_of(day(query.since)),
            until=text_of(day(query.until)),
            as_of=text_of(as_of),
            valid_at=text_of(day(query.valid_day)),
            mode="strict" if query.strict else "hybrid",
            limit=100,
        )
    ).data
    assert data["diagnosis"]["rows_searched"] == len(rows)
    assert_leg(data["hits"], scores)
    if query.strict:
        asked = set(query_terms(" ".join(query.words)).terms)
        assert {hit["key"] for hit in data["hits"]} == {key for key in rows if asked <= set(terms(rows[key]))}


def assert_leg(hits: Sequence[dict[str, Any]], scores: dict[str, float]) -> None:
    """Every hit has its exact score, and a rank that the scores of all matching rows allow."""
    for hit in hits:
        leg = hit["lexical"]
        if leg is None:
            assert hit["key"] not in scores
            continue
        assert leg["score"] == pytest.approx(scores[hit["key"]], abs=EXACT, rel=0)
    ranked = sorted((hit["lexical"]["rank"], -hit["lexical"]["score"]) for hit in hits if hit["lexical"])
    assert [score for _, score in ranked] == sorted(score for _, score in ranked)
    by_rank: dict[int, float] = {}
    for rank, score in ranked:
        assert by_rank.setdefault(rank, score) == pytest.approx(score, abs=EXACT, rel=0)


@settings(
    max_examples=30,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would write thousands of histories
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(history=st.lists(steps, min_size=4, max_size=24), asked=st.lists(queries, min_size=6, max_size=12))
async def test_scores_and_ranks_equal_bm25_over_exactly_the_visible_rows(
    store: Database, history: Sequence[Step], asked: Sequence[Query]
) -> None:
    brain = brain_on(store)
    log, cuts = await replay(brain, history)
    for query in asked:
        await check(brain, log, cuts, query)


async def test_every_row_with_all_words_of_a_strict_query_is_found_in_the_order_of_bm25(store: Database) -> None:
    brain = brain_on(store)
    texts = {f"f{n:02}": "export " * (n % 5 + 1) + "filler " * (n % 7) + "nightly" for n in range(40)}
    await remember(brain, *(Draft(text=text, key=key, allow_duplicate=True) for key, text in texts.items()))
    scores = bm25(texts, "export nightly")
    data = (await ask(brain, "read_memory", query="export nightly", mode="strict", limit=100)).data
    by_leg = sorted(data["hits"], key=lambda hit: (hit["lexical"]["rank"], hit["key"]))
    assert len(by_leg) == 40
    assert_leg(by_leg, scores)
    better = {key: sum(1 for other in scores.values() if other > score + EXACT) for key, score in scores.items()}
    assert [hit["lexical"]["rank"] for hit in by_leg] == [better[hit["key"]] + 1 for hit in by_leg]


async def test_rows_outside_the_cut_off_change_no_score(store: Database) -> None:
    alone, crowded = brain_on(store), brain_on(store)
    early = [Draft(text=f"export number {n} " + "word " * n, key=f"e{n}", scope="lane:work") for n in range(6)]
    for brain in (alone, crowded):
        await remember(brain, *early)
    cut = await now(crowded)
    later = [Draft(text=f"export export later {n}", key=f"l{n}", scope="lane:work") for n in range(50)]
    elsewhere = [Draft(text=f"export elsewhere {n}", key=f"o{n}", scope="lane:personal") for n in range(50)]
    await remember(crowded, *later, *elsewhere)
    await remember(crowded, Draft(text="something else entirely", key="e0"))
    await asyncio.gather(*(ask(crowded, "forget_memory", ref=f"e{n}", reason="test") for n in (1, 2)))
    legs = []
    for brain, as_of in ((alone, ""), (crowded, cut.isoformat())):
        data = (await ask(brain, "read_memory", query="export number", scope="lane:work", as_of=as_of)).data
        legs.append([(hit["key"], hit["lexical"], hit["vector"], hit["coverage"]) for hit in data["hits"]])
    assert len(legs[0]) == 6
    assert legs[0] == legs[1]
