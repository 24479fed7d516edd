"""The MCP server of a set of tools: registration, checked calls, clean answers and clean errors."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from brain.errors import BrainError, InvalidInput
from brain.names import excerpt, scrub
from brain.tools.outgoing import error_text, one_line, plain
from brain.tools.schema import ArgumentsT, Schema, closest, flat_schema, listing, parse_arguments

logger = logging.getLogger(__name__)

SessionT = TypeVar("SessionT")
Context = ServerRequestContext[Any, Any]
LateTools = Callable[[], Awaitable[Iterable["AnyTool"]]]
"""Returns the same tools whenever it is called; called when a client first asks for them, so that `initialize` waits
for nothing."""

NAME_LIMIT: Final = 26
INSTRUCTIONS_LIMIT: Final = 2_000
_NAME: Final = re.compile(rf"[a-z][a-z0-9_]{{0,{NAME_LIMIT - 1}}}")


@dataclass(frozen=True, slots=True)
class Result:
    """A successful answer: Markdown or plain text for the model, the same as structured content for the client."""

    text: str
    data: Mapping[str, Any]


def size(result: Result) -> int:
    """Characters that a client counts against its limit: text and structured content together."""
    return len(result.text) + len(one_line(result.data))


@dataclass(frozen=True, slots=True)
class Tool(Generic[SessionT, ArgumentsT]):
    """One tool: its words for the model, its argument model, the function that answers, and what it may change.

    Raises ValueError for a name that some client refuses and NotFlatError for arguments without a flat schema,
    both when the tool is defined.
    """

    name: str
    title: str
    description: str
    arguments: type[ArgumentsT]
    handler: Callable[[SessionT, ArgumentsT], Awaitable[Result]]
    reads_only: bool
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"Tool name {self.name!r} must be 1 to {NAME_LIMIT} of a-z, 0-9 and _.")
        if self.reads_only and self.destructive:
            raise ValueError(f"Tool {self.name} cannot be both read-only and destructive.")
        object.__setattr__(self, "schema", flat_schema(self.arguments))

    def listed(self) -> types.Tool:
        """The tool as `tools/list` shows it: flat input schema, all annotations, no output schema."""
        annotations = types.ToolAnnotations(
            title=self.title,
            read_only_hint=self.reads_only,
            destructive_hint=self.destructive,
            idempotent_hint=self.idempotent or self.reads_only,
            open_world_hint=self.open_world,
        )
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.schema,
            annotations=annotations,
        )

    async def answer(self, session: SessionT, raw: Mapping[str, Any] | None) -> Result:
        """Check the raw arguments and run the handler. Raises what the check and the handler raise."""
        return await self.handler(session, parse_arguments(self.arguments, self.schema, raw, tool=self.name))


AnyTool = Tool[Any, Any]


@dataclass(frozen=True, slots=True)
class Peer:
    """The other side of a call, as far as the transport knows: the client's own name, and over HTTP its principal."""

    client: str = ""
    client_version: str = ""
    principal: Any = None


def peer(context: Context) -> Peer:
    """The peer of one request. Over stdio there is no principal; over stateless HTTP often no client name."""
    info = context.session.client_params.client_info if context.session.client_params else None
    principal = context.request.scope.get("principal") if context.request is not None else None
    if info is None:
        return Peer(principal=principal)
    return Peer(client=scrub(info.name), client_version=scrub(info.version), principal=principal)


def build_server(
    tools: Iterable[AnyTool] | LateTools,
    session_for: Callable[[Peer], SessionT],
    *,
    name: str = "brain",
    version: str = "",
    title: str = "",
    instructions: str = "",
    result_limit: int | None = None,
    **handlers: Any,
) -> Server[Any]:
    """An MCP server that answers `tools/list` from memory and every call through its tool.

    `session_for` maps the peer to whatever the handlers take as their session; it is called once a tool
    call, must not block, and may raise a BrainError. `result_limit` bounds an answer in characters (see `size`).
    Other keyword arguments (`on_list_resources`, `on_read_resource`, `on_list_prompts`, …) go to the SDK's Server.

    Raises ValueError for two tools of one name or instructions of 2 000 characters or more.
    """
    registry: dict[str, AnyTool] = {} if callable(tools) else _by_name(tools)
    if len(instructions) >= INSTRUCTIONS_LIMIT:
        raise ValueError(f"Instructions have {len(instructions)} characters; keep them under {INSTRUCTIONS_LIMIT}.")

    async def known() -> dict[str, AnyTool]:
        if callable(tools) and not registry:
            registry.update(_by_name(await tools()))
        return registry

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.listed() for tool in (await known()).values()])

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        async def answer() -> Result:
            tool = find_tool(await known(), params.name)
            return await tool.answer(session_for(peer(context)), params.arguments)

        return await guarded(answer, label=params.name, result_limit=result_limit)

    server: Server[Any] = Server(
        name,
        version=version,
        title=title or None,
        instructions=instructions or None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda wanted: registry[wanted].schema if wanted in registry else None,
        **handlers,
    )
    server.middleware.append(clean_failures)
    return server


async def clean_failures(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Keep exception text of resource and prompt handlers from the wire, where the SDK would send it verbatim."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise  # the SDK words these itself, without the input
    except BrainError as error:
        raise MCPError(types.INVALID_PARAMS, error_text(error)) from None
    except Exception:  # noqa: BLE001 - the outermost adapter: nothing below may leak
        raise MCPError(types.INTERNAL_ERROR, internal_error(ctx.method)) from None


def _by_name(tools: Iterable[AnyTool]) -> dict[str, AnyTool]:
    registry: dict[str, AnyTool] = {}
    for tool in tools:
        if registry.setdefault(tool.name, tool) is not tool:
            raise ValueError(f"Two tools are called {tool.name}.")
    return registry


def find_tool(registry: Mapping[str, AnyTool], name: str) -> AnyTool:
    """The tool of that name. Raises InvalidInput with the nearest name, or with all of them."""
    if tool := registry.get(name):
        return tool
    near = closest(name, registry)
    hint = f"Did you mean {near}?" if near else f"There are {listing(registry)}."
    raise InvalidInput(f"There is no tool '{excerpt(name, 40)}'.", hint=hint)


async def guarded(
    answer: Callable[[], Awaitable[Result]], *, label: str, result_limit: int | None = None
) -> types.CallToolResult:
    """Run one call and turn whatever comes of it into a result that a model may read.

    A BrainError becomes its sentence. Anything else becomes `Internal error <id>.`, and its traceback goes to
    the log under that id: exception text may hold SQL, hosts or text of another scope.
    """
    try:
        result = await answer()
        _check_size(result, result_limit)
        return succeeded(result)
    except BrainError as error:
        return failed(error_text(error))
    except Exception:  # noqa: BLE001 - the outermost adapter: nothing below may leak
        return failed(internal_error(label))


def _check_size(result: Result, limit: int | None) -> None:
    if limit is not None and size(result) > limit:
        raise InvalidInput(
            f"The answer has {size(result)} characters; at most {limit} are sent.",
            hint="Ask for less: a narrower scope or period, a lower limit, or max_chars where the tool has it.",
        )


def internal_error(label: str) -> str:
    """Log the exception being handled under a new id, and return the sentence that carries only the id."""
    identifier = secrets.token_hex(4)
    logger.exception("internal error %s in %s", identifier, excerpt(label, 40))
    return f"Internal error {identifier}. The server's log has the details under that id."


def succeeded(result: Result) -> types.CallToolResult:
    """A result with text and structured content, both valid Unicode."""
    return types.CallToolResult(content=_text(scrub(result.text)), structured_content=plain(result.data))


def failed(sentence: str) -> types.CallToolResult:
    """An error result: text only, never structured content."""
    return types.CallToolResult(content=_text(sentence), is_error=True)


def _text(text: str) -> list[types.ContentBlock]:
    return [types.TextContent(type="text", text=text)]


def reading_tools(tools: Sequence[AnyTool]) -> tuple[AnyTool, ...]:
    """The tools that change nothing, in order: what a read-only start registers."""
    return tuple(tool for tool in tools if tool.reads_only)
