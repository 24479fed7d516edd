"""Where a row belongs: resolving, checking and registering scopes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from brain.errors import InvalidInput, Refused
from brain.names import Scope, nearest, parse_scope
from brain.repository import scopes as repository
from brain.work import Work

GLOBAL = Scope("global", "")
EVERYWHERE = "all"
LANES = "every lane"
FIRST = {"global": 0, "lane:work": 1, "lane:personal": 2, "lane:school": 3}
"""The scopes that every brain has, also before its first write registers them."""


async def for_writing(work: Work, text: str, *, field: str = "scope") -> str:
    """Return the scope that a write names, by default the caller's project, registering a new project.

    Raises InvalidInput for an unknown lane or a near miss of a known project, and Refused when the caller may not
    write there.
    """
    scope = parse_scope(text, field=field) if text.strip() else (work.caller.project or GLOBAL)
    work.caller.check_may_write(scope)
    known = await repository.known(work)
    if str(scope) not in known:
        _refuse_unknown(scope, known, field)
        await repository.register(work, str(scope))
    return str(scope)


@dataclass(frozen=True, slots=True)
class Covered:
    """The scopes that a read covers (None: all), and the same as it is shown, whatever lanes there are by now."""

    scopes: list[str] | None
    label: list[str]
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Every registered scope that is covered, with its number."""


async def for_reading(work: Work, text: str, *, field: str = "scope", unbound: str = EVERYWHERE) -> Covered:
    """Return the scopes that a read covers.

    By default global, every lane and the caller's project; for a caller without one, all scopes or only the lanes. A
    scope that nobody wrote to is an empty answer, unless it looks like a slip of a known one.
    """
    known = await repository.known(work) or FIRST
    project = [str(work.caller.project)] if work.caller.project else []
    if text.strip().casefold() == EVERYWHERE or not (text.strip() or project or unbound != EVERYWHERE):
        return Covered(None, [EVERYWHERE], known)
    if text.strip():
        scope = str(_known_scope(text, known, field))
        covered, label = [scope], [scope]
    else:
        covered = [str(GLOBAL), *(each for each in known if each.startswith("lane:")), *project]
        label = [str(GLOBAL), LANES, *project]
    return Covered(covered, label, {each: known[each] for each in covered if each in known})


def _known_scope(text: str, known: Mapping[str, int], field: str) -> Scope:
    scope = parse_scope(text, field=field)
    if str(scope) not in known:
        _refuse_unknown(scope, known, field)
    return scope


async def add(work: Work, text: str) -> tuple[str, bool]:
    """Register a lane or project by hand; return it and whether it is new. A near miss is what the human meant."""
    scope = parse_scope(text, field="scope")
    if scope.kind == "global":
        raise Refused("The scope global always exists.", field="scope")
    if str(scope) in await repository.known(work):
        return str(scope), False
    work.next_instant()
    await repository.register(work, str(scope))
    return str(scope), True


async def overview(work: Work) -> list[dict[str, Any]]:
    """Return every scope known by as_of with its number of visible facts."""
    return await repository.overview(work)


def _refuse_unknown(scope: Scope, known: Iterable[str], field: str) -> None:
    if scope.kind == "lane":
        lanes = ", ".join(each for each in known if each.startswith("lane:")) or "none yet"
        raise InvalidInput(
            f"{field} {scope} is not a registered lane; known lanes: {lanes}.",
            field=field,
            hint=f"A human adds lanes: brain scope add {scope}",
        )
    projects = [each.removeprefix("project:") for each in known if each.startswith("project:")]
    near = nearest(scope.id, projects)
    if near:
        raise InvalidInput(
            f"{field} {scope} is not known; did you mean {' or '.join(f'project:{each}' for each in near)}?",
            field=field,
            hint=f"If it is another project, a human registers it: brain scope add {scope}",
        )
