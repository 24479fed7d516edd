"""The brain command: its groups, and what happens around every command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import brain
from brain.cli import indexing, layers, process, reading, upkeep, writing
from brain.cli.command import Launch
from brain.cli.output import print_error, use_utf8
from brain.errors import InvalidInput

app = typer.Typer(
    name="brain",
    help="A layered, versioned memory for LLM assistants.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"brain {brain.__version__}\n")
        raise typer.Exit


@app.callback()
def before(
    context: typer.Context,
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="The brain to use (BRAIN_NAMESPACE).")
    ] = "",
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keep what stands before the command's name."""
    context.obj = Launch(namespace)


for group in (process, reading, writing, layers, upkeep, indexing):
    group.add_to(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    use_utf8()
    try:
        try:
            sys.exit(_run(given))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _run(given: list[str]) -> int:
    entry = typer.main.get_command(app)
    if "--json" not in given:
        entry(given, prog_name="brain")
    try:
        return int(entry.main(given, prog_name="brain", standalone_mode=False) or 0)
    except Exception as error:
        told = getattr(error, "format_message", None)  # what every usage error has
        if told is None:
            raise
        print_error(InvalidInput(told(), hint="See: brain --help"), as_json=True)
        return InvalidInput.exit_code
