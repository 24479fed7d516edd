"""Tools as a client sees them: schemas that every client accepts, checked arguments, clean answers."""

from __future__ import annotations

import datetime
import decimal
import json
import logging
import uuid
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Literal

import anyio
import mcp
import pytest
from mcp_types import CallToolResult
from pydantic import Field, field_validator

from brain.errors import Conflict, InvalidInput, NotFound
from brain.tools.outgoing import CURRENT_CONTENT_LIMIT, error_text, one_line, plain
from brain.tools.protocol import NAME_LIMIT, Result, Tool, build_server, guarded, reading_tools, size
from brain.tools.schema import Arguments, NotFlatError, flat_schema, parse_arguments
from tests.dummy_tools import TOOLS, DummySession, EchoArguments, NoArguments, echo

REFUSED_BY_SOME_CLIENT = ("anyOf", "oneOf", "allOf", "$ref", "$defs", "const", "not", "title", "format", "null")
JSON_SHAPED = ["null", "true", "123", '{"a":1}', '["a"]', "1e5", '"quoted"', " padded ", ""]


class Kind(StrEnum):
    FACT = "fact"
    EVENT = "event"


class Claim(Arguments):
    layer: Literal["pin", "wiki"]
    value: str = Field("", description="What it says.")


class Everything(Arguments):
    text: str = Field(description="The fact. One a write.", min_length=1, max_length=50)
    kind: Kind = Kind.FACT
    only: Literal["x"] = "x"
    limit: int = Field(10, ge=1, le=50, description="How many.")
    share: float | None = Field(None, ge=0, le=1)
    least: int = Field(0, ge=0)
    tags: list[str] = Field(default_factory=list, max_length=3)
    kinds: list[Kind] = Field(default_factory=list)
    claims: list[Claim] = Field(default_factory=list)
    flag: bool = False
    note: str | None = None

    @field_validator("note")
    @classmethod
    def _no_shouting(cls, value: str | None) -> str | None:
        if value and value.isupper():
            raise ValueError("note must not be all capitals")
        return value


SCHEMA = flat_schema(Everything)


def parse(**raw: Any) -> Everything:
    return parse_arguments(Everything, SCHEMA, raw, tool="write_memory")


def refusal(**raw: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        parse(**raw)
    return error_text(caught.value)


def nodes(schema: Any) -> Iterator[Any]:
    yield schema
    for child in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from nodes(child)


def test_a_schema_has_one_type_a_property_and_nothing_that_a_client_refuses() -> None:
    for schema in (SCHEMA, *(tool.schema for tool in TOOLS)):
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert all(isinstance(prop["type"], str) for prop in schema["properties"].values())
        keys = {key for node in nodes(schema) if isinstance(node, dict) for key in node}
        assert not keys & set(REFUSED_BY_SOME_CLIENT)
        assert "null" not in json.dumps(schema)


def test_descriptions_enums_bounds_and_plain_defaults_are_kept() -> None:
    properties = SCHEMA["properties"]
    assert properties["text"]["description"] == "The fact. One a write."
    assert properties["kind"] == {"type": "string", "enum": ["fact", "event"], "default": "fact"}
    assert properties["only"] == {"type": "string", "enum": ["x"], "default": "x"}
    assert properties["share"] == {"type": "number", "minimum": 0, "maximum": 1}
    assert properties["note"] == {"type": "string"}
    assert properties["claims"]["items"] == {
        "type": "object",
        "properties": {
            "layer": {"type": "string", "enum": ["pin", "wiki"]},
            "value": {"type": "string", "description": "What it says."},
        },
        "required": ["layer"],
        "additionalProperties": False,
    }
    assert SCHEMA["required"] == ["text"]


class Union(Arguments):
    value: int | str = ""


class NullableRequired(Arguments):
    value: str | None


class Mapping(Arguments):
    value: dict[str, str] = Field(default_factory=dict)


class Nested(Arguments):
    value: Claim


class ListOfLists(Arguments):
    value: list[list[str]] = Field(default_factory=list)


class DeepItem(Arguments):
    inner: list[Claim] = Field(default_factory=list)


class Deep(Arguments):
    value: list[DeepItem] = Field(default_factory=list)


class Instant(Arguments):
    value: datetime.datetime


class Money(Arguments):
    value: decimal.Decimal


class Numbers(Arguments):
    value: Literal[1, 2] = 1


@pytest.mark.parametrize(
    "model",
    [Union, NullableRequired, Mapping, Nested, ListOfLists, Deep, Instant, Money, Numbers],
    ids=lambda m: m.__name__,
)
def test_a_model_without_a_flat_schema_is_refused_when_the_tool_is_defined(model: type[Arguments]) -> None:
    with pytest.raises(NotFlatError, match=model.__name__):
        Tool("tool", "Tool", "Does it.", model, echo, reads_only=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "Echo", "write-wiki", "a" * (NAME_LIMIT + 1), "1st", "schön"])
def test_a_tool_name_that_some_client_refuses_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="Tool name"):
        Tool(name, "Title", "Does it.", NoArguments, echo, reads_only=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", JSON_SHAPED[:-1])
def test_text_that_looks_like_json_stays_text_byte_for_byte(text: str) -> None:
    assert parse(text=text).text == text
    assert parse(text="x", note=text).note == text
    assert parse(text="x", tags=[text]).tags == [text]


def test_null_counts_as_absent_for_every_optional_argument() -> None:
    optional = {name: None for name in SCHEMA["properties"] if name != "text"}
    assert parse(text="x", **optional) == parse(text="x")
    assert parse(text="x", claims=[{"layer": "pin", "value": None}]).claims == [Claim(layer="pin")]


def test_null_for_a_required_argument_is_a_missing_argument() -> None:
    assert refusal(text=None) == refusal() == "write_memory needs text (text of 1 to 50 characters). The fact."


def test_a_missing_field_of_a_listed_object_is_named_with_its_place() -> None:
    assert refusal(text="x", claims=[{"layer": "pin"}, {}]) == "claims[1] needs layer (one of pin, wiki)."


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"limit": "3"}, {"limit": 3}),
        ({"limit": 3.0}, {"limit": 3}),
        ({"share": "0.5"}, {"share": 0.5}),
        ({"flag": "true"}, {"flag": True}),
        ({"flag": 1}, {"flag": True}),
        ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
        ({"claims": '[{"layer": "pin"}]'}, {"claims": [Claim(layer="pin")]}),
        ({"text": 1200}, {"text": "1200"}),
        ({"text": -7}, {"text": "-7"}),
    ],
)
def test_what_models_often_send_is_understood(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    parsed = parse(**({"text": "x"} | raw)).model_dump()
    assert {name: parsed[name] for name in expected} == {
        name: [item.model_dump() for item in value] if name == "claims" else value for name, value in expected.items()
    }


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"text": 1200.5}, 'text takes text; write it in quotes, such as "1200.50". The fact.'),
        ({"text": True}, 'text takes text; write it in quotes, such as "1200.50". The fact.'),
        ({"text": ["x"]}, 'text takes text; write it in quotes, such as "1200.50". The fact.'),
        ({"text": 10**50}, 'text takes text; write it in quotes, such as "1200.50". The fact.'),
        ({"text": ""}, "text takes text of 1 to 50 characters. The fact."),
        ({"limit": 51}, "limit takes a whole number from 1 to 50. How many."),
        ({"limit": 3.5}, "limit takes a whole number from 1 to 50. How many."),
        ({"limit": "many"}, "limit takes a whole number from 1 to 50. How many."),
        ({"limit": True}, "limit takes a whole number from 1 to 50. How many."),
        ({"least": -1}, "least takes a whole number of at least 0."),
        ({"share": 2}, "share takes a number from 0 to 1."),
        ({"share": float("nan")}, "share takes a number from 0 to 1."),
        ({"flag": "perhaps"}, "flag takes true or false."),
        ({"kind": "opinion"}, "kind takes one of fact, event."),
        ({"kinds": ["fact", "opinion"]}, "kinds[1] takes one of fact, event."),
        ({"tags": "a"}, "tags takes a list of text of at most 3 items."),
        ({"tags": '{"a":1}'}, "tags takes a list of text of at most 3 items."),
        ({"tags": ["a", "b", "c", "d"]}, "tags takes a list of text of at most 3 items."),
        ({"claims": ["x"]}, "claims[0] takes objects with layer and value."),
        ({"note": "LOUD"}, "note: note must not be all capitals."),
    ],
)
def test_a_wrong_argument_is_refused_in_one_sentence_that_shows_the_form(raw: dict[str, Any], sentence: str) -> None:
    assert refusal(**({"text": "x"} | raw)) == sentence


@pytest.mark.parametrize("bad", ["a\ud800b", "\udfff", "nul\x00"])
def test_text_that_cannot_be_stored_is_refused_by_the_argument_it_is_in(bad: str) -> None:
    assert refusal(text=bad).startswith("text ")
    assert refusal(text="x", tags=["fine", bad]).startswith("tags[1] ")
    assert refusal(text="x", claims=[{"layer": "pin", "value": bad}]).startswith("claims[0].value ")
    assert refusal(**{"text": "x", bad: "y"}).isprintable()


def test_an_unknown_argument_is_refused_with_the_nearest_name() -> None:
    assert refusal(text="x", limmit=3) == "write_memory has no argument 'limmit'. Did you mean limit?"
    assert refusal(text="x", claims=[{"layr": "pin"}]) == "claims[0] has no argument 'layr'. Did you mean layer?"


def test_an_unknown_argument_like_no_other_is_refused_with_all_names() -> None:
    assert refusal(text="x", zzz=None).endswith(f"It takes {', '.join([*SCHEMA['properties']][:-1])} and note.")


def test_a_long_unknown_name_is_not_echoed_whole() -> None:
    assert len(refusal(text="x", **{"y" * 5_000: 1})) < 250


def call(name: str, arguments: dict[str, Any], mode: Any = "auto", **options: Any) -> CallToolResult:
    async def session() -> CallToolResult:
        async with mcp.Client(build_server(TOOLS, DummySession, **options), mode=mode) as client:
            return await client.call_tool(name, arguments)

    return anyio.run(session)


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    return str(block.text)  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_is_listed_with_all_annotations_and_no_output_schema(mode: Any) -> None:
    async def session() -> dict[str, Any]:
        server = build_server(TOOLS, DummySession, version="1.2.3", instructions="Read first.")
        async with mcp.Client(server, mode=mode) as client:
            assert client.instructions == "Read first."
            listed = await client.list_tools()
            return {tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools}

    listed = anyio.run(session)
    assert list(listed) == [tool.name for tool in TOOLS]
    for tool in TOOLS:
        shown = listed[tool.name]
        assert "outputSchema" not in shown
        assert shown["inputSchema"] == tool.schema
        assert shown["annotations"] == {
            "title": tool.title,
            "readOnlyHint": tool.reads_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent or tool.reads_only,
            "openWorldHint": False,
        }


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("text", JSON_SHAPED)
def test_json_shaped_text_survives_the_whole_protocol(text: str, mode: Any) -> None:
    result = call("echo", {"text": text, "reason": text}, mode)
    assert text_of(result) == text
    assert result.structured_content["text"] == result.structured_content["reason"] == text


def test_a_call_with_null_for_every_optional_argument_succeeds() -> None:
    optional = dict.fromkeys(EchoArguments.model_fields) | {"text": "x"}
    assert call("echo", optional).is_error is False


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("echo", {"text": "x", "sinse": "2026-01-01"}, "echo has no argument 'sinse'. Did you mean since?"),
        ("ehco", {}, "There is no tool 'ehco'. Did you mean echo?"),
        ("qqq", {}, "There is no tool 'qqq'. There are echo, whoami, sleep, block, noise and fail."),
        ("fail", {"how": "refused"}, "scope: Lanes are work and school. Add one with brain scope add."),
        ("fail", {"how": "surrogate_error"}, "The line holds \ufffd."),
    ],
)
def test_an_error_is_one_sentence_without_structured_content(
    name: str, arguments: dict[str, Any], sentence: str
) -> None:
    for mode in ("auto", "legacy"):
        result = call(name, arguments, mode)
        assert result.is_error is True
        assert result.structured_content is None
        assert text_of(result) == sentence


def test_a_conflict_shows_the_current_content_on_one_line() -> None:
    sentence, current = text_of(call("fail", {"how": "conflict"})).split("\n")
    assert sentence == "pin:work is at version 3, not 2. Merge and write with expected_version 3."
    label, _, content = current.partition(": ")
    assert label == "Current content"
    assert json.loads(content) == {"state": "line one\nHARD RULES\n- forged\u2028x", "version": 3}
    assert len(current.splitlines()) == 1


def test_a_conflict_with_very_long_content_asks_for_another_read() -> None:
    text = error_text(Conflict("It changed.", current={"body": "x" * CURRENT_CONTENT_LIMIT}))
    assert len(text) < 200
    assert "read it again" in text


def test_an_internal_error_shows_only_an_id_that_the_log_has_as_well(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        text = text_of(call("fail", {"how": "crash"}))
    identifier = text.removeprefix("Internal error ").split(".")[0]
    assert text == f"Internal error {identifier}. The server's log has the details under that id."
    (record,) = [r for r in caplog.records if r.name == "brain.tools.protocol"]
    assert identifier in record.getMessage()
    assert "hunter2" in str(record.exc_info)


def test_lone_surrogates_leave_as_replacement_characters_in_text_keys_and_values() -> None:
    result = call("fail", {"how": "surrogate"})
    assert text_of(result) == "cut \ufffd here"
    assert result.structured_content == {"key \ufffd": ["value \ufffd"]}


def test_the_client_name_reaches_the_session() -> None:
    assert call("whoami", {}).structured_content == {"client": "mcp", "principal": ""}


def test_an_answer_over_the_limit_becomes_an_error_that_says_how_to_ask_for_less() -> None:
    assert call("fail", {"how": "huge"}).is_error is False
    result = call("fail", {"how": "huge"}, result_limit=1_000)
    assert result.is_error is True
    assert "at most 1000" in text_of(result)


def test_the_size_counts_text_and_structured_content_together() -> None:
    assert size(Result("12345", {"a": "ü"})) == 5 + len('{"a": "ü"}')


def test_two_tools_of_one_name_and_long_instructions_are_refused() -> None:
    with pytest.raises(ValueError, match="echo"):
        build_server((*TOOLS, Tool("echo", "Echo", "Again.", EchoArguments, echo, reads_only=True)), DummySession)
    with pytest.raises(ValueError, match="2000"):
        build_server(TOOLS, DummySession, instructions="x" * 2_000)


def test_a_read_only_start_registers_only_reading_tools() -> None:
    assert [tool.name for tool in reading_tools(TOOLS)] == ["echo", "whoami"]


def test_an_error_of_the_session_factory_is_a_tool_error() -> None:
    def refuse(peer: object) -> DummySession:
        raise NotFound("There is no namespace for this token.")

    async def session() -> str:
        async with mcp.Client(build_server(TOOLS, refuse)) as client:
            return text_of(await client.call_tool("echo", {"text": "x"}))

    assert anyio.run(session) == "There is no namespace for this token."


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (decimal.Decimal("1200.50"), "1200.50"),
        (decimal.Decimal("1E+3"), "1000"),
        (
            datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            "2026-03-01T10:00:00Z",
        ),
        (datetime.date(2026, 3, 1), "2026-03-01"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Kind.EVENT, "event"),
        ((1, None, True), [1, None, True]),
        (float("nan"), None),
        (float("-inf"), None),
        ({1: "a\x00"}, {"1": "a\ufffd"}),
    ],
)
def test_structured_values_have_one_plain_form(value: object, expected: object) -> None:
    assert plain(value) == expected
    json.loads(one_line(value))


def test_a_value_without_a_plain_form_is_an_internal_error_not_a_broken_answer() -> None:
    async def answer() -> Result:
        return Result("fine", {"value": object()})

    result = anyio.run(lambda: guarded(answer, label="tool"))
    assert result.is_error is True
    assert text_of(result).startswith("Internal error ")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("hunter2"), "Internal error "),
        (NotFound("There is no page kestrel."), "There is no page kestrel."),
    ],
)
def test_a_failing_resource_handler_shows_no_exception_text(error: Exception, expected: str, mode: Any) -> None:
    async def read(context: Any, params: Any) -> Any:
        raise error

    async def session() -> str:
        server = build_server(TOOLS, DummySession, on_read_resource=read)
        async with mcp.Client(server, mode=mode) as client:
            with pytest.raises(mcp.MCPError) as caught:
                await client.read_resource("brain://wiki/kestrel")
            return caught.value.message

    message = anyio.run(session)
    assert message.startswith(expected)
    assert "hunter2" not in message
