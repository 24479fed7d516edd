"""Limits of the HTTP server: which Host and Origin may call, and how often one token may."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from brain.errors import ConfigurationError
from brain.web.auth import PUBLIC_PATHS, refusal

ANY_PORT: Final = ":*"


@dataclass(frozen=True, slots=True)
class AllowList:
    """Accepted Host and Origin headers, always checked, against DNS rebinding and foreign web pages.

    A host without a port, or with `:*`, is accepted on every port. An origin is scheme, host and port; `:*` accepts
    every port. The server's own origin, and a request without an Origin, always pass.
    """

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def of(cls, hosts: Iterable[str], origins: Iterable[str] = ()) -> AllowList:
        """Build the lists. Raises ConfigurationError for no host at all, a wildcard, or an origin without a scheme."""
        accepted = frozenset(_clean(hosts))
        trusted = frozenset(_clean(origins))
        if not accepted or "*" in accepted:
            raise ConfigurationError("BRAIN_ALLOWED_HOSTS lists host names, such as brain.example.org,localhost.")
        if any("://" not in origin for origin in trusted):
            raise ConfigurationError("BRAIN_ALLOWED_ORIGINS lists origins, such as https://app.example.org.")
        return cls(accepted, trusted)

    def accepts_host(self, host: str) -> bool:
        """Whether a Host header is on the list."""
        host = host.lower()
        name = without_port(host)
        return bool(name) and not self.hosts.isdisjoint((host, name, name + ANY_PORT))

    def accepts_origin(self, origin: str, host: str) -> bool:
        """Whether an Origin header is on the list, or is the server's own."""
        origin = origin.lower()
        if origin in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return True
        return origin in self.origins or without_port(origin) + ANY_PORT in self.origins


def _clean(entries: Iterable[str]) -> Iterable[str]:
    return (entry.strip().lower().rstrip("/") for entry in entries if entry.strip())


def without_port(host: str) -> str:
    """A host or an origin without its port; an IPv6 address keeps its brackets."""
    head, colon, port = host.rpartition(":")
    return head if colon and port.isdecimal() and not head.endswith(":") else host


class AllowListCheck:
    """Answers 421 for a foreign Host and 403 for a foreign Origin, naming the setting that would allow it."""

    def __init__(self, app: ASGIApp, allow: AllowList) -> None:
        self._app = app
        self._allow = allow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope."""
        if scope["type"] == "lifespan" or scope.get("path") in PUBLIC_PATHS:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._allow.accepts_host(hosts[0]):
            answer = refusal(421, "This Host is not accepted; add it to BRAIN_ALLOWED_HOSTS.")
        elif not all(self._allow.accepts_origin(origin, hosts[0]) for origin in origins):
            answer = refusal(403, "This Origin is not accepted; add it to BRAIN_ALLOWED_ORIGINS.")
        else:
            await self._app(scope, receive, send)
            return
        await answer(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket: so many requests a second on average, so many at once."""

    per_second: float = 20.0
    burst: int = 100


class Buckets:
    """One bucket for each name. Names are principals, so their number is that of the tokens in use."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> float:
        """Take one request from a bucket: 0 when there was one, otherwise the seconds until there is."""
        now = self._clock()
        level, since = self._levels.get(name, (float(self._rate.burst), now))
        level = min(float(self._rate.burst), level + (now - since) * self._rate.per_second)
        granted = level >= 1.0
        self._levels[name] = (level - 1.0 if granted else level, now)
        return 0.0 if granted else (1.0 - level) / self._rate.per_second


class RateLimit:
    """Answers 429 with Retry-After when a principal calls more often than its bucket allows."""

    def __init__(self, app: ASGIApp, buckets: Buckets) -> None:
        self._app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope; without a principal there is nothing to count."""
        principal = scope.get("principal")
        wait = self._buckets.take(principal.name) if principal is not None else 0.0
        if not wait:
            await self._app(scope, receive, send)
            return
        seconds = max(1, math.ceil(wait))
        answer = refusal(429, f"Too many requests; try again in {seconds} s.", {"Retry-After": str(seconds)})
        await answer(scope, receive, send)
