"""Commands that read: session, search, show, history, trail, digest, audit."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from brain.cli.command import AsOf, Ref, Scope, Since, Until, ValidAt, command
from brain.cli.output import Answer, Screen
from brain.errors import InvalidInput
from brain.layers import Layer, Version
from brain.render import counted, fact_text, row_text
from brain.runtime import Brain
from brain.services import answers, facts, inputs, rows
from brain.services import audit as audit_service
from brain.services import digest as digest_service
from brain.services import history as history_service
from brain.services import search as search_service
from brain.services import session as session_service
from brain.services import trail as trail_service
from brain.times import format_instant
from brain.work import Work

Kinds = Annotated[list[str], typer.Option("--kind", help=f"Only these kinds: {', '.join(facts.KINDS)}. Repeatable.")]
Tags = Annotated[list[str], typer.Option("--tag", help="Only facts with this tag. Repeatable.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100, help="Most items.")]
TrailLimit = Annotated[int, typer.Option("--limit", min=1, max=200, help="Most items.")]
AuditLimit = Annotated[int, typer.Option("--limit", min=1, max=audit_service.MOST, help="Most writes.")]
Cursor = Annotated[str, typer.Option("--cursor", help="Cursor of the page before.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "session", session)
    command(app, "search", search)
    command(app, "show", show)
    command(app, "history", history)
    command(app, "trail", trail)
    command(app, "digest", digest)
    command(app, "audit", audit)


async def session(
    brain: Brain,
    scope: Scope = "",
    as_of: AsOf = "",
    since: Since = "",
    max_chars: Annotated[
        int, typer.Option("--max-chars", min=0, max=500_000, help="Budget in characters; 0 for the usual one.")
    ] = 0,
) -> Answer:
    """Show what a session sees when it starts, now or as of any instant."""
    budget = max_chars or brain.settings.session_chars
    payload = await brain.read(
        lambda work: session_service.start(work, scope=scope, since=since, budget=budget), as_of=as_of
    )
    return Answer({"text": payload.text, **payload.data}, lambda screen: screen.line(payload.text.rstrip("\n")))


async def search(
    brain: Brain,
    query: Annotated[list[str], typer.Argument(help="Words or a question; never operators.")],
    scope: Scope = "",
    kind: Kinds = [],  # noqa: B006 - typer copies it
    tag: Tags = [],  # noqa: B006
    since: Since = "",
    until: Until = "",
    mode: Annotated[str, typer.Option("--mode", help=f"{', '.join(search_service.MODES)}.")] = "hybrid",
    limit: Limit = 10,
    as_of: AsOf = "",
    valid_at: ValidAt = "",
    cursor: Cursor = "",
) -> Answer:
    """Search facts by words and meaning, with what each leg said; nothing found is an answer, with its evidence."""
    question = search_service.Question(
        query=" ".join(query), scope=scope, kinds=kind, tags=tag, since=since, until=until, valid_at=valid_at,
        mode=mode, limit=limit, cursor=cursor,
    )  # fmt: skip
    pinned = _pinned(as_of, search_service.pinned(question))
    prepared = await search_service.prepare(brain.embedder, question)
    found = await brain.read(lambda work: search_service.run(work, prepared), as_of=pinned)
    missing = found.diagnosis.get("rows_without_vector", 0)
    warnings = [f"{counted(missing, 'row')} without a vector: only words find them."] if missing else []
    shown = answers.show(found)
    return Answer(shown.data, lambda screen: screen.line(shown.text), warnings)


async def show(brain: Brain, ref: Ref, as_of: AsOf = "", valid_at: ValidAt = "") -> Answer:
    """Show one row of any layer, whole."""

    async def job(work: Work) -> tuple[Layer, Version]:
        return await rows.find(work, ref, valid_at=valid_at, for_human=True)

    layer, row = await brain.read(job, as_of=as_of)
    shown = inputs.shown(layer, row)
    return Answer(shown, lambda screen: screen.line(row_text(shown)))


async def history(brain: Brain, ref: Ref, as_of: AsOf = "") -> Answer:
    """Show every version of a row: what it said from when to when, who wrote it and why."""
    found = await brain.read(lambda work: history_service.of(work, ref, for_human=True), as_of=as_of)
    shown = history_service.shown(found)

    def print_all(screen: Screen) -> None:
        screen.heading(f"{found.ref} has {counted(len(shown), 'version')}, oldest first.")
        for each in shown:
            screen.line(row_text(each))

    return Answer({"ref": found.ref, "versions": shown}, print_all)


async def trail(
    brain: Brain,
    scope: Scope = "",
    kind: Kinds = [],  # noqa: B006
    tag: Tags = [],  # noqa: B006
    entity: Annotated[str, typer.Option("--entity", help="Only facts that contain all of these words.")] = "",
    since: Since = "",
    until: Until = "",
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Turn the order round.")] = False,
    limit: TrailLimit = 50,
    as_of: AsOf = "",
    valid_at: ValidAt = "",
    cursor: Cursor = "",
) -> Answer:
    """Walk facts in the order of their events; no search, nothing is missing."""
    arguments: dict[str, Any] = {
        "scope": scope, "kinds": kind, "tags": tag, "entity": entity, "since": since, "until": until,
        "newest_first": newest_first, "limit": limit, "valid_at": valid_at, "cursor": cursor,
    }  # fmt: skip
    pinned = _pinned(as_of, trail_service.pinned(cursor))
    found = await brain.read(lambda work: trail_service.walk(work, **arguments), as_of=pinned)

    def print_all(screen: Screen) -> None:
        filters = "; ".join(f"{name} {value}" for name, value in found.filters.items())
        screen.heading(f"{counted(len(found.facts), 'fact')} by event time; {filters}.")
        for fact in found.facts:
            screen.line(fact_text(fact))
        if found.cursor:
            screen.line(f"More: --cursor {found.cursor}")

    data = {"facts": [inputs.shown(facts.LAYER, each) for each in found.facts], "filters": found.filters}
    return Answer(data | ({"cursor": found.cursor} if found.cursor else {}), print_all)


async def digest(brain: Brain, since: Since = "7d", until: Until = "", scope: Scope = "", as_of: AsOf = "") -> Answer:
    """Summarise a period as Markdown: new, changed, superseded and forgotten facts, and what else moved."""
    found = await brain.read(lambda work: digest_service.of(work, since=since, until=until, scope=scope), as_of=as_of)
    return Answer({"markdown": found.markdown, **found.data()}, lambda screen: screen.line(found.markdown.rstrip("\n")))


async def audit(
    brain: Brain,
    layer: Annotated[str, typer.Option("--layer", help="Only writes of this layer.")] = "",
    ref: Annotated[str, typer.Option("--ref", metavar="REF", help="Only writes of this row.")] = "",
    scope: Scope = "",
    client: Annotated[str, typer.Option("--client", metavar="NAME", help="Only writes of this client.")] = "",
    since: Since = "",
    until: Until = "",
    limit: AuditLimit = 1_000,
    as_of: AsOf = "",
) -> Answer:
    """List every write in the order in which it was recorded: what, by whom, when."""

    filters: dict[str, Any] = {
        "layer": layer, "ref": ref, "scope": scope, "client": client, "since": since, "until": until,
        "limit": min(limit + 1, audit_service.MOST),
    }  # fmt: skip
    found = await brain.read(lambda work: audit_service.writes(work, **filters), as_of=as_of)
    warnings = [f"There are more; these are the oldest {limit}."] if len(found) > limit else []
    listed = [_write(each) for each in found[:limit]]
    columns = ("recorded_at", "ref", "what", "scope", "origin", "client", "label")
    return Answer(
        {"writes": listed},
        lambda screen: screen.table(columns, [[each[name] for name in columns] for each in listed]),
        warnings,
    )


def _write(entry: audit_service.Entry) -> dict[str, Any]:
    what = "forgotten" if entry.tombstone else entry.status or ("created" if entry.version == 1 else "rewritten")
    return {
        "recorded_at": format_instant(entry.recorded_at),
        "known_from": format_instant(entry.known_from),
        "ref": f"{entry.layer}:{entry.id}@{entry.version}",
        "what": what,
        "scope": entry.scope,
        "origin": entry.origin,
        "client": entry.client,
        "session": entry.session,
        "model": entry.model,
        "label": entry.label,
    }


def _pinned(as_of: str, pinned: Any) -> Any:
    """Return the instant of a page: the one that its cursor pins."""
    if pinned is not None and as_of.strip():
        raise InvalidInput("as_of must be left out with a cursor, which pins the instant.", field="as_of")
    return pinned if pinned is not None else as_of
