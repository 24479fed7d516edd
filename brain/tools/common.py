"""What the tools share: argument types with their words for the model, and how rows read as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from brain.layers import Fact, Layer, Version
from brain.names import scrub
from brain.refs import Ref
from brain.render import inline, quoted
from brain.runtime import Brain
from brain.services import inputs
from brain.times import format_instant
from brain.tools.protocol import Result
from brain.tools.schema import Arguments

__all__ = ["Arguments", "AsOf", "Brain", "Cites", "Cursor", "Expected", "Labels", "Limit", "Period", "Result", "Said",
           "Scope", "ValidAt", "fact_text", "row_text", "write_result"]  # fmt: skip

Scope = Annotated[str, Field(description="global, lane:<slug> or project:<slug>")]
AsOf = Annotated[str, Field(description="Answer as the brain stood then: YYYY-MM-DD or RFC 3339 with offset")]
ValidAt = Annotated[str, Field(description="What held in the world then; default as_of")]
Period = Annotated[str, Field(description="YYYY-MM-DD, RFC 3339 with offset, or an age such as 7d")]
Expected = Annotated[int, Field(description="Version that you read; 0 for a new one", ge=0)]
Said = Annotated[str, Field(description="The user's own words, quoted")]
Labels = Annotated[list[str], Field(description="Short labels")]
Cites = Annotated[list[str], Field(description="Refs it was compiled from")]
Limit = Annotated[int, Field(description="Most items", ge=1, le=100)]
Cursor = Annotated[str, Field(description="Cursor of the page before")]


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


def write_result(layer: Layer, row: Version, outcome: str, sentence: str = "", **more: Any) -> Result:
    """Return the answer of a write: what became of it, and the row as it stands."""
    shown = inputs.shown(layer, row)
    ref = f"{shown['ref']}@{shown['version']}"
    text = sentence or {
        "created": f"Stored {ref}.",
        "rewritten": f"Rewrote {ref}.",
        "new_version": f"Stored {ref}, a new version of an existing key.",
        "unchanged": f"Nothing changed: {ref} already says this.",
        "retired": f"Retired {ref}.",
    }.get(outcome, f"{outcome} {ref}")
    return Result(text, {"outcome": outcome, "row": shown, **more})


_TEXTS = frozenset(
    {"rule", "said", "reason", "state", "next", "blocked_on", "summary", "body", "title", "note", "text", "happened",
     "expected", "artifact", "source", "reference", "key", "name"}
)  # fmt: skip


def _entries(value: Mapping[str, Any] | Sequence[Any]) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}: {each}" for name, each in value.items()]
    return [
        "; ".join(f"{k}: {v}" for k, v in each.items()) if isinstance(each, Mapping) else str(each) for each in value
    ]
