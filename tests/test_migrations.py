"""Migrations: up, down and up again; several processes at once; what a process is told when it has to wait."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import psycopg
import pytest

from brain import migrate
from brain.errors import ConfigurationError, Unavailable
from scripts import schema
from tests import factories

PROCESSES = 8
START = """
from pydantic import SecretStr
from brain import runtime
from brain.config import Settings
from brain.services import status
import sys
brain = runtime.open_brain(Settings(database_url=SecretStr(sys.argv[1])), origin="model")
async def main():
    from tests import factories
    await factories.constraint(brain)
    found = await brain.read(lambda work: status.overview(work, brain.embedder))
    await brain.close()
    print(found["schema"], found["visible_rows"]["constraints"])
runtime.run(main)
"""


def start_together(dsn: str) -> list[tuple[int, str, str]]:
    """Start processes at once that each open the brain and write to it; their exit status, output and errors."""
    command = [sys.executable, "-c", START, dsn]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    ended = [(each.communicate(timeout=90), each.returncode) for each in started]
    return [(status, output.strip(), errors) for (output, errors), status in ended]


def fetch(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchall()  # type: ignore[arg-type]


def test_eight_processes_that_start_on_an_empty_database_all_succeed(empty_dsn: str) -> None:
    ended = start_together(empty_dsn)
    assert ended == [(0, f"{migrate.head()} 1", "")] * PROCESSES
    assert fetch(empty_dsn, "SELECT namespace, version FROM constraints") == [("default", 1)]


@pytest.mark.long
def test_eight_processes_that_start_on_the_schema_before_the_newest_all_succeed(dsn: str) -> None:
    newest, *older = reversed(migrate._revisions())
    before = older[0] if older else "base"
    assert migrate.downgrade(dsn, before)[-1] == newest
    assert start_together(dsn) == [(0, f"{newest} 1", "")] * PROCESSES


def test_migrations_go_up_down_and_up_again_to_the_same_schema(empty_dsn: str) -> None:
    every = migrate._revisions()
    assert migrate.upgrade(empty_dsn) == every
    first = schema.document(empty_dsn)
    assert migrate.upgrade(empty_dsn) == []
    assert migrate.downgrade(empty_dsn) == every[::-1]
    left = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    assert fetch(empty_dsn, left) == [("alembic_version",)]
    ours = (
        "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND NOT EXISTS"
        " (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"
    )
    assert fetch(empty_dsn, ours) == []
    assert migrate.upgrade(empty_dsn) == every
    assert schema.document(empty_dsn) == first


def test_a_migration_that_waits_for_another_says_so_in_one_sentence(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_SESSION", migrate._SESSION.replace("60s", "50ms"))
    with psycopg.connect(empty_dsn, application_name="deploy job") as other:
        other.execute(f"SELECT pg_advisory_xact_lock({migrate._LOCK})")
        holder = rf"Another process \(deploy job, backend {other.info.backend_pid}\) has been migrating"
        with pytest.raises(Unavailable, match=holder) as caught:
            migrate.upgrade(empty_dsn)
        assert "host=" not in str(caught.value)
    assert migrate.upgrade(empty_dsn) == migrate._revisions()


def test_a_holder_that_the_server_does_not_tell_is_left_out(empty_dsn: str) -> None:
    assert migrate._holder(empty_dsn) == ""
    assert migrate._holder("postgresql://someone:secret@127.0.0.1:1/brain") == ""
    with psycopg.connect(empty_dsn, application_name="") as other:
        other.execute(f"SELECT pg_advisory_xact_lock({migrate._LOCK})")
        assert migrate._holder(empty_dsn) == f" (backend {other.info.backend_pid})"


def test_the_migration_lock_ends_with_its_transaction(dsn: str) -> None:
    migrate.upgrade(dsn)
    assert fetch(dsn, factories.ADVISORY_LOCKS) == [(0,)]


def test_a_failing_migration_leaves_nothing_behind(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn) as connection:
        connection.execute("CREATE TABLE embedding_models (occupied int)")
    with pytest.raises(Exception, match="embedding_models"):
        migrate.upgrade(empty_dsn)
    assert fetch(empty_dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [("embedding_models",)]


def test_a_schema_that_is_newer_than_the_program_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigurationError, match="newer than this program") as caught:
        migrate.upgrade(dsn)
    assert "Install a newer version" in caught.value.hint


def test_a_role_without_the_right_to_migrate_is_told_which_setting_helps(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS migrations_guest")
        connection.execute("CREATE ROLE migrations_guest LOGIN PASSWORD 'guest'")
    guest = psycopg.conninfo.make_conninfo(empty_dsn, options="-c role=migrations_guest")
    with pytest.raises(ConfigurationError, match="may not create the schema") as caught:
        migrate.upgrade(guest)
    assert "MIGRATION_DATABASE_URL" in caught.value.hint
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE migrations_guest")


def test_an_unreachable_server_is_one_sentence_without_its_address() -> None:
    with pytest.raises(Unavailable, match="cannot be reached") as caught:
        migrate.upgrade("postgresql://someone:secret@127.0.0.1:1/brain")
    assert "secret" not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)
