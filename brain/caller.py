"""Who is calling: stamped on every write by the server from how it was launched, never taken from an argument."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from brain.errors import Refused
from brain.names import Scope

Origin = Literal["human", "user", "import", "model"]

ORIGINS: tuple[Origin, ...] = ("human", "user", "import", "model")
"""From the strongest to the weakest."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What a process, or the bearer of a token, is and may do."""

    namespace: str
    client: str = ""
    session: str = ""
    model: str = ""
    origin: Origin = "model"
    project: Scope | None = None
    write_scope: Literal["project", "lane", "all"] = "all"
    read_only: bool = False

    def origin_of(self, said: str) -> Origin:
        """Return `user` when the model quotes the user's own words, otherwise the caller's own origin."""
        return "user" if said and self.origin == "model" else self.origin

    def check_may_write(self, scope: Scope) -> None:
        """Raise Refused when this caller may not write to the scope."""
        if self.read_only:
            raise Refused("This process was started read-only and writes nothing.")
        allowed = (
            self.write_scope == "all"
            or (self.write_scope == "lane" and scope.kind == "lane")
            or (self.project is not None and scope == self.project)
        )
        if not allowed:
            own = str(self.project) if self.project else "no project"
            raise Refused(
                f"scope {scope} is outside what this process may write (write scope {self.write_scope}, {own}).",
                field="scope",
            )


def weakest(origins: Iterable[str]) -> Origin:
    """Return the weakest of at least one origin: compiled text is no better than its weakest source."""
    return ORIGINS[max(ORIGINS.index(origin) for origin in origins)]
