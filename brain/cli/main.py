"""The entry point: brain serve starts at once, every other command loads the command line first."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def run() -> None:
    """Run the command that the arguments name."""
    served = serve_arguments(sys.argv[1:])
    if served is not None:
        from brain.cli import serve

        serve.main(served)
    from brain.cli.app import main

    main()


def serve_arguments(arguments: Sequence[str]) -> list[str] | None:
    """Return what belongs to `brain serve`, also when --namespace stands before it; None for every other command."""
    before: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("--namespace"):
        length = 1 if "=" in rest[0] else 2
        before, rest = before + rest[:length], rest[length:]
    return [*before, *rest[1:]] if rest and rest[0] == "serve" else None
