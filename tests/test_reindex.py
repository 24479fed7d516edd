"""Changing the embedding model of a brain: online, resumable after a kill, and never two models in one search."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import SecretStr

from brain import runtime
from brain.config import Settings
from brain.database import Database
from brain.embedders import LocalHash, Vector
from brain.errors import ConfigurationError, Unavailable
from brain.runtime import Brain
from brain.services import reindex
from brain.services.memory import Draft
from brain.work import Work
from tests import stub_provider
from tests.brain_process import COMMAND
from tests.memories import Table, ask, brain_on, found, remember

UP, RIGHT = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
TEXTS = [f"Fact number {number} about the archive" for number in range(200)]


@dataclass
class Watching(Table):
    """A model that lets a test act while it is asked."""

    during: Callable[[], Awaitable[None]] | None = None
    seen: list[str] = field(default_factory=list)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        if self.during is not None and not query:
            job, self.during = self.during, None
            await job()
        return await super().embed(texts, query=query)


@pytest.fixture
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


async def run(brain: Brain, **options: Any) -> reindex.Report:
    report = await reindex.run(brain.read, brain.write, brain.embedder, **options)
    assert isinstance(report, reindex.Report)
    return report


def moved(brain: Brain, **model: Any) -> Brain:
    return replace(brain, embedder=Watching(**({"model": "new", "vectors": {}} | model)))


async def test_a_brain_that_was_indexed_again_is_searched_in_the_new_space_only(store: Database) -> None:
    old = brain_on(store, embedder=Table({"east": UP, "west": RIGHT, "which way?": UP}, model="old"))
    await remember(old, "east", "west")
    new = moved(old, vectors={"east": RIGHT, "west": UP, "which way?": UP})
    with pytest.raises(ConfigurationError, match="indexed with old"):
        await found(new, "which way?")
    assert await run(new) == reindex.Report(facts=2, texts=2, embedded=2, switched=True)
    assert await found(new, "which way?") == ["west"]
    with pytest.raises(ConfigurationError, match="indexed with new"):
        await found(old, "which way?")
    assert await run(new) == reindex.Report(facts=2, texts=2, embedded=0, switched=False)
    assert (await run(old)).switched
    assert await found(old, "which way?") == ["east"]


async def test_a_writer_of_the_old_model_goes_on_until_the_switch_and_its_fact_is_embedded(store: Database) -> None:
    old = brain_on(store, embedder=LocalHash())
    await remember(old, Draft(text="The archive is in Bergen", key="first"))
    new = moved(old, vectors={"The archive is in Bergen": UP, "The archive moved to Oslo": RIGHT})

    async def meanwhile() -> None:
        await remember(old, Draft(text="The archive moved to Oslo", key="second"))
        assert (await found(old, "archive Oslo"))[:1] == ["second"]
        with pytest.raises(ConfigurationError) as refused:
            await found(new, "archive Oslo")
        assert "brain reindex" in refused.value.hint

    assert isinstance(new.embedder, Watching)
    new.embedder.during = meanwhile
    assert (await run(new)).embedded == 2
    assert {"The archive is in Bergen", "The archive moved to Oslo"} <= set(new.embedder.asked)
    with pytest.raises(ConfigurationError, match="indexed with new"):
        await remember(old, "Too late")


async def test_progress_counts_what_an_earlier_run_did_and_equal_texts_once(store: Database) -> None:
    old = brain_on(store)
    await remember(old, *TEXTS[:5], Draft(text=TEXTS[0], key="again", scope="lane:work"))
    await ask(old, "forget_memory", ref=TEXTS[1], reason="test")
    new = moved(old, vectors=dict.fromkeys(TEXTS, UP))
    told: list[tuple[int, int]] = []
    report = await run(new, batch=2, progress=lambda done, total: told.append((done, total)))
    assert report == reindex.Report(facts=6, texts=5, embedded=5, switched=True)
    assert told == [(0, 5), (2, 5), (4, 5), (5, 5)]


async def test_a_model_that_fails_leaves_the_brain_as_it_was(store: Database) -> None:
    old = brain_on(store)
    await remember(old, Draft(text="The archive is in Bergen", key="first"))
    new = moved(old, failing=True)
    with pytest.raises(Unavailable):
        await run(new)
    assert await found(old, "archive") == ["first"]


async def test_a_text_without_a_usable_vector_does_not_hold_up_the_switch(store: Database) -> None:
    old = brain_on(store)
    await remember(old, Draft(text="…!?", key="odd"))
    assert (await run(moved(old))).switched
    assert (await ask(moved(old), "get_status")).data["facts_without_vector"] == 0


async def test_a_brain_without_facts_has_nothing_to_change(store: Database) -> None:
    assert await run(moved(brain_on(store))) == reindex.Report(facts=0, texts=0, embedded=0, switched=False)


async def test_words_of_another_analysis_are_never_taken_for_those_of_this_one(store: Database) -> None:
    old = brain_on(store)
    await remember(old, Draft(text="The archive is in Bergen", key="first"))

    async def downgrade(work: Work) -> None:
        await work.run("UPDATE embedding_models SET analysis = 0 WHERE namespace = %(namespace)s", {})

    await old.write(downgrade)
    for refused in (found(old, "archive"), run(old)):
        with pytest.raises(ConfigurationError, match="analysis 0"):
            await refused


# --- as a process


@contextmanager
def provider(*script: stub_provider.Answer) -> Iterator[stub_provider.Stub]:
    with stub_provider.serving(*script) as stub:
        yield stub


def settings_of(stub: stub_provider.Stub, **more: str) -> dict[str, str]:
    return {
        "BRAIN_EMBEDDER": "openai",
        "BRAIN_EMBED_URL": stub.url,
        "BRAIN_EMBED_MODEL": "stub",
        "BRAIN_EMBED_DIMENSIONS": "4",
        **more,
    }


def brain(environment: dict[str, str], *arguments: str) -> Any:
    """Run a command that must work, and return its data."""
    done = subprocess.run(
        [*COMMAND, *arguments, "--json"], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    told = json.loads(done.stdout)
    return told["data"] if told["ok"] else told["error"]


def fill(dsn: str) -> None:
    async def job() -> None:
        opened = Database(Settings(database_url=SecretStr(dsn)))
        await remember(brain_on(opened, namespace="default"), *TEXTS)
        await opened.close()

    runtime.run(job)


def test_a_run_that_was_killed_goes_on_where_it_stopped(dsn: str, environment: dict[str, str]) -> None:
    fill(dsn)
    third = threading.Event()
    well = stub_provider.well("openai")

    def hanging(request: stub_provider.Request) -> stub_provider.Reply:
        third.set()
        return stub_provider.Reply(hang=True)

    with provider(well, well, hanging) as stub:
        process = subprocess.Popen([*COMMAND, "reindex"], env=environment | settings_of(stub))
        assert third.wait(60)
        late = brain(environment, "remember", "Written meanwhile", "--key", "late")
        assert late["outcome"] == "created"
        process.kill()
        process.wait(30)
        first = [text for texts in stub.texts()[:2] for text in texts]
    assert [hit["key"] for hit in brain(environment, "search", "written meanwhile")["hits"]] == ["late"]
    with provider(well) as stub:
        new = environment | settings_of(stub)
        refused = brain(new, "search", "archive")
        assert (refused["code"], refused["hint"]) == ("configuration", "Run: brain reindex")
        stub.requests.clear()
        planned = brain(new, "reindex", "--dry-run")
        assert (planned["texts"], planned["requests"], stub.requests) == (73, 2, [])
        assert planned["characters"] == sum(map(len, {*TEXTS, "Written meanwhile"} - set(first)))
        data = brain(new, "reindex")
        assert (data["texts"], data["embedded"], data["switched"]) == (201, 73, True)
        assert data["index"]["state"] == "not_needed"
        again = [text for texts in stub.texts() for text in texts]
        assert sorted([*first, *again]) == sorted([*TEXTS, "Written meanwhile"])
        assert brain(new, "search", "written meanwhile")["hits"][0]["key"] == "late"
    assert brain(environment, "search", "archive")["code"] == "configuration"


def test_an_index_is_built_when_it_is_asked_for(dsn: str, environment: dict[str, str]) -> None:
    fill(dsn)
    with provider(stub_provider.well("openai")) as stub:
        data = brain(environment | settings_of(stub), "reindex", "--index")
    assert (data["facts"], data["index"]) == (200, {"state": "ready", "reason": ""})
