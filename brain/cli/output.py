"""What the commands print: one JSON envelope for programs, or tables and quoted text for people.

Stored text reaches a terminal only through `visible`: no control character of it does, no markup in it counts, and
it stands behind a bar, so that it cannot pass for a heading.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from brain.errors import BrainError, Conflict
from brain.names import scrub
from brain.render import inline, row_text
from brain.tools.outgoing import plain

# C0, DEL, C1, and the marks that reorder text: line breaks and tabs are the only ones that stay.
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# What json leaves as it is and a terminal or a line reader would act on.
_UNSAFE_IN_JSON: Final = re.compile("[\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PIPE_WIDTH: Final = 100_000


class Screen:
    """Prints for people: colours and a fitted width on a terminal, plain unwrapped lines in a pipe."""

    def __init__(self, stream: TextIO) -> None:
        self.on_terminal = stream.isatty()
        self._console = Console(
            file=stream,
            force_terminal=self.on_terminal,
            color_system="auto" if self.on_terminal else None,
            width=None if self.on_terminal else _PIPE_WIDTH,
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=not self.on_terminal,
        )

    def line(self, text: str = "", style: str = "") -> None:
        """Print text of this program, whatever is inside it."""
        self._console.print(Text(visible(text), style=style))

    def heading(self, text: str) -> None:
        """Print a line that stands out on a terminal."""
        self.line(text, "bold")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print rows under their column names."""
        edge = box.SIMPLE_HEAD if self.on_terminal else None
        table = Table(*columns, box=edge, pad_edge=self.on_terminal, header_style="bold", padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(*(Text(visible(cell(value))) for value in row))
        if self.on_terminal:
            self._console.print(table)
            return
        with self._console.capture() as drawn:
            self._console.print(table)
        self._console.file.write("".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines()))


def visible(text: str) -> str:
    """Return text without any character that a terminal would obey; each becomes U+FFFD."""
    return _CONTROL.sub("\ufffd", scrub(text))


def cell(value: Any) -> str:
    """Return a value on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return inline(scrub(str(value)))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found: the same as data for programs and as something to show to people."""

    data: Any
    show: Callable[[Screen], None]
    warnings: list[str] = field(default_factory=list)
    failure: BrainError | None = None
    """Why the command ends with an exit code although it has something to show."""


def say(text: str) -> Callable[[Screen], None]:
    """Show one sentence."""
    return lambda screen: screen.line(text)


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print an answer on standard output; warnings for people go to standard error."""
    if as_json and answer.failure is not None:
        print_envelope({"ok": False, "error": _told(answer.failure), "data": answer.data})
        return
    if as_json:
        print_envelope({"ok": True, "data": answer.data, "warnings": answer.warnings})
        return
    for warning in answer.warnings:
        print_line(sys.stderr, f"Warning: {warning}")
    answer.show(Screen(sys.stdout))


def print_error(error: BrainError, *, as_json: bool) -> None:
    """Print why a command failed: an envelope on standard output, or sentences on standard error."""
    told = _told(error)
    if as_json:
        print_envelope({"ok": False, "error": told})
        return
    print_line(sys.stderr, f"Error: {told['message']}")
    if error.hint:
        print_line(sys.stderr, f"Hint: {error.hint}")
    if isinstance(error, Conflict):
        screen = Screen(sys.stderr)
        screen.line("It stands as:")
        screen.line(row_text(error.current))


def _told(error: BrainError) -> dict[str, Any]:
    """Return an error as data; a conflict carries the content as it stands."""
    named = error.field and error.field not in error.message
    message = f"{error.field}: {error.message}" if named else error.message
    told: dict[str, Any] = {"code": error.code, "message": message, "hint": error.hint}
    return told | ({"current": dict(error.current)} if isinstance(error, Conflict) else {})


def print_envelope(envelope: Mapping[str, Any]) -> None:
    """Print one line of JSON that is safe to show in a terminal."""
    text = json.dumps(plain(envelope), ensure_ascii=False, separators=(",", ":"))
    print_line(sys.stdout, _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def print_line(stream: TextIO, text: str) -> None:
    """Write a line as it stands, control characters apart."""
    stream.write(visible(text) + "\n")


def use_utf8() -> None:
    """Let the standard streams carry every character, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def progress(title: str) -> Progress:
    """A progress bar on standard error, for work that may take long; silent where nobody watches."""
    watched = sys.stderr.isatty()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not watched, transient=True)
