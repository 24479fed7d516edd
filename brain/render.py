"""Text for models and people. Stored text always stands behind a bar, so that it can never pass for a heading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from brain.layers import Fact
from brain.names import scrub
from brain.refs import Ref
from brain.times import format_instant

BAR = "  | "

_TEXTS = frozenset(
    {"rule", "said", "reason", "state", "next", "blocked_on", "summary", "body", "title", "note", "text", "happened",
     "expected", "artifact", "source", "reference", "key", "name"}
)  # fmt: skip


def quoted(text: str) -> str:
    """Return stored text with a bar before every line; every kind of line break counts as one."""
    return "\n".join(BAR + line for line in _lines(text))


def inline(text: str, maximum: int = 200) -> str:
    """Return stored text on one line, cut to a length, for a list entry that has its own marker before it."""
    joined = " ".join(" ".join(_lines(text)).split())
    return joined if len(joined) <= maximum else joined[: maximum - 1].rstrip() + "…"


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def section(title: str, blocks: Iterable[str]) -> str:
    """Return a heading with its blocks, or nothing when there are none."""
    body = list(blocks)
    return "\n".join([f"## {title}", *body]) if body else ""


def fact_text(fact: Fact) -> str:
    """Return a fact as a list entry: its ref, its dates and marks, and its text behind a bar."""
    marks = [f"occurred {format_instant(fact.occurred)}", fact.kind, fact.scope]
    if fact.confidence < 1:
        marks.append(f"confidence {fact.confidence.normalize():f}")
    if fact.valid_to is not None:
        marks.append(f"valid until {format_instant(fact.valid_to)}")
    if fact.tags:
        marks.append("tags " + ", ".join(inline(tag, 40) for tag in fact.tags))
    title = f"\n{quoted(fact.title)}" if fact.title else ""
    return f"- {Ref('memory', fact.id, fact.version)} ({'; '.join(marks)}){title}\n{quoted(fact.text)}"


def row_text(shown: Mapping[str, Any], *, skip: Sequence[str] = ()) -> str:
    """Return any row as a list entry: one line of short fields, longer stored text behind a bar."""
    head = f"- {shown['ref']}@{shown['version']}"
    lines = []
    for name, value in shown.items():
        if name in ("ref", "version", *skip) or value in (None, "", [], {}):
            continue
        if isinstance(value, str) and name in _TEXTS:
            lines += [f"  {name}:", quoted(value)]
        elif isinstance(value, Mapping | list):
            lines += [f"  {name}:", *(quoted(line) for line in _entries(value))]
        else:
            lines.append(f"  {name}: {inline(scrub(str(value)))}")
    return "\n".join([head, *lines])


def _entries(value: Mapping[str, Any] | Sequence[Any]) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}: {each}" for name, each in value.items()]
    return [
        "; ".join(f"{k}: {v}" for k, v in each.items()) if isinstance(each, Mapping) else str(each) for each in value
    ]


def _lines(text: str) -> list[str]:
    return text.splitlines() or [""]
