"""Standing rules: added and retired only on the user's own word."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from brain.errors import NotFound, Refused
from brain.layers import LAYERS, Constraint
from brain.names import clean_text, excerpt, fold, parse_scope
from brain.refs import new_id, parse_ref
from brain.repository import versions
from brain.services import inputs, scopes
from brain.work import Work

LAYER = LAYERS["constraint"]


async def add(
    work: Work, *, rule: str, said: str, scope: str = "", reason: str = "", known_at: datetime | None = None
) -> tuple[Constraint, bool]:
    """Add a rule and return it with whether it is new; the same active rule of the same scope is returned as it is."""
    text = clean_text(rule, field="rule", minimum=1, maximum=2_000)
    quoted = inputs.quote(said, field="said", what="a rule is added only on their word")
    cleaned_reason = clean_text(reason, field="reason", maximum=2_000)
    where = await scopes.for_writing(work, scope or "global")
    folded = fold(text)
    for existing in await active(work, [where]):
        if fold(existing.rule) == folded:
            return existing, False
    stamp = inputs.stamp(work, said=quoted, known_at=known_at)
    row = Constraint(
        id=new_id(stamp["known_from"]), version=1, scope=where, rule=text, status="active", said=quoted,
        reason=cleaned_reason, **stamp,
    )  # fmt: skip
    return await versions.rewrite(work, LAYER, row), True


async def retire(
    work: Work, *, ref: str, said: str, reason: str = "", known_at: datetime | None = None
) -> tuple[Constraint, bool]:
    """Retire a rule; it stays readable in history. Retiring it again changes nothing."""
    quoted = inputs.quote(said, field="said", what="a rule is retired only on their word")
    cleaned_reason = clean_text(reason, field="reason", maximum=2_000)
    parsed = parse_ref(ref if ":" in ref else f"{LAYER.name}:{ref}", field="ref")
    if parsed.layer != LAYER.name:
        raise Refused("ref must name a constraint, for example constraint:<id>.", field="ref")
    current: Constraint | None = await versions.get(work, LAYER, parsed.id)
    if current is None:
        raise NotFound(f"ref {excerpt(str(parsed))} names no constraint.", field="ref")
    work.caller.check_may_write(parse_scope(current.scope, field="scope"))
    if current.status == "retired":
        return current, False
    stamp = inputs.stamp(work, said=quoted, known_at=known_at, after=current.known_from)
    row = replace(current, version=current.version + 1, status="retired", said=quoted, reason=cleaned_reason, **stamp)
    return await versions.rewrite(work, LAYER, row), True


async def active(work: Work, where: list[str] | None) -> list[Constraint]:
    """Return the rules in force as of the instant, by scope and age."""
    return await versions.listing(work, LAYER, scopes=where, condition="AND t.status = 'active'", order="t.scope, t.id")
