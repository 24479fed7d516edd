"""ONNX sentence models without PyTorch: tokenizers for the words, onnxruntime for the model, pooling in numpy.

A text longer than the model reads is cut into windows, and its vector is their mean, weighted by their tokens. Every
window runs by itself: models with 8-bit weights scale their activations over a whole batch, so a text would get
another vector in another batch.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from brain.embedders.base import fingerprint
from brain.embedders.floors import floor_of
from brain.embedders.local_models import Pooling, SentenceModel, sha256_of
from brain.embedders.threaded import LONGEST, Engine, ThreadedEmbedder, verify
from brain.scripts import main_script

_WINDOWS: Final = 8
_UNKNOWN_TOKENS: Final = ("[UNK]", "<unk>", "<UNK>")


class Local(ThreadedEmbedder):
    """Vectors of an ONNX sentence model."""

    def __init__(self, model: SentenceModel, *, threads: int = 1) -> None:
        super().__init__()
        self.dimensions = model.dimensions
        self.floor = floor_of(f"local-{model.name}")
        self._model = model
        self._threads = threads

    @cached_property
    def model(self) -> str:  # type: ignore[override]
        """Name of the model, with the start of its file's sha256 and everything else that changes its vectors."""
        files = self._model
        sha256 = files.pinned or sha256_of(files.model)
        how = fingerprint(files.query_prefix, files.passage_prefix, files.tokens, files.pooling, _WINDOWS, LONGEST)
        return f"local-{files.name}-{self.dimensions}-{sha256[:16]}-{how}"

    def load(self) -> Engine:
        """Check the file of a known model, then load tokenizer and model."""
        files = self._model
        if files.pinned:
            verify(sha256_of(files.model), files.pinned, "local")
        return _Runner(files, self._threads)


class _Runner:
    """A loaded model."""

    def __init__(self, files: SentenceModel, threads: int) -> None:
        self._files = files
        self._numpy: Any = importlib.import_module("numpy")
        self._session = _session(files, threads)
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(files.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(files.tokens)
        self._unknown = {self._tokenizer.token_to_id(token) for token in _UNKNOWN_TOKENS} - {None}

    def __call__(self, text: str, query: bool) -> Sequence[float] | None:
        prefix = self._files.query_prefix if query else self._files.passage_prefix
        if not self._reads(text):
            return None
        first = self._tokenizer.encode(prefix + text)
        windows = [first, *first.overflowing][:_WINDOWS]
        weights = [len(window.ids) for window in windows]
        vectors = [self._pooled(window.ids) for window in windows]
        mean: list[float] = self._numpy.average(vectors, axis=0, weights=weights).tolist()
        return mean

    def _reads(self, text: str) -> bool:
        """Whether the script is one of the model's, and at most a fifth of the tokens are unknown.

        Unknown tokens all have the same vector, and letters that a model has hardly seen say as little.
        """
        if self._files.scripts and main_script(text) not in self._files.scripts:
            return False
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        return sum(token in self._unknown for token in tokens) * 5 <= len(tokens) and bool(tokens)

    def _pooled(self, ids: Sequence[int]) -> Any:
        np = self._numpy
        tokens = np.array([ids], dtype=np.int64)
        given: Mapping[str, Any] = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        output = self._session.run(None, {name: given[name] for name in self._inputs})[0][0].astype(np.float64)
        return _pool(output, self._files.pooling)


def _pool(output: Any, pooling: Pooling) -> Any:
    if output.ndim == 1:
        return output
    return output[0] if pooling == "cls" else output.mean(axis=0)


def _session(files: SentenceModel, threads: int) -> Any:
    runtime: Any = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return runtime.InferenceSession(str(files.model), options, providers=["CPUExecutionProvider"])
