"""Search as its contract says: both legs, the floor, the diagnosis, pages, models that fail, and answers that stay."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from brain.embedders import LocalHash
from brain.errors import ConfigurationError, InvalidInput
from brain.runtime import Brain
from brain.services import backfill
from brain.services.memory import Draft
from brain.services.search import NOTHING
from brain.text import ANALYSIS_VERSION
from tests.memories import Table, as_bytes, ask, bound, brain_on, found, now, remember

UP, RIGHT, OUT = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
SLANTED = [0.6, 0.8, 0.0]


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


async def search(brain: Brain, query: str, **arguments: Any) -> dict[str, Any]:
    return dict((await ask(brain, "read_memory", query=query, **arguments)).data)


def moved(cursor: str, place: int) -> str:
    """The cursor of a page that begins at another place."""
    as_of, _, *rest = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return base64.urlsafe_b64encode(json.dumps([as_of, place, *rest]).encode()).decode().rstrip("=")


# --- the vector leg


async def test_cosines_are_exact_and_order_the_hits(store: Database) -> None:
    vectors = {
        "alpha": UP,
        "beta": [0.8, 0.6, 0.0],
        "gamma": [0.6, 0.0, 0.8],
        "delta": [1 / math.sqrt(3)] * 3,
        "omega": OUT,
        "zeta?": [0.96, 0.28, 0.0],
    }
    brain = brain_on(store, embedder=Table(vectors, floor=0.55))
    await remember(brain, "alpha", "beta", "gamma", "delta", "omega")
    hits = (await search(brain, "zeta?"))["hits"]
    expected = {
        key: sum(a * b for a, b in zip(vectors[key], vectors["zeta?"], strict=True))
        for key in ("alpha", "beta", "gamma", "delta", "omega")
    }
    best = sorted((key for key in expected if expected[key] >= 0.55), key=lambda key: -expected[key])
    assert [hit["key"] for hit in hits] == best == ["alpha", "beta", "delta", "gamma"]
    for hit in hits:
        assert hit["vector"]["score"] == pytest.approx(expected[hit["key"]], abs=1e-6)
        assert hit["lexical"] is None


async def test_a_text_without_a_usable_vector_takes_no_part_in_the_vector_leg(store: Database) -> None:
    brain = brain_on(store, embedder=Table({"north": UP, "which way?": UP}))
    await remember(brain, "north", "nowhere")
    data = await search(brain, "which way?")
    assert [hit["key"] for hit in data["hits"]] == ["north"]
    assert data["diagnosis"]["vector"]["candidates"] == 1
    assert await found(brain, "nowhere") == ["nowhere"]


async def test_a_vector_without_a_direction_cannot_be_stored(store: Database, module_dsn: str) -> None:
    brain = brain_on(store)
    await remember(brain, "one fact")
    with psycopg.connect(module_dsn) as connection:
        for vector in ("[0,0,0]", "[0,NaN,1]", "[1,Infinity,0]"):
            with pytest.raises(psycopg.Error), connection.transaction():
                connection.execute(
                    "UPDATE embeddings SET embedding = %s::vector WHERE namespace = %s",
                    (vector, brain.caller.namespace),
                )


@pytest.mark.parametrize("query", ["👍", "...", "?!", "。"])
async def test_a_query_without_words_or_direction_returns_nothing_rather_than_arbitrary_rows(
    store: Database, query: str
) -> None:
    brain = brain_on(store)
    await remember(brain, *(f"The invoice {number} was paid late in the spring" for number in range(20)))
    data = await search(brain, query)
    assert data["hits"] == []
    skipping = brain_on(store, embedder=Table({"a fact": UP}))
    await remember(skipping, "a fact")
    said = await search(skipping, query)
    assert said["hits"] == []
    assert said["diagnosis"]["vector"] == {"status": "no_vector_for_query", "candidates": 0}


async def test_rows_without_a_vector_are_treated_alike_under_every_plan(store: Database, module_dsn: str) -> None:
    embedder = Table({"north": UP, "slanted": SLANTED, "east": RIGHT, "which way?": UP})
    brain = brain_on(store, embedder=embedder)
    await remember(brain, "north", "slanted", "east", "nowhere")
    embedder.failing = True
    await remember(brain, "later")
    embedder.failing = False
    as_of = (await now(brain)).isoformat()
    expected = as_bytes(await ask(brain, "read_memory", query="which way?", as_of=as_of))
    for setting in ("enable_seqscan=off", "enable_indexscan=off", "enable_hashjoin=off", "enable_nestloop=off"):
        url = SecretStr(make_conninfo(module_dsn, options=f"-c {setting}"))
        other = Database(Settings(database_url=url))
        try:
            answer = await ask(replace(brain, database=other), "read_memory", query="which way?", as_of=as_of)
        finally:
            await other.close()
        assert as_bytes(answer) == expected, setting
    data = json.loads(expected)[1]
    assert [hit["key"] for hit in data["hits"]] == ["north", "slanted"]
    assert data["diagnosis"]["rows_searched"] == 5
    assert data["diagnosis"]["rows_without_vector"] >= 1


# --- a model that fails, or changes


async def test_a_fact_outlives_an_embedding_outage_and_is_found_by_meaning_after_the_back_fill(
    store: Database,
) -> None:
    embedder = Table({"The cat sleeps": UP, "feline naps": UP}, failing=True)
    brain = brain_on(store, embedder=embedder)
    written = await ask(brain, "write_memory", text="The cat sleeps", key="cat")
    assert written.data["vector"] == "pending"
    assert "only words find this fact" in written.text
    assert (await ask(brain, "get_status")).data["facts_without_vector"] == 1
    assert await found(brain, "cat") == ["cat"]
    with pytest.raises(Exception, match="cannot be reached"):
        await backfill.run(brain.read, brain.write, embedder)
    embedder.failing = False
    before = (await search(brain, "feline naps"))["diagnosis"]
    assert before["rows_without_vector"] == 1
    assert await backfill.run(brain.read, brain.write, embedder) == 1
    assert await backfill.run(brain.read, brain.write, embedder) == 0
    [hit] = (await search(brain, "feline naps"))["hits"]
    for name in ("ref", "version", "known_from", "recorded_at", "occurred", "text"):
        assert hit[name] == written.data["row"][name]
    assert (await ask(brain, "get_status")).data["facts_without_vector"] == 0


async def test_nothing_found_is_not_said_when_the_vector_leg_did_not_run(store: Database) -> None:
    embedder = Table({"The cat sleeps": UP}, failing=True)
    for brain in (brain_on(store, embedder=embedder), brain_on(store, embedder=embedder)):
        answer = await ask(brain, "read_memory", query="feline naps")
        assert answer.data["reason"] == "leg_unavailable"
        assert answer.data["diagnosis"]["vector"]["status"] == "unavailable"
        assert NOTHING not in answer.text + json.dumps(answer.data)
        await ask(brain, "write_memory", text="The cat sleeps")
        assert NOTHING not in (await ask(brain, "read_memory", query="feline naps")).text


async def test_words_are_found_and_the_missing_leg_is_said_while_the_model_fails(store: Database) -> None:
    embedder = Table({"The cat sleeps": UP})
    brain = brain_on(store, embedder=embedder)
    await remember(brain, Draft(text="The cat sleeps", key="cat"))
    embedder.failing = True
    data = await search(brain, "cat sleeps")
    assert [hit["key"] for hit in data["hits"]] == ["cat"]
    assert data["diagnosis"]["vector"]["status"] == "unavailable"
    strict = await search(brain, "dog", mode="strict")
    assert (strict["reason"], strict["message"]) == ("no_match", NOTHING)


@pytest.mark.parametrize("dimensions", [256, 1024])
async def test_another_model_is_refused_with_the_command_that_changes_it(store: Database, dimensions: int) -> None:
    brain = brain_on(store, embedder=LocalHash(dimensions=256))
    [written] = await remember(brain, "The Kestrel export runs nightly")
    other = replace(brain, embedder=Table(model="other", dimensions=dimensions))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_memory", {"query": "export"}),
        ("write_memory", {"text": "Another fact"}),
        ("amend_memory", {"ref": written.fact.key, "text": "Changed", "expected_version": 1, "reason": "test"}),
    ]
    for tool, arguments in calls:
        with pytest.raises(ConfigurationError) as refused:
            await ask(other, tool, **arguments)
        assert "brain reindex" in refused.value.hint
        assert "local-hash" in refused.value.message
    assert await found(brain, "export") == [written.fact.key]
    assert (await ask(brain, "get_status")).data["visible_rows"]["memory"] == 1


# --- the honesty floor

FACTS = (
    "The Kestrel dashboard exports its tables to DuckDB every night",
    "Ana prefers meetings on Tuesday mornings",
    "Invoice 2026-014 for Marlow was paid on the third of March",
    "The staging server lives in Frankfurt",
    "We decided to drop support for Internet Explorer",
    "Backups are encrypted with age and kept for ninety days",
    "The quarterly report is due at the end of April",
    "Tom is allergic to peanuts",
    "The API rate limit is 600 requests a minute",
    "Lena moved to Porto in January",
    "Passwords rotate twice a year",
    "The office lease ends in 2028",
    "Unit tests run in parallel on four workers",
    "The newsletter goes out on the first Monday of the month",
    "Coffee beans come from a roaster in Trieste",
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("The staging server lives in Frankfurt", [FACTS[3]]),
        ("encrypting backup", [FACTS[5]]),
        ("ZXQV-17", []),
        ("volcano eruption geology", []),
        ("who painted the ceiling of the chapel", []),
    ],
)
async def test_the_floor_keeps_true_hits_and_drops_nonsense(
    store: Database, query: str, expected: Sequence[str]
) -> None:
    brain = brain_on(store)
    await remember(brain, *FACTS)
    answer = await ask(brain, "read_memory", query=query)
    assert [hit["text"] for hit in answer.data["hits"]][:1] == expected
    if not expected:
        assert answer.text.startswith(NOTHING)
        assert answer.data["reason"] in ("no_match", "below_floor")


async def test_an_empty_answer_carries_its_evidence(store: Database) -> None:
    embedder = Table({"east": RIGHT, "slanted": [0.9, 0.1, 0.42], "which way?": [0.3, 0.1, 0.95]}, floor=0.9)
    brain = brain_on(store, embedder=embedder)
    await remember(brain, "east", "slanted")
    data = await search(brain, "which way?")
    said = data["diagnosis"]
    assert (data["hits"], data["message"], data["reason"]) == ([], NOTHING, "below_floor")
    assert said["reason"] == "below_floor"
    assert said["rows_searched"] == 2
    assert said["exact"] is True
    assert said["floor"]["evidence"] == 0.9
    assert said["model"] == "table"
    assert said["analysis"] == ANALYSIS_VERSION
    assert said["as_of"] <= (await now(brain)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert said["below_floor"]["candidates"] >= 1
    assert 0.6 < said["below_floor"]["best_cosine"] < 0.9
    assert (said["limit_reached"], said["candidate_limit_reached"]) == (False, False)
    assert "cursor" not in data


async def test_the_reason_says_why_nothing_was_found(store: Database) -> None:
    embedder = Table({"north": UP, "alpha beta gamma": UP, "sideways?": RIGHT})
    brain = brain_on(store, embedder=embedder)
    assert (await search(brain, "north"))["reason"] == "empty_scope"
    await remember(brain, Draft(text="north", scope="lane:work"), Draft(text="alpha beta gamma", scope="lane:work"))
    assert (await search(brain, "north", scope="lane:work"))["reason"] == "matched"
    assert (await search(brain, "north", scope="lane:school"))["reason"] == "empty_scope"
    assert (await search(brain, "north", kinds=["event"]))["reason"] == "empty_scope"
    assert (await search(brain, "sideways?"))["reason"] == "no_match"
    await remember(brain, Draft(text="north", scope="lane:personal"))
    first = await search(brain, "north", limit=1)
    past = await search(brain, "north", cursor=moved(first["cursor"], 999))
    assert (past["reason"], past["hits"], past["message"]) == ("past_end", [], "There are no more hits.")


async def test_strict_needs_every_word_and_says_that_meaning_was_not_asked(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, "invoice 2026-014 from Marlow", "invoice 2026-015 from Marlow", "Marlow sent a postcard")
    assert await found(brain, "Marlow invoice 2026-014", mode="strict") == ["invoice 2026-014 from Marlow"]
    data = await search(brain, "Marlow invoice 2026-099", mode="strict")
    assert (data["hits"], data["message"]) == ([], NOTHING)
    assert data["diagnosis"]["mode"] == "strict"
    assert data["diagnosis"]["vector"]["status"] == "not_asked"
    with pytest.raises(InvalidInput, match="strict"):
        await search(brain, "Marlow", mode="fuzzy")


async def test_auto_relaxes_only_when_no_row_has_every_word_and_marks_each_hit(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, "invoice 2026-014 from Marlow", "invoice 2026-015 from Finch", "A postcard from Porto")
    exact = await search(brain, "Marlow invoice 2026-014", mode="auto")
    assert exact["reason"] == "matched"
    assert [hit["key"] for hit in exact["hits"]] == ["invoice 2026-014 from Marlow"]
    relaxed = await search(brain, "Marlow invoice 2026-014 overdue", mode="auto")
    assert relaxed["reason"] == "relaxed_match"
    assert relaxed["hits"][0]["key"] == "invoice 2026-014 from Marlow"
    assert {hit["match_quality"] for hit in relaxed["hits"]} == {"relaxed"}
    nothing = await search(brain, "zebra crossing", mode="auto")
    assert (nothing["hits"], nothing["message"]) == ([], NOTHING)


async def test_a_wording_finds_more_but_never_past_a_filter(store: Database) -> None:
    brain = brain_on(store)
    await remember(
        brain,
        Draft(text="The bicycle was stolen", key="bike", scope="lane:personal"),
        Draft(text="A velocipede in the museum", key="velo", scope="lane:personal"),
        Draft(text="The bicycle budget", key="work", scope="lane:work"),
    )
    arguments: dict[str, Any] = {"query": "velocipede", "scope": "lane:personal"}
    assert await found(brain, **arguments) == ["velo"]
    assert set(await found(brain, query_variants=["bicycle stolen"], **arguments)) == {"velo", "bike"}
    assert await found(brain, query_variants=["bicycle stolen"], kinds=["event"], **arguments) == []
    assert await found(brain, query_variants=["velocipede", "velocipede"], **arguments) == ["velo"]


@pytest.mark.parametrize("view", ["full", "compact"])
async def test_a_budget_leaves_whole_hits_out_and_a_cursor_goes_on_with_them(store: Database, view: str) -> None:
    brain = brain_on(store)
    await remember(brain, *(Draft(text=f"export {n} " + "long " * 300, key=f"k{n}") for n in range(8)))
    as_of = (await now(brain)).isoformat()
    whole = [hit["text"] for hit in (await search(brain, "export long", limit=8, as_of=as_of))["hits"]]
    answer = await ask(brain, "read_memory", query="export long", limit=8, as_of=as_of, max_chars=12_000, view=view)
    seen = [hit["text"] for hit in answer.data["hits"]]
    assert 0 < len(seen) < 8
    assert len(answer.text) + len(json.dumps(answer.data, ensure_ascii=False)) <= 12_000
    while "cursor" in answer.data:
        cursor = answer.data["cursor"]
        answer = await ask(
            brain, "read_memory", query="export long", limit=8, cursor=cursor, max_chars=12_000, view=view
        )
        seen += [hit["text"] for hit in answer.data["hits"]]
    assert seen == whole


async def test_applied_filters_are_echoed_and_narrow_both_legs(store: Database) -> None:
    brain = bound(brain_on(store), "kestrel")
    await remember(
        brain,
        Draft(text="export one", key="a", kind="event", tags=["Red", "blue"], occurred="2026-01-10"),
        Draft(text="export two", key="b", kind="event", tags=["red"], occurred="2026-02-10"),
        Draft(text="export three", key="c", kind="fact", tags=["red"], occurred="2026-02-11"),
        Draft(text="export four", key="d", kind="event", occurred="2026-02-12"),
        Draft(text="export five", key="e", kind="event", tags=["red"], occurred="2026-03-01"),
    )
    filters = {"kinds": ["event"], "tags": ["RED"], "since": "2026-01-10", "until": "2026-03-01"}
    data = await search(brain, "export", limit=5, **filters)
    assert {hit["key"] for hit in data["hits"]} == {"a", "b"}
    assert data["diagnosis"]["rows_searched"] == 2
    assert data["diagnosis"]["filters"] == {
        "scopes": ["global", "every lane", "project:kestrel"],
        "kinds": ["event"],
        "tags": ["red"],
        "since": "2026-01-10T00:00:00Z",
        "until": "2026-03-01T00:00:00Z",
        "limit": 5,
    }
    assert await found(brain, "export", tags=["red", "blue"]) == ["a"]


async def test_a_search_covers_global_lanes_and_the_own_project_only(store: Database) -> None:
    brain = brain_on(store)
    scopes = ("global", "lane:work", "project:kestrel", "project:merlin")
    await remember(brain, *(Draft(text="the export job", key=scope, scope=scope) for scope in scopes))
    assert set(await found(bound(brain, "kestrel"), "export job")) == {"global", "lane:work", "project:kestrel"}
    assert set(await found(bound(brain, "kestrel"), "export job", scope="all")) == set(scopes)
    assert await found(brain, "export job", scope="project:merlin") == ["project:merlin"]


async def test_lanes_can_be_searched_before_the_first_write(store: Database) -> None:
    assert (await search(brain_on(store), "anything", scope="lane:work"))["reason"] == "empty_scope"
    with pytest.raises(InvalidInput, match="lane:personal"):
        await search(brain_on(store), "anything", scope="lane:hobby")


# --- order


async def test_equal_relevance_is_ordered_by_importance_confidence_recency_and_then_key(store: Database) -> None:
    brain = brain_on(store)
    same: dict[str, Any] = {"text": "the export job failed", "allow_duplicate": True, "occurred": "2026-01-01"}
    await remember(
        brain,
        Draft(key="d-plain", **same),
        Draft(key="c-plain", **same),
        Draft(key="b-doubtful", **same | {"confidence": "0.2"}),
        Draft(key="e-important", **same | {"importance": 5}),
        Draft(key="a-old", **same | {"occurred": "2019-01-01"}),
    )
    order = await found(brain, "export job failed")
    assert order[0] == "e-important"
    assert order[1:3] == ["c-plain", "d-plain"]
    assert set(order[3:]) == {"a-old", "b-doubtful"}


async def test_importance_cannot_lift_what_is_off_topic(store: Database) -> None:
    brain = brain_on(store)
    await remember(
        brain,
        Draft(text="The nightly export job failed twice", key="right", importance=1, confidence="0.5"),
        Draft(text="The nightly train was on time", key="wrong", importance=5, kind="profile"),
        *(Draft(text=f"Filler about gardens and weather {number}", key=f"f{number}") for number in range(10)),
    )
    assert (await found(brain, "why did the nightly export job fail?"))[0] == "right"


async def test_two_fresh_stores_filled_alike_give_the_same_answer(store: Database) -> None:
    texts = [f"export {number % 7} of the {['red', 'blue', 'green'][number % 3]} table" for number in range(60)]
    answers = []
    for _ in range(2):
        brain = brain_on(store)
        for start in range(0, 60, 20):
            drafts = [
                Draft(text=texts[n], key=f"k{n:02}", occurred="2026-01-01", known_at=None, allow_duplicate=True)
                for n in range(start, start + 20)
            ]
            await remember(brain, *drafts)
        data = await search(brain, "blue export 3", limit=30)
        kept = [
            {name: hit[name] for name in ("key", "version", "lexical", "vector", "coverage")} for hit in data["hits"]
        ]
        said = {name: value for name, value in data["diagnosis"].items() if name not in ("as_of", "valid_at")}
        answers.append(json.dumps([kept, said]))
    assert answers[0] == answers[1]
    assert len(json.loads(answers[0])[0]) >= 3


# --- pages


async def test_pages_stay_together_while_others_write(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, *(Draft(text=f"export number {n}", key=f"k{n:02}") for n in range(11)))
    as_of = (await now(brain)).isoformat()
    whole = await found(brain, "export number", limit=50, as_of=as_of)
    assert len(whole) == 11
    seen: list[str] = []
    data = await search(brain, "export number", limit=4, as_of=as_of)
    for change in range(3):
        seen += [hit["key"] for hit in data["hits"]]
        assert data["diagnosis"]["limit_reached"] is (change < 2)
        assert ("cursor" in data) is (change < 2)
        await remember(brain, Draft(text=f"export number export number {change}", key=f"new{change}"))
        await ask(brain, "forget_memory", ref=f"k{change:02}", reason="test")
        if "cursor" in data:
            data = await search(brain, "export number", limit=4, cursor=data["cursor"])
    assert seen == whole
    cursor = (await search(brain, "export number", limit=4))["cursor"]
    with pytest.raises(InvalidInput, match="as_of"):
        await search(brain, "export number", cursor=cursor, as_of=as_of)


@pytest.mark.parametrize(
    "cursor", ["x", "é", "AAAA", "W10", "bnVsbA", "[" * 200_000, "a b", "WyIyMDI2LTAxLTAxIiwgLTFd"]
)
async def test_a_cursor_that_this_server_did_not_give_is_refused(store: Database, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor must be the cursor of an earlier answer"):
        await search(brain_on(store), "anything", cursor=cursor)


async def test_a_deeply_nested_cursor_is_refused(store: Database) -> None:
    deep = base64.urlsafe_b64encode(b"[" * 100_000).decode()
    with pytest.raises(InvalidInput, match="cursor"):
        await search(brain_on(store), "anything", cursor=deep)


@pytest.mark.parametrize("limit", [0, 101, -1])
async def test_a_limit_out_of_range_is_refused(store: Database, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await search(brain_on(store), "anything", limit=limit)


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
async def test_an_empty_query_is_refused(store: Database, query: str) -> None:
    with pytest.raises(InvalidInput, match="query"):
        await search(brain_on(store), query)


# --- the past


async def test_a_search_as_of_an_instant_gives_the_bytes_that_it_gave_then(store: Database) -> None:
    brain = brain_on(store)
    recorded: list[tuple[dict[str, Any], str, bytes]] = []
    questions: list[dict[str, Any]] = [
        {"query": "nightly export of table 3"},
        {"query": "export", "scope": "lane:work", "limit": 5},
        {"query": "kestrel dashboard", "mode": "strict"},
        {"query": "table 4", "kinds": ["event"], "since": "2026-01-03"},
        {"query": "zebra crossing"},
    ]
    for round_ in range(4):
        await remember(
            brain,
            *(
                Draft(
                    text=f"nightly export {round_} of table {n} to the kestrel dashboard",
                    key=f"r{round_}n{n}",
                    scope=("lane:work", "global")[n % 2],
                    kind=("event", "fact")[n % 2],
                    occurred=f"2026-01-0{n + 1}",
                )
                for n in range(8)
            ),
        )
        for question in questions:
            answer = await ask(brain, "read_memory", **question)
            recorded.append((question, answer.data["diagnosis"]["as_of"], as_bytes(answer)))
        await _disturb(brain, round_)
    later = [
        Draft(text=f"zebra export {n} of table {n % 9} with new words w{n} kestrel", key=f"later{n}", scope="lane:work")
        for n in range(1_200)
    ]
    await remember(brain, *later)
    for question, as_of, given in recorded:
        assert as_bytes(await ask(brain, "read_memory", as_of=as_of, **question)) == given


async def _disturb(brain: Brain, round_: int) -> None:
    """Correct, bound, forget, supersede and reword what is there."""
    await ask(
        brain, "amend_memory", ref=f"r{round_}n0", expected_version=1, reason="test", text="zebra crossing of table 3"
    )
    await ask(
        brain,
        "amend_memory",
        ref=f"r{round_}n1",
        expected_version=1,
        reason="test",
        text="export only in February",
        valid_from="2026-02-01",
        valid_to="2026-03-01",
    )
    await ask(brain, "forget_memory", ref=f"r{round_}n2", reason="test")
    await ask(brain, "forget_memory", ref=f"r{round_}n3", reason="test", valid_from="2026-01-20")
    old = (await ask(brain, "get_memory", ref=f"r{round_}n4")).data["memory"]["ref"]
    await ask(brain, "write_memory", text=f"export {round_} moved", key=f"s{round_}", scope="lane:work", supersedes=old)
    await ask(brain, "write_memory", text=f"nightly export {round_} reworded", key=f"r{round_}n5")


async def test_fifty_searches_give_the_same_bytes_and_touch_no_row(store: Database, module_dsn: str) -> None:
    brain = brain_on(store)
    await remember(brain, *FACTS)
    as_of = (await now(brain)).isoformat()

    def rows() -> list[Any]:
        with psycopg.connect(module_dsn) as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
            names = [name for (name,) in tables.fetchall()]
            return [
                connection.execute(f"SELECT xmin::text, xmax::text, ctid::text FROM {name} ORDER BY ctid").fetchall()
                for name in names
            ]

    before = rows()
    answers = {
        as_bytes(await ask(brain, "read_memory", query="when is the quarterly report due?", as_of=as_of))
        for _ in range(50)
    }
    assert len(answers) == 1
    assert json.loads(answers.pop())[1]["hits"]
    assert rows() == before
