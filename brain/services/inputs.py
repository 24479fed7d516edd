"""Checks that several layers share: instants, refs, versions and short lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from brain import times
from brain.caller import weakest
from brain.errors import Conflict, InvalidInput, NotFound, Refused
from brain.layers import Layer, Version, layer_named
from brain.names import clean_key, clean_text, excerpt, slug
from brain.refs import Ref, parse_ref
from brain.repository import versions
from brain.work import Work

Instant = str | datetime | None
"""An instant as the caller gave it: text in the one grammar (read in the brain's zone), a datetime, or nothing."""

_HIDDEN = frozenset({"doc", "content", "words", "length", "docs_before", "terms_before", "title_key"})


def instant(work: Work, value: Instant, *, field: str) -> datetime | None:
    """Return a given instant in UTC, or None when there is none."""
    if isinstance(value, str):
        return times.parse_instant(value, field=field, zone=work.zone) if value.strip() else None
    return value


def period_start(work: Work, value: Instant, *, field: str) -> datetime | None:
    """Return the start or end of a period; an age such as 7d counts back from as_of."""
    if isinstance(value, str) and value.strip():
        return times.parse_since(value, field=field, now=work.as_of, zone=work.zone)
    return instant(work, value, field=field)


def interval(start: datetime | None, end: datetime | None) -> times.Interval:
    """Return a half-open interval; raise InvalidInput when it is empty or runs backwards."""
    if start is not None and end is not None and start >= end:
        raise InvalidInput("valid_to must be later than valid_from.", field="valid_to")
    return times.Interval(start, end)


def stamp(
    work: Work, *, said: str = "", known_at: datetime | None = None, after: datetime | None = None
) -> dict[str, Any]:
    """Return who writes and when, for one new version.

    Only a human's import may assert that something was known earlier (known_at), and for a row rewritten in place
    not before its newest version (after).
    """
    recorded = work.next_instant()
    if known_at is not None:
        if work.caller.origin not in ("import", "human"):
            raise Refused("known_at is set by the database clock; only an import may assert it.", field="known_at")
        if known_at > recorded:
            raise InvalidInput("known_at must not lie in the future.", field="known_at")
        if after is not None and known_at <= after:
            raise InvalidInput("known_at must be later than the newest version of the same row.", field="known_at")
    caller = work.caller
    return {
        "origin": caller.origin_of(said),
        "client": caller.client,
        "session": caller.session,
        "model": caller.model,
        "known_from": known_at or recorded,
        "recorded_at": recorded,
    }


def check_version(current: Version | None, expected: int, *, layer: Layer, required: bool) -> None:
    """Raise Conflict, with the content as it stands, unless the caller has seen the newest version.

    expected 0 means that the caller saw none; where required is false it also means that the caller does not mind.
    """
    if expected < 0:
        raise InvalidInput(
            "expected_version must be the version that was read, or 0 for a new row.", field="expected_version"
        )
    found = current.version if current else 0
    if expected == found or (expected == 0 and not required):
        return
    if current is None:
        raise NotFound(
            f"expected_version is {expected}, and there is no such {layer.name}; use 0 to create it.",
            field="expected_version",
        )
    said = f"expected_version is {expected}" if expected else "expected_version is missing"
    raise Conflict(
        f"{said} and this {layer.name} stands at version {found}; nothing was changed.",
        current=shown(layer, current),
        hint=f"Merge with the current content and write again with expected_version {found}.",
        field="expected_version",
    )


def shown(layer: Layer, row: Version) -> dict[str, Any]:
    """Return a row as every surface shows it: its ref, its fields in JSON forms, and who wrote it when."""
    kind, _, scope_id = row.scope.partition(":")
    result: dict[str, Any] = {"ref": ref_of(layer, row), "version": row.version, "scope": kind, "scope_id": scope_id}
    for each in fields(row):
        if each.name not in _HIDDEN and each.name not in result and each.name != "id":
            result[each.name] = json_form(getattr(row, each.name))
    return result


def ref_of(layer: Layer, row: Version) -> str:
    """Return the ref of a row, without its version."""
    return str(Ref(layer.name, row.id))


def json_form(value: Any) -> Any:
    """Return a value as JSON carries it: instants in RFC 3339, decimals as text so that no digit is lost."""
    if isinstance(value, datetime):
        return times.format_instant(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: json_form(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_form(each) for each in value]
    return value


def labels(values: Iterable[str], *, field: str, most: int = 20) -> list[str]:
    """Return tags in normal form, without repeats, in the order given."""
    cleaned = dict.fromkeys(clean_key(value, field=field).casefold() for value in values)
    if len(cleaned) > most:
        raise InvalidInput(f"{field} takes at most {most} entries.", field=field)
    return list(cleaned)


def choice(value: str, accepted: Iterable[str], *, field: str) -> str:
    """Return a word out of a fixed list; raise InvalidInput with the list otherwise."""
    word = value.strip().casefold()
    options = list(accepted)
    if word not in options:
        raise InvalidInput(f"{field} must be one of {', '.join(options)}.", field=field)
    return word


def quote(said: str, *, field: str, what: str) -> str:
    """Return the user's own words; raise Refused when there are none, because the rule of the layer asks for them."""
    cleaned = clean_text(said, field=field, maximum=2_000)
    if not cleaned.strip():
        raise Refused(f"{field} must quote the user's own words: {what}.", field=field)
    return cleaned


async def visible_row(work: Work, ref: Ref, *, field: str) -> Version:
    """Return the row that a ref names, at its version if it names one; raise NotFound when it is not visible."""
    layer = readable_layer(ref, field=field)
    ref = in_normal_form(ref, field=field)
    if ref.version:
        rows = [each.row for each in await versions.history(work, layer, ref.id) if each.row.version == ref.version]
        row = rows[0] if rows else None
    else:
        row = await versions.get(work, layer, ref.id)
    if row is None:
        raise NotFound(f"{field} {excerpt(str(ref))} names nothing that is visible at that instant.", field=field)
    return row


def in_normal_form(ref: Ref, *, field: str) -> Ref:
    """Return a ref whose name is written as it is stored: `wiki:Marlow & Finch` is `wiki:marlow-finch`."""
    if ref.layer in ("wiki", "thread"):
        return Ref(ref.layer, slug(ref.id, field=field), ref.version)
    if ref.layer == "pin":
        return Ref(ref.layer, ref.id.removeprefix("lane:"), ref.version)
    return ref


def readable_layer(ref: Ref, *, field: str) -> Layer:
    """Return the layer of a ref that reading tools may show."""
    layer = layer_named(ref.layer, field=field)
    if not layer.readable:
        raise Refused(f"{field}: the {layer.name} log is read by a human only, with brain friction list.", field=field)
    return layer


async def cited(work: Work, refs: Iterable[str], own: str) -> tuple[list[str], str]:
    """Return the refs that a compiled text was made from, at their versions, and the text's effective origin.

    Raises NotFound for a ref that is not visible: a citation must lead somewhere.
    """
    found: list[str] = []
    origins = [own]
    for text in refs:
        ref = parse_ref(text, field="cites")
        row = await visible_row(work, ref, field="cites")
        found.append(str(Ref(ref.layer, row.id, row.version)))
        origins.append(row.origin)
    return list(dict.fromkeys(found)), weakest(origins)
