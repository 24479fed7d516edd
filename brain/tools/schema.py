"""Arguments of a tool: from a pydantic model to a flat JSON schema, and from raw JSON to a checked model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from brain.errors import InvalidInput
from brain.names import clean_text, excerpt

Schema = dict[str, Any]

_KEPT: Final[tuple[str, ...]] = (
    "type", "description", "enum", "default", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
)  # fmt: skip
_DROPPED: Final = frozenset({"title", "examples", "uniqueItems"})
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
_DESCRIPTION_IN_ERROR: Final = 160
_EXACT_DIGITS: Final = 40


class Arguments(BaseModel):
    """Base of every argument model: unknown names refused, immutable, no NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


class NotFlatError(TypeError):
    """An argument model needs a schema that some clients refuse (a union, a nested object, a free mapping)."""


def flat_schema(model: type[BaseModel]) -> Schema:
    """The JSON schema of a model with one type a property and nothing that a client is known to refuse.

    Raises NotFlatError when the model needs a union, a nested object outside a list, a free mapping or a
    `format`: times, amounts and refs are text, and their grammar is checked by the service.
    """
    whole = model.model_json_schema()
    return _object(whole, whole.get("$defs", {}), model.__name__, nested=False)


def _object(node: Schema, definitions: Schema, where: str, *, nested: bool) -> Schema:
    if node.get("additionalProperties", True) is not False:
        raise NotFlatError(f'{where} must forbid unknown fields (extra="forbid").')
    required = list(node.get("required", []))
    properties = {
        name: _property(child, definitions, f"{where}.{name}", optional=name not in required, nested=nested)
        for name, child in node.get("properties", {}).items()
    }
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


def _property(node: Schema, definitions: Schema, where: str, *, optional: bool, nested: bool) -> Schema:
    node = _resolve(node, definitions, where, optional=optional)
    kind = node.get("type")
    if kind == "array":
        return _kept(node, where, "items") | {"items": _items(node.get("items"), definitions, where, nested=nested)}
    if kind not in _SCALARS:
        raise NotFlatError(f"{where} is {kind or 'of no single type'}; use text, a number, a boolean or a list.")
    if "enum" in node and kind != "string":
        raise NotFlatError(f"{where} lists values that are not text.")
    return _kept(node, where)


def _items(node: Schema | None, definitions: Schema, where: str, *, nested: bool) -> Schema:
    if nested or not node:
        raise NotFlatError(f"{where} is a list inside a list, or of unknown items.")
    item = _resolve(node, definitions, f"{where}[]", optional=False)
    if item.get("type") == "object":
        return _object(item, definitions, f"{where}[]", nested=True)
    if item.get("type") != "string":
        raise NotFlatError(f"{where} may list text or flat objects only.")
    return _kept(item, f"{where}[]")


def _resolve(node: Schema, definitions: Schema, where: str, *, optional: bool) -> Schema:
    """Inline a reference, and take the null out of an optional union."""
    if "$ref" in node:
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        node = definitions[node["$ref"].removeprefix("#/$defs/")] | siblings
    if "anyOf" in node:
        choices = [choice for choice in node["anyOf"] if choice.get("type") != "null"]
        if len(choices) != 1 or not optional:
            raise NotFlatError(f"{where} is a union; give it one type, or a default.")
        siblings = {key: value for key, value in node.items() if key != "anyOf"}
        node = _resolve(choices[0], definitions, where, optional=optional) | siblings
    if "const" in node:
        node = {key: value for key, value in node.items() if key != "const"} | {"enum": [node["const"]]}
    return node


def _kept(node: Schema, where: str, *handled: str) -> Schema:
    unknown = set(node) - set(_KEPT) - _DROPPED - set(handled)
    if unknown:
        raise NotFlatError(f"{where} uses {', '.join(sorted(unknown))}, which some clients refuse.")
    kept = {key: node[key] for key in _KEPT if key in node}
    if kept.get("default", "") in (None, "", []):
        kept.pop("default", None)
    return kept


def parse_arguments(model: type[ArgumentsT], schema: Schema, raw: Mapping[str, Any] | None, *, tool: str) -> ArgumentsT:
    """Check a call's arguments against a model and its flat schema.

    Nulls count as absent. Text is taken byte for byte; where text is expected a whole number is taken as
    its digits and every other type is refused, because the digits of 1200.50 are lost before they arrive.
    Where a number, a boolean or a list is expected, its JSON form inside a string is accepted as well.

    Raises InvalidInput with one sentence that names the argument and the accepted form.
    """
    prepared = _prepare(raw or {}, schema, tool, path="")
    try:
        return model.model_validate(prepared)
    except ValidationError as error:
        raise _refusal(error, schema, tool) from None


def _prepare(raw: Mapping[str, Any], schema: Schema, owner: str, *, path: str) -> dict[str, Any]:
    properties: Schema = schema["properties"]
    for name in raw:
        if name not in properties:
            raise _unknown(name, properties, owner)
    given = {name: value for name, value in raw.items() if value is not None}
    missing = [name for name in schema.get("required", []) if name not in given]
    if missing:
        raise _missing(missing, properties, owner)
    return {name: _coerce(value, properties[name], _join(path, name)) for name, value in given.items()}


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _unknown(name: str, properties: Schema, owner: str) -> InvalidInput:
    shown = excerpt(str(name), 40)
    near = closest(str(name), properties)
    known = f"Did you mean {near}?" if near else f"It takes {listing(properties) or 'no arguments'}."
    return InvalidInput(f"{owner} has no argument '{shown}'.", field=shown, hint=known)


def _missing(names: Sequence[str], properties: Schema, owner: str) -> InvalidInput:
    forms = listing(f"{name} ({accepted_form(properties[name])})" for name in names)
    hint = _first_sentence(properties[names[0]]) if len(names) == 1 else ""
    return InvalidInput(f"{owner} needs {forms}.", field=names[0], hint=hint)


def _coerce(value: Any, schema: Schema, path: str) -> Any:
    match schema["type"]:
        case "string":
            return _text(value, schema, path)
        case "array":
            return _list(value, schema, path)
        case "integer" | "number" if isinstance(value, bool):
            raise _wrong_form(path, schema)
        case _:
            return value


def _text(value: Any, schema: Schema, path: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**_EXACT_DIGITS:
        return str(value)
    if not isinstance(value, str):
        raise _wrong_form(path, schema, f'{path} takes text; write it in quotes, such as "1200.50".')
    return clean_text(value, field=path, maximum=max(len(value), 1))


def _list(value: Any, schema: Schema, path: str) -> list[Any]:
    if isinstance(value, str):
        value = _json_list(value)
    if not isinstance(value, list):
        raise _wrong_form(path, schema)
    return [_item(item, schema["items"], f"{path}[{position}]") for position, item in enumerate(value)]


def _item(value: Any, schema: Schema, path: str) -> Any:
    if schema["type"] != "object":
        return _coerce(value, schema, path)
    if not isinstance(value, Mapping):
        raise _wrong_form(path, schema)
    return _prepare(value, schema, path, path=path)


def _json_list(value: str) -> Any:
    """Some clients send a list as its JSON text; anything else in a string is not a list."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _refusal(error: ValidationError, schema: Schema, tool: str) -> InvalidInput:
    first = error.errors(include_url=False, include_input=False)[0]
    location = first["loc"]
    path, found = _locate(location, schema)
    if first["type"] in ("value_error", "assertion_error"):
        reason = str(first.get("ctx", {}).get("error", "")) or "does not have the accepted form"
        sentence = f"{path}: {reason}" if path else f"{tool}: {reason}"
        return InvalidInput(sentence if sentence.endswith((".", "?")) else f"{sentence}.", field=path)
    return _wrong_form(path or tool, found)


def _locate(location: Iterable[int | str], schema: Schema) -> tuple[str, Schema]:
    path = ""
    for step in location:
        if isinstance(step, int):
            path, schema = f"{path}[{step}]", schema.get("items", schema)
        else:
            path, schema = _join(path, step), schema.get("properties", {}).get(step, schema)
    return path, schema


def _wrong_form(path: str, schema: Schema, sentence: str = "") -> InvalidInput:
    return InvalidInput(sentence or f"{path} takes {accepted_form(schema)}.", field=path, hint=_first_sentence(schema))


def accepted_form(schema: Schema) -> str:
    """What a property accepts, in words: `a whole number from 1 to 50`, `one of work, school`, `a list of text`."""
    match schema["type"]:
        case "string" if "enum" in schema:
            return f"one of {', '.join(schema['enum'])}"
        case "string":
            return "text" + _between(schema, "minLength", "maxLength", "of {} characters")
        case "integer":
            return "a whole number" + _between(schema, "minimum", "maximum", "{}")
        case "number":
            return "a number" + _between(schema, "minimum", "maximum", "{}")
        case "boolean":
            return "true or false"
        case "array":
            items = schema["items"]
            inner = "text" if items["type"] == "string" and "enum" not in items else accepted_form(items)
            return f"a list of {inner}" + _between(schema, "minItems", "maxItems", "of {} items")
        case _:
            return f"objects with {listing(schema['properties'])}"


def _between(schema: Schema, low: str, high: str, pattern: str) -> str:
    least, most = schema.get(low), schema.get(high)
    if least is not None and most is not None:
        numeric = pattern == "{}"
        return " " + pattern.format(f"from {least} to {most}" if numeric else f"{least} to {most}")
    if least is not None:
        return " " + pattern.format(f"at least {least}" if pattern != "{}" else f"of at least {least}")
    if most is not None:
        return " " + pattern.format(f"at most {most}" if pattern != "{}" else f"of at most {most}")
    return ""


def _first_sentence(schema: Schema) -> str:
    description = str(schema.get("description", ""))
    sentence = description.split(". ")[0].rstrip(".")
    return f"{sentence}." if sentence and len(sentence) <= _DESCRIPTION_IN_ERROR else ""


def closest(word: str, known: Iterable[str]) -> str:
    """The one known identifier that a mistyped one resembles most, or nothing.

    More generous than the near misses of stored names: a wrong guess costs one more call, not a wrong row.
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(word.casefold(), sorted(known), n=1, cutoff=0.5)), "")


def listing(words: Iterable[str]) -> str:
    """Words as a sentence lists them: `a, b and c`."""
    *rest, last = [*words] or [""]
    return f"{', '.join(rest)} and {last}" if rest else last
