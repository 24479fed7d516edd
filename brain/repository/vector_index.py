"""The approximate index of a model's vectors: HNSW over half precision, built by the schema's owner."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import Literal

import psycopg
from psycopg import sql

from brain.database import Database

log = logging.getLogger(__name__)

WIDEST = 4_000
"""Widest vector that pgvector indexes in half precision; wider ones are always compared exactly."""

_LEAST_MEMORY, _MOST_MEMORY = 64 * 2**20, 2 * 2**30
"""A build is several times quicker while its graph fits into memory, which takes about as much as the vectors."""

_CAUSES = {
    "53100": "The disk is full.",
    "53200": "The server is short of memory.",
    "57014": "It was cancelled.",
    "42501": "The role that owns the schema may not make indexes; name one that may in MIGRATION_DATABASE_URL.",
}
_SCARCE = {_CAUSES["53100"], _CAUSES["53200"]}
"""Shared memory that was too small for several workers looks like either; one worker needs none."""

_WORKERS = 2


@dataclass(frozen=True, slots=True)
class Built:
    """What became of a build; after any but `ready`, searches compare every vector and miss nothing."""

    state: Literal["ready", "too_wide", "failed"]
    reason: str = ""


def index_name(model: str) -> str:
    """Return the name of a model's index."""
    return f"embeddings_{hashlib.blake2b(model.encode(), digest_size=6).hexdigest()}_hnsw"


async def build(database: Database, model: str, dimensions: int) -> Built:
    """Build a model's index beside running readers and writers, unless it is there.

    A build that fails, as for want of shared memory, leaves no index behind: searches stay exact. What a killed build
    left is removed first. Too wide vectors get none.
    """
    if not 1 <= dimensions <= WIDEST:
        return Built("too_wide", f"Vectors wider than {WIDEST} numbers cannot be indexed.")
    for workers in (_WORKERS, 0):
        built = await _attempt(database, model, dimensions, workers)
        if built.state == "ready" or built.reason not in _SCARCE:
            break
    return built


async def _attempt(database: Database, model: str, dimensions: int, workers: int) -> Built:
    try:
        await _drop_unfinished(database, model)
        async with database.owner_connection() as connection:
            await connection.execute(
                "SET statement_timeout = 0; SET lock_timeout = 0;"
                f" SET max_parallel_maintenance_workers = {workers}".encode()
            )
            await connection.execute(
                "SELECT set_config('maintenance_work_mem', greatest(s.setting::bigint, least(%(most)s,"
                " %(least)s + 2 * pg_table_size('embeddings')) / 1024)::text, false)"
                " FROM pg_settings s WHERE s.name = 'maintenance_work_mem'",
                {"least": _LEAST_MEMORY, "most": _MOST_MEMORY},
            )
            await connection.execute(
                sql.SQL(
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON embeddings"
                    " USING hnsw ((embedding::halfvec({width})) halfvec_cosine_ops) WHERE model = {model}"
                ).format(
                    name=sql.Identifier(index_name(model)), width=sql.Literal(dimensions), model=sql.Literal(model)
                )
            )
    except BaseException as error:
        await _drop_unfinished(database, model)
        if (failure := _failure(error)) is None:
            raise
        return failure
    unfinished = await _drop_unfinished(database, model)
    return Built("failed", "Another process that was building it gave up.") if unfinished else Built("ready")


async def _drop_unfinished(database: Database, model: str) -> bool:
    """Remove an index that is not complete, unless a server process is at work on it; return whether there was one."""
    async with database.owner_connection() as connection:
        found = await connection.execute(
            "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid"
            " WHERE c.relname = %(name)s AND NOT i.indisvalid AND NOT EXISTS"
            " (SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = c.oid))",
            {"name": index_name(model)},
        )
        unfinished = await found.fetchone() == (True,)
        if unfinished:
            await connection.execute("SET statement_timeout = 0; SET lock_timeout = 0")
            name = sql.Identifier(index_name(model))
            await connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {name}").format(name=name))
    return unfinished


def _failure(error: BaseException) -> Built | None:
    """Return what a database error means for a build; None for what did not come from the database."""
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    if not isinstance(cause, psycopg.Error):
        return None
    log.info("the build of an index failed: %s %s", cause.sqlstate, type(cause).__name__)
    known = _CAUSES.get(cause.sqlstate or "", f"The database could not build it ({cause.sqlstate or 'no connection'}).")
    return Built("failed", known)
