"""The benchmarks on a tiny size: they run, write the figures that documents quote, and find no leak."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks import asof, conversations, leakage, locomo, references, retrieval
from benchmarks.histories import Author

SESSIONS = {
    "speaker_a": "Ines",
    "speaker_b": "Tomas",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ines", "dia_id": "D1:1", "text": "The ferry to Skagen was late again."},
        {"speaker": "Tomas", "dia_id": "D1:2", "text": "I bought a telescope from the flea market."},
    ],
    "session_2_date_time": "12:05 am on 9 May, 2023",
    "session_2": [{"speaker": "Ines", "dia_id": "D2:1", "text": "My orchard has forty apple trees now."}],
}


@pytest.fixture
def conversation_file(tmp_path: Path) -> Path:
    """Two invented conversations in the published form."""
    asked = [
        {"question": "What did Tomas buy at the flea market?", "evidence": ["D1:2"], "category": 4},
        {"question": "Which apple trees has the orchard?", "evidence": ["D2:1"], "category": 2},
        {"question": "Why does Ines like ferries?", "evidence": [], "category": 3},
    ]
    other = {
        "speaker_a": "Mara",
        "speaker_b": "Joon",
        "session_1_date_time": "9:00 am on 2 June, 2023",
        "session_1": [{"speaker": "Mara", "dia_id": "D1:1", "text": "Chess club meets on Tuesdays."}],
    }
    samples = [
        {"sample_id": "talk-1", "conversation": SESSIONS, "qa": asked},
        {"sample_id": "talk-2", "conversation": other, "qa": []},
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(samples), encoding="utf-8")
    return path


@pytest.fixture
def own_database(module_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", module_dsn)


def results(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


@pytest.mark.usefixtures("own_database")
def test_locomo_finds_the_turns_that_answer_and_nothing_elsewhere(conversation_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "locomo.json"
    locomo.main(["--data", str(conversation_file), "--json", str(out)])
    bars = results(out)["bars"]
    assert bars.pop("rows_per_second") > 0
    assert bars == {
        "recall_at_10": 1,
        "reference_recall_at_10": 1,
        "foreign_nothing_share": 1,
        "fused_recall_at_10": 1,
        "returned_recall_at_10": 1,
        "best_leg_recall_at_10": 1,
        "best_reference_recall_at_10": 1,
    }


@pytest.mark.parametrize("arguments", [[], ["--data", "missing.json"]])
def test_a_benchmark_without_its_data_is_skipped_and_no_failure(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "locomo.json"
    with pytest.raises(SystemExit) as ended:
        locomo.main([*arguments, "--json", str(out)])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("Skipped: ")
    assert results(out)["bars"] == {}


def test_turns_carry_date_and_speaker_and_questions_without_evidence_are_left_out(conversation_file: Path) -> None:
    first, second = conversations.read(conversation_file)
    assert [turn.text for turn in first.turns][1:] == [
        "[1:56 pm on 8 May, 2023] Tomas: I bought a telescope from the flea market.",
        "[12:05 am on 9 May, 2023] Ines: My orchard has forty apple trees now.",
    ]
    assert first.turns[2].said_at == datetime(2023, 5, 9, 0, 5, tzinfo=UTC)
    assert [question.category for question in first.questions] == ["single-hop", "temporal"]
    assert second.questions == []


@pytest.mark.parametrize(
    ("evidence", "meant"),
    [
        (["D8:6; D9:17"], {"D8:6", "D9:17"}),
        (["D:11:26"], {"D11:26"}),
        (["D30:05"], {"D30:5"}),
        (["D9:1 D4:4 D4:6"], {"D9:1", "D4:4"}),
        (["D", "D9:1"], {"D9:1"}),
    ],
)
def test_malformed_evidence_is_repaired_and_what_names_no_turn_is_dropped(evidence: list[str], meant: set[str]) -> None:
    known = frozenset({"D8:6", "D9:17", "D11:26", "D30:5", "D9:1", "D4:4"})
    assert conversations.repaired(evidence, known) == meant


def test_recall_is_the_share_of_the_wanted_and_the_reciprocal_rank_that_of_the_first() -> None:
    found = retrieval.outcome("any", ["a", "b", "c", "d", "e", "f"], {"c", "f", "z"})
    assert found.recall == pytest.approx((1 / 3, 2 / 3, 2 / 3))
    assert found.reciprocal_rank == pytest.approx(1 / 3)


def test_the_reference_leaves_out_stop_words_unless_nothing_else_is_left() -> None:
    assert references.question_words("What's the name of Mara's club?") == ["name", "maras", "club"]
    assert references.question_words("Who are you?") == ["who", "are", "you"]
    assert references.fts5(["chess clubs", "who are they"])("What is a club?", 5) == [0]


def test_the_same_seed_writes_the_same_history_with_every_kind_of_revision() -> None:
    history = Author(3).history(40, 200)
    assert history == Author(3).history(40, 200)
    assert (len(history), len({each.key for each in history})) == (200, 40)
    assert any(each.tombstone and each.valid_to is None for each in history)
    assert any(each.tombstone and each.valid_to is not None for each in history)
    assert any(each.recorded_at - each.known_from > timedelta(days=20) for each in history)
    recorded = [each.recorded_at for each in history]
    assert recorded == sorted(set(recorded))


@pytest.mark.usefixtures("own_database")
def test_no_answer_about_the_past_differs_from_the_truth_while_shortcuts_leak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "leakage.json"
    monkeypatch.setattr(leakage, "SMALL", (60, 180))
    leakage.main(["--small", "--questions", "40", "--json", str(out)])
    bars = results(out)["bars"]
    assert {name: bars[f"{name}_top5"] for name in leakage.COLUMNS} == dict.fromkeys(leakage.COLUMNS, 0)
    assert bars["max_score_error"] < 1e-9
    assert bars["latest_only_differs"] > 0.2
    assert bars["global_top20_differs"] >= bars["known_then_filter_differs"] > 0


@pytest.mark.usefixtures("own_database")
def test_asof_compares_searching_the_past_with_searching_now(tmp_path: Path) -> None:
    out = tmp_path / "asof.json"
    asof.main(["--sizes", "60,120", "--questions", "5", "--json", str(out)])
    found = results(out)
    assert set(found["bars"]) == {"ratio_60", "ratio_120"}
    assert min(found["bars"].values()) > 0
    assert found["sizes"]["120"]["past"]["rows_median"] < found["sizes"]["120"]["now"]["rows_median"]
