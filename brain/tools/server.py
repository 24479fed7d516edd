"""The MCP server of a brain, whichever transport carries it: tools, resources, prompts and the back-fill of vectors.

Importing this module loads neither the database driver nor the tools: they load when a client first asks for them, so
that `initialize` is answered before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult

import brain
from brain.caller import Caller
from brain.config import Settings
from brain.errors import BrainError, Unavailable
from brain.tools import prompts
from brain.tools.instructions import INSTRUCTIONS
from brain.tools.protocol import AnyTool, Context, Peer, build_server, peer, reading_tools
from brain.tools.stdio import loading

if TYPE_CHECKING:
    from brain.runtime import Brain
    from brain.tools.upkeep import Upkeep

RESULT_LIMIT: Final = 500_000
"""Characters of the longest answer: what clients that read a size from a tool accept at most."""


class Surface:
    """What one process serves. Its modules load once, in a thread; a brain that cannot be opened fails every call."""

    def __init__(self, open_it: Callable[[], Brain], *, read_only: bool) -> None:
        self._open_it = open_it
        self._read_only = read_only
        self._loading = asyncio.Lock()
        self._tools: tuple[AnyTool, ...] = ()
        self._opened: Brain | BrainError = Unavailable("The brain is not open yet; try again in a moment.")
        self._upkeep: Upkeep | None = None

    async def tools(self) -> Iterable[AnyTool]:
        """The tools that this process offers."""
        async with self._loading:
            if not self._tools:
                await asyncio.to_thread(self._load)
        return self._tools

    def _load(self) -> None:
        with loading():
            from brain.tools import catalogue, resources  # noqa: F401 - loaded here, used by the handlers
            from brain.tools.upkeep import Upkeep

            try:
                self._opened = self._open_it()
                self._upkeep = Upkeep()
            except BrainError as error:
                self._opened = error
        self._tools = reading_tools(catalogue.ALL) if self._read_only else catalogue.ALL

    def brain(self, caller: Peer) -> Brain:
        """The brain as this peer sees it. Raises the error that kept the brain from opening."""
        if isinstance(self._opened, BrainError):
            raise self._opened.with_traceback(None)
        principal = getattr(caller.principal, "caller", None)
        opened = replace(self._opened, caller=principal) if isinstance(principal, Caller) else self._opened
        return opened.called_by(caller.client)

    def server(self) -> Server[Any]:
        """The MCP server."""
        server = build_server(
            self.tools,
            self.brain,
            version=brain.__version__,
            title="Layered memory",
            instructions=INSTRUCTIONS,
            result_limit=RESULT_LIMIT,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=prompts.listed,
            on_get_prompt=prompts.get,
        )
        server.middleware.append(self._keeping_up)
        return server

    async def close(self) -> None:
        """End the upkeep and let go of the database."""
        if self._upkeep is not None:
            await self._upkeep.close()
        if not isinstance(self._opened, BrainError):
            await self._opened.close()

    def abandon(self) -> None:
        """Stop an embedded server from another thread, when the process is about to be cut off."""
        if not isinstance(self._opened, BrainError):
            self._opened.database.abandon()

    async def _list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        await self.tools()
        from brain.tools import resources

        return await resources.listed(self.brain(peer(context)), params.cursor if params else None)

    async def _list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        await self.tools()
        from brain.tools import resources

        return resources.templates()

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        await self.tools()
        from brain.tools import resources

        return await resources.read(self.brain(peer(context)), str(params.uri))

    async def _keeping_up(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Start the upkeep after the first call that worked, and after a write whose vector is pending."""
        result = await call_next(ctx)
        if self._upkeep is not None and isinstance(result, types.CallToolResult) and not result.is_error:
            data = result.structured_content or {}
            self._upkeep.wake(self.brain(peer(ctx)), pending=data.get("vector") == "pending")
        return result


def surface(settings: Settings, *, project: Callable[[Settings], Any]) -> Surface:
    """The surface of the brain that the settings name; `project` says what this process is bound to."""

    def open_it() -> Brain:
        from brain.runtime import open_brain

        return open_brain(settings, origin="model", project=project(settings))

    return Surface(open_it, read_only=settings.read_only)


def project_of_folder(settings: Settings) -> Any:
    """The project of the folder that the process was started in."""
    from brain.runtime import bound_project

    return bound_project(settings, Path.cwd())


def project_of_settings(settings: Settings) -> Any:
    """The project that the settings name, if they name one: the folder of a service says nothing about its callers."""
    from brain.runtime import named_project

    return named_project(settings)
