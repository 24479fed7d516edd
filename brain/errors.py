"""The error tree.

BrainError                an operation failed; every subclass says why in one plain sentence
├── InvalidInput          an argument does not have the accepted form (names the field)
├── Refused               the request is understood and a write rule forbids it
├── NotFound              what was named does not exist, or is not visible at that instant
├── Conflict              the row changed since the caller read it (carries the current content)
├── ConfigurationError    the process was started with settings that cannot work
└── Unavailable           the database or a model cannot be reached just now
    └── Busy              the same, and trying again soon is likely to help
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class BrainError(Exception):
    """The operation failed."""

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "", *, hint: str = "", field: str = "") -> None:
        """Keep the sentence for the caller, a hint on what to do, and the argument it is about."""
        super().__init__(message or (self.__doc__ or "").splitlines()[0])
        self.hint = hint
        self.field = field

    @property
    def message(self) -> str:
        """The sentence shown to the caller."""
        return str(self)


class InvalidInput(BrainError):
    """An argument does not have the accepted form."""

    code = "invalid_input"
    exit_code = 2


class Refused(BrainError):
    """A write rule forbids this."""

    code = "refused"
    exit_code = 2


class NotFound(BrainError):
    """Nothing with that name is visible at that instant."""

    code = "not_found"
    exit_code = 3


class Conflict(BrainError):
    """The row changed since it was read."""

    code = "conflict"
    exit_code = 2

    def __init__(self, message: str = "", *, current: Mapping[str, Any], hint: str = "", field: str = "") -> None:
        """Carry the content as it stands now, so that the caller can merge without another read."""
        super().__init__(message, hint=hint, field=field)
        self.current = current


class ConfigurationError(BrainError):
    """The settings of this process cannot work."""

    code = "configuration"
    exit_code = 2


class Unavailable(BrainError):
    """The database cannot be reached just now."""

    code = "unavailable"


class Busy(Unavailable):
    """The database is busy; try again in a moment."""

    code = "busy"
