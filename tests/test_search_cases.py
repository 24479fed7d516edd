"""Field cases of search: scripts, identifiers, symbols, accents, and rows that must not shape an answer."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from brain.errors import InvalidInput
from brain.runtime import Brain
from brain.services import backfill
from brain.services.memory import Draft
from brain.services.search import NOTHING
from tests import factories
from tests.memories import Table, ask, brain_on, found, now, remember

BODIES = {
    "zh": "周三改用蓝色门禁卡",
    "th": "ประชุมทีมย้ายไปวันพุธที่ห้องใหญ่",
    "ko": "서울에서 회의를 수요일로 옮겼다",
    "ja": "東京の会議は水曜日に変更",
    "mixed": "重启api-gw后恢复",
    "deploy": "go 部署 文档 在 新 仓库",
    "who": "The Who tickets",
    "csharp": "C# service for payroll",
    "cpp": "C++ engine for rendering",
    "thumbs": "👍",
    "circled": "①② are the two seats",
    "script": "<script>",
    "path": "src/api/login.py",
    "camel": "fooBarBaz",
    "cafe": "Breakfast at the café",
    "strasse": "Office in the Straße",
    "file": "the ﬁle is lost",
    "roman": "Chapter Ⅷ is missing",
    "amount": "Paid 1,200.50 EUR for hosting",
    "filler-1": "The garden needs rain in the summer",
    "filler-2": "Trains between Bern and Basel were late",
    "filler-3": "Bread is baked before sunrise",
}
MATCHING = [
    ("zh", "门禁"), ("zh", "卡"), ("zh", "蓝色"), ("zh", "门禁卡"), ("zh", "蓝色门禁卡"),
    ("th", "ประชุม"), ("th", "วันพุธ"),
    ("ko", "회의"), ("ko", "수요일"), ("ko", "서울"),
    ("ja", "会議"), ("ja", "水曜日"), ("ja", "東京"),
    ("mixed", "api-gw"), ("mixed", "恢复"), ("mixed", "api-gw 恢复"), ("mixed", "重启"),
    ("deploy", "go 部署"), ("deploy", "部署"),
    ("who", "The Who"), ("who", "who"), ("who", "the who tickets"),
    ("csharp", "C#"), ("cpp", "C++"), ("thumbs", "👍"), ("circled", "①②"), ("script", "<script>"),
    ("path", "src/api/login.py"), ("path", "login.py"), ("path", "login"),
    ("camel", "fooBarBaz"), ("camel", "foobarbaz"), ("camel", "bar baz"), ("camel", "foo_bar_baz"),
    ("cafe", "cafe"), ("cafe", "cafe\u0301"), ("cafe", "CAFÉ"),
    ("strasse", "STRASSE"), ("strasse", "strasse"), ("file", "file"), ("roman", "viii"),
    ("amount", "1200.5"), ("amount", "1,200.50 EUR"), ("amount", "1200.50"), ("amount", "1200.50 EUR"),
    ("camel", "fooBarBaz."), ("camel", "`fooBarBaz()`"),
]  # fmt: skip
BY_SHARE = [("thumbs", "👍🏽"), ("amount", "1200.50 for the hosting twice"), ("zh", "蓝色门禁卡是周几改的")]
"""Queries with a word that the body does not have."""


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
async def bodies(store: Database) -> Brain:
    brain = brain_on(store)
    await remember(brain, *(Draft(text=text, key=key) for key, text in BODIES.items()))
    return brain


@pytest.mark.parametrize("mode", ["hybrid", "strict"])
@pytest.mark.parametrize(("key", "query"), MATCHING)
async def test_a_body_of_any_script_is_found_by_its_words(bodies: Brain, key: str, query: str, mode: str) -> None:
    assert (await found(bodies, query, mode=mode))[:1] == [key]


@pytest.mark.parametrize(("key", "query"), BY_SHARE)
async def test_a_body_with_most_words_of_a_query_is_found(bodies: Brain, key: str, query: str) -> None:
    assert (await found(bodies, query))[:1] == [key]


@pytest.mark.parametrize(("query", "wrong"), [("C#", "cpp"), ("C++", "csharp"), ("门禁", "ja"), ("👍", "circled")])
async def test_words_that_differ_in_their_signs_stay_apart(bodies: Brain, query: str, wrong: str) -> None:
    assert wrong not in await found(bodies, query, mode="strict")


async def test_no_part_of_a_mixed_query_is_dropped_without_saying_so(bodies: Brain) -> None:
    said = (await ask(bodies, "read_memory", query="go 部署 the")).data["diagnosis"]["lexical"]
    assert "go" in said["terms"]
    assert {"部", "署", "部署"} & set(said["terms"])
    assert said["ignored"] == ["the"]


async def test_a_query_of_stop_words_searches_for_them_and_says_so(bodies: Brain) -> None:
    said = (await ask(bodies, "read_memory", query="the and of")).data["diagnosis"]["lexical"]
    assert said["only_stop_words"] is True
    assert set(said["terms"]) == {"the", "and", "of"}
    assert said["ignored"] == []


async def test_archived_near_duplicates_do_not_shape_the_answer(store: Database) -> None:
    alone, crowded = brain_on(store), brain_on(store)
    live = Draft(text="The export runs at 02:00 on the new server", key="live", scope="lane:work")
    others = [Draft(text=f"Unrelated note {n} about exports and servers", key=f"o{n}") for n in range(5)]
    await remember(alone, live, *others)
    archived = [
        Draft(text=f"The export runs at 02:00 on the old server {n}", key=f"a{n}", scope="lane:work")
        for n in range(100)
    ]
    await remember(crowded, *archived)
    before = (await now(crowded)).isoformat()
    for n in range(50):
        await ask(crowded, "forget_memory", ref=f"a{n}", reason="archived")
    for n in range(50, 100):
        await remember(crowded, Draft(text=f"Gone {n}", key=f"a{n}", occurred="2026-01-01", valid_to="2026-01-02"))
        await ask(crowded, "forget_memory", ref=f"a{n}", reason="archived")
    await remember(crowded, live, *others)
    query = "when does the export run on the server?"
    answers = []
    for brain in (alone, crowded):
        data = (await ask(brain, "read_memory", query=query, limit=20)).data
        said = {name: data["diagnosis"][name] for name in ("rows_searched", "found", "below_floor", "lexical")}
        answers.append(
            json.dumps([[[hit["key"], hit["lexical"], hit["vector"], hit["coverage"]] for hit in data["hits"]], said])
        )
    assert answers[0] == answers[1]
    assert json.loads(answers[0])[0][0][0] == "live"
    then = (await ask(crowded, "read_memory", query=query, limit=20, as_of=before)).data
    assert then["diagnosis"]["rows_searched"] == 100
    assert "live" not in [hit["key"] for hit in then["hits"]]


async def test_a_superseded_fact_leaves_ordinary_reads_but_not_the_past(store: Database) -> None:
    brain = brain_on(store)
    [old] = await remember(brain, Draft(text="The export uses DuckDB", key="old", occurred="2026-01-10"))
    await remember(
        brain,
        Draft(text="The export uses Postgres", key="new", occurred="2026-03-10", supersedes=f"memory:{old.fact.id}"),
    )
    assert await found(brain, "what does the export use") == ["new"]
    assert await found(brain, "what does the export use", valid_at="2026-02-01") == ["old"]


async def test_what_was_recalled_and_written_again_returns_the_old_fact_with_its_date(store: Database) -> None:
    brain = brain_on(store)
    first = await ask(
        brain, "write_memory", text="Kestrel ships in March", key="ship", occurred="2026-01-10", scope="lane:work"
    )
    for text in ("Kestrel ships in March", "  kestrel SHIPS in march ", "Kestrel ships in March"):
        again = await ask(brain, "write_memory", text=text, scope="lane:work")
        assert again.data["deduplicated"] is True
        assert again.data["row"]["ref"] == first.data["row"]["ref"]
        assert again.data["row"]["occurred"] == "2026-01-10T00:00:00Z"
    same_key = await ask(brain, "write_memory", text="Kestrel ships in March", key="ship")
    assert same_key.data["outcome"] == "unchanged"
    near = await ask(brain, "write_memory", text="In March Kestrel ships", scope="lane:work")
    assert near.data["outcome"] == "created"
    assert [each["ref"] for each in near.data.get("near_duplicates", [])] in ([], [first.data["row"]["ref"]])


async def test_use_and_repetition_do_not_raise_a_fact(store: Database) -> None:
    brain = brain_on(store)
    await remember(brain, *(Draft(text=f"export step {n} of the pipeline", key=f"k{n}") for n in range(6)))
    as_of = (await now(brain)).isoformat()
    before = await found(brain, "export step of the pipeline", as_of=as_of)
    for _ in range(5):
        await ask(brain, "get_memory", ref="k5")
        await ask(brain, "read_memory", query="export step 5")
        await ask(brain, "write_memory", text="export step 5 of the pipeline", key="k5")
    assert await found(brain, "export step of the pipeline", as_of=as_of) == before
    after = await ask(brain, "read_memory", query="export step of the pipeline")
    assert [hit["key"] for hit in after.data["hits"]] == before


async def test_a_longer_page_looks_deeper_and_all_pages_of_a_search_are_cut_from_one_order(store: Database) -> None:
    brain = brain_on(store)
    wanted = [Draft(text=f"Export {n}.", key=f"k{n:02}") for n in range(62)]
    await remember(brain, *wanted, *(Draft(text=f"Room {n} is locked.") for n in range(600)))
    as_of = (await now(brain)).isoformat()
    long = dict((await ask(brain, "read_memory", query="export", limit=60, as_of=as_of)).data)
    assert long["diagnosis"]["candidate_limit_reached"] is True
    assert len(long["hits"]) == 60
    data = dict((await ask(brain, "read_memory", query="export", limit=20, as_of=as_of)).data)
    pages = [data["hits"]]
    while "cursor" in data:
        data = dict((await ask(brain, "read_memory", query="export", limit=60, cursor=data["cursor"])).data)
        pages.append(data["hits"])
    assert [len(page) for page in pages] == [20, 30]
    assert [hit["key"] for page in pages for hit in page] == [f"k{n:02}" for n in range(50)]


@pytest.mark.parametrize("depth", [0, 49, 101, 2**40, True, "50"])
async def test_a_cursor_cannot_ask_for_a_depth_that_no_page_has(store: Database, depth: object) -> None:
    words = json.dumps(["2026-01-01T00:00:00Z", 1, 0, depth]).encode()
    cursor = base64.urlsafe_b64encode(words).decode().rstrip("=")
    with pytest.raises(InvalidInput, match="cursor must be the cursor of an earlier answer"):
        await ask(brain_on(store), "read_memory", query="anything", cursor=cursor)


SHORT = ["Buy milk", "Order ink", "Call Ada", "Pay rent", "Fix bike", "Book gym", "Mend coat", "Water fern", "Send tax",
         "Bake pie"]  # fmt: skip


def nonsense(count: int) -> list[str]:
    """Words that can be pronounced and that no fact contains, the same in every run."""
    rng = random.Random(11)
    words: set[str] = set()
    while len(words) < count:
        words.add("".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4))) + "x")
    return sorted(words)


async def test_no_nonsense_word_finds_anything_among_facts_of_two_words(store: Database) -> None:
    """Short texts share few hashed features with a word, and one shared bucket would weigh a lot."""
    brain = brain_on(store)
    await remember(brain, *SHORT)
    words = nonsense(600)
    asked = [words[at : at + 6] for at in range(0, 600, 6)]
    for query, *variants in asked:
        answer = (await ask(brain, "read_memory", query=query, query_variants=variants)).data
        assert (answer["hits"], answer["reason"]) == ([], "no_match"), (query, variants)
    for fact in SHORT:
        assert (await found(brain, fact))[:1] == [fact]
        for word in fact.split():
            assert await found(brain, word) == [fact]


@pytest.mark.parametrize("query", ["buy pelota", "zum milk tavi", "gamo order", "what about nolex ink paxu velo"])
async def test_one_word_of_a_query_among_several_that_nobody_knows(store: Database, query: str) -> None:
    brain = brain_on(store)
    await remember(brain, *SHORT)
    [known] = [fact for fact in SHORT if set(fact.lower().split()) & set(query.split())]
    assert await found(brain, query) in ([], [known])


async def test_an_empty_answer_says_that_rows_wait_for_their_vector_and_never_that_there_is_nothing(
    store: Database,
) -> None:
    embedder = Table({"The cat sleeps": [1.0, 0.0, 0.0], "feline naps": [1.0, 0.0, 0.0]}, failing=True)
    brain = brain_on(store, embedder=embedder)
    await remember(brain, "The cat sleeps")
    embedder.failing = False
    for query in ("feline naps", "submarine"):
        answer = await ask(brain, "read_memory", query=query)
        assert (answer.data["hits"], answer.data["reason"]) == ([], "leg_unavailable")
        assert answer.data["diagnosis"]["rows_without_vector"] == 1
        assert NOTHING not in answer.text
        assert NOTHING not in json.dumps(answer.data)
        assert "incomplete" in answer.text
    strict = await ask(brain, "read_memory", query="submarine", mode="strict")
    assert (strict.data["reason"], NOTHING in strict.text) == ("no_match", True)
    await backfill.run(brain.read, brain.write, embedder)
    assert await found(brain, "feline naps") == ["The cat sleeps"]
    answer = await ask(brain, "read_memory", query="submarine")
    assert (answer.data["reason"], NOTHING in answer.text) == ("no_match", True)


async def test_rows_that_wait_outside_the_question_do_not_make_an_answer_incomplete(store: Database) -> None:
    embedder = Table({"The cat sleeps": [1.0, 0.0, 0.0]})
    brain = brain_on(store, embedder=embedder)
    await remember(brain, Draft(text="The cat sleeps", scope="lane:work"))
    embedder.failing = True
    await remember(brain, Draft(text="The dog barks", scope="lane:school"))
    embedder.failing = False
    answer = await ask(brain, "read_memory", query="submarine", scope="lane:work")
    assert (answer.data["reason"], answer.data["diagnosis"]["rows_without_vector"]) == ("no_match", 0)


async def test_a_model_that_sees_words_only_misses_nothing_while_a_vector_waits(store: Database) -> None:
    unreachable = brain_on(store, embedder=factories.Unreachable())
    await remember(unreachable, "The cat sleeps")
    brain = brain_on(store, namespace=unreachable.caller.namespace)
    answer = await ask(brain, "read_memory", query="submarine")
    assert (answer.data["reason"], answer.data["diagnosis"]["rows_without_vector"]) == ("no_match", 1)
    assert await found(brain, "cat") == ["The cat sleeps"]
