"""Commands of the layers that hold the present: pin, thread, wiki, record, constraint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from brain.cli.command import AsOf, Expected, Scope, ValidAt, command, text_or_input
from brain.cli.output import Answer, Screen
from brain.errors import InvalidInput
from brain.layers import Layer, Page, Version
from brain.names import excerpt
from brain.render import counted, row_text
from brain.runtime import Brain
from brain.services import constraints, inputs, pins, records, scopes, threads, wiki
from brain.work import Work

Said = Annotated[str, typer.Option("--said", help="The words with which it was decided.")]
Cites = Annotated[list[str], typer.Option("--cite", metavar="REF", help="Row it was compiled from. Repeatable.")]
Reason = Annotated[str, typer.Option("--reason", help="Why.")]


def add_to(app: typer.Typer) -> None:
    """Add the groups."""
    pin = _group(app, "pin", "Where a scope stands and what is next.")
    command(pin, "list", list_pins)
    command(pin, "set", set_pin)
    thread = _group(app, "thread", "Open loops.")
    command(thread, "list", list_threads)
    command(thread, "touch", touch_thread)
    pages = _group(app, "wiki", "Compiled pages, one an entity.")
    command(pages, "list", list_pages)
    command(pages, "read", read_page)
    command(pages, "write", write_page)
    record = _group(app, "record", "Hard data.")
    command(record, "list", list_records)
    command(record, "log", log_record)
    constraint = _group(app, "constraint", "Standing rules.")
    command(constraint, "list", list_constraints)
    command(constraint, "add", add_constraint)
    command(constraint, "retire", retire_constraint)


def _group(app: typer.Typer, name: str, words: str) -> typer.Typer:
    group = typer.Typer(help=words, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(group, name=name)
    return group


async def list_pins(brain: Brain, scope: Scope = "", as_of: AsOf = "") -> Answer:
    """List the pins."""

    async def job(work: Work) -> list[Any]:
        return await pins.listing(work, (await scopes.for_reading(work, scope)).scopes)

    return _listed("pins", pins.LAYER, await brain.read(job, as_of=as_of))


async def set_pin(
    brain: Brain,
    state: Annotated[str, typer.Argument(help="Where things stand; - reads standard input.")],
    scope: Scope = "",
    next_step: Annotated[str, typer.Option("--next", help="What is next.")] = "",
    blocked_on: Annotated[str, typer.Option("--blocked-on", help="What it waits for.")] = "",
    cite: Cites = [],  # noqa: B006 - typer copies it
    expected_version: Expected = 0,
) -> Answer:
    """Rewrite the pin of a scope; by default the project's, or the global one."""
    text = text_or_input(state)
    row, changed = await brain.write(
        lambda work: pins.write(
            work,
            state=text,
            scope=scope,
            next_step=next_step,
            blocked_on=blocked_on,
            cites=cite,
            expected_version=expected_version,
        )
    )
    return written(pins.LAYER, row, changed)


async def list_threads(
    brain: Brain,
    scope: Scope = "",
    status: Annotated[str, typer.Option("--status", help=f"One of {', '.join(threads.STATUSES)}.")] = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Only those silent for longer than their cadence.")] = False,
    as_of: AsOf = "",
) -> Answer:
    """List threads, the longest silent first; by default the unfinished ones."""
    chosen = (inputs.choice(status, threads.STATUSES, field="status"),) if status.strip() else threads.UNFINISHED

    async def job(work: Work) -> list[threads.Quiet]:
        return await threads.listing(work, (await scopes.for_reading(work, scope)).scopes, statuses=chosen)

    found = [each for each in await brain.read(job, as_of=as_of) if each.is_quiet or not quiet]
    data = [
        inputs.shown(threads.LAYER, each.thread) | {"days_since_touch": each.days, "quiet": each.is_quiet}
        for each in found
    ]
    columns = ("ref", "version", "status", "title", "days_since_touch", "cadence_days", "quiet")
    return Answer({"threads": data}, lambda screen: screen.table(columns, _cells(columns, data)))


async def touch_thread(
    brain: Brain,
    key: Annotated[str, typer.Argument(help="Stable short name.")],
    title: Annotated[str, typer.Option("--title", help="The open loop; needed when new.")] = "",
    scope: Scope = "",
    status: Annotated[str, typer.Option("--status", help=f"One of {', '.join(threads.STATUSES)}.")] = "",
    cadence: Annotated[
        int, typer.Option("--cadence", min=0, max=3_660, metavar="DAYS", help="Days of silence that are normal.")
    ] = 0,
    note: Annotated[str, typer.Option("--note", help="What is known now.")] = "",
    said: Said = "",
    expected_version: Expected = 0,
) -> Answer:
    """Open a thread, or note that it was talked about; a change of status needs --said."""
    row = await brain.write(
        lambda work: threads.touch(
            work,
            key=key,
            title=title,
            scope=scope,
            status=status,
            cadence_days=cadence,
            note=note,
            said=said,
            expected_version=expected_version,
        )
    )
    return written(threads.LAYER, row, True)


async def list_pages(brain: Brain, scope: Scope = "", as_of: AsOf = "") -> Answer:
    """List the pages of the wiki."""

    async def job(work: Work) -> list[Page]:
        return await wiki.index(work, (await scopes.for_reading(work, scope)).scopes)

    found = [inputs.shown(wiki.LAYER, each) for each in await brain.read(job, as_of=as_of)]
    data = [{name: value for name, value in each.items() if name != "body"} for each in found]
    columns = ("ref", "version", "scope", "scope_id", "core", "summary", "known_from")
    return Answer({"pages": data}, lambda screen: screen.table(columns, _cells(columns, data)))


async def read_page(
    brain: Brain, page: Annotated[str, typer.Argument(help="Name of the page.")], as_of: AsOf = ""
) -> Answer:
    """Show a page."""
    found = inputs.shown(wiki.LAYER, await brain.read(lambda work: wiki.read(work, page), as_of=as_of))
    return Answer(found, lambda screen: screen.line(row_text(found)))


async def write_page(
    brain: Brain,
    page: Annotated[str, typer.Argument(help="Name of the page.")],
    file: Annotated[str, typer.Option("--file", metavar="PATH", help="Markdown body; - reads standard input.")] = "-",
    summary: Annotated[str, typer.Option("--summary", help="One line for the index.")] = "",
    core: Annotated[bool | None, typer.Option("--core/--no-core", help="Show it whole in every session.")] = None,
    scope: Scope = "",
    cite: Cites = [],  # noqa: B006
    expected_version: Expected = 0,
) -> Answer:
    """Rewrite a whole page."""
    body = text_or_input("-") if file == "-" else _read(file)
    row, changed = await brain.write(
        lambda work: wiki.write(
            work,
            page=page,
            body=body,
            summary=summary,
            core=core,
            scope=scope,
            cites=cite,
            expected_version=expected_version,
        )
    )
    return written(wiki.LAYER, row, changed)


async def list_records(
    brain: Brain,
    scope: Scope = "",
    kind: Annotated[str, typer.Option("--kind", help="Exact kind.")] = "",
    title: Annotated[str, typer.Option("--title", help="Part of the title.")] = "",
    since: Annotated[str, typer.Option("--since", metavar="DATE", help="From this date on, YYYY-MM-DD.")] = "",
    until: Annotated[str, typer.Option("--until", metavar="DATE", help="Before this date, YYYY-MM-DD.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Most items.")] = 100,
    offset: Annotated[int, typer.Option("--offset", min=0, max=1_000_000, help="Items to skip.")] = 0,
    as_of: AsOf = "",
    valid_at: ValidAt = "",
) -> Answer:
    """List records by date, with count, sum, least and greatest of everything that matches, by kind and unit."""
    filters: dict[str, Any] = {
        "scope": scope, "kind": kind, "title": title, "since": since, "until": until, "valid_at": valid_at,
        "limit": limit, "offset": offset,
    }  # fmt: skip
    found = await brain.read(lambda work: records.read(work, **filters), as_of=as_of)
    rows = [inputs.shown(records.LAYER, each) for each in found.records]
    figures = [inputs.json_form(each) for each in found.figures]

    def show(screen: Screen) -> None:
        columns = ("ref", "version", "date", "kind", "title", "value", "unit")
        screen.table(columns, _cells(columns, rows))
        screen.line(f"{counted(found.total, 'record')} match; {len(rows)} shown from {found.offset}.")
        if figures:
            screen.table(list(figures[0]), [list(each.values()) for each in figures])

    return Answer({"records": rows, "figures": figures, "total": found.total, "offset": found.offset}, show)


async def log_record(
    brain: Brain,
    kind: Annotated[str, typer.Argument(help="invoice, deadline, measurement, …")],
    title: Annotated[str, typer.Argument(help="What it is.")],
    date: Annotated[str, typer.Argument(help="YYYY-MM-DD.")],
    value: Annotated[str, typer.Option("--value", help="Exact decimal such as 1250.00.")] = "",
    unit: Annotated[str, typer.Option("--unit", help="Unit or currency, such as EUR or h.")] = "",
    field: Annotated[list[str], typer.Option("--field", metavar="NAME=VALUE", help="More; repeatable.")] = [],  # noqa: B006
    source: Annotated[str, typer.Option("--source", help="Where it comes from.")] = "",
    scope: Scope = "",
    valid_from: Annotated[str, typer.Option("--valid-from", metavar="INSTANT", help="Holds from.")] = "",
    valid_to: Annotated[str, typer.Option("--valid-to", metavar="INSTANT", help="Holds until, exclusive.")] = "",
    expected_version: Expected = 0,
) -> Answer:
    """Write a record, or a new version of the one with the same kind, title and date."""
    named = _fields(field)
    row, changed = await brain.write(
        lambda work: records.log(
            work,
            kind=kind,
            title=title,
            date=date,
            value=value,
            unit=unit,
            fields=named,
            source=source,
            scope=scope,
            valid_from=valid_from,
            valid_to=valid_to,
            expected_version=expected_version,
        )
    )
    return written(records.LAYER, row, changed)


async def list_constraints(brain: Brain, scope: Scope = "", as_of: AsOf = "") -> Answer:
    """List the rules in force."""

    async def job(work: Work) -> list[Any]:
        return await constraints.active(work, (await scopes.for_reading(work, scope)).scopes)

    return _listed("constraints", constraints.LAYER, await brain.read(job, as_of=as_of))


async def add_constraint(
    brain: Brain,
    rule: Annotated[str, typer.Argument(help="The rule, one sentence.")],
    said: Said = "",
    scope: Scope = "global",
    reason: Reason = "",
) -> Answer:
    """Add a rule that holds in every session; what is typed here is the user's own word."""
    row, new = await brain.write(
        lambda work: constraints.add(work, rule=rule, said=said or rule, scope=scope, reason=reason)
    )
    return written(constraints.LAYER, row, new)


async def retire_constraint(
    brain: Brain,
    ref: Annotated[str, typer.Argument(metavar="REF", help="constraint:<id>.")],
    said: Annotated[str, typer.Option("--said", help="The words with which it was taken back; needed.")] = "",
    reason: Reason = "",
) -> Answer:
    """Take a rule out of force; it stays in history."""
    row, changed = await brain.write(lambda work: constraints.retire(work, ref=ref, said=said, reason=reason))
    return written(constraints.LAYER, row, changed)


def written(layer: Layer, row: Version, changed: bool) -> Answer:
    """The answer of a command that rewrote one row."""
    shown = inputs.shown(layer, row)
    outcome = ("created" if row.version == 1 else "rewritten") if changed else "unchanged"
    ref = f"{shown['ref']}@{shown['version']}"
    sentence = f"Nothing changed: {ref} already says this." if not changed else f"{outcome.capitalize()}: {ref}."
    return Answer({"outcome": outcome, "row": shown}, lambda screen: screen.line(sentence))


def _listed(name: str, layer: Layer, found: Sequence[Version]) -> Answer:
    data = [inputs.shown(layer, each) for each in found]

    def show(screen: Screen) -> None:
        for each in data:
            screen.line(row_text(each, skip=("session", "model", "recorded_at")))
        if not data:
            screen.line("None.")

    return Answer({name: data}, show)


def _cells(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[list[Any]]:
    return [[row[name] for name in columns] for row in rows]


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("file must be UTF-8 text.", field="file") from None
    except OSError as error:
        raise InvalidInput(f"file {excerpt(file)} cannot be read: {error.strerror}.", field="file") from None


def _fields(given: Sequence[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    if any(not equals for _, equals, _ in pairs) or len({name for name, *_ in pairs}) != len(pairs):
        raise InvalidInput("field must be NAME=VALUE, each name once.", field="field")
    return {name: value for name, _, value in pairs}
