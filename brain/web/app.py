"""The HTTP application: Streamable HTTP at /mcp without sessions, behind allow-lists, authentication and limits."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brain.tools.envelope import MESSAGE_LIMIT, UnreadableError, read_strictly
from brain.web.auth import Authenticate, BearerAuthentication, refusal
from brain.web.limits import AllowList, AllowListCheck, Buckets, Rate, RateLimit

if TYPE_CHECKING:
    import uvicorn

GRACEFUL_SECONDS: Final = 2
CONCURRENT_REQUESTS: Final = 256

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


def build_app(
    server: Server[Any],
    *,
    authenticate: Authenticate,
    allow: AllowList,
    rate: Rate | None = None,
    body_limit: int = MESSAGE_LIMIT,
    routes: Sequence[BaseRoute] = (),
    lifespan: Lifespan | None = None,
) -> Starlette:
    """The application: `/mcp` and `/mcp/`, the open `/healthz`, and further routes behind the same checks.

    Every request but `/healthz` passes, in this order and before its body is read: Host and Origin, bearer
    token, rate. No session is kept, so a restart is invisible and an old session id does no harm.
    """
    manager = StreamableHTTPSessionManager(
        server,
        stateless=True,
        json_response=True,
        max_request_body_size=body_limit,
        # AllowListCheck does this for every route and names the setting; two lists would only disagree
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    endpoint = McpEndpoint(manager.handle_request, body_limit)

    @contextlib.asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            if lifespan is None:
                yield
            else:
                async with lifespan():
                    yield

    app = Starlette(
        routes=[Route("/healthz", healthz), Route("/mcp", endpoint), Route("/mcp/", endpoint), *routes],
        middleware=[
            Middleware(AllowListCheck, allow=allow),
            Middleware(BearerAuthentication, authenticate=authenticate),
            Middleware(RateLimit, buckets=Buckets(rate or Rate())),
        ],
        lifespan=running,
    )
    app.router.redirect_slashes = False
    return app


async def healthz(request: Request) -> Response:
    """Say that the process runs, and nothing else."""
    return JSONResponse({"status": "ok"})


class McpEndpoint:
    """Reads a bounded body, answers what is no message under its id, and hands the rest to the SDK."""

    def __init__(self, app: ASGIApp, body_limit: int) -> None:
        self._app = app
        self._body_limit = body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        request = Request(scope, receive)
        answer = self._refuse_head(request)
        if answer is None:
            body = await self._body(request)
            answer = self._refuse_body(body)
            if answer is None:
                await self._app(scope, _replay(body or b"", receive), send)
                return
        await answer(scope, receive, send)

    def _refuse_head(self, request: Request) -> Response | None:
        if request.method != "POST":
            # without sessions there is nothing to listen to (GET) and nothing to end (DELETE)
            return refusal(405, "Only POST is answered here.", {"Allow": "POST"})
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return refusal(415, "Content-Type must be application/json.")
        return None

    async def _body(self, request: Request) -> bytes | None:
        """The body, or nothing when it is over the limit."""
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._body_limit:
            return None
        body = bytearray()
        with contextlib.suppress(ClientDisconnect):  # what arrived is no message; the answer goes nowhere
            async for chunk in request.stream():
                body += chunk
                if len(body) > self._body_limit:
                    return None
        return bytes(body)

    def _refuse_body(self, body: bytes | None) -> Response | None:
        if body is None:
            return refusal(413, f"The body is too long; at most {self._body_limit} bytes are read.")
        try:
            read_strictly(body)
        except UnreadableError as error:
            return JSONResponse(error.answer().model_dump(exclude_unset=True), status_code=400)
        return None


def _replay(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def http_server(app: ASGIApp, host: str = "127.0.0.1", port: int = 8765) -> uvicorn.Server:
    """The configured server. Access is not logged: a URL may carry a token that should not be in it."""
    import uvicorn

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        limit_concurrency=CONCURRENT_REQUESTS,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
    return uvicorn.Server(config)


async def serve_http(app: ASGIApp, host: str = "127.0.0.1", port: int = 8765) -> None:
    """Serve until SIGTERM or SIGINT."""
    await http_server(app, host, port).serve()
