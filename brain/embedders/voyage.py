"""Voyage AI's embeddings API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from brain.embedders.network import Known, NetworkEmbedder, in_order

_MODELS: Final = {
    "voyage-4-large": Known(1024),
    "voyage-4": Known(1024),
    "voyage-4-lite": Known(1024),
    "voyage-3-large": Known(1024),
    "voyage-3.5": Known(1024),
    "voyage-3.5-lite": Known(1024),
    "voyage-3": Known(1024),
    "voyage-3-lite": Known(512),
    "voyage-code-3": Known(1024),
    "voyage-multilingual-2": Known(1024),
}


class Voyage(NetworkEmbedder):
    """Vectors of POST /embeddings; the provider adds the prefixes of queries and documents itself."""

    provider = "voyage"
    base_url = "https://api.voyageai.com/v1"
    path = "/embeddings"
    default_model = "voyage-3.5-lite"
    models = _MODELS
    key_needed = True

    def payload(self, texts: Sequence[str], *, query: bool) -> Mapping[str, object]:
        """The body of a request."""
        width = {"output_dimension": self.dimensions} if self._shorten else {}
        kind = "query" if query else "document"
        return {"model": self._name, "input": list(texts), "input_type": kind, "truncation": True, **width}

    def read(self, answer: Any) -> Sequence[object]:
        """The vectors of an answer in the order of the texts."""
        return in_order(answer["data"])
