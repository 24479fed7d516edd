"""Every SQL statement is planned once as the application's role, so that a drifted column fails at once."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from brain import runtime
from brain.embedders.local_hash import LocalHash
from brain.errors import NotFound
from brain.layers import LAYERS
from brain.names import Scope
from brain.repository import audit, memory, models, scopes, status, versions, visibility
from brain.repository import search as queries
from brain.runtime import Brain
from brain.services import amendments, backfill, history, records, search, session, trail
from brain.services import status as services
from brain.work import Work, named_queries
from tests import factories

FILES = sorted(entry.name.removesuffix(".sql") for entry in files("brain.sql").iterdir() if entry.name.endswith(".sql"))
DERIVED = [
    "namespaces",
    "scopes",
    "postings",
    r"memory_(closed|timed)",
    r"\w+_visible",
    r"embedding\w+",
    "calibrations",
]
TABLES = [*(layer.table for layer in LAYERS.values()), *DERIVED]
NAMED = [(file, name) for file in FILES for name in named_queries(file)]


async def drive(brain: Brain) -> None:
    """Call everything that runs SQL, on data that makes each take its branches."""
    await factories.one_of_each(brain)
    await factories.fact(brain, "Kestrel exports with Postgres.", key="export", tags=["kestrel"])
    await factories.fact(brain, "With Postgres, Kestrel exports.")
    await factories.pin(brain, scope="project:kestrel")
    await change(brain)
    await factories.fact(replace(brain, embedder=factories.Unreachable()), "No vector yet.")
    await brain.read(legs)
    await backfill.run(brain.read, brain.write, brain.embedder)
    await read(factories.as_caller(brain, project=Scope("project", "kestrel")))
    await brain.write(switch_models)


async def change(brain: Brain) -> None:
    importing = factories.as_caller(brain, origin="import")
    await factories.pin(brain, "Sent.", expected_version=1)
    await factories.record(brain, value="1")
    await factories.fact(brain, "Kestrel exports by hand.", key="export")
    await factories.fact(
        importing, "Kestrel exported to files.", key="export", known_at=factories.instant("2024-01-01 00:00")
    )
    await factories.fact(brain, "Kestrel exports to a lake.", key="lake", supersedes="export")
    await factories.fact(brain, "Kestrel rents a lake.", key="rent", valid_to="2199-01-01")
    await brain.write(lambda work: amendments.forget(work, name="lake", reason="x"))
    await brain.write(lambda work: amendments.restore(work, name="lake"))


async def read(brain: Brain) -> None:
    for options in ({}, {"kinds": ["fact"]}, {"mode": "strict"}, {"scope": "all"}):
        await ask(brain, "Kestrel exports", **options)
    for name in ("export", "lake", "pin:global", "friction:x"):
        found = await brain.read(lambda work, name=name: quietly(history.of(work, name, for_human=True)))  # type: ignore[misc]
        assert found or name == "friction:x"
    await brain.read(lambda work: trail.walk(work, entity="kestrel"))
    await brain.read(lambda work: records.read(work, kind="invoice"))
    await brain.read(lambda work: session.start(work, since="2020-01-01"))
    for axis in audit.QUERIES:
        await brain.read(lambda work, axis=axis: audit.writes(work, axis=axis))  # type: ignore[misc]
    await brain.read(scopes.overview)
    await brain.read(lambda work: services.overview(work, brain.embedder))
    await brain.read(lambda work: services.checks(work, brain.embedder))


async def ask(brain: Brain, query: str, **options: Any) -> None:
    prepared = await search.prepare(brain.embedder, search.Question(query=query, **options))
    await brain.read(lambda work: search.run(work, prepared))


async def quietly(job: Awaitable[Any]) -> Any:
    try:
        return await job
    except NotFound:
        return None


async def legs(work: Work) -> None:
    """Call both legs of the search, and what completes the other leg's hits."""
    numbers = await scopes.known(work)
    visible = queries.Visible(scopes=list(numbers), numbers=list(numbers.values()), valid_at=work.as_of)
    asked, model = memory.vector_text([1.0] * LocalHash().dimensions), LocalHash().model
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "_SCAN_RATIO", 1_000.0)
        await queries.lexical(work, visible, ["by", "hand", "kestrel"], floor=0.9, depth=10)
    for general in (False, True):
        found = await queries.lexical(work, visible, ["kestrel"], floor=0.5, depth=10, general=general)
    docs = [hit.doc for hit in found.hits]
    assert docs
    rest = {"weights": found.weights, "asked": asked, "model": model, "unread": docs, "unseen": docs}
    looked_up = await queries.details(work, visible, docs, **rest)
    assert [row.score for row in looked_up.values()] == [
        hit.score for hit in sorted(found.hits, key=lambda hit: hit.doc)
    ]
    assert all(row.cosine for row in looked_up.values())
    rows = await queries.searched(work, visible)
    assert rows > len(docs)
    exact = await queries.compared(work, visible, asked, model=model, depth=10)
    assert await queries.compared(work, replace(visible, whole=True), asked, model=model, depth=10) == exact
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "EXACT_ROWS", 0)
        walked, _ = await queries.vector(work, visible, asked, model=model, depth=10, rows=rows, indexed=True)
        assert walked == exact
    assert await queries.without_vector(work, visible, model=model) == 1


async def switch_models(work: Work) -> None:
    await models.extent(work, "other")
    await memory.sample(work, "global", 10)
    await models.add_calibration(work, "other", 1, models.Calibration(0.5, 1, 1, 1, 0))
    await models.missing_texts(work, "other", 10)
    await models.vectors(work, "other", most=10)
    await models.activate(work, models.Model("other", 3, 1))
    await status.pending_texts(work, "other", 10)
    for layer in LAYERS.values():
        await versions.newest(work, layer, "none")
        await versions.history(work, layer, "none")
        await versions.listing(work, layer, scopes=["global"], limit=1)
        if layer.valid_time:
            await visibility.rebuild(work, layer, "none")
            await visibility.mismatched_keys(work, layer)
    work.stamped = None


@pytest.fixture(scope="module")
def planned(module_dsn: str) -> dict[str, list[str]]:
    """Every statement that ran, with its plan."""
    plans: dict[str, list[str]] = {}
    run = Work._run

    async def explain(work: Work, query: str, params: Mapping[str, Any] | None) -> None:
        if query not in plans:
            role = await (await work.connection.execute("SELECT current_user")).fetchone()
            assert role == ("brain_app",)
            given = {"namespace": work.namespace, "as_of": work.as_of, **(params or {})}
            cursor = await work.connection.execute(f"EXPLAIN {query}".encode(), given)
            plans[query] = [line for (line,) in await cursor.fetchall()]

    async def explained_run(work: Work, cursor: Any, query: str, params: Mapping[str, Any], *under: Any) -> Any:
        await explain(work, query, params)
        return await run(work, cursor, query, params, *under)

    async def main() -> None:
        brain = factories.brain_on(module_dsn)
        await drive(brain)
        await brain.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Work, "_run", explained_run)
        runtime.run(main)
    return plans


def uncommented(query: str) -> str:
    return "\n".join(line for line in query.splitlines() if not line.startswith("--"))


def pattern(block: str) -> re.Pattern[str]:
    """A named query with anything in place of what code puts in."""
    return re.compile(".*".join(re.escape(part) for part in re.split(r"\{\w+\}", uncommented(block))), re.DOTALL)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_named_query_is_planned_as_the_application(planned: dict[str, list[str]], file: str, name: str) -> None:
    wanted = pattern(named_queries(file)[name])
    assert any(wanted.search(uncommented(query)) for query in planned)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("compose", [versions.visible_from, versions.history_query, versions.insert_query])
def test_every_composed_query_is_planned_for_every_layer(
    planned: dict[str, list[str]], layer: Any, compose: Callable[[Any], str]
) -> None:
    wanted = compose(layer)
    assert any(wanted in query for query in planned)


@pytest.mark.parametrize("layer", [each for each in LAYERS.values() if each.valid_time], ids=lambda each: each.name)
@pytest.mark.parametrize("verb", ["INSERT INTO", "UPDATE", "DELETE FROM"])
def test_every_change_of_the_rectangles_is_planned(planned: dict[str, list[str]], layer: Any, verb: str) -> None:
    assert any(query.startswith(f"{verb} {layer.table}_visible") for query in planned)


def test_the_audit_is_planned_over_every_layer(planned: dict[str, list[str]]) -> None:
    assert all(f"FROM {layer.table} t" in query for layer in LAYERS.values() for query in audit.QUERIES.values())
    assert set(audit.QUERIES.values()) <= set(planned)


def test_every_plan_is_bound_to_the_namespace(planned: dict[str, list[str]]) -> None:
    """The policy's filter, or the query's own predicate, stands in every plan that reads a table."""
    unbound = [
        query
        for query, plan in planned.items()
        if any(re.search(rf"Scan.* on ({'|'.join(TABLES)})( |$)", line) for line in plan)
        and not any("brain.namespace" in line for line in plan)
    ]
    assert unbound == []
