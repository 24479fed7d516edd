"""Text for models and people. Stored text always stands behind a bar, so that it can never pass for a heading."""

from __future__ import annotations

from collections.abc import Iterable

BAR = "  | "


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


def _lines(text: str) -> list[str]:
    return text.splitlines() or [""]
