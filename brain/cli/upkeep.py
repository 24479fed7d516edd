"""Commands of upkeep, for humans only: friction, scope."""

from __future__ import annotations

from typing import Annotated

import typer

from brain.cli.command import AsOf, Scope, command
from brain.cli.layers import written
from brain.cli.output import Answer, Screen
from brain.layers import Friction
from brain.render import row_text
from brain.runtime import Brain
from brain.services import friction as service
from brain.services import inputs, scopes
from brain.work import Work

OPEN = ("new", "triaged")


def add_to(app: typer.Typer) -> None:
    """Add the groups."""
    friction = typer.Typer(help="The model's failure log.", no_args_is_help=True, rich_markup_mode=None)
    command(friction, "list", list_friction)
    command(friction, "triage", triage)
    app.add_typer(friction, name="friction")
    scope = typer.Typer(help="Lanes and projects.", no_args_is_help=True, rich_markup_mode=None)
    command(scope, "list", list_scopes)
    command(scope, "add", add_scope)
    app.add_typer(scope, name="scope")


async def list_friction(
    brain: Brain,
    status: Annotated[
        str, typer.Option("--status", help=f"One of {', '.join(service.STATUSES)}, or all; default new and triaged.")
    ] = "",
    scope: Scope = "",
    as_of: AsOf = "",
) -> Answer:
    """List what failed the model, with the artifacts, oldest first."""
    wanted = status.strip().casefold()
    chosen = (
        service.STATUSES
        if wanted == "all"
        else (inputs.choice(wanted, service.STATUSES, field="status"),)
        if wanted
        else OPEN
    )

    async def job(work: Work) -> list[Friction]:
        return await service.listing(work, statuses=chosen, where=(await scopes.for_reading(work, scope)).scopes)

    data = [inputs.shown(service.LAYER, each) for each in await brain.read(job, as_of=as_of)]

    def show(screen: Screen) -> None:
        for each in data:
            screen.line(row_text(each))
        if not data:
            screen.line("None.")

    return Answer({"friction": data}, show)


async def triage(
    brain: Brain,
    ref: Annotated[str, typer.Argument(metavar="REF", help="friction:<id>.")],
    status: Annotated[str, typer.Argument(help=f"One of {', '.join(service.STATUSES)}.")],
    note: Annotated[str, typer.Option("--note", help="What was done about it.")] = "",
) -> Answer:
    """Settle an entry."""
    row = await brain.write(lambda work: service.triage(work, ref=ref, status=status, note=note))
    return written(service.LAYER, row, True)


async def list_scopes(brain: Brain, as_of: AsOf = "") -> Answer:
    """List the registered lanes and projects with their number of visible facts."""
    rows = [inputs.json_form(each) for each in await brain.read(scopes.overview, as_of=as_of)]
    columns = ("scope", "facts", "known_from", "client")
    return Answer(
        {"scopes": rows}, lambda screen: screen.table(columns, [[each[name] for name in columns] for each in rows])
    )


async def add_scope(
    brain: Brain, scope: Annotated[str, typer.Argument(help="lane:<slug> or project:<slug>.")]
) -> Answer:
    """Register a lane, or a project whose name comes near a known one."""
    name, new = await brain.write(lambda work: scopes.add(work, scope))
    sentence = f"Registered {name}." if new else f"Nothing changed: {name} is registered already."
    return Answer({"scope": name, "new": new}, lambda screen: screen.line(sentence))
