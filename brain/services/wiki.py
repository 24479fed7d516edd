"""One compiled page per entity, rewritten in place: never appended to, never a dated snapshot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from brain.database import Work
from brain.errors import NotFound, Refused
from brain.layers import LAYERS, Page
from brain.names import clean_key, clean_text, nearest, parse_scope, slug
from brain.repository import versions
from brain.services import inputs, scopes

LAYER = LAYERS["wiki"]

_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_DATE = re.compile(
    rf"(?:19|20|21)\d\d[-/._ ]?(?:0[1-9]|1[0-2])(?:[-/._ ]?[0-3]\d)?(?!\d)"
    rf"|\b[0-3]?\d[./][01]?\d[./](?:19|20|21)?\d\d\b"
    rf"|\b(?:{_MONTHS})\.? (?:[0-3]?\d(?:st|nd|rd|th)?,? )?(?:19|20|21)\d\d\b"
    rf"|\b[0-3]?\d(?:st|nd|rd|th)?\.? (?:{_MONTHS})\.?(?: (?:19|20|21)\d\d)?\b"
    rf"|\b(?:week|kw|cw|w)[- ]?[0-5]\d\b",
    re.IGNORECASE,
)
_LOG = re.compile(
    r"\b(?:change ?-?log|log|diary|journal|snapshot|minutes|stand-?up|daily|weekly|update history|history of changes"
    r"|session notes?|meeting notes?)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^(?: {0,3}#{1,6}[ \t]+(?P<atx>.+?)[ \t#]*|(?P<setext>[^\n]+)\n {0,3}(?:=+|-{3,})[ \t]*)$", re.MULTILINE
)
_FENCE = re.compile(r"^ {0,3}(?P<mark>```+|~~~+).*?(?:^ {0,3}(?P=mark)[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


async def write(
    work: Work,
    *,
    page: str,
    body: str,
    summary: str = "",
    core: bool | None = None,
    scope: str = "",
    cites: Sequence[str] = (),
    expected_version: int = 0,
    known_at: datetime | None = None,
) -> tuple[Page, bool]:
    """Rewrite a page and return it with whether anything changed; the body is kept byte for byte.

    core None keeps what the page was, and means an ordinary page for a new one. Raises Refused for a dated snapshot
    or a log, and Conflict, with the current content, unless expected_version is the version that stands.
    """
    name = clean_key(page, field="page")
    identity = slug(name, field="page")
    _refuse_snapshot(name, "page", "name")
    text = clean_text(body, field="body", minimum=1, maximum=60_000)
    for heading in headings(text):
        _refuse_snapshot(heading, "body", "heading")
    cleaned_summary = clean_text(summary, field="summary", maximum=300)
    current: Page | None = await versions.get(work, LAYER, identity)
    where = await _scope(work, current, scope)
    found, origin = await inputs.cited(work, cites, work.caller.origin)
    content: dict[str, Any] = {
        "name": current.name if current else name,
        "core": core if core is not None else (current.core if current else False),
        "summary": cleaned_summary or (current.summary if current else _first_line(text)),
        "body": text,
        "cites": found,
    }
    if current is not None and all(getattr(current, field) == value for field, value in content.items()):
        return current, False
    inputs.check_version(current, expected_version, layer=LAYER, required=True)
    stamp = inputs.stamp(work, known_at=known_at, after=current.known_from if current else None)
    row = Page(
        id=identity,
        version=(current.version if current else 0) + 1,
        scope=where,
        **content,
        **(stamp | {"origin": origin}),
    )
    return await versions.rewrite(work, LAYER, row), True


async def read(work: Work, page: str) -> Page:
    """Return a page; raise NotFound with the pages whose names come near."""
    name = clean_key(page, field="page")
    identity = slug(name.removeprefix(f"{LAYER.name}:"), field="page")
    found: Page | None = await versions.get(work, LAYER, identity)
    if found is None:
        near = nearest(identity, [each.id for each in await index(work, None)])
        raise NotFound(
            f"page {identity} does not exist.",
            hint=f"Did you mean {' or '.join(near)}?" if near else "The index is in the session start.",
            field="page",
        )
    return found


async def index(work: Work, where: list[str] | None, *, core: bool | None = None) -> list[Page]:
    """Return the pages of some scopes by name, all of them or only those that are (or are not) CORE."""
    condition = "" if core is None else "AND t.core = %(core)s"
    return await versions.listing(work, LAYER, scopes=where, condition=condition, params={"core": core}, order="t.id")


def headings(body: str) -> list[str]:
    """Return the Markdown headings of a body, those inside code fences left out."""
    outside = _FENCE.sub("", body)
    return [(match["atx"] or match["setext"] or "").strip() for match in _HEADING.finditer(outside)]


def _refuse_snapshot(text: str, field: str, what: str) -> None:
    kind = "a dated snapshot" if _DATE.search(text) else "a log" if _LOG.search(text) else ""
    if kind:
        raise Refused(
            f"{field}: this {what} makes the page {kind}; a page is one compiled text that is rewritten in place.",
            hint="Write dated facts with write_memory, figures with log_record, and keep the page as it stands now.",
            field=field,
        )


async def _scope(work: Work, current: Page | None, scope: str) -> str:
    if current is None:
        return await scopes.for_writing(work, scope)
    if scope.strip() and str(parse_scope(scope, field="scope")) != current.scope:
        raise Refused(f"scope of page {current.id} is {current.scope} and does not change.", field="scope")
    work.caller.check_may_write(parse_scope(current.scope, field="scope"))
    return current.scope


def _first_line(body: str) -> str:
    lines = (line.strip().lstrip("#").strip() for line in body.splitlines())
    return next((line for line in lines if line), "")[:200]
