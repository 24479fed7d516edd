"""The session start: rules, pins, quiet threads, CORE pages and the wiki index, as of any instant, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from brain.layers import LAYERS, Constraint, Page, Pin
from brain.render import counted, inline, quoted
from brain.repository import audit
from brain.services import constraints, inputs, pins, scopes, threads, wiki
from brain.services.budget import Budget, Item
from brain.times import format_instant
from brain.work import Work

_MOST_CHANGES = 40

_RULES = "Hard rules: the user's own, always in force"
_PINS = "Where things stand"
_CORE = "CORE pages"
_QUIET = "Quiet threads: my picture of these is stale, so ask; silence is no verdict"
_INDEX = "Wiki index: read a page with read_wiki"


@dataclass(frozen=True, slots=True)
class Section:
    """Items of one kind, with the heading they stand under and how to read those that were left out."""

    name: str
    title: str
    how: str
    items: list[Item]
    kept: list[Item] = field(default_factory=list)

    @property
    def omitted(self) -> int:
        """How many items did not fit."""
        return len(self.items) - len(self.kept)


@dataclass(frozen=True, slots=True)
class Payload:
    """The session start as text and as structured content."""

    text: str
    data: dict[str, Any]


async def start(work: Work, *, scope: str = "", since: inputs.Instant = None, budget: int = 24_000) -> Payload:
    """Return the session start within a budget of characters, text and structured content together.

    Whole items are left out from the bottom of the trust order, and the payload says how many and how to read them.
    """
    covered = await _scopes(work, scope)
    where = covered.scopes
    sections = [
        Section(
            "rules", _RULES, "max_chars set higher", [_rule(each) for each in await constraints.active(work, where)]
        ),
        Section("pins", _PINS, "scope set to one scope", [_pin(each) for each in await pins.listing(work, where)]),
        Section("core_pages", _CORE, "read_wiki", [_page(each) for each in await wiki.index(work, where, core=True)]),
        Section("quiet_threads", _QUIET, "list_threads", [_thread(each) for each in await threads.quiet(work, where)]),
        Section(
            "wiki_index", _INDEX, "read_wiki", [_entry(each) for each in await wiki.index(work, where, core=False)]
        ),
    ]
    instant = inputs.period_start(work, since, field="since")
    if instant is not None:
        sections.append(await _changes(work, where, instant))
    spending = Budget(budget)
    for each in sections:
        each.kept.extend(spending.fit(each.items))
    return _payload(work, covered, sections)


async def _scopes(work: Work, scope: str) -> scopes.Covered:
    """Return global and every lane with the caller's project, or global and the one scope that was asked for."""
    covered = await scopes.for_reading(work, scope, unbound=scopes.LANES)
    if not scope.strip() or covered.scopes is None or covered.scopes == [str(scopes.GLOBAL)]:
        return covered
    return scopes.Covered([str(scopes.GLOBAL), *covered.scopes], [str(scopes.GLOBAL), *covered.label])


def _rule(rule: Constraint) -> Item:
    head = f"- constraint:{rule.id} [{rule.scope}]"
    data = {"ref": f"constraint:{rule.id}", "scope": rule.scope, "rule": rule.rule, "said": rule.said}
    return Item(f"{head}\n{quoted(rule.rule)}\n  said by the user:\n{quoted(rule.said)}", data)


def _pin(pin: Pin) -> Item:
    lines = [
        f"- pin:{pin.id}@{pin.version} [{pin.scope}] since {format_instant(pin.known_from)}, written by {pin.origin}"
    ]
    parts = {"state": pin.state, "next": pin.next, "blocked_on": pin.blocked_on}
    for name, value in parts.items():
        if value:
            lines += [f"  {name}:", quoted(value)]
    data = {"ref": f"pin:{pin.id}", "version": pin.version, "scope": pin.scope, **parts}
    return Item("\n".join(lines), data | {"since": format_instant(pin.known_from), "origin": pin.origin})


def _page(page: Page) -> Item:
    since = format_instant(page.known_from)
    head = f"- wiki:{page.id}@{page.version} [{page.scope}] since {since}, written by {page.origin}"
    data = {
        "ref": f"wiki:{page.id}",
        "version": page.version,
        "scope": page.scope,
        "name": page.name,
        "body": page.body,
    }
    return Item(
        f"{head}\n{quoted(page.body)}", data | {"since": format_instant(page.known_from), "origin": page.origin}
    )


def _thread(quiet: threads.Quiet) -> Item:
    thread = quiet.thread
    head = (
        f"- thread:{thread.id}@{thread.version} [{thread.scope}] {thread.status},"
        f" quiet for {counted(quiet.days, 'day')} (cadence {counted(thread.cadence_days, 'day')})"
    )
    lines = [head, quoted(thread.title)] + ([quoted(thread.note)] if thread.note else [])
    data = {
        "ref": f"thread:{thread.id}",
        "version": thread.version,
        "scope": thread.scope,
        "title": thread.title,
        "status": thread.status,
        "quiet_days": quiet.days,
        "cadence_days": thread.cadence_days,
        "note": thread.note,
        "last_touch": format_instant(thread.known_from),
    }
    return Item("\n".join(lines), data)


def _entry(page: Page) -> Item:
    data = {"ref": f"wiki:{page.id}", "version": page.version, "scope": page.scope, "summary": page.summary}
    return Item(f"- wiki:{page.id}@{page.version} [{page.scope}] {inline(page.summary)}", data)


async def _changes(work: Work, where: Sequence[str] | None, since: Any) -> Section:
    """Return what other clients or sessions wrote after an instant."""
    readable = [layer.name for layer in LAYERS.values() if layer.readable]
    entries = await audit.writes(
        work,
        layers=readable,
        scopes=list(where) if where is not None else None,
        other_than=(work.caller.client, work.caller.session),
        since=since,
        limit=_MOST_CHANGES + 1,
    )
    items = []
    for entry in entries[:_MOST_CHANGES]:
        ref = f"{entry.layer}:{entry.id}@{entry.version}"
        when = format_instant(entry.recorded_at)
        gone = " forgotten" if entry.tombstone else ""
        items.append(
            Item(
                f"- {ref} [{entry.scope}]{gone} by {inline(entry.client or entry.origin, 60)}"
                f" at {when}: {inline(entry.label, 120)}",
                {"ref": ref, "scope": entry.scope, "client": entry.client, "origin": entry.origin, "at": when},
            )
        )
    more = " (more: get_digest or brain audit)" if len(entries) > _MOST_CHANGES else ""
    return Section("changed_since", f"Changed by others since {format_instant(since)}{more}", "get_history", items)


def _payload(work: Work, covered: scopes.Covered, sections: Sequence[Section]) -> Payload:
    lines = [
        f"# Session start as of {format_instant(work.as_of)}",
        f"Scopes: {', '.join(covered.label)}. Lines behind a bar are stored text, never words of this server.",
    ]
    omitted = {each.name: each.omitted for each in sections if each.omitted}
    for each in sections:
        if each.name in omitted:
            note = f"(omitted for size: {counted(omitted[each.name], 'item')}; read with {each.how})"
            lines += ["", f"## {each.title} {note}"]
        elif each.items:
            lines += ["", f"## {each.title}"]
        else:
            continue
        lines += [item.text for item in each.kept]
    if not any(each.items for each in sections):
        lines += ["", "This brain holds nothing for a session start yet."]
    data: dict[str, Any] = {"as_of": format_instant(work.as_of), "scopes": covered.label}
    data |= {each.name: [item.data for item in each.kept] for each in sections}
    if omitted:
        data["omitted"] = {name: {"items": count, "read_with": _how(sections, name)} for name, count in omitted.items()}
    return Payload("\n".join(lines) + "\n", data)


def _how(sections: Sequence[Section], name: str) -> str:
    return next(each.how for each in sections if each.name == name)
