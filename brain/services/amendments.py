"""Corrections, deletions and successions of facts and records: always a new assertion, never a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from brain.embedders import Embedder, Vector
from brain.errors import InvalidInput, NotFound, Refused
from brain.layers import LAYERS, Assertion, Fact, Layer, Record
from brain.names import clean_text, parse_scope
from brain.refs import parse_ref
from brain.repository import memory as repository
from brain.repository import records as record_repository
from brain.repository import versions
from brain.repository.visibility import closed_at, open_rectangles
from brain.services import facts, inputs, models
from brain.times import Interval
from brain.work import Work

FACT = LAYERS["memory"]
RECORD = LAYERS["record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """What a correction changes; None leaves a field as it was."""

    text: str | None = None
    title: str | None = None
    kind: str | None = None
    tags: Sequence[str] | None = None
    importance: int | None = None
    confidence: str | float | None = None
    occurred: inputs.Instant = None
    valid_from: inputs.Instant = None
    valid_to: inputs.Instant = None
    reference: str | None = None


async def predecessor(work: Work, name: str) -> Fact:
    """Return the visible fact that a new one is to supersede; raise Refused when it already has a successor."""
    found = await _fact(work, name, field="supersedes")
    visible: Fact | None = await versions.get(work, FACT, found.id) if found else None
    if visible is None:
        raise NotFound("supersedes names no fact that is visible now.", field="supersedes")
    if successor := await repository.successor(work, visible.id):
        raise Refused(
            f"supersedes: memory:{visible.id} already has the successor memory:{successor}.", field="supersedes"
        )
    work.caller.check_may_write(parse_scope(visible.scope, field="scope"))
    return visible


async def succeeds(work: Work, fact: Fact, name: str) -> bool:
    """Whether a fact already is the successor of the one that is named, so that its write was only repeated."""
    found = await _fact(work, name, field="supersedes")
    return found is not None and found.id == fact.supersedes


async def end_at_successor(work: Work, old: Fact, new: Fact) -> Fact:
    """Close a fact's validity where its successor's begins; never backwards in time."""
    if new.valid_from is None or (old.valid_from is not None and new.valid_from <= old.valid_from):
        raise InvalidInput(
            "supersedes: the new fact must begin later than the one that it supersedes; set occurred or valid_from.",
            field="supersedes",
        )
    newest: Any = await versions.newest(work, FACT, old.id)
    ended: Fact = replace(
        newest,
        **_content_of(old),
        version=newest.version + 1,
        tombstone=True,
        reason=_succession(new.id),
        valid_from=new.valid_from,
        valid_to=None,
        **inputs.stamp(work, said=new.said, known_at=new.known_from if new.known_from < new.recorded_at else None),
    )
    [stored] = await facts.append(work, [ended])
    return stored


async def amend(
    work: Work,
    *,
    name: str,
    change: Amendment,
    expected_version: int,
    reason: str,
    vector: Vector | None,
    pending: bool,
    embedder: Embedder,
) -> Fact:
    """Correct a fact under expected_version, wherever the assertion shows or over the interval that the change names.

    Periods in which something else was asserted, or in which the fact was forgotten, stay as they are: there is a new
    version for each of the periods between them, and the last one, which holds now if one does, is returned.
    vector is that of the text after the change, made before the transaction; pending says that the model could not be
    asked. Raises Conflict with the current content when the fact stands at another version.
    """
    await models.check_active(work, embedder)
    newest = await _fact(work, name)
    current: Fact | None = await _asserted(work, newest) if newest else None
    if newest is None or current is None:
        raise NotFound("ref names no fact that is visible now.", field="ref")
    work.caller.check_may_write(parse_scope(current.scope, field="scope"))
    inputs.check_version(newest, expected_version, layer=FACT, required=True)
    changed = _changes(work, change)
    if not changed:
        raise InvalidInput(
            "Nothing to amend was given; set at least one of text, title, kind, tags, importance, confidence, occurred,"
            " valid_from, valid_to and reference.",
            field="text",
        )
    amended = replace(current, **changed)
    inputs.interval(amended.valid_from, amended.valid_to)
    if all(getattr(current, field) == value for field, value in changed.items()):
        return newest
    amended = replace(
        amended,
        reason=clean_text(reason, field="reason", maximum=2_000),
        content=facts.content_of(amended.title, amended.text),
        words=facts.words_of(amended.title, amended.text, work.language),
    )
    if amended.content not in await repository.embedded(work, embedder.model, [amended.content]):
        if pending:
            await repository.add_pending(work, embedder.model, [amended.content])
        else:
            await repository.add_embeddings(work, embedder.model, {amended.content: vector})
    for number, period in enumerate(await _periods(work, current, amended), 1):
        again = replace(amended, version=newest.version + number, valid_from=period.start, valid_to=period.end)
        [stored] = await facts.append(work, [replace(again, **inputs.stamp(work))])
    return stored


async def _periods(work: Work, current: Fact, amended: Fact) -> list[Interval]:
    """Return over which periods a correction is asserted, the one that holds now last."""
    named = Interval(amended.valid_from, amended.valid_to)
    if (current.valid_from, current.valid_to) != (named.start, named.end):
        return [named]
    shown = [each.valid for each in await open_rectangles(work, FACT, current.id) if each.doc == current.doc]
    return sorted(shown, key=lambda each: each.contains(work.as_of)) or [named]


async def forget(
    work: Work,
    *,
    name: str,
    reason: str,
    valid_from: inputs.Instant = None,
    valid_to: inputs.Instant = None,
    said: str = "",
) -> tuple[Assertion, bool]:
    """Remove a fact or a record by a tombstone, over a period or for good; return it and whether anything changed.

    Repeating it changes nothing. Raises NotFound for what is not visible.
    """
    cleaned = clean_text(reason, field="reason", minimum=1, maximum=2_000)
    start = inputs.instant(work, valid_from, field="valid_from")
    end = inputs.instant(work, valid_to, field="valid_to")
    inputs.interval(start, end)
    layer, newest = await _named(work, name)
    if not await _visible_anywhere(work, layer, newest.id, start, end):
        return await _forgotten(work, layer, newest.id, start, end), False
    work.caller.check_may_write(parse_scope(newest.scope, field="scope"))
    stamp = inputs.stamp(work, said=clean_text(said, field="said", maximum=2_000))
    tombstone = replace(
        newest, version=newest.version + 1, tombstone=True, reason=cleaned, valid_from=start, valid_to=end, **stamp
    )
    return await _store(work, layer, tombstone), True


async def restore(work: Work, *, name: str, reason: str = "") -> Assertion:
    """Undo the newest tombstone that still hides something: what it hid, and nothing has replaced, is asserted again.

    That is a new version for each assertion that was visible there; the last of them is returned. Repeated, it undoes
    the tombstone before. Raises Refused when nothing is hidden, or only by a successor that stands.
    """
    layer, newest = await _named(work, name)
    work.caller.check_may_write(parse_scope(newest.scope, field="scope"))
    cleaned = clean_text(reason, field="reason", maximum=2_000) or "restored"
    log: list[Any] = [each.row for each in await versions.history(work, layer, newest.id)]
    by_doc = {row.doc: row for row in log}
    pieces = await _hidden(work, layer, log)
    await _check_predecessor(work, newest, pieces)
    restored: Assertion = newest
    for number, (doc, period) in enumerate(pieces, 1):
        version = newest.version + number
        again = replace(by_doc[doc], version=version, reason=cleaned, valid_from=period.start, valid_to=period.end)
        restored = await _store(work, layer, replace(again, **inputs.stamp(work)))
    return restored


async def _hidden(work: Work, layer: Layer, log: Sequence[Any]) -> list[tuple[int, Interval]]:
    """Return what the newest tombstone that can be undone hides: document and period, earliest first."""
    ref = log[0].id
    shown = [each.valid for each in await open_rectangles(work, layer, ref)]
    successor = await repository.successor(work, ref) if layer is FACT else None
    stands = successor is not None and await _visible_anywhere(work, FACT, successor, None, None)
    superseded = False
    for tombstone in sorted((row for row in log if row.tombstone), key=lambda row: (row.known_from, row.doc))[::-1]:
        over = Interval(tombstone.valid_from, tombstone.valid_to)
        closed = await closed_at(work, layer, ref, tombstone.known_from)
        pieces = [(each.doc, part) for each in closed for part in _outside(_common(each.valid, over), shown)]
        if not pieces:
            continue
        if not stands or tombstone.reason != _succession(successor):
            return pieces
        superseded = True
    if superseded:
        raise Refused(f"ref is superseded by memory:{successor}; forget that fact first.", field="ref")
    raise Refused("ref has nothing forgotten that could be restored.", field="ref")


async def _check_predecessor(work: Work, row: Any, pieces: Sequence[tuple[int, Interval]]) -> None:
    """Refuse to bring a successor back beside a predecessor that was restored meanwhile."""
    if not isinstance(row, Fact) or not row.supersedes:
        return
    shown = [each.valid for each in await open_rectangles(work, FACT, row.supersedes)]
    if any(valid.overlaps(period) for valid in shown for _, period in pieces):
        raise Refused(
            f"ref supersedes memory:{row.supersedes}, which shows in that period; forget it there first.", field="ref"
        )


def _succession(successor: str | None) -> str:
    """The reason of the tombstone with which a successor ends its predecessor."""
    return f"superseded by memory:{successor}"


def _common(one: Interval, other: Interval) -> list[Interval]:
    """Return what two periods have in common: nothing or one period."""
    if not one.overlaps(other):
        return []
    return [Interval(_later(one.start, other.start), _earlier(one.end, other.end))]


def _outside(periods: Sequence[Interval], shown: Sequence[Interval]) -> list[Interval]:
    """Return what is left of some periods outside others."""
    left = list(periods)
    for each in shown:
        left = [part for period in left for part in period.without(each)]
    return left


async def text_after(work: Work, name: str, change: Amendment) -> str:
    """Return what the fact's searchable text will be, so that it can be embedded before the transaction that amends."""
    found = await _fact(work, name)
    old = (await _asserted(work, found) if found else None) or found
    title = change.title if change.title is not None else (old.title if old else "")
    text = change.text if change.text is not None else (old.text if old else "")
    return facts.searchable(title, text)


async def _fact(work: Work, name: str, *, field: str = "ref") -> Fact | None:
    """Return the newest version of the fact that a name means, whichever version the name ends with."""
    found = await facts.find(work, name, field=field)
    base, _, number = name.strip().rpartition("@")
    if found is None and base and number.isascii() and number.isdecimal():
        found = await facts.find(work, base, field=field)
    return found


async def _named(work: Work, name: str) -> tuple[Layer, Any]:
    prefix = f"{RECORD.name}:"
    if name.strip().startswith(prefix):
        ref = parse_ref(name, field="ref")
        found: Any = await versions.newest(work, RECORD, ref.id)
        layer = RECORD
    else:
        found, layer = await _fact(work, name), FACT
    if found is None:
        raise NotFound("ref names no fact or record.", field="ref")
    return layer, found


async def _store(work: Work, layer: Layer, row: Any) -> Assertion:
    if layer is RECORD:
        record: Record = row
        return await record_repository.add(work, record)
    [stored] = await facts.append(work, [row])
    return stored


async def _asserted(work: Work, newest: Fact) -> Fact | None:
    """Return the assertion to correct: the visible one, or the newest when it only holds at another time."""
    visible: Fact | None = await versions.get(work, FACT, newest.id)
    if visible is not None:
        return visible
    return None if newest.tombstone else newest


async def _visible_anywhere(work: Work, layer: Layer, id: str, start: Any, end: Any) -> bool:  # noqa: A002
    period = inputs.interval(start, end)
    return any(each.valid.overlaps(period) for each in await open_rectangles(work, layer, id))


async def _forgotten(work: Work, layer: Layer, id: str, start: Any, end: Any) -> Assertion:  # noqa: A002
    """Return the newest tombstone over exactly this period; raise NotFound when there is none."""
    log: list[Any] = [each.row for each in await versions.history(work, layer, id)]
    same = [row for row in log if row.tombstone and (row.valid_from, row.valid_to) == (start, end)]
    if not same:
        raise NotFound("ref names nothing that is visible in that period.", field="ref")
    found: Assertion = same[-1]
    return found


def _content_of(fact: Fact) -> dict[str, Any]:
    names = (
        "text",
        "title",
        "kind",
        "tags",
        "importance",
        "confidence",
        "evidence",
        "occurred",
        "content",
        "words",
    )
    return {name: getattr(fact, name) for name in names}


def _changes(work: Work, change: Amendment) -> dict[str, Any]:
    """Return the changed fields in their accepted forms."""
    checks: dict[str, Any] = {
        "text": lambda value: clean_text(value, field="text", minimum=1, maximum=facts.LONGEST_TEXT),
        "title": lambda value: clean_text(value, field="title", maximum=200),
        "kind": lambda value: inputs.choice(value, facts.KINDS, field="kind"),
        "tags": lambda value: inputs.labels(value, field="tags"),
        "importance": facts.checked_importance,
        "confidence": facts.parse_confidence,
        "occurred": lambda value: inputs.instant(work, value, field="occurred"),
        "valid_from": lambda value: inputs.instant(work, value, field="valid_from"),
        "valid_to": lambda value: inputs.instant(work, value, field="valid_to"),
        "reference": lambda value: clean_text(value, field="reference", maximum=500),
    }
    given = {name: check(getattr(change, name)) for name, check in checks.items() if getattr(change, name) is not None}
    return {name: value for name, value in given.items() if value is not None}


def _later(one: Any, other: Any) -> Any:
    return max((each for each in (one, other) if each is not None), default=None)


def _earlier(one: Any, other: Any) -> Any:
    return min((each for each in (one, other) if each is not None), default=None)
