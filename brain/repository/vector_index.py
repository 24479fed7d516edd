"""The approximate index of a model's vectors: HNSW over half precision, built by the schema's owner."""

from __future__ import annotations

import hashlib

from psycopg import sql

from brain.database import Database, Work

WIDEST = 4_000
"""Widest vector that pgvector indexes in half precision; wider ones are always compared exactly."""


def index_name(model: str) -> str:
    """Return the name of a model's index."""
    return f"embeddings_{hashlib.blake2b(model.encode(), digest_size=6).hexdigest()}_hnsw"


async def usable(work: Work, model: str) -> bool:
    """Whether a model's index is there, complete, and served by a pgvector that scans it iteratively (0.8)."""
    query = (
        "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid"
        " WHERE c.relname = %(name)s AND i.indisvalid AND i.indisready)"
        " AND (SELECT string_to_array(extversion, '.')::int[] >= '{0,8}' FROM pg_extension WHERE extname = 'vector')"
    )
    [found] = await work.values(query, {"name": index_name(model)})
    return bool(found)


async def build(database: Database, model: str, dimensions: int) -> bool:
    """Build a model's index beside running readers and writers; return whether it is there now.

    A build that fails, as for want of shared memory, leaves no index behind: searches stay exact. Too wide vectors
    get none.
    """
    if not 1 <= dimensions <= WIDEST:
        return False
    name = sql.Identifier(index_name(model))
    async with database.owner_connection() as connection:
        await connection.execute("SET statement_timeout = 0; SET max_parallel_maintenance_workers = 0")
        try:
            await connection.execute(
                sql.SQL(
                    "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON embeddings"
                    " USING hnsw ((embedding::halfvec({width})) halfvec_cosine_ops) WHERE model = {model}"
                ).format(name=name, width=sql.Literal(dimensions), model=sql.Literal(model))
            )
        except BaseException:
            await connection.execute(sql.SQL("DROP INDEX IF EXISTS {name}").format(name=name))
            raise
    return True
