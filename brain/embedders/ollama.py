"""Ollama's embeddings API: models that run on a machine of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from brain.embedders.network import Known, NetworkEmbedder

_PASSAGES = "Represent this sentence for searching relevant passages: "
_MODELS: Final = {
    "nomic-embed-text": Known(768, "search_query: ", "search_document: "),
    "mxbai-embed-large": Known(1024, _PASSAGES),
    "embeddinggemma": Known(768, "task: search result | query: ", "title: none | text: "),
    "all-minilm": Known(384),
    "bge-m3": Known(1024),
    "snowflake-arctic-embed2": Known(1024, "query: "),
}


class Ollama(NetworkEmbedder):
    """Vectors of POST /api/embed, which answers in the order of the texts and cuts a text that is too long."""

    provider = "ollama"
    base_url = "http://127.0.0.1:11434"
    path = "/api/embed"
    default_model = "nomic-embed-text"
    models = _MODELS

    def payload(self, texts: Sequence[str], *, query: bool) -> Mapping[str, object]:
        """The body of a request."""
        width = {"dimensions": self.dimensions} if self._shorten else {}
        return {"model": self._name, "input": list(texts), "truncate": True, **width}

    def read(self, answer: Any) -> Sequence[object]:
        """The vectors of an answer in the order of the texts."""
        vectors = answer["embeddings"]
        if not isinstance(vectors, list):
            raise TypeError("embeddings is not a list")
        return vectors
