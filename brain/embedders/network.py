"""What the network providers share: batches, time limits, retries, and a check of every vector that comes back.

One call of `embed` sends its texts in batches, one after the other. A batch gives up after twice the time limit of one
request, its retries and waits included, and a query after that limit, so that a write or a search never hangs on a
provider. Nothing that a message says is taken from the address, the key or the answer.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from brain.embedders.base import Estimate, Vector, batches, fingerprint, usable
from brain.embedders.floors import floor_of
from brain.embedders.pacing import ATTEMPTS, backoff, retry_after
from brain.errors import Unavailable
from brain.names import scrub

if TYPE_CHECKING:
    import httpx2

_AGAIN: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
_REFUSED_TEXT: Final = frozenset({400, 413, 422})
_BATCH_CHARACTERS: Final = 60_000
_SHORTER: Final = (8_000, 2_000)
_ANSWER_BYTES: Final = 64 * 2**20
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a provider is reached, and within which limits."""

    url: str
    host: str
    key: str = field(default="", repr=False)
    timeout: float = 20.0
    batch: int = 64


@dataclass(frozen=True, slots=True)
class Known:
    """A model whose width and prefixes are known."""

    dimensions: int
    query_prefix: str = ""
    passage_prefix: str = ""


class _Again(Exception):
    """The request may succeed later."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _Refused(Exception):
    """The provider does not accept this request, perhaps because of one of its texts."""


class NetworkEmbedder:
    """A provider behind HTTP; subclasses say how a request is written and an answer read."""

    provider: ClassVar[str]
    base_url: ClassVar[str]
    path: ClassVar[str]
    default_model: ClassVar[str]
    models: ClassVar[Mapping[str, Known]]
    key_needed: ClassVar[bool] = False

    def __init__(self, endpoint: Endpoint, name: str, known: Known) -> None:
        self.dimensions = known.dimensions
        self.floor = floor_of(name.rpartition("/")[2])
        self._endpoint = endpoint
        self._name = name
        self._known = known
        # Models and endpoints that cannot shorten refuse the parameter, so it is sent only where it changes something.
        native = self.known(name)
        self._shorten = native is not None and native.dimensions != known.dimensions
        self._rest_until = 0.0
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def model(self) -> str:
        """Name of the model, with everything that changes its vectors."""
        prefixes = fingerprint(self._known.query_prefix, self._known.passage_prefix)
        return f"{self.provider}-{self._name}-{self.dimensions}-{prefixes}"

    @classmethod
    def known(cls, name: str) -> Known | None:
        """What is known about a model, whose name may carry a tag or a maker: maker/model:tag."""
        return cls.models.get(name) or cls.models.get(name.rpartition("/")[2].partition(":")[0])

    def estimate(self, texts: Sequence[str]) -> Estimate:
        """What embedding these texts would send, without sending it."""
        sent = [text for _, text in self._prepare(texts, query=False)]
        return Estimate(len(sent), sum(map(len, sent)), sum(1 for _ in self._batches(sent)))

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector | None]:
        """Return one vector a text, or None where the model has no usable one.

        Raises Unavailable when the provider cannot be reached or answers with something else than vectors.
        """
        found: list[Vector | None] = [None] * len(texts)
        prepared = self._prepare(texts, query=query)
        sent = [text for _, text in prepared]
        for run in self._batches(sent):
            for (place, _), vector in zip(prepared[run], await self._batch(sent[run], query), strict=True):
                found[place] = vector
        return found

    async def aclose(self) -> None:
        """Close the connections; a later embed opens new ones."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    def payload(self, texts: Sequence[str], *, query: bool) -> Mapping[str, object]:
        """The body of a request."""
        raise NotImplementedError

    def read(self, answer: Any) -> Sequence[object]:
        """The vectors of an answer in the order of the texts; ValueError, TypeError or LookupError when malformed."""
        raise NotImplementedError

    def _batches(self, texts: Sequence[str]) -> list[slice]:
        return list(batches(texts, self._endpoint.batch, _BATCH_CHARACTERS))

    def _prepare(self, texts: Sequence[str], *, query: bool) -> list[tuple[int, str]]:
        prefix = self._known.query_prefix if query else self._known.passage_prefix
        clean = ((place, scrub(text)) for place, text in enumerate(texts))
        return [(place, prefix + text) for place, text in clean if _visible(text)]

    async def _batch(self, texts: Sequence[str], query: bool) -> list[Vector | None]:
        try:
            return await self._request(texts, query)
        except _Refused:
            return await self._one_by_one(texts, query)

    async def _one_by_one(self, texts: Sequence[str], query: bool) -> list[Vector | None]:
        """Find the texts that the provider refuses; when it refuses a plain word too, the request is at fault."""
        try:
            await self._request(["hello"], query)
        except _Refused:
            self._give_up("refused the request; check the model and BRAIN_EMBED_DIMENSIONS")
        return [await self._single(text, query) for text in texts]

    async def _single(self, text: str, query: bool) -> Vector | None:
        for shorter in (text, *(text[:most] for most in _SHORTER if len(text) > most)):
            try:
                return (await self._request([shorter], query))[0]
            except _Refused:
                continue
        return None

    async def _request(self, texts: Sequence[str], query: bool) -> list[Vector | None]:
        if self.key_needed and not self._endpoint.key:
            self._give_up("has no key; set BRAIN_EMBED_KEY")
        if time.monotonic() < self._rest_until:
            self._give_up("asked to wait before the next request")
        body = json.dumps(self.payload(texts, query=query)).encode()
        return self._checked(await self._patiently(body, len(texts), query))

    async def _patiently(self, body: bytes, count: int, query: bool) -> Sequence[object]:
        deadline = time.monotonic() + self._endpoint.timeout * (1 if query else 2)
        for attempt in range(ATTEMPTS):
            try:
                return await self._attempt(body, count, min(self._endpoint.timeout, deadline - time.monotonic()))
            except _Again as again:
                asked = again.wait is not None
                wait = again.wait if again.wait is not None else backoff(attempt)
                late = time.monotonic() + wait >= deadline
                if asked and (late or attempt == ATTEMPTS - 1):
                    self._rest_until = time.monotonic() + wait
                if late or attempt == ATTEMPTS - 1:
                    self._give_up(str(again))
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    async def _attempt(self, body: bytes, count: int, seconds: float) -> Sequence[object]:
        import httpx2

        try:
            async with asyncio.timeout(seconds):
                status, header, content = await self._post(body)
        except (TimeoutError, httpx2.TimeoutException):
            raise _Again("did not answer in time") from None
        except httpx2.TransportError:
            raise _Again("cannot be reached") from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise _Again("did not answer as HTTP") from None
        self._judge(status, header)
        return self._parse(content, count)

    async def _post(self, body: bytes) -> tuple[int, str | None, bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        content = bytearray()
        async with self._open().stream("POST", self._endpoint.url, content=body, headers=headers) as response:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > _ANSWER_BYTES:
                    raise _Again("sent too much")
            return response.status_code, response.headers.get("Retry-After"), bytes(content)

    def _open(self) -> httpx2.AsyncClient:
        import httpx2

        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # A proxy of the environment cannot reach this machine's own loopback.
            remote = self._endpoint.host not in _LOOPBACK
            self._client = httpx2.AsyncClient(timeout=self._endpoint.timeout, trust_env=remote, follow_redirects=False)
            self._loop = loop
        return self._client

    def _judge(self, status: int, header: str | None) -> None:
        if status == 200:
            return
        if status in _AGAIN:
            raise _Again("is busy" if status == 429 else f"failed (status {status})", retry_after(header))
        if status in _REFUSED_TEXT:
            raise _Refused
        if status in (401, 403):
            self._give_up("refused the key; check BRAIN_EMBED_KEY")
        if status == 404:
            self._give_up("does not know the model or the address; check BRAIN_EMBED_MODEL and BRAIN_EMBED_URL")
        self._give_up(f"answered with status {status}")

    def _parse(self, content: bytes, count: int) -> Sequence[object]:
        try:
            vectors = self.read(json.loads(content))
        except (ValueError, TypeError, LookupError, RecursionError):
            raise _Again("sent an answer that is not a list of vectors") from None
        if len(vectors) != count:
            raise _Again("sent another number of vectors than texts")
        return vectors

    def _checked(self, vectors: Sequence[object]) -> list[Vector | None]:
        for vector in vectors:
            if isinstance(vector, list) and vector and len(vector) != self.dimensions:
                self._give_up(
                    f"sent vectors of {len(vector)} numbers where {self.dimensions} are expected; "
                    "set BRAIN_EMBED_DIMENSIONS and run brain reindex"
                )
        return [self._clean(vector) for vector in vectors]

    def _clean(self, vector: object) -> Vector | None:
        if not isinstance(vector, list) or not all(type(each) in (int, float) for each in vector):
            return None
        try:
            return usable([float(each) for each in vector], self.dimensions)
        except OverflowError:
            return None

    def _give_up(self, reason: str) -> NoReturn:
        raise Unavailable(f"The embedding provider {self.provider} {reason}.") from None


def in_order(items: Sequence[Mapping[str, Any]]) -> list[object]:
    """The embeddings of a `data` list by their index, or as sent when no item has one; ValueError for gaps."""
    if not any("index" in item for item in items):
        return [item["embedding"] for item in items]
    places = [item["index"] for item in items]
    if any(type(place) is not int for place in places) or sorted(places) != list(range(len(items))):
        raise ValueError("the indexes are not 0 to n - 1")
    by_place = {item["index"]: item["embedding"] for item in items}
    return [by_place[place] for place in range(len(items))]


def _visible(text: str) -> bool:
    return any(each.isprintable() and not each.isspace() for each in text)
