"""Who may call over HTTP: bearer tokens, checked before anything of the request is parsed."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from brain.caller import Caller
from brain.errors import ConfigurationError, Unavailable
from brain.tools.protocol import internal_error

TOKEN_MINIMUM: Final = 32
"""Characters of the shortest token that is accepted as a secret."""

PUBLIC_PATHS: Final = frozenset({"/healthz"})
"""Paths that answer everybody, and say nothing but that the process runs."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The bearer of a token: its name for limits and the audit, and what it is and may do."""

    name: str
    caller: Caller


Authenticate = Callable[[bytes], Awaitable[Principal | None]]
"""Maps the bytes of a token to its bearer, or to nothing; may raise Unavailable."""


class StaticTokens:
    """Tokens fixed at launch, compared in constant time. An instance is an `Authenticate`."""

    def __init__(self, tokens: Mapping[str, Principal]) -> None:
        """Raise ConfigurationError when there is no token, or one is too short to be a secret."""
        if not tokens:
            raise ConfigurationError(
                "HTTP needs a token.", hint=f"Set BRAIN_HTTP_TOKEN to at least {TOKEN_MINIMUM} random characters."
            )
        if any(len(token) < TOKEN_MINIMUM for token in tokens):
            raise ConfigurationError(f"BRAIN_HTTP_TOKEN must have at least {TOKEN_MINIMUM} characters.")
        self._bearers = [(_digest(token.encode()), principal) for token, principal in tokens.items()]

    async def __call__(self, token: bytes) -> Principal | None:
        """The bearer of a token. Every known token is compared, whichever matches."""
        given, found = _digest(token), None
        for digest, principal in self._bearers:
            if hmac.compare_digest(digest, given):
                found = principal
        return found


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def bearer_token(headers: Headers) -> bytes | None:
    """The token of the one Authorization header, or nothing. The scheme's case and outer white space do not matter."""
    given = [value for name, value in headers.raw if name.lower() == b"authorization"]
    if len(given) != 1:
        return None
    scheme, _, token = given[0].strip().partition(b" ")
    token = token.strip()
    return token if scheme.lower() == b"bearer" and token and b" " not in token else None


class BearerAuthentication:
    """Lets a request through with its principal in `scope["principal"]`, or answers 401 without reading its body."""

    def __init__(self, app: ASGIApp, authenticate: Authenticate) -> None:
        self._app = app
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope."""
        if scope["type"] == "lifespan" or scope.get("path") in PUBLIC_PATHS:
            await self._app(scope, receive, send)
            return
        token = bearer_token(Headers(scope=scope))
        try:
            principal = await self._authenticate(token) if token is not None else None
        except Unavailable as error:
            await refusal(503, error.message, {"Retry-After": "1"})(scope, receive, send)
            return
        except Exception:  # noqa: BLE001 - an outermost adapter: nothing below may leak, and nobody gets in
            await refusal(500, internal_error("authentication"))(scope, receive, send)
            return
        if principal is None:
            await _unauthorized(token is not None)(scope, receive, send)
            return
        await self._app({**scope, "principal": principal}, receive, send)


def _unauthorized(was_given: bool) -> Response:
    challenge = 'Bearer realm="brain"' + (', error="invalid_token"' if was_given else "")
    sentence = "This token is not valid." if was_given else "Send a token in the header Authorization: Bearer TOKEN."
    return refusal(401, sentence, {"WWW-Authenticate": challenge})


def refusal(status: int, sentence: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    """An error response with one sentence."""
    return JSONResponse({"error": sentence, **more}, status_code=status, headers=dict(headers or {}))
