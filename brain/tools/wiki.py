"""write_wiki, read_wiki."""

from __future__ import annotations

from pydantic import Field

from brain.services import inputs, wiki
from brain.tools.common import Arguments, AsOf, Brain, Cites, Expected, Result, Scope, row_text, write_result
from brain.tools.protocol import AnyTool, Tool


class WriteWiki(Arguments):
    """A compiled page."""

    page: str = Field(description="Name of the entity")
    body: str = Field(description="The whole page in Markdown, as it stands now")
    summary: str = Field(default="", description="One line for the index")
    core: bool | None = Field(
        default=None, description="Always-on instructions, shown whole in every session; left out keeps it"
    )
    scope: Scope = ""
    cites: Cites = []
    expected_version: Expected = 0


async def write_wiki(brain: Brain, given: WriteWiki) -> Result:
    """Rewrite a page."""
    row, changed = await brain.write(
        lambda work: wiki.write(
            work,
            page=given.page,
            body=given.body,
            summary=given.summary,
            core=given.core,
            scope=given.scope,
            cites=given.cites,
            expected_version=given.expected_version,
        )
    )
    return write_result(wiki.LAYER, row, ("rewritten" if row.version > 1 else "created") if changed else "unchanged")


class ReadWiki(Arguments):
    """Which page to read."""

    page: str = Field(description="Name of the entity, or wiki:<id>")
    as_of: AsOf = ""


async def read_wiki(brain: Brain, given: ReadWiki) -> Result:
    """Read a page."""
    page = await brain.read(lambda work: wiki.read(work, given.page), as_of=given.as_of)
    shown = inputs.shown(wiki.LAYER, page)
    return Result(row_text(shown), {"page": shown})


TOOLS: tuple[AnyTool, ...] = (
    Tool(
        "write_wiki",
        "Write a wiki page",
        "Rewrite the one compiled page of an entity. Never append and never date a page: dated facts belong in"
        " write_memory. Pass the version that you read; a conflict returns the current page.",
        WriteWiki,
        write_wiki,
        reads_only=False,
        destructive=True,
        idempotent=True,
    ),
    Tool("read_wiki", "Read a wiki page", "The compiled page of an entity.", ReadWiki, read_wiki, reads_only=True),
)
