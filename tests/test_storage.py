"""What the database itself holds: row-level security, rights, closing once, and namespaces first in every key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from brain import runtime
from brain.layers import LAYERS
from brain.repository import models, versions
from tests import factories

TABLES = [
    "namespaces", "scopes", "constraints", "records", "pins", "wiki", "threads", "memory", "friction",
    "memory_closed", "memory_timed", "memory_visible", "records_visible", "postings", "embeddings",
    "embeddings_pending", "embedding_models", "calibrations",
]  # fmt: skip
MEASURED = models.Calibration(floor=0.5, hits=9, kept=9, foreigners=9, answered=0)
VERSIONED = [layer.table for layer in LAYERS.values()]
IN_PLACE = [layer.table for layer in LAYERS.values() if not layer.valid_time]
ASSERTED = [layer.table for layer in LAYERS.values() if layer.valid_time]


@pytest.fixture(scope="module")
def filled(module_dsn: str) -> str:
    """A database with rows in every table of each of two brains, ours and theirs."""

    async def fill() -> None:
        for name in ("ours", "theirs"):
            brain = factories.brain_on(module_dsn, namespace=name)
            await factories.one_of_each(brain)
            await factories.fact(brain, "Kestrel rented a boat.", valid_to="2021-01-01", occurred="2020-01-01")
            await factories.fact(brain, "Kestrel rents a room.", valid_to="2199-01-01")
            await factories.fact(replace(brain, embedder=factories.Unreachable()), "A fact without a vector.")
            await brain.write(lambda work: models.add_calibration(work, "local-hash", 1, MEASURED))
            await brain.close()

    runtime.run(fill)
    return module_dsn


def owner(dsn: str, query: str, *params: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query, params or None).fetchall()


def a_row(dsn: str, table: str, namespace: str) -> str:
    """One row of a table as JSON text."""
    [(row,), *_] = owner(dsn, f"SELECT to_jsonb(t)::text FROM {table} t WHERE namespace = %s LIMIT 1", namespace)
    return str(row)


def copy(table: str, **changes: str) -> sql.Composed:
    """Insert a row given as JSON text, with some columns set to other SQL expressions."""
    changed = "".join(f" || jsonb_build_object('{name}', {value})" for name, value in changes.items())
    source = f"jsonb_populate_record(NULL::{table}, %s::jsonb{changed})"
    return sql.SQL(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM {source}")  # type: ignore[arg-type]


def test_the_list_of_tables_is_complete(filled: str) -> None:
    found = owner(filled, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
    assert [name for (name,) in found] == sorted([*TABLES, "alembic_version"])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("namespace", [None, ""])
def test_without_a_namespace_nothing_is_visible_and_nothing_can_be_written(
    filled: str, table: str, namespace: str | None
) -> None:
    row = a_row(filled, table, "ours")
    with factories.application(filled, namespace) as connection:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]
        assert connection.execute(f"SELECT count(*) FROM {table} WHERE namespace = 'ours'").fetchall() == [(0,)]
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(copy(table), [row])


@pytest.mark.parametrize("table", TABLES)
def test_another_brain_is_invisible_and_unwritable_even_when_it_is_named(filled: str, table: str) -> None:
    row = a_row(filled, table, "theirs")
    with factories.application(filled, "ours") as connection:
        assert connection.execute(f"SELECT count(*) FROM {table} WHERE namespace = 'theirs'").fetchall() == [(0,)]
        assert connection.execute(f"SELECT count(*) > 0 FROM {table}").fetchall() == [(True,)]
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            connection.execute(copy(table), [row])


@pytest.mark.parametrize(
    "statement",
    [
        *(f"UPDATE {table} SET known_to = now() + interval '1 day' WHERE namespace = 'theirs'" for table in IN_PLACE),
        *(f"UPDATE {table}_visible SET known_to = now() WHERE namespace = 'theirs'" for table in ASSERTED),
        *(f"DELETE FROM {table}_visible WHERE namespace = 'theirs'" for table in ASSERTED),
        "UPDATE namespaces SET last_known = now() WHERE namespace = 'theirs'",
        "UPDATE embedding_models SET active = false WHERE namespace = 'theirs'",
    ],
)
def test_what_the_application_may_change_it_cannot_change_in_another_brain(filled: str, statement: str) -> None:
    with factories.application(filled, "ours") as connection:
        assert connection.execute(statement).rowcount == 0  # type: ignore[arg-type]


def test_a_row_cannot_be_moved_into_another_brain(filled: str) -> None:
    with factories.application(filled, "ours") as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute("UPDATE memory_visible SET namespace = 'theirs'")


@pytest.mark.parametrize("table", VERSIONED)
@pytest.mark.parametrize("verb", ["DELETE FROM {}", "TRUNCATE {}", "UPDATE {} SET scope = 'global'", "DROP TABLE {}",
                                  "ALTER TABLE {} DISABLE ROW LEVEL SECURITY", "ALTER TABLE {} DISABLE TRIGGER ALL",
                                  "CREATE INDEX ON {} (namespace)"])  # fmt: skip
def test_the_application_neither_deletes_nor_redefines_versions(filled: str, table: str, verb: str) -> None:
    with factories.application(filled, "ours") as connection, pytest.raises(errors.InsufficientPrivilege):
        connection.execute(verb.format(table))  # type: ignore[arg-type]


def test_the_application_creates_nothing(filled: str) -> None:
    clock = "CREATE OR REPLACE FUNCTION brain_clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'"
    for statement in ("CREATE TABLE spare (n int)", "CREATE SCHEMA spare", "CREATE ROLE spare", clock):
        with factories.application(filled, "ours") as connection, pytest.raises(errors.InsufficientPrivilege):
            connection.execute(statement)  # type: ignore[arg-type]


def test_of_a_version_the_application_may_set_only_its_end(filled: str) -> None:
    rights = owner(
        filled,
        "SELECT table_name, column_name FROM information_schema.column_privileges"
        " WHERE grantee = 'brain_app' AND privilege_type = 'UPDATE' AND table_name = ANY(%s) ORDER BY 1",
        VERSIONED,
    )
    assert rights == [(table, "known_to") for table in sorted(IN_PLACE)]


def test_the_application_role_cannot_log_in_or_step_around_the_policies(filled: str) -> None:
    rights = "rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolcanlogin"
    assert owner(filled, f"SELECT {rights} FROM pg_roles WHERE rolname = 'brain_app'") == [(False,) * 5]


def test_every_table_forces_its_policies_on_its_owner_as_well(filled: str) -> None:
    found = owner(
        filled,
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
        " AND relname <> 'alembic_version' AND NOT (relrowsecurity AND relforcerowsecurity)",
    )
    assert found == []


def test_every_policy_compares_the_namespace_on_reading_and_on_writing(filled: str) -> None:
    found = owner(filled, "SELECT tablename, permissive, cmd, qual, with_check FROM pg_policies ORDER BY tablename")
    rule = "(namespace = current_setting('brain.namespace'::text, true))"
    assert found == [(table, "PERMISSIVE", "ALL", rule, rule) for table in sorted(TABLES)]


def test_every_unique_index_begins_with_the_namespace(filled: str) -> None:
    found = owner(
        filled,
        "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
        " JOIN pg_class t ON t.oid = i.indrelid"
        " WHERE t.relnamespace = 'public'::regnamespace AND i.indisunique AND t.relname <> 'alembic_version'",
    )
    assert len(found) >= len(TABLES)
    assert [index for index, first in found if first != "namespace"] == []


def test_every_foreign_key_begins_with_the_namespace_on_both_sides(filled: str) -> None:
    found = owner(
        filled,
        "SELECT c.conname, a.attname, b.attname FROM pg_constraint c"
        " JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]"
        " JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = c.confkey[1]"
        " WHERE c.contype = 'f' AND c.connamespace = 'public'::regnamespace",
    )
    assert len(found) >= 2
    assert {(here, there) for _, here, there in found} == {("namespace", "namespace")}


def test_every_plain_index_begins_with_the_namespace(filled: str) -> None:
    found = owner(filled, "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = ANY(%s)", TABLES)
    assert [text for (text,) in found if "(namespace" not in text] == []


@pytest.mark.parametrize("table", IN_PLACE)
def test_a_version_is_closed_once_and_never_changed_by_its_owner_either(filled: str, table: str) -> None:
    with psycopg.connect(filled) as connection:
        columns = [name for (name,) in connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table]
        )]  # fmt: skip
        for column in columns:
            with pytest.raises(errors.IntegrityError), connection.transaction():
                connection.execute(f"UPDATE {table} SET {column} = {column}")  # type: ignore[arg-type]
        for end in ("NULL", "known_from", "known_from - interval '1 day'"):
            with pytest.raises(errors.IntegrityError), connection.transaction():
                connection.execute(f"UPDATE {table} SET known_to = {end}")  # type: ignore[arg-type]
        with pytest.raises(errors.IntegrityError), connection.transaction():
            connection.execute(f"UPDATE {table} SET known_to = now() + interval '1 day', client = 'other'")  # type: ignore[arg-type]
        close = f"UPDATE {table} SET known_to = now() + interval '1 day' WHERE namespace = 'ours'"
        assert connection.execute(close).rowcount == 1  # type: ignore[arg-type]
        for end in ("NULL", "known_to", "known_to + interval '1 day'"):
            with pytest.raises(errors.IntegrityError), connection.transaction():
                connection.execute(f"UPDATE {table} SET known_to = {end} WHERE namespace = 'ours'")  # type: ignore[arg-type]
        connection.rollback()


@pytest.mark.parametrize("table", ASSERTED)
def test_an_assertion_is_never_changed_by_its_owner_either(filled: str, table: str) -> None:
    with psycopg.connect(filled) as connection, pytest.raises(errors.IntegrityError, match="never changed"):
        connection.execute(f"UPDATE {table} SET client = client")  # type: ignore[arg-type]


@pytest.mark.parametrize("table", IN_PLACE)
def test_only_one_version_of_a_row_is_open(filled: str, table: str) -> None:
    row = a_row(filled, table, "ours")
    with factories.application(filled, "ours") as connection, pytest.raises(errors.UniqueViolation):
        connection.execute(copy(table, version="99"), [row])


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("memory", "valid_to", "'9999-12-31T00:00:00Z'"),
        ("memory", "valid_to", "'infinity'"),
        ("memory", "occurred", "'1899-12-31T00:00:00Z'"),
        ("memory", "occurred", "'-infinity'"),
        ("records", "date", "'2201-01-01'"),
        ("records", "valid_from", "'-infinity'"),
        ("records", "value", "'NaN'"),
        ("records", "value", "'Infinity'"),
        ("pins", "known_from", "'2201-01-01T00:00:00Z'"),
        ("memory", "importance", "6"),
        ("memory", "confidence", "1.001"),
        ("memory", "kind", "'rumour'"),
        ("threads", "status", "'forgotten'"),
        ("threads", "cadence_days", "0"),
        ("friction", "artifact", "''"),
        ("constraints", "said", "''"),
        ("wiki", "origin", "'god'"),
        ("pins", "scope", "'work'"),
    ],
)
def test_a_value_outside_its_range_is_refused_by_the_table_itself(
    filled: str, table: str, column: str, value: str
) -> None:
    row = a_row(filled, table, "ours")
    with psycopg.connect(filled) as connection, pytest.raises(errors.CheckViolation):
        connection.execute(copy(table, id="'other'", version="1", doc="-1", **{column: value}), [row])


@pytest.mark.parametrize(("vector", "refusal"), [("[0,0,0]", "norm_not_zero"), ("[NaN,1,0]", "NaN not allowed")])
def test_a_vector_without_a_direction_is_never_stored(filled: str, vector: str, refusal: str) -> None:
    query = "INSERT INTO embeddings (namespace, model, content, embedding) VALUES ('ours', 'm', gen_random_uuid(), %s)"
    with factories.application(filled, "ours") as connection, pytest.raises(psycopg.Error, match=refusal):
        connection.execute(query, [vector])


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_the_dataclass_of_a_layer_has_the_columns_of_its_table(filled: str, layer: Any) -> None:
    found = owner(filled, "SELECT column_name FROM information_schema.columns WHERE table_name = %s", layer.table)
    columns = {name for (name,) in found} - {"namespace", "known_to"}
    assert set(versions.columns(layer)) == columns
