"""OpenAI's embeddings API, and any endpoint compatible with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from brain.embedders.network import Known, NetworkEmbedder, in_order

_MODELS: Final = {
    "text-embedding-3-small": Known(1536),
    "text-embedding-3-large": Known(3072),
    "text-embedding-ada-002": Known(1536),
}


class OpenAI(NetworkEmbedder):
    """Vectors of POST /embeddings."""

    provider = "openai"
    base_url = "https://api.openai.com/v1"
    path = "/embeddings"
    default_model = "text-embedding-3-small"
    models = _MODELS

    def payload(self, texts: Sequence[str], *, query: bool) -> Mapping[str, object]:
        """The body of a request."""
        width = {"dimensions": self.dimensions} if self._shorten else {}
        return {"model": self._name, "input": list(texts), **width}

    def read(self, answer: Any) -> Sequence[object]:
        """The vectors of an answer in the order of the texts."""
        return in_order(answer["data"])
