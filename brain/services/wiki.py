"""One compiled page per entity, rewritten in place: never appended to, never a dated snapshot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from brain.errors import NotFound, Refused
from brain.layers import LAYERS, Page
from brain.names import clean_key, clean_text, nearest, parse_scope, slug
from brain.repository import versions
from brain.services import inputs, scopes
from brain.work import Work

LAYER = LAYERS["wiki"]

_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_YEAR = r"(?:19|20|21)\d\d"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
# A version (3.11.12), an address (10.0.0.12), a number (27001) and a verb (step 1 may fail) are no dates.
_DATE = re.compile(
    rf"(?<![\d.]){_YEAR}[-/._ ]?(?:0[1-9]|1[0-2])(?:[-/._ ]?[0-3]\d)?(?![\d.])"
    rf"|(?<![\d.])[0-3]?\d([./])[01]?\d\1{_YEAR}(?![\d.])"
    rf"|(?<![\d./])[01]?\d/[0-3]?\d/\d\d(?![\d./])|(?<![\d./])[0-3]?\d/[01]?\d/\d\d(?![\d./])"
    rf"|(?<![\d.])[0-3]\d\.0[1-9]\.\d\d(?![\d.])"
    rf"|\b(?:{_MONTHS})\.? (?:{_DAY}(?:st|nd|rd|th)?,? )?{_YEAR}\b"
    rf"|\b(?:{_MONTHS})\.? {_DAY}(?:st|nd|rd|th)?(?![\w.])"
    rf"|\b{_DAY}(?:st|nd|rd|th)?\.? (?:of )?(?:(?!may)(?:{_MONTHS})\b|may\b(?! [a-z]))"
    rf"|\b(?:week|kw|cw) ?[0-5]\d\b|\b{_YEAR}[- ]?w[0-5]\d\b",
    re.IGNORECASE,
)
# What is written again and again: a log is refused, a thing that has one (Log Analytics, Audit log) is an entity.
_KEPT = "log|diary|journal|snapshot|minutes|notes|updates?|summary|digest"
_LOG = re.compile(
    rf"(?:the |my |our )?(?:{_KEPT}|daily|weekly|monthly)"
    rf"|(?!.*\b(?:audit|event|transaction|access|error|server|query|binary|write-ahead)\b).*\b(?:log|diary|snapshot)"
    rf"|.*\bchange[ -]?log\b.*"
    rf"|.*\b(?:work|dev|project|research|personal|session) journal"
    rf"|.*\b(?:daily|weekly|monthly|session|meeting|board|stand-?up) (?:{_KEPT})\b.*"
    rf"|(?:log|diary|journal|minutes) of\b.*"
    rf"|.*\b(?:update history|history of (?:changes|updates))\b.*",
    re.IGNORECASE | re.DOTALL,
)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_HEADING = re.compile(r"^(?: {0,3}#{1,6}[ \t]+(?P<atx>.+)|(?P<setext>[^\n]+)\n {0,3}(?:=+|-{3,})[ \t]*$)", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,}).*?(?:^ {0,3}(?P=mark)[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_DECORATION = " \t#*_~`:.!"


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
    check_headings(text)
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


def check_headings(body: str) -> None:
    """Raise Refused when a heading makes the page a dated snapshot or a log."""
    for heading in headings(body):
        _refuse_snapshot(heading, "body", "heading")


def headings(body: str) -> list[str]:
    """Return the Markdown headings of a body, those inside code fences left out."""
    outside = _FENCE.sub("", _FRONT_MATTER.sub("", body, count=1))
    return [(match["atx"] or match["setext"]).rstrip("# \t").strip() for match in _HEADING.finditer(outside)]


def _refuse_snapshot(text: str, field: str, what: str) -> None:
    kind = "a dated snapshot" if _DATE.search(_spaced(text)) else "a log" if _LOG.fullmatch(_spaced(text)) else ""
    if kind:
        raise Refused(
            f"{field}: this {what} makes the page {kind}; a page is one compiled text that is rewritten in place.",
            hint="Write dated facts with write_memory, figures with log_record, and keep the page as it stands now.",
            field=field,
        )


def _spaced(text: str) -> str:
    """Return a name without its decoration and with single spaces, as the patterns read it."""
    return " ".join(text.strip(_DECORATION).split())


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
