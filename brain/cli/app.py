"""The brain command."""

from __future__ import annotations

import typer

app = typer.Typer(name="brain", no_args_is_help=True)


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    app()
