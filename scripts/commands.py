"""Write docs/cli.md from the commands' own help."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from brain.cli import serve
from brain.cli.app import app

DOCUMENT = Path(__file__).parent.parent / "docs" / "cli.md"

_INTRODUCTION = """\
# The brain command

Written by `python scripts/commands.py` from the commands' own help. A test keeps it equal to them.

**For people** every command prints tables and plain text. Stored text stands behind a bar (`  | `) and reaches the
terminal without control characters, so that it can pass neither for a heading of the program nor for a command to the
terminal. In a pipe nothing is coloured, wrapped or cut. Warnings and errors go to standard error.

**For programs** every command but `serve` takes `--json` and then prints exactly one line on standard
output: `{"ok":true,"data":…,"warnings":[]}` or `{"ok":false,"error":{"code":…,"message":…,"hint":…}}`. The error of a
conflict also has `current`, the content as it stands; a `doctor` that finds something wrong has its checks in `data`.

| exit code | meaning |
| --- | --- |
| 0 | done; a search that finds nothing is done as well, and says on what evidence |
| 1 | failure: the database cannot be reached, a check failed, an error of the program |
| 2 | bad input, a refused write, or a conflict with what another wrote |
| 3 | what was named does not exist, or is not visible at that instant |

**Who writes.** What this command writes has the origin `human` and the client `cli`. Without `--project` reads cover
every scope, and a write that names none goes to `global`; with it they are those of a session in that project. `serve`
over stdio is bound to the project of the folder it was started in; over HTTP, whose callers sit elsewhere, to none,
unless one is named.

**Time.** `--as-of` answers as the brain stood at an instant, `--valid-at` says what held in the world at another one.
Both take `YYYY-MM-DD` (midnight in the brain's time zone) or RFC 3339 with an offset. `--since` and `--until` also take
ages such as `7d` or `12h`. Instants are printed in UTC.

**Asking.** `forget` and `migrate --down-to` ask before they act. Where nobody can answer they refuse, unless `--yes`
is given. A text argument of `-` is read from standard input.
"""


def document() -> str:
    """Return the whole document."""
    return _INTRODUCTION + "".join(f"\n## {name}\n\n```text\n{text}\n```\n" for name, text in _helps())


def _helps() -> Iterator[tuple[str, str]]:
    entry: Any = typer.main.get_command(app)
    yield "brain", _help(entry, [])
    for name, command in entry.commands.items():
        if name == "serve":
            yield "brain serve", serve.parser().format_help().rstrip()
            continue
        yield f"brain {name}", _help(entry, [name])
        for inner in getattr(command, "commands", {}):
            yield f"brain {name} {inner}", _help(entry, [name, inner])


def _help(entry: Any, path: list[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        entry.main([*path, "--help"], prog_name="brain", standalone_mode=False, terminal_width=100)
    return "\n".join(line.rstrip() for line in printed.getvalue().splitlines()).rstrip()


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
    sys.exit(0)
