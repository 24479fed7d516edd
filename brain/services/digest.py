"""What a period brought: facts, rules, pins, pages, threads and records, as Markdown; deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from brain.errors import InvalidInput
from brain.layers import LAYERS
from brain.render import counted, inline
from brain.repository import audit
from brain.services import inputs, scopes
from brain.times import format_instant
from brain.work import Work

MOST = 1_000
"""Most writes that one digest tells."""

_SECTIONS = (
    ("new_facts", "New facts"),
    ("changed_facts", "Changed facts"),
    ("superseded_facts", "Superseded facts"),
    ("forgotten", "Forgotten"),
    ("records", "Records"),
    ("rules", "Rules"),
    ("pins", "Pins moved"),
    ("pages", "Pages rewritten"),
    ("threads", "Threads touched"),
)
_PLACES = {"record": "records", "constraint": "rules", "pin": "pins", "wiki": "pages", "thread": "threads"}


@dataclass(frozen=True, slots=True)
class Digest:
    """A period's writes by section, and the same as Markdown."""

    since: datetime
    until: datetime
    sections: dict[str, list[audit.Entry]]
    omitted: bool

    @property
    def markdown(self) -> str:
        """The digest as Markdown; stored text stands on one line, after its ref."""
        lines = [f"# Digest from {format_instant(self.since)} until {format_instant(self.until)}"]
        for name, title in _SECTIONS:
            entries = self.sections[name]
            if entries:
                lines += ["", f"## {title} ({len(entries)})", *(_line(each) for each in entries)]
        if not any(self.sections.values()):
            lines += ["", "Nothing was written in this period."]
        if self.omitted:
            lines += ["", f"Only the first {counted(MOST, 'write')} of the period are told; choose a shorter one."]
        return "\n".join(lines) + "\n"

    def data(self) -> dict[str, Any]:
        """The digest as structured content."""
        shown = {name: [_shown(each) for each in entries] for name, entries in self.sections.items()}
        period = {"since": format_instant(self.since), "until": format_instant(self.until)}
        return {**period, **shown, "omitted": self.omitted}


async def of(work: Work, *, since: inputs.Instant, until: inputs.Instant = None, scope: str = "") -> Digest:
    """Return what became known from since until before until (default as_of), in the scopes that a read covers."""
    start = inputs.period_start(work, since, field="since")
    end = inputs.period_start(work, until, field="until") or work.as_of
    if start is None:
        raise InvalidInput("since must say where the period begins, such as 7d or 2026-03-01.", field="since")
    if start >= end:
        raise InvalidInput("until must be later than since.", field="until")
    covered = await scopes.for_reading(work, scope)
    layers = [layer.name for layer in LAYERS.values() if layer.readable]
    found = await audit.writes(
        work, layers=layers, scopes=covered.scopes, since=start, until=end, limit=MOST + 1, axis="known_from"
    )
    return Digest(start, end, _sorted(found[:MOST]), len(found) > MOST)


def _sorted(entries: Sequence[audit.Entry]) -> dict[str, list[audit.Entry]]:
    sections: dict[str, list[audit.Entry]] = {name: [] for name, _ in _SECTIONS}
    for entry in entries:
        sections[_section(entry)].append(entry)
    return sections


def _section(entry: audit.Entry) -> str:
    if entry.tombstone:
        return "superseded_facts" if entry.reason.startswith("superseded by memory:") else "forgotten"
    if entry.layer == "memory":
        return "new_facts" if entry.version == 1 else "changed_facts"
    return _PLACES[entry.layer]


def _line(entry: audit.Entry) -> str:
    marks = [entry.scope, f"by {inline(entry.client, 40)}" if entry.client else f"by {entry.origin}"]
    marks += [entry.status] if entry.status else []
    marks += [f"reason: {inline(entry.reason, 120)}"] if entry.reason else []
    ref = f"{entry.layer}:{entry.id}@{entry.version}"
    return f"- {format_instant(entry.known_from)} {ref} ({'; '.join(marks)}): {inline(entry.label, 160)}"


def _shown(entry: audit.Entry) -> dict[str, Any]:
    return {
        "ref": f"{entry.layer}:{entry.id}",
        "version": entry.version,
        "scope": entry.scope,
        "known_from": format_instant(entry.known_from),
        "origin": entry.origin,
        "client": entry.client,
        "status": entry.status,
        "reason": entry.reason,
        "text": entry.label,
    }
