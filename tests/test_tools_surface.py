"""The tool surface as clients meet it: what is listed, what every tool accepts, answers and refuses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import mcp
import psycopg
import pytest
from mcp_types import CallToolResult
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from brain.errors import BrainError, InvalidInput
from brain.runtime import Brain
from brain.tools import catalogue
from brain.tools.protocol import NAME_LIMIT, build_server
from tests.memories import TOOLS, accepted, ask, brain_on, furnish

PREFIX = "mcp__plugin_structured-memory_memory__"
ALL = pytest.mark.parametrize("name", TOOLS)
READING = [name for name, tool in TOOLS.items() if tool.reads_only]
TYPES = {"string", "integer", "number", "boolean", "array", "object"}
KEYS = {"type", "description", "enum", "default", "items", "properties", "required", "additionalProperties"}
BOUNDS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}


@pytest.fixture(scope="module")
async def store(module_dsn: str) -> AsyncIterator[Database]:
    opened = Database(Settings(database_url=SecretStr(module_dsn)))
    yield opened
    await opened.close()


@pytest.fixture
async def brain(store: Database) -> Brain:
    """A brain with a row of each layer, asked by a model."""
    brain = brain_on(store, origin="model")
    await furnish(brain)
    return brain


@pytest.fixture(scope="module")
async def steady(store: Database) -> Brain:
    """The same for tests whose calls change nothing."""
    brain = brain_on(store, origin="model")
    await furnish(brain)
    return brain


async def call(brain: Brain, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
    server = build_server(catalogue.ALL, lambda peer: brain, instructions=catalogue.INSTRUCTIONS)
    async with mcp.Client(server) as client:
        return await client.call_tool(tool, dict(arguments))


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    return str(block.text)  # type: ignore[union-attr]


async def listed() -> list[dict[str, Any]]:
    server = build_server(catalogue.ALL, lambda peer: None, instructions=catalogue.INSTRUCTIONS)
    async with mcp.Client(server) as client:
        assert client.instructions == catalogue.INSTRUCTIONS
        tools = (await client.list_tools()).tools
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema with those of its properties and items."""
    yield schema
    for child in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
        yield from schemas(child)


# --- what is listed


async def test_the_list_is_short_enough_for_every_client() -> None:
    tools = await listed()
    assert [tool["name"] for tool in tools] == list(TOOLS)
    assert len(json.dumps({"tools": tools}, ensure_ascii=False)) < 24_000
    assert len(catalogue.INSTRUCTIONS) < 2_000


@ALL
def test_a_name_fits_under_the_longest_prefix(name: str) -> None:
    assert len(name) <= NAME_LIMIT == 26
    assert len(PREFIX + name) <= 64
    assert name.isascii()
    assert name.replace("_", "").isalnum()
    assert name == name.lower()


async def test_every_schema_is_flat_and_closed_and_every_hint_is_set() -> None:
    for tool in await listed():
        root = tool["inputSchema"]
        assert root["type"] == "object"
        assert "outputSchema" not in tool
        assert tool["title"]
        assert tool["description"].endswith(".")
        for schema in schemas(root):
            assert schema["type"] in TYPES
            assert set(schema) <= KEYS | BOUNDS
            if schema["type"] == "object":
                assert schema["additionalProperties"] is False
                assert set(schema.get("required", [])) <= set(schema["properties"])
            if schema["type"] == "array":
                assert all(each["type"] != "array" for each in schema["items"].get("properties", {}).values())
        assert "null" not in json.dumps(root)
        hints = tool["annotations"]
        names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        assert all(isinstance(hints[each], bool) for each in names)
        assert not (hints["readOnlyHint"] and hints["destructiveHint"])
        assert hints["openWorldHint"] is False


@ALL
def test_every_argument_says_what_it_is_for(name: str) -> None:
    for argument, schema in TOOLS[name].schema["properties"].items():
        assert schema.get("description"), argument


def test_the_instructions_name_only_tools_that_exist() -> None:
    words = {word.strip(".,:;()") for word in catalogue.INSTRUCTIONS.split()}
    named = {word for word in words if "_" in word and word not in ("blocked_on",)}
    assert named <= set(TOOLS)
    assert "get_session_continuation" in named


def test_nothing_lets_the_model_say_who_it_is_or_which_brain_it_means() -> None:
    for tool in TOOLS.values():
        names = {name for schema in schemas(tool.schema) for name in schema.get("properties", {})}
        assert not names & {"namespace", "origin", "client", "session", "model", "known_at", "known_from", "layer"}


# --- calls


@ALL
async def test_null_for_every_optional_argument_is_the_same_as_leaving_it_out(brain: Brain, name: str) -> None:
    chosen = accepted(TOOLS[name])
    nulls = dict.fromkeys(TOOLS[name].schema["properties"])
    result = await call(brain, name, nulls | chosen)
    if name == "retire_constraint":
        assert text_of(result) == "ref constraint:none names no constraint."
        return
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    json.loads(json.dumps(result.structured_content))


@pytest.mark.parametrize("name", READING)
async def test_a_reading_tool_answers_an_empty_brain_without_failing(store: Database, name: str) -> None:
    result = await call(brain_on(store), name, accepted(TOOLS[name]))
    if result.is_error:
        assert "ref" in text_of(result) or "page" in text_of(result)
        assert result.structured_content is None
    else:
        assert text_of(result)
        assert result.structured_content is not None


@ALL
async def test_an_unknown_argument_is_refused_and_nothing_is_done(steady: Brain, name: str) -> None:
    result = await call(steady, name, accepted(TOOLS[name]) | {"zzz_unknown": 1})
    assert result.is_error
    assert result.structured_content is None
    assert f"{name} has no argument 'zzz_unknown'." in text_of(result)


@ALL
async def test_a_missing_argument_is_named(steady: Brain, name: str) -> None:
    for missing in TOOLS[name].schema.get("required", []):
        chosen = {key: value for key, value in accepted(TOOLS[name]).items() if key != missing}
        result = await call(steady, name, chosen)
        assert result.is_error
        assert text_of(result).startswith(f"{name} needs {missing}")


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        (
            "read_memory",
            {"query": "x", "sinse": "2026-01-01"},
            "read_memory has no argument 'sinse'. Did you mean since?",
        ),
        ("write_memory", {"txt": "x"}, "write_memory has no argument 'txt'. Did you mean text?"),
        ("set_pin", {"state": "x", "scop": "global"}, "set_pin has no argument 'scop'. Did you mean scope?"),
        ("read_memroy", {"query": "x"}, "There is no tool 'read_memroy'. Did you mean read_memory?"),
    ],
)
async def test_a_slip_is_answered_with_the_nearest_name(
    steady: Brain, name: str, arguments: dict[str, Any], sentence: str
) -> None:
    result = await call(steady, name, arguments)
    assert (result.is_error, text_of(result)) == (True, sentence)


async def test_an_argument_of_another_product_is_refused(steady: Brain) -> None:
    result = await call(steady, "set_pin", {"state": "x", "lanes": "work"})
    assert result.is_error
    assert "set_pin has no argument 'lanes'" in text_of(result)


# --- text


def with_bad_text(schema: dict[str, Any], bad: str) -> Iterator[tuple[str, Any]]:
    """Each argument of a tool that takes text, with that text in it, and where it will be named."""
    for name, prop in schema["properties"].items():
        if prop["type"] == "string":
            yield name, bad
        elif prop["type"] == "array" and prop["items"]["type"] == "string":
            yield name, ["fine", bad]
        elif prop["type"] == "array":
            item = prop["items"]
            for inner, inner_schema in item["properties"].items():
                if inner_schema["type"] == "string":
                    yield name, [dict.fromkeys(item.get("required", []), "fine") | {inner: bad}]


@ALL
@pytest.mark.parametrize("bad", ["a\x00b", "trip \ud83d", "\udfff"])
async def test_text_that_cannot_be_stored_is_refused_in_every_argument(steady: Brain, name: str, bad: str) -> None:
    before = (await ask(steady, "get_status")).data["visible_rows"]
    for argument, value in with_bad_text(TOOLS[name].schema, bad):
        with pytest.raises(InvalidInput) as refused:
            await ask(steady, name, **(accepted(TOOLS[name]) | {argument: value}))
        assert refused.value.field.startswith(argument)
        assert ("NUL" in refused.value.message) is ("\x00" in bad)
        refused.value.message.encode()
    assert (await ask(steady, "get_status")).data["visible_rows"] == before


async def test_a_bad_string_leaves_the_connection_in_order(brain: Brain) -> None:
    server = build_server(catalogue.ALL, lambda peer: brain)
    async with mcp.Client(server) as client:
        refused = await client.call_tool("write_memory", {"text": "nul \x00"})
        assert refused.is_error
        fine = await client.call_tool("write_memory", {"text": "the six characters \\u0000 stay"})
        assert fine.structured_content is not None
        assert fine.structured_content["row"]["text"] == "the six characters \\u0000 stay"


JSON_SHAPED = ["null", "true", "123", '{"a":1}', '["a", 1]', '"quoted"', " padded ", "1e5", "line\r\nline\n"]


@pytest.mark.parametrize("text", JSON_SHAPED)
async def test_text_that_looks_like_json_round_trips_byte_for_byte(store: Database, text: str) -> None:
    brain = brain_on(store, origin="model")
    calls: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
        ("write_memory", {"text": text, "key": "k", "title": text, "reference": text, "said": text},
         ("text", "title", "reference", "said")),
        ("write_wiki", {"page": "Kestrel", "body": text, "summary": text}, ("body", "summary")),
        ("log_record", {"kind": "note", "title": "Marlow", "date": "2026-01-01", "source": text}, ("source",)),
        ("set_constraint", {"rule": text, "said": text, "reason": text}, ("rule", "said", "reason")),
        ("set_pin", {"state": text, "next": text, "blocked_on": text, "scope": "lane:work"},
         ("state", "next", "blocked_on")),
        ("touch_thread", {"key": "tax", "title": "Tax", "note": text}, ("note",)),
        ("amend_memory", {"ref": "k", "expected_version": 1, "importance": 5, "reason": text}, ("reason", "text")),
    ]  # fmt: skip
    for tool, arguments, kept in calls:
        result = await call(brain, tool, arguments)
        assert result.structured_content is not None, text_of(result)
        assert {name: result.structured_content["row"][name] for name in kept} == dict.fromkeys(kept, text)
    shown = await call(brain, "get_memory", {"ref": "k"})
    assert shown.structured_content is not None
    assert shown.structured_content["memory"]["text"] == text
    found = await call(brain, "read_memory", {"query": text})
    assert found.structured_content is not None
    assert [hit["key"] for hit in found.structured_content["hits"]] == ["k"]


# --- transactions


class Watched:
    """A database that takes part in reads only, and notes in which mode they ran."""

    def __init__(self, real: Database) -> None:
        self._real = real
        self.modes: list[str] = []

    async def read(self, caller: Any, job: Any, *, as_of: Any = None) -> Any:
        async def noted(work: Any) -> Any:
            self.modes += await work.values("SHOW transaction_read_only", {})
            return await job(work)

        return await self._real.read(caller, noted, as_of=as_of)

    async def write(self, caller: Any, job: Any) -> Any:
        raise AssertionError("a reading tool opened a writing transaction")


@pytest.mark.parametrize("name", READING)
async def test_a_reading_tool_runs_in_a_read_only_transaction(steady: Brain, name: str) -> None:
    watched = Watched(steady.database)
    await ask(replace(steady, database=cast(Any, watched)), name, **accepted(TOOLS[name]))
    assert set(watched.modes) == {"on"}


@pytest.mark.parametrize("name", [name for name in TOOLS if name not in READING])
async def test_a_read_only_process_refuses_every_writing_tool(steady: Brain, name: str) -> None:
    reader = replace(steady, caller=replace(steady.caller, read_only=True))
    with pytest.raises(BrainError, match="read-only"):
        await ask(reader, name, **accepted(TOOLS[name]))


# --- what errors show

SECRET = "hunter2"
LEAKS = (
    SECRET, "postgres", "psycopg", "SELECT", "INSERT", "UPDATE", "relation", "127.0.0.1", "localhost", "brain_app",
    "Traceback", "Error(", "://",
)  # fmt: skip


@ALL
async def test_a_database_that_is_away_is_one_sentence_without_its_address(name: str) -> None:
    url = SecretStr(f"postgresql://someone:{SECRET}@127.0.0.1:1/nothing")
    away = Database(Settings(database_url=url, connect_timeout_seconds=1))
    try:
        result = await call(brain_on(away), name, accepted(TOOLS[name]))
    finally:
        await away.close()
    assert result.is_error
    assert not [leak for leak in LEAKS if leak in text_of(result)], text_of(result)
    assert "reached" in text_of(result)


async def test_an_internal_error_shows_an_id_and_nothing_of_the_database(dsn: str) -> None:
    database = Database(Settings(database_url=SecretStr(dsn)))
    brain = brain_on(database, origin="model")
    await furnish(brain)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ALTER TABLE memory RENAME TO elsewhere")
        connection.execute("ALTER TABLE pins RENAME COLUMN state TO condition")
    failed = 0
    try:
        for name, tool in TOOLS.items():
            result = await call(brain, name, accepted(tool))
            if result.is_error:
                failed += text_of(result).startswith("Internal error ")
                assert not [leak for leak in LEAKS if leak in text_of(result)], text_of(result)
    finally:
        await database.close()
    assert failed >= 5


async def test_text_of_another_namespace_reaches_no_answer_and_no_error(store: Database) -> None:
    other, brain = brain_on(store, origin="model"), brain_on(store, origin="model")
    refs = await furnish(other)
    await ask(other, "write_memory", text=f"{SECRET} of another brain", key="kestrel-db")
    await ask(other, "write_wiki", page="Secret page", body=SECRET)
    for name, tool in TOOLS.items():
        for arguments in (accepted(tool), accepted(tool) | {"expected_version": 7}, *_pointing(tool, refs)):
            if set(arguments) <= set(tool.schema["properties"]):
                result = await call(brain, name, arguments)
                assert SECRET not in text_of(result) + json.dumps(result.structured_content)


def _pointing(tool: Any, refs: Mapping[str, str]) -> list[dict[str, Any]]:
    calls = [accepted(tool) | {"ref": ref} for ref in refs.values()]
    if "page" in tool.schema["properties"]:
        calls.append(accepted(tool) | {"page": "Secret page"})
    return calls
