"""What the walk-through prints: coloured in a terminal, plain text in a pipe, never wider than 100 columns."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from brain.render import counted

WIDTH: Final = 100

_MARGIN: Final = "    "
_ARGUMENT: Final = "       "
_LONGEST_VALUE: Final = 300
_INDENT: Final = re.compile(r"\s*(?:\| )?")


class Screen:
    """Prints headings, what was said, calls and answers."""

    def __init__(self, *, plain: bool = False) -> None:
        """Plain leaves out colours in a terminal as well; in a pipe there are none in any case."""
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        self._console = Console(no_color=plain or None, force_terminal=False if plain else None, highlight=False)
        self._width = min(WIDTH, self._console.width) if self._console.is_terminal else WIDTH

    def heading(self, text: str) -> None:
        """Print a heading."""
        self._print("")
        self._print(text, "bold cyan")
        self._print("-" * min(len(text), self._width), "cyan")

    def say(self, text: str, style: str = "") -> None:
        """Print a paragraph."""
        for line in textwrap.wrap(text, self._width) or [""]:
            self._print(line, style)

    def line(self, text: str, style: str = "bold") -> None:
        """Print one line that must stay whole, such as a command to copy."""
        self._print(f"  {text}", style)

    def user(self, words: str) -> None:
        """Print what the user says."""
        self._wrapped(f'User: "{words}"', "", "bold magenta")

    def assistant(self, words: str) -> None:
        """Print what the assistant says to the user."""
        self._wrapped(f"Assistant: {words}", "", "magenta")

    def call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Print a tool call as the assistant makes it."""
        self._print(f"  -> {tool}", "bold green")
        for name, value in arguments.items():
            if isinstance(value, str) and "\n" in value:
                self._wrapped(f"{name}:", _ARGUMENT, "green")
                for line in value.rstrip("\n").split("\n"):
                    self._wrapped(f"  | {line}", _ARGUMENT, "green")
            else:
                self._wrapped(f"{name}: {_shortened_value(value)}", _ARGUMENT, "green")

    def answer(self, text: str, *, most: int, around: str = "") -> None:
        """Print an answer of the server: its first line, then some lines from the first that holds `around` on.

        What is left out is marked.
        """
        lines = text.rstrip("\n").split("\n")
        start = next((number for number, line in enumerate(lines) if around in line), 0) if around else 0
        if start:
            self._wrapped(lines[0], _MARGIN, "")
            self._left_out(start - 1)
        for line in lines[start : start + most]:
            self._wrapped(line, _MARGIN, "")
        self._left_out(len(lines) - start - most)

    def _left_out(self, lines: int) -> None:
        if lines > 0:
            self._print(f"{_MARGIN}[shortened: {counted(lines, 'line')}]", "dim")

    def shows(self, sentence: str, checks: int) -> None:
        """Print what a step shows, and how many expectations it was held to."""
        self._wrapped(f"Shows: {sentence} ({counted(checks, 'check')} passed)", "", "yellow")

    def failed(self, sentence: str) -> None:
        """Print why the walk-through stops."""
        self._print("")
        self._wrapped(f"The demo stops: {sentence}", "", "bold red")

    def _wrapped(self, text: str, margin: str, style: str) -> None:
        own = _INDENT.match(text)
        following = margin + (own[0] if own and own[0].strip() else "  ")
        wrapped = textwrap.wrap(
            text,
            self._width,
            initial_indent=margin,
            subsequent_indent=following,
            replace_whitespace=False,
            drop_whitespace=True,
            break_on_hyphens=False,
        )
        for line in wrapped or [""]:
            self._print(line, style)

    def _print(self, line: str, style: str = "") -> None:
        self._console.print(Text(line, style=style), soft_wrap=True)


def _shortened_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE].rstrip()} [shortened]"
