"""What the tools share: argument types with their words for the model, and how rows read as text."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from brain.layers import Layer, Version
from brain.render import fact_text, row_text
from brain.runtime import Brain
from brain.services import inputs
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
