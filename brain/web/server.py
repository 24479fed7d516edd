"""The brain over HTTP: settings in, a server with authentication, allow-lists and its own life cycle out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping

import uvicorn
from starlette.applications import Starlette

from brain.config import Settings
from brain.tools.protocol import Peer
from brain.tools.server import Surface, project_of_settings, surface
from brain.web.app import build_app, http_server
from brain.web.auth import Principal, StaticTokens
from brain.web.limits import AllowList


async def serve(settings: Settings, *, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is called once requests are accepted.

    Raises ConfigurationError, before anything listens, for a missing or short token and for settings with which no
    call could be answered.
    """
    served = surface(settings, project=project_of_settings)
    await served.tools()
    principal = Principal("launch", served.brain(Peer()).caller)
    token = settings.http_token.get_secret_value() if settings.http_token is not None else ""
    app = application(settings, served, {token: principal} if token else {})
    server = http_server(app, settings.http_host, settings.http_port)
    announcing = asyncio.create_task(_announce(server, ready))
    try:
        await server.serve()
    finally:
        announcing.cancel()


async def _announce(server: uvicorn.Server, ready: Callable[[], None]) -> None:
    while not server.started:  # noqa: ASYNC110 - uvicorn sets a flag and tells nobody
        await asyncio.sleep(0.02)
    ready()


def application(settings: Settings, served: Surface, tokens: Mapping[str, Principal]) -> Starlette:
    """The application of a surface, which lets go of the brain when it stops. Raises ConfigurationError."""

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        try:
            yield
        finally:
            await served.close()

    return build_app(
        served.server(),
        authenticate=StaticTokens(tokens),
        allow=AllowList.of(settings.allowed_hosts.split(","), settings.allowed_origins.split(",")),
        lifespan=lifespan,
    )
