"""The model's own failure log: written with a concrete artifact, read and settled by a human only."""

from __future__ import annotations

import re
from dataclasses import replace

from brain.errors import InvalidInput, NotFound, Refused
from brain.layers import LAYERS, Friction
from brain.names import clean_text, excerpt, fold
from brain.refs import new_id, parse_ref
from brain.repository import versions
from brain.services import inputs, scopes
from brain.work import Work

LAYER = LAYERS["friction"]
STATUSES = ("new", "triaged", "fixed", "dismissed")
CATEGORIES = ("tool", "memory", "instructions", "environment", "other")
SHORTEST_ARTIFACT = 15

_WORDS = re.compile(r"\w+")


async def log(
    work: Work, *, happened: str, expected: str, artifact: str, category: str = "other", scope: str = ""
) -> tuple[Friction, bool]:
    """Write one entry and return it with whether it is new; the same open entry is returned as it is.

    Raises Refused when the artifact is missing, too short to be a quote, or only restates the complaint.
    """
    what = clean_text(happened, field="happened", minimum=1, maximum=2_000)
    wanted = clean_text(expected, field="expected", minimum=1, maximum=2_000)
    quoted = clean_text(artifact, field="artifact", maximum=8_000)
    kind = inputs.choice(category, CATEGORIES, field="category")
    _check_artifact(quoted, what, wanted)
    where = await scopes.for_writing(work, scope)
    for entry in await listing(work, statuses=("new", "triaged"), where=[where]):
        if (entry.happened, entry.expected, entry.artifact) == (what, wanted, quoted):
            return entry, False
    stamp = inputs.stamp(work)
    row = Friction(
        id=new_id(stamp["known_from"]), version=1, scope=where, happened=what, expected=wanted, category=kind,
        artifact=quoted, status="new", note="", **stamp,
    )  # fmt: skip
    return await versions.rewrite(work, LAYER, row), True


async def triage(work: Work, *, ref: str, status: str, note: str = "") -> Friction:
    """Settle an entry; a human's doing."""
    if work.caller.origin != "human":
        raise Refused("The status of a friction entry is a human's to change.", field="status")
    wanted = inputs.choice(status, STATUSES, field="status")
    parsed = parse_ref(ref if ":" in ref else f"{LAYER.name}:{ref}", field="ref")
    if parsed.layer != LAYER.name:
        raise InvalidInput("ref must name a friction entry, for example friction:<id>.", field="ref")
    current: Friction | None = await versions.get(work, LAYER, parsed.id)
    if current is None:
        raise NotFound(f"ref {excerpt(str(parsed))} names no friction entry.", field="ref")
    comment = clean_text(note, field="note", maximum=2_000) or current.note
    if (current.status, current.note) == (wanted, comment):
        return current
    row = replace(current, version=current.version + 1, status=wanted, note=comment, **inputs.stamp(work))
    return await versions.rewrite(work, LAYER, row)


async def listing(
    work: Work, *, statuses: tuple[str, ...] = STATUSES, where: list[str] | None = None
) -> list[Friction]:
    """Return entries of some statuses, oldest first; for the command line and the console only."""
    return await versions.listing(
        work,
        LAYER,
        scopes=where,
        condition="AND t.status = ANY(%(statuses)s)",
        params={"statuses": list(statuses)},
        order="t.id",
    )


def _check_artifact(artifact: str, happened: str, expected: str) -> None:
    form = "paste verbatim output, a tool result or a file line"
    quoted = artifact.strip()
    if not quoted:
        raise Refused(f"artifact is missing: {form}.", field="artifact")
    if len(quoted) < SHORTEST_ARTIFACT:
        raise Refused(f"artifact must quote at least {SHORTEST_ARTIFACT} characters: {form}.", field="artifact")
    complaint = set(_WORDS.findall(fold(f"{happened} {expected}")))
    if set(_WORDS.findall(fold(quoted))) <= complaint:
        raise Refused(f"artifact only restates the complaint: {form}.", field="artifact")
