"""Commands that write facts: remember, forget."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from brain.cli.command import Expected, Ref, Scope, Yes, command, confirmed, text_or_input
from brain.cli.output import Answer
from brain.errors import InvalidInput
from brain.layers import LAYERS, Assertion
from brain.render import counted
from brain.runtime import Brain
from brain.services import amendments, facts, inputs, memory
from brain.work import Work

From = Annotated[str, typer.Option("--valid-from", metavar="INSTANT", help="Holds from; default when it occurred.")]
To = Annotated[str, typer.Option("--valid-to", metavar="INSTANT", help="Holds until, exclusive; default open.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "remember", remember)
    command(app, "forget", forget)


async def remember(
    brain: Brain,
    text: Annotated[str, typer.Argument(help="The fact; - reads standard input.")],
    key: Annotated[str, typer.Option("--key", help="Stable name of the fact.")] = "",
    kind: Annotated[str, typer.Option("--kind", help=f"{', '.join(facts.KINDS)}.")] = "fact",
    title: Annotated[str, typer.Option("--title", help="Short title.")] = "",
    scope: Scope = "",
    tag: Annotated[list[str], typer.Option("--tag", help="Short label. Repeatable.")] = [],  # noqa: B006
    importance: Annotated[int, typer.Option("--importance", min=1, max=5, help="1 to 5.")] = 3,
    confidence: Annotated[str, typer.Option("--confidence", help="0 to 1.")] = "1",
    occurred: Annotated[str, typer.Option("--occurred", metavar="INSTANT", help="When it happened; default now.")] = "",
    valid_from: From = "",
    valid_to: To = "",
    supersedes: Annotated[str, typer.Option("--supersedes", metavar="REF", help="Fact that this one replaces.")] = "",
    reference: Annotated[str, typer.Option("--reference", help="Where it comes from.")] = "",
    known_at: Annotated[
        str, typer.Option("--known-at", metavar="INSTANT", help="When it was known, for facts brought in later.")
    ] = "",
    expected_version: Expected = 0,
    allow_duplicate: Annotated[
        bool, typer.Option("--allow-duplicate", help="Store although the scope already holds this text.")
    ] = False,
) -> Answer:
    """Store one fact."""

    async def instant(work: Work) -> datetime | None:
        return inputs.instant(work, known_at, field="known_at")

    draft = memory.Draft(
        text=text_or_input(text), key=key, kind=kind, title=title, scope=scope, tags=tag, importance=importance,
        confidence=confidence, occurred=occurred, valid_from=valid_from, valid_to=valid_to, supersedes=supersedes,
        trigger="explicit", reference=reference, expected_version=expected_version, allow_duplicate=allow_duplicate,
        known_at=await brain.read(instant) if known_at else None,
    )  # fmt: skip
    [prepared] = await memory.prepare(brain.embedder, [draft])
    written = await brain.write(lambda work: memory.write(work, prepared))
    shown = inputs.shown(facts.LAYER, written.fact)
    ref = f"{shown['ref']}@{shown['version']}"
    warnings = []
    if written.near:
        near = ", ".join(str(each["ref"]) for each in written.near)
        warnings.append(f"{counted(len(written.near), 'near duplicate')}: {near}.")
    if written.pending:
        warnings.append("The embedding model cannot be reached: until its vector is made, only words find this fact.")
    sentence = {
        "created": f"Stored {ref}.",
        "new_version": f"Stored {ref}, a new version of an existing key.",
        "unchanged": f"Nothing changed: {ref} already says this.",
        "deduplicated": f"Not stored again: {ref} already holds this text. --allow-duplicate stores it anyway.",
    }[written.outcome]
    data = {"outcome": written.outcome, "row": shown, "near_duplicates": [dict(each) for each in written.near]}
    return Answer(data, lambda screen: screen.line(sentence), warnings)


async def forget(
    brain: Brain,
    ref: Ref,
    reason: Annotated[str, typer.Option("--reason", help="Why; needed unless restoring.")] = "",
    valid_from: From = "",
    valid_to: To = "",
    restore: Annotated[bool, typer.Option("--restore", help="Bring back what was forgotten.")] = False,
    yes: Yes = False,
) -> Answer:
    """Forget a fact or a record by a tombstone, over a period or for good; every earlier read still sees it."""
    if restore and (valid_from or valid_to):
        raise InvalidInput("--restore takes no period.", field="restore")
    if not restore:
        if not reason.strip():
            raise InvalidInput("reason must say why.", field="reason", hint="Add --reason.")
        confirmed(f"Forget {ref}?", yes)

    async def job(work: Work) -> tuple[Assertion, bool]:
        if restore:
            return await amendments.restore(work, name=ref, reason=reason), True
        return await amendments.forget(work, name=ref, reason=reason, valid_from=valid_from, valid_to=valid_to)

    row, changed = await brain.write(job)
    layer = next(each for each in LAYERS.values() if each.row is type(row))
    shown = inputs.shown(layer, row)
    done = "restored" if restore else "forgotten"
    outcome = done if changed else "unchanged"
    sentence = f"{outcome.capitalize()}: {shown['ref']}@{shown['version']}."
    return Answer({"outcome": outcome, "row": shown}, lambda screen: screen.line(sentence))
