"""Commands about the process and its database: serve, demo, migrate, status, doctor."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Annotated, Any

import typer

from brain import migrate as migrations
from brain.cli import serve as serving
from brain.cli.command import AsOf, Yes, command, confirmed
from brain.cli.output import Answer, Screen, print_answer, progress
from brain.errors import BrainError, InvalidInput, Unavailable
from brain.render import counted
from brain.runtime import Brain
from brain.services import status as service

DownTo = Annotated[
    str,
    typer.Option("--down-to", metavar="NUMBER", help="Undo every later migration; base undoes all, with their data."),
]


class Unhealthy(BrainError):
    """A check failed."""

    code = "unhealthy"


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        "serve",
        help=serving.SUMMARY,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )(serve)
    app.command("demo")(demo)
    command(app, "migrate", migrate)
    command(app, "status", status)
    command(app, "doctor", doctor)


def serve(context: typer.Context) -> None:
    """Stand in for the entry point, which runs this command before anything else is loaded."""
    serving.main(context.args)


def demo(
    plain: Annotated[bool, typer.Option("--plain", help="No colours.")] = False,
    seed_only: Annotated[bool, typer.Option("--seed-only", help="Fill the demo's brain and stop.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON envelope, the story to standard error.")
    ] = False,
) -> None:
    """See an assistant's memory at work: a scripted session with a real server, in a brain of its own."""
    from demo.walkthrough import main

    if not as_json:
        raise typer.Exit(main(plain, seed_only=seed_only))
    with contextlib.redirect_stdout(sys.stderr):
        code = main(plain, seed_only=seed_only)
    failure = None if code == 0 else BrainError("The demo did not run to its end.", hint="Standard error says why.")
    print_answer(Answer({"finished": code == 0}, lambda screen: None, failure=failure), as_json=True)
    raise typer.Exit(code)


async def migrate(brain: Brain, down_to: DownTo = "", yes: Yes = False) -> Answer:
    """Bring the database to this version's schema, or back to an earlier one."""
    dsn = await brain.database.owner_dsn()
    if down_to:
        known = [path.name.split("_")[0] for path in migrations.migrations_directory().glob("versions/[0-9]*.py")]
        if down_to not in ("base", *known):
            raise InvalidInput(f"down-to must be base or one of {', '.join(sorted(known))}.", field="down-to")
        confirmed(f"Undo every migration after {down_to}? What only they hold is lost.", yes)
    with progress("Migrating") as bar:
        bar.add_task("Migrating", total=None)
        work = migrations.downgrade if down_to else migrations.upgrade
        done = await asyncio.to_thread(work, dsn, down_to or "head")
    undone = "Undone" if down_to else "Applied"
    sentence = f"{undone}: {', '.join(done)}." if done else "Nothing to do: the schema is as wanted."
    data = {"undone" if down_to else "applied": done, "schema": down_to or migrations.head()}
    return Answer(data, lambda screen: screen.line(sentence))


async def status(brain: Brain, as_of: AsOf = "") -> Answer:
    """Show what this brain holds, what it runs on, and what waits for a vector."""
    found = await brain.read(lambda work: service.overview(work, brain.embedder), as_of=as_of)
    waiting = found["facts_without_vector"]
    warnings = [f"{counted(waiting, 'fact')} without a vector: only words find them."] if waiting else []

    def show(screen: Screen) -> None:
        rows = {f"{name} rows": number for name, number in found["visible_rows"].items()}
        screen.table(["what", "value"], [*((k, v) for k, v in found.items() if k != "visible_rows"), *rows.items()])

    return Answer(found, show, warnings)


async def doctor(brain: Brain) -> Answer:
    """Check everything that could make an answer wrong; exit 1 when a check fails."""
    try:
        checks = await brain.read(lambda work: service.checks(work, brain.embedder))
    except Unavailable as error:
        checks = [service.Check("database", False, f"{error.message} {error.hint}".strip())]
    failed = [each for each in checks if not each.ok]
    data: dict[str, Any] = {"checks": [{"name": c.name, "ok": c.ok, "finding": c.finding} for c in checks]}

    def show(screen: Screen) -> None:
        screen.table(["check", "state", "finding"], [(c.name, "ok" if c.ok else "FAILED", c.finding) for c in checks])

    failure = Unhealthy(f"{counted(len(failed), 'check')} failed: {', '.join(c.name for c in failed)}.")
    return Answer(data, show, failure=failure if failed else None)
