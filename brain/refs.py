"""Identifiers: UUIDv7 for rows without a name of their own, and refs (`layer:id`, `layer:id@version`) for any row."""

from __future__ import annotations

import re
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from brain.errors import InvalidInput
from brain.names import clean_text

_FORM = "layer:id or layer:id@version, for example pin:work or record:0192f0c1-7d2e-7a51-9d6b-3f1f6f1e2a40@2"
_REF = re.compile(r"(?P<layer>[a-z]+):(?P<id>.+?)(?:@(?P<version>[1-9][0-9]{0,8}))?", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ref:
    """Names a row of any layer; version 0 means whichever is visible."""

    layer: str
    id: str
    version: int = 0

    def __str__(self) -> str:
        return f"{self.layer}:{self.id}" + (f"@{self.version}" if self.version else "")


def parse_ref(text: str, *, field: str) -> Ref:
    """Read a ref; raise InvalidInput naming the field when it has another form."""
    match = _REF.fullmatch(clean_text(text, field=field, maximum=400).strip())
    if match is None:
        raise InvalidInput(f"{field} must be {_FORM}.", field=field)
    return Ref(match["layer"], match["id"], int(match["version"] or 0))


def new_id(instant: datetime) -> str:
    """Return a UUID of version 7 (RFC 9562, section 5.7) that sorts by the instant, to the microsecond.

    The microseconds within the millisecond stand in the upper bits of rand_a (section 6.2, method 3).
    """
    milliseconds, rest = divmod(max(timedelta(), instant - _EPOCH), timedelta(milliseconds=1))
    fine = rest.microseconds << 2 | secrets.randbits(2)
    value = (milliseconds & (2**48 - 1)) << 80 | 7 << 76 | fine << 64 | 2 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))
