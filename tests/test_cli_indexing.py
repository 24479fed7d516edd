"""The commands about a brain's model: reindex and calibrate, as people and programs see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest
from pydantic import SecretStr

from brain import runtime
from brain.config import Settings
from brain.database import Database
from brain.repository import search as legs
from tests.memories import brain_on
from tests.test_calibration import fill
from tests.test_cli_commands import Cli, cli

__all__ = ["cli"]


@pytest.fixture
def filled(dsn: str) -> str:
    """A database whose default brain has forty facts in each of two lanes."""

    async def job() -> None:
        opened = Database(Settings(database_url=SecretStr(dsn)))
        await fill(brain_on(opened, namespace="default"))
        await opened.close()

    runtime.run(job)
    return dsn


def floors(dsn: str) -> list[Any]:
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT floor, hits, foreigners, client FROM calibrations").fetchall()


def test_the_floor_is_measured_drawn_and_stored(cli: Cli, filled: str, tmp_path: Path) -> None:
    drawing = tmp_path / "floor.svg"
    tried = cli("calibrate", "--dry-run", "--json").data
    assert (tried["stored"], floors(filled)) == (False, [])
    data = cli("calibrate", "--picture", str(drawing), "--json").data
    assert data == tried | {"stored": True}
    assert floors(filled) == [(data["chosen"]["floor"], data["hits"], data["foreign"], "cli")]
    assert ElementTree.parse(drawing).getroot().tag.endswith("svg")
    assert len(data["curve"]) == 15
    assert all(0 <= point["kept"] <= 1 and 0 <= point["answered"] <= 1 for point in data["curve"])
    assert cli("search", "violin", "--json").data["diagnosis"]["floor"]["words"] == data["chosen"]["floor"]


def test_people_see_the_curve_and_what_the_floor_costs(cli: Cli, filled: str, tmp_path: Path) -> None:
    questions = tmp_path / "foreign.txt"
    questions.write_text("\n".join(f"how deep is lake number {n}" for n in range(12)) + "\n\n", encoding="utf-8")
    shown = cli("calibrate", "--negatives", str(questions), "--scope", "lane:work", "--dry-run")
    assert (shown.code, len([line for line in shown.out.splitlines() if "█" * 20 in line])) == (0, 15)
    assert "(not stored)" in shown.out
    assert "0 of 40 are lost" in shown.out
    assert "of 12)" in shown.out


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b""])
def test_a_file_that_holds_no_questions_is_refused(
    cli: Cli, filled: str, tmp_path: Path, content: bytes | None
) -> None:
    questions = tmp_path / "foreign.txt"
    if content is not None:
        questions.write_bytes(content)
    refused = cli("calibrate", "--negatives", str(questions), "--json")
    assert refused.code == 2
    assert "negatives" in refused.error["message"]
    assert floors(filled) == []


def test_a_picture_that_cannot_be_written_stores_nothing(cli: Cli, filled: str, tmp_path: Path) -> None:
    refused = cli("calibrate", "--picture", str(tmp_path / "none" / "floor.svg"))
    assert (refused.code, floors(filled)) == (2, [])
    assert "picture must be a file that can be written." in refused.err


def test_a_large_brain_gets_its_index_without_being_asked(
    cli: Cli, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = cli("reindex", "--json").data
    assert (small["texts"], small["embedded"], small["switched"]) == (80, 0, False)
    assert small["index"]["state"] == "not_needed"
    monkeypatch.setattr(legs, "EXACT_ROWS", 79)
    assert cli("reindex", "--json").data["index"] == {"state": "ready", "reason": ""}
    shown = cli("reindex").out.splitlines()
    assert shown[0] == "Every one of 80 texts had its vector."
    assert shown[-1] == "The approximate index is ready."


def test_an_index_that_cannot_be_built_is_a_warning_and_no_failure(cli: Cli, filled: str) -> None:
    with psycopg.connect(filled) as owner:
        owner.execute(
            "INSERT INTO embeddings SELECT 'elsewhere', model, gen_random_uuid(), '[1,2]' FROM embeddings LIMIT 1"
        )
    done = cli("reindex", "--index")
    assert done.code == 0
    assert "Warning: There is no approximate index: " in done.err
    assert cli("search", "violin", "sonata", "--json").data["diagnosis"]["exact"] is True


def test_a_dry_run_counts_and_changes_nothing(cli: Cli, filled: str) -> None:
    assert cli("reindex", "--dry-run").out.endswith(
        "would embed 0 texts of 0 characters in 0 requests. Nothing was sent.\n"
    )
    with psycopg.connect(filled) as owner:
        owner.execute("DELETE FROM embeddings")
    data = cli("reindex", "--dry-run", "--json").data
    assert (data["texts"], data["requests"]) == (80, 0)
    assert cli("reindex", "--json").data["embedded"] == 80


def test_an_empty_brain_has_nothing_to_index(cli: Cli, dsn: str) -> None:
    assert cli("reindex", "--index").out.splitlines()[0] == "No facts yet."
