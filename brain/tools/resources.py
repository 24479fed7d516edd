"""Resources that a person attaches in a client: the session start, wiki pages and facts."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

import mcp_types as types

from brain.errors import InvalidInput, NotFound
from brain.layers import Fact, Page
from brain.names import excerpt, scrub
from brain.render import counted, inline
from brain.repository import versions
from brain.runtime import Brain
from brain.services import facts, inputs, scopes, session, trail, wiki
from brain.tools.common import fact_text, row_text
from brain.work import Work

PAGE_SIZE: Final = 200
"""Wiki pages in one page of the list."""

SHOWN_FACTS: Final = 100
"""Facts in the resource of a namespace's memories: the newest by event time."""

_URI = re.compile(r"brain://(?P<kind>session|memories|wiki|memory)(?:/(?P<name>[^/?#]{1,600}))?/?")
_FORMS = "brain://session, brain://memories, brain://wiki/<page> or brain://memory/<id>"


async def listed(brain: Brain, cursor: str | None) -> types.ListResourcesResult:
    """List the session start, the memories, and every wiki page in view, a page of them at a time."""
    first = _position(cursor)

    async def job(work: Work) -> list[Page]:
        return await wiki.index(work, (await scopes.for_reading(work, "")).scopes)

    pages = await brain.read(job)
    fixed = [] if first else [_session(), _memories()]
    more = first + PAGE_SIZE < len(pages)
    return types.ListResourcesResult(
        resources=[*fixed, *(_page(each) for each in pages[first : first + PAGE_SIZE])],
        next_cursor=str(first + PAGE_SIZE) if more else None,
    )


def templates() -> types.ListResourceTemplatesResult:
    """List the two families of resources. A parameter is one percent-encoded path segment: a name, never a path."""
    return types.ListResourceTemplatesResult(
        resource_templates=[
            types.ResourceTemplate(
                name="wiki",
                title="Wiki page",
                uri_template="brain://wiki/{page}",
                description="The compiled page of an entity, by its name.",
                mime_type="text/markdown",
            ),
            types.ResourceTemplate(
                name="memory",
                title="Fact",
                uri_template="brain://memory/{id}",
                description="One fact of the memory layer, by its id or its key.",
                mime_type="text/markdown",
            ),
        ]
    )


async def read(brain: Brain, uri: str) -> types.ReadResourceResult:
    """Read one resource; raise InvalidInput for a URI of another form and NotFound for what is not there."""
    match = _URI.fullmatch(uri)
    if match is None or (match["name"] is not None) != (match["kind"] in ("wiki", "memory")):
        raise InvalidInput(f"uri must be {_FORMS}.", field="uri")
    name = unquote(match["name"] or "", errors="surrogatepass")
    text = await {"session": _read_session, "memories": _read_memories, "wiki": _read_page, "memory": _read_fact}[
        match["kind"]
    ](brain, name)
    contents = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=scrub(text))
    return types.ReadResourceResult(contents=[contents])


async def _read_session(brain: Brain, name: str) -> str:
    payload = await brain.read(lambda work: session.start(work, budget=brain.settings.session_chars))
    return payload.text


async def _read_memories(brain: Brain, name: str) -> str:
    found = await brain.read(lambda work: trail.walk(work, newest_first=True, limit=SHOWN_FACTS))
    more = ["More: walk_trail and read_memory."] if found.cursor else []
    head = f"{counted(len(found.facts), 'fact')} by event time, newest first."
    return "\n".join([head, *(fact_text(fact) for fact in found.facts), *more])


async def _read_page(brain: Brain, name: str) -> str:
    page = await brain.read(lambda work: wiki.read(work, name))
    return row_text(inputs.shown(wiki.LAYER, page))


async def _read_fact(brain: Brain, name: str) -> str:
    async def job(work: Work) -> Fact | None:
        found = await facts.find(work, name)
        return await versions.get(work, facts.LAYER, found.id) if found else None

    fact = await brain.read(job)
    if fact is None:
        raise NotFound(f"uri names no fact that is visible now: {excerpt(name)}.", field="uri")
    return fact_text(fact)


def _session() -> types.Resource:
    return types.Resource(
        name="session",
        title="Session start",
        uri="brain://session",
        description="What get_session_continuation gives: hard rules, pins, quiet threads, CORE pages, the wiki index.",
        mime_type="text/markdown",
    )


def _memories() -> types.Resource:
    return types.Resource(
        name="memories",
        title="Memories",
        uri="brain://memories",
        description=f"The newest {SHOWN_FACTS} facts in view, by event time.",
        mime_type="text/markdown",
    )


def _page(page: Page) -> types.Resource:
    return types.Resource(
        name=f"wiki:{page.id}",
        title=inline(scrub(page.name), 80),
        uri=f"brain://wiki/{quote(page.id, safe='')}",
        description=inline(scrub(page.summary)),
        mime_type="text/markdown",
    )


def _position(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 8):
        raise InvalidInput("cursor must be the next_cursor of the page before.", field="cursor")
    return int(cursor)
