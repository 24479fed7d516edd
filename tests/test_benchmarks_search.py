"""The benchmarks of search on a tiny size: they run, write the figures that documents quote, and count right."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks import asking, backends, beam, bm25, floor, locomo, probes, references, search, xquad
from benchmarks.retrieval import Outcome
from benchmarks.vocabulary import ASKED, Vocabulary, WordVectors
from brain.errors import ConfigurationError

TALK = {
    "speaker_a": "Ines",
    "speaker_b": "Tomas",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ines", "dia_id": "D1:1", "text": "The ferry to Skagen was late again."},
        {"speaker": "Tomas", "dia_id": "D1:2", "text": "I bought a telescope from the flea market."},
    ],
}
OTHER_TALK = {
    "speaker_a": "Mara",
    "speaker_b": "Joon",
    "session_1_date_time": "9:00 am on 2 June, 2023",
    "session_1": [{"speaker": "Mara", "dia_id": "D1:1", "text": "Chess club meets on Tuesdays in the library."}],
}
QUESTIONS = [
    {"question": "What did Tomas buy at the flea market?", "evidence": ["D1:2"], "category": 4},
    {"question": "Which telescope did Ines buy?", "evidence": ["D1:2"], "category": 5},
    {"question": "Where does Ines live?", "evidence": [], "category": 3},
]
CHAT = [
    {
        "turns": [
            [
                {"id": 0, "time_anchor": "March-15-2024", "content": "The sprint ends on March 29. ->-> 1,1"},
                {"id": 1, "content": "Noted, I will remind you."},
            ],
            [{"id": 2, "time_anchor": "April-05-2024", "content": "The sprint ends on April 12. ->-> 2,1"}],
        ]
    }
]
PROBES = {
    "knowledge_update": [
        {
            "question": "When does the sprint end?",
            "source_chat_ids": {"original_info": [0], "updated_info": [2]},
        }
    ],
    "information_extraction": [{"question": "Who will remind me?", "source_chat_ids": [1]}],
    "abstention": [{"question": "What is my cat called?"}],
}
PARAGRAPHS = {
    "en": [
        ("The river freezes in January.", "When does the river freeze?"),
        ("Rye bread keeps for a week.", "How long does rye bread keep?"),
    ],
    "zh": [("河流在一月结冰。", "河流什么时候结冰？"), ("黑麦面包可以保存一周。", "黑麦面包能保存多久？")],
}


@pytest.fixture(autouse=True)
def own_database(module_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", module_dsn)


@pytest.fixture
def talks(tmp_path: Path) -> str:
    samples = [
        {"sample_id": "talk-1", "conversation": TALK, "qa": QUESTIONS},
        {"sample_id": "talk-2", "conversation": OTHER_TALK, "qa": []},
    ]
    path = tmp_path / "talks.json"
    path.write_text(json.dumps(samples), encoding="utf-8")
    return str(path)


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    for name, content in (("chat", CHAT), ("probing_questions", PROBES)):
        (tmp_path / f"7.{name}.json.gz").write_bytes(gzip.compress(json.dumps(content).encode()))
    return tmp_path


@pytest.fixture
def paragraphs(tmp_path: Path) -> str:
    for language, pairs in PARAGRAPHS.items():
        listed = [{"context": text, "qas": [{"question": question}]} for text, question in pairs]
        data = {"data": [{"paragraphs": listed}]}
        (tmp_path / f"xquad.{language}.json").write_text(json.dumps(data), encoding="utf-8")
    return str(tmp_path)


def results(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_a_model_whose_extra_is_missing_is_skipped_with_its_reason(
    talks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConfigurationError("The local embedding model is not installed.")

    monkeypatch.setattr("brain.embedders.local_models.require_runtime", refuse)
    locomo.main(["--data", talks, "--embedder", "local-hash,local", "--json", str(tmp_path / "out.json")])
    assert "Skipped local: The local embedding model is not installed." in capsys.readouterr().out
    assert list(results(tmp_path / "out.json")["models"]) == ["local-hash"]


def test_locomo_shows_every_leg_and_the_fusion_beside_what_is_returned(talks: str, tmp_path: Path) -> None:
    locomo.main(["--data", talks, "--json", str(tmp_path / "out.json")])
    systems = results(tmp_path / "out.json")["models"]["local-hash"]["systems"]
    named = {asking.RETURNED, asking.FUSED, *asking.LEGS, asking.FTS5, locomo.LINKED, locomo.CHOSEN}
    assert named <= set(systems)
    assert systems[asking.FUSED][locomo.IN_ALL]["recall_at_5"] == 1


def test_the_weight_of_a_conversation_is_chosen_on_the_others_only() -> None:
    good, bad = Outcome("any", (1.0, 1.0, 1.0), 1.0), Outcome("any", (0.0, 0.0, 0.0), 0.0)
    weighed = {weight: {"first": [bad], "second": [bad]} for weight in locomo.WEIGHTS}
    weighed[0.4]["first"], weighed[0.6]["second"] = [good], [good]
    outcomes, weights = locomo.cross_validated(weighed)
    assert weights == {"first": 0.6, "second": 0.4}
    assert outcomes == [bad, bad]


def test_beam_puts_the_updated_value_above_the_stale_one(chats: Path, tmp_path: Path) -> None:
    beam.main(["--data", str(chats), "--json", str(tmp_path / "out.json")])
    found = results(tmp_path / "out.json")
    assert found["bars"]["updated_above_stale"] == 1
    assert found["models"]["local-hash"]["updates"]["questions"] == 1
    assert found["models"]["local-hash"]["systems"][asking.WORDS]["knowledge update"]["recall_at_5"] == 1


def test_messages_lose_their_marks_and_keep_the_day_of_the_last_anchor(chats: Path) -> None:
    [chat] = probes.read(chats)
    assert [message.text for message in chat.messages][::2] == [
        "The sprint ends on March 29.", "The sprint ends on April 12.",
    ]  # fmt: skip
    assert chat.messages[1].sent_at == datetime(2024, 3, 15, 0, 0, 1, tzinfo=UTC)
    assert [probe.evidence for probe in chat.probes] == [{"0", "2"}, {"1"}]


@pytest.mark.parametrize(
    ("found", "above"), [(["2", "0"], True), (["1", "2"], True), (["0", "2"], False), (["1"], False), ([], False)]
)
def test_an_updated_message_stands_above_when_no_stale_one_comes_before_it(found: list[str], above: bool) -> None:
    probe = probes.Probe("update", "?", frozenset({"0", "2"}), frozenset({"0"}), frozenset({"2"}))
    assert beam.stands_above(found, probe) is above


def test_the_floor_keeps_answers_and_turns_foreign_and_odd_questions_away(talks: str, tmp_path: Path) -> None:
    floor.main(["--data", talks, "--json", str(tmp_path / "out.json")])
    found = results(tmp_path / "out.json")
    assert found["bars"]["hits_kept"] == 1
    assert found["bars"]["foreign_nothing"] == 1
    groups = found["models"]["local-hash"]["groups"]
    assert groups[floor.TECHNICAL]["nothing"] == groups[floor.NONSENSE]["nothing"] == 1
    assert groups[floor.DISTINCT] == {"n": 3, "nothing": 1, "auroc": 1}


@pytest.mark.parametrize(
    ("positives", "negatives", "area"),
    [([3, 4], [1, 2], 1), ([1, 2], [3, 4], 0), ([1], [1], 0.5), ([1, 3], [2], 0.5), ([2, 3], [1, 2], 0.875)],
)
def test_auroc_is_the_chance_that_a_positive_is_above_a_negative(
    positives: list[float], negatives: list[float], area: float
) -> None:
    assert floor.auroc(positives, negatives) == area


def test_xquad_finds_paragraphs_within_each_language(paragraphs: str, tmp_path: Path) -> None:
    xquad.main(["--data", paragraphs, "--json", str(tmp_path / "out.json")])
    found = results(tmp_path / "out.json")
    directions = found["models"]["local-hash"]["directions"]
    assert directions["en to en"][asking.RETURNED]["recall_at_1"] == 1
    assert directions["zh to zh"][asking.WORDS]["recall_at_1"] == 1
    assert directions["zh to zh"][xquad.TRIGRAM]["recall_at_1"] == 0.5  # one question shares no three characters
    assert found["bars"]["local_hash_en_en_recall_at_1"] == 1


def test_the_fusion_falls_short_of_the_better_leg_by_the_worst_direction() -> None:
    def shown(fused: float, words: float, meaning: float) -> dict[str, Any]:
        figures = zip((asking.FUSED, *asking.LEGS), (fused, words, meaning), strict=True)
        return {system: {"recall_at_1": figure} for system, figure in figures}

    directions = {"en to en": shown(0.9, 0.8, 0.85), "en to zh": shown(0.6, 0.1, 0.63)}
    bars = xquad.bars({"local-hash": {"directions": directions}})
    assert bars["most_below_better_leg"] == pytest.approx(0.03)


def test_a_trigram_index_is_asked_for_every_run_of_three_characters() -> None:
    assert references.trigrams("rye 面包可以") == ["rye", "面包可", "包可以"]
    assert references.trigrams("go") == ["go"]


def test_bm25_equals_the_formula_in_both_plans(
    paragraphs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25, "ROWS", 15)
    monkeypatch.setattr(bm25, "QUERIES", 4)
    bm25.main(["--data", paragraphs, "--corpora", "1", "--json", str(tmp_path / "out.json")])
    bars = results(tmp_path / "out.json")["bars"]
    assert bars["max_error"] < bm25.EXACT
    assert bars["different_rows"] == bars["different_order"] == 0


def test_the_formula_weighs_rare_terms_and_short_texts_higher() -> None:
    texts = {1: Counter("ab"), 2: Counter("aabb"), 3: Counter("acd")}
    scores = bm25.bm25(texts, ["b", "zz"])
    # ln(1 + 1.5 / 2.5) with mean length 3: 2.2 / (1 + 1.2 * 0.75) and 4.4 / (2 + 1.2 * 1.25), worked out by hand.
    assert scores == pytest.approx({1: 0.4700036 * 2.2 / 1.9, 2: 0.4700036 * 4.4 / 3.5})


def test_both_backends_rank_random_searches_alike(tmp_path: Path) -> None:
    backends.main(["--limit", "60", "--rows", "40", "--json", str(tmp_path / "out.json")])
    found = results(tmp_path / "out.json")
    assert found["bars"]["different_rankings"] == 0
    assert found["models"]["dice-6"]["tied_hits"] > 0


def test_the_speed_of_every_kind_of_search_is_measured_with_its_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WARM_UP", 1)
    monkeypatch.setattr(search, "RECORDED", 2)
    search.main(["--rows", "80", "--queries", "3", "--json", str(tmp_path / "out.json")])
    found = results(tmp_path / "out.json")
    assert found["bars"]["p95_ms_80"] > 0
    assert len(found["sizes"]["80"]["searches"]) == 3 * 2 * 2
    statements = found["sizes"]["80"]["recorded"]["hybrid, now"]["statements"]
    assert {"prefix", "prefix_lexical"} <= set(statements)
    assert statements["prefix_lexical"]["server_ms"] > 0


def test_a_query_of_each_kind_is_made_of_words_of_its_text() -> None:
    vocabulary = Vocabulary()
    text = vocabulary.text(random.Random(1))
    rare, common = (vocabulary.query(text, kind).split() for kind in ("rare", "common"))
    assert set(rare) | set(common) <= set(text.split())
    assert len(rare) == len(common) == ASKED
    assert min(map(vocabulary.place.__getitem__, rare)) >= max(map(vocabulary.place.__getitem__, common))


async def test_texts_that_share_words_have_near_vectors() -> None:
    vocabulary = Vocabulary()
    vectors = WordVectors(vocabulary, "words")
    texts = [" ".join(vocabulary.words[start : start + 9]) for start in (0, 3, 50)]
    one, two, three = vectors.matrix(texts)
    assert one @ two > 0.5 > one @ three
    assert await vectors.embed(["unheard-of"]) == [None]
