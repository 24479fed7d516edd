"""Connections, the unit of work, named queries, and the one place where driver errors are translated."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from brain import embedded, migrate, times
from brain.caller import Caller
from brain.config import Settings
from brain.driver_errors import is_broken, translated
from brain.errors import ConfigurationError, InvalidInput, Refused, Unavailable
from brain.work import MICROSECOND, Work

log = logging.getLogger(__name__)

T = TypeVar("T")
_Pool = AsyncConnectionPool[AsyncConnection[Any]]

_ATTEMPTS = 4
_READING = "ISOLATION LEVEL READ COMMITTED READ ONLY"
_WRITING = "ISOLATION LEVEL READ COMMITTED"
"""A write does not ask for READ WRITE: it would override a server that was told to accept none."""
_UNCERTAIN = "The database went away at the commit: read what was to be stored before you write it again."
_WATCHFUL = "linux|darwin"
"""Servers that can notice during a statement that its client is gone, so that its locks end soon; others refuse to."""


class Database:
    """The connections of one process, opened at the first call so that a start waits for nothing."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opening = asyncio.Lock()
        self._pool: _Pool | None = None
        self._server: embedded.Server | None = None
        self._given_out: dict[str, datetime] = {}
        """For each namespace the newest instant that a read of this process called now."""

    async def read(
        self, caller: Caller, job: Callable[[Work], Awaitable[T]], *, as_of: datetime | str | None = None
    ) -> T:
        """Run job in a READ ONLY transaction as of an instant, by default now; retried once if the connection broke.

        as_of as text is read in the brain's time zone. Raises InvalidInput when it has another form or lies in the
        future, and Unavailable when the database cannot be reached.
        """
        return await self._retrying(lambda: self._read(caller, job, as_of))

    async def write(self, caller: Caller, job: Callable[[Work], Awaitable[T]]) -> T:
        """Run job in a transaction that holds its namespace's write lock; return only after the commit.

        Deadlocks and serialisation failures are retried, bounded, and once a connection that broke before the commit
        was asked for. One that breaks later is not: the commit may have happened, and Unavailable says so.
        """
        if caller.read_only:
            raise Refused("This process was started read-only and writes nothing.")
        return await self._retrying(lambda: self._write(caller, job))

    async def close(self) -> None:
        """Close every connection and let go of the embedded server."""
        if self._pool is not None:
            await self._pool.close(timeout=2)
            self._pool = None
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop()

    def abandon(self) -> None:
        """Let go of the embedded server at once, from any thread, when there is no time left for an orderly close."""
        if self._server is not None:
            self._server.close()

    async def migrate(self) -> list[str]:
        """Apply the missing migrations; return their numbers."""
        return await asyncio.to_thread(migrate.upgrade, await self.owner_dsn())

    async def owner_dsn(self) -> str:
        """Connection string of the role that owns the schema."""
        if self._settings.migration_database_url is not None:
            return self._settings.migration_database_url.get_secret_value()
        return await self._dsn()

    @asynccontextmanager
    async def owner_connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Open a connection as the schema's owner, outside any transaction, for maintenance that takes its time."""
        try:
            async with await AsyncConnection.connect(await self.owner_dsn(), autocommit=True) as connection:
                yield connection
        except psycopg.Error as error:
            raise translated(error) from error

    async def schema_version(self) -> str | None:
        """The number of the newest migration applied, or None for an empty database."""
        try:
            async with await psycopg.AsyncConnection.connect(
                await self._dsn(), connect_timeout=int(self._settings.connect_timeout_seconds) + 1
            ) as connection:
                try:
                    row = await (await connection.execute("SELECT version_num FROM alembic_version")).fetchone()
                except psycopg.errors.UndefinedTable:
                    return None
                return str(row[0]) if row else None
        except psycopg.OperationalError as error:
            raise translated(error) from error

    async def _read(self, caller: Caller, job: Callable[[Work], Awaitable[T]], as_of: datetime | str | None) -> T:
        async with self._transaction(caller, _READING, _first_read(caller, None)) as (connection, start):
            zone = times.zone(start["time_zone"] or self._settings.time_zone)
            wanted = times.parse_instant(as_of, field="as_of", zone=zone) if isinstance(as_of, str) and as_of else as_of
            if isinstance(wanted, datetime) and wanted > start["instant"]:
                cursor = await connection.cursor(row_factory=dict_row).execute(_first_read(caller, wanted))
                start = await cursor.fetchone() or start
                if wanted > start["instant"]:
                    raise InvalidInput("as_of must not lie in the future.", field="as_of")
            if not isinstance(wanted, datetime):
                wanted = start["instant"]
                self._given_out[caller.namespace] = max(wanted, self._given_out.get(caller.namespace, wanted))
            work = Work(
                connection=connection,
                caller=caller,
                as_of=wanted,
                zone=zone,
                language=start["language"] or self._settings.language,
            )
            result = await job(work)
            await connection.execute("COMMIT")
            return result

    async def _write(self, caller: Caller, job: Callable[[Work], Awaitable[T]]) -> T:
        first = sql.SQL("SELECT instant, time_zone, language, created FROM brain_begin_write({}, {}, {})").format(
            caller.namespace, self._settings.time_zone, self._settings.language
        )
        async with self._transaction(caller, _WRITING, first) as (connection, start):
            instant: datetime = start["instant"]
            if caller.namespace in self._given_out:
                # The clock may have stepped back since a read, and what that read saw must stay what it was.
                instant = max(instant, self._given_out[caller.namespace] + MICROSECOND)
            work = Work(
                connection=connection,
                caller=caller,
                as_of=instant,
                zone=times.zone(start["time_zone"]),
                language=start["language"],
                created=start["created"],
            )
            result = await job(work)
            try:
                await connection.execute(_commit(work))
            except psycopg.OperationalError as error:
                if is_broken(error):
                    raise Unavailable(_UNCERTAIN) from error
                raise
            return result

    @asynccontextmanager
    async def _transaction(
        self, caller: Caller, mode: str, first: sql.Composed
    ) -> AsyncIterator[tuple[AsyncConnection[Any], dict[str, Any]]]:
        """Begin with a first query; yield the connection and that query's row."""
        pool, connection, row = await self._begun(caller, mode, first)
        try:
            yield connection, row
        except BaseException:
            await _roll_back(connection)
            raise
        finally:
            await pool.putconn(connection)

    async def _begun(
        self, caller: Caller, mode: str, first: sql.Composed
    ) -> tuple[_Pool, AsyncConnection[Any], dict[str, Any]]:
        """Begin a transaction on a connection of the pool; one that died there was asked nothing yet, and is replaced.

        The pool's own check would wait longer each time.
        """
        for number in range(self._settings.pool_size + 1):
            pool = await self._ready(doubtful=number > 0)
            connection = await pool.getconn()
            try:
                cursor = connection.cursor(row_factory=dict_row)
                await cursor.execute(sql.SQL("{}; {}").format(self._begin(caller, mode), first))
                await cursor.set_result(-1)
                [row] = await cursor.fetchall()
                return pool, connection, row
            except BaseException as error:
                await _roll_back(connection)
                await pool.putconn(connection)
                if number == self._settings.pool_size or not is_broken(error):
                    raise
        raise AssertionError("unreachable")

    def _begin(self, caller: Caller, mode: str) -> sql.Composed:
        """Everything that a transaction sets, as literals in one round trip."""
        return sql.SQL(
            "BEGIN {mode}; SET LOCAL ROLE brain_app; SET LOCAL brain.namespace = {namespace};"
            " SET LOCAL TIME ZONE 'UTC'; SET LOCAL jit = off; SET LOCAL work_mem = '64MB';"
            " SET LOCAL statement_timeout = {statement}; SET LOCAL lock_timeout = {lock};"
            " SET LOCAL idle_in_transaction_session_timeout = 60000;"
            " SELECT set_config('client_connection_check_interval', '2s', true) WHERE version() ~ {watchful}"
        ).format(
            mode=sql.SQL(mode),
            namespace=sql.Literal(caller.namespace),
            statement=sql.Literal(self._settings.statement_timeout_ms),
            lock=sql.Literal(self._settings.lock_timeout_ms),
            watchful=sql.Literal(_WATCHFUL),
        )

    async def _retrying(self, attempt: Callable[[], Awaitable[T]]) -> T:
        for number in range(_ATTEMPTS):
            last = number == _ATTEMPTS - 1
            try:
                return await attempt()
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected) as error:
                if last:
                    raise translated(error) from error
            except PoolTimeout as error:
                await self._explain(error, revive=number == 0)
            except psycopg.OperationalError as error:
                if number > 0 or not is_broken(error):
                    raise translated(error) from error
                await self._revive()
            except psycopg.Error as error:
                raise translated(error) from error
        raise AssertionError("unreachable")

    async def _explain(self, timeout: PoolTimeout, *, revive: bool) -> None:
        """Raise Busy when the database answers although the pool had no connection, else Unavailable.

        A dead embedded server is brought up again instead: nothing was begun, so that a write may be repeated as well.
        """
        try:
            await self.schema_version()
        except Unavailable:
            if not revive or self._server is None:
                raise
            await self._revive()
        else:
            raise translated(timeout) from timeout

    async def _ready(self, *, doubtful: bool) -> _Pool:
        """Return the pool, of an embedded server that runs; whether it does is not asked while a connection is idle."""
        idle = self._pool is not None and self._pool.get_stats()["pool_available"] > 0
        if self._server is not None and (doubtful or not idle) and self._server.postmaster_pid is None:
            await self._revive()
        if self._pool is None:
            async with self._opening:
                if self._pool is None:
                    self._pool = await self._open()
        return self._pool

    async def _open(self) -> _Pool:
        dsn = await self._dsn()
        await self._check_schema()
        pool: _Pool = AsyncConnectionPool(
            dsn,
            kwargs={
                "autocommit": True,
                "application_name": f"brain {self._settings.client}".strip()[:60],
                "prepare_threshold": 5 if self._settings.prepare_statements else None,
            },
            min_size=0,
            max_size=self._settings.pool_size,
            max_idle=300,
            timeout=self._settings.connect_timeout_seconds,
            reconnect_timeout=self._settings.connect_timeout_seconds,
            open=False,
        )
        await pool.open()
        return pool

    async def _check_schema(self) -> None:
        found, wanted = await self.schema_version(), migrate.head()
        if found == wanted:
            return
        if not self._settings.auto_migrate:
            raise ConfigurationError(
                f"The database has schema {found or 'none'} and this program needs {wanted}.", hint="Run: brain migrate"
            )
        await self.migrate()

    async def _dsn(self) -> str:
        if self._settings.database_url is not None:
            return self._settings.database_url.get_secret_value()
        if self._server is None:
            self._server = await embedded.start(embedded.default_directory(self._settings.home))
        return self._server.dsn

    async def _revive(self) -> None:
        """Bring an embedded server that died back up before the next attempt; it may listen elsewhere then."""
        if self._server is None:
            return
        before = self._server.dsn
        await self._server.ensure()
        if self._server.dsn != before and self._pool is not None:
            stale, self._pool = self._pool, None
            await stale.close(timeout=1)


async def _roll_back(connection: AsyncConnection[Any]) -> None:
    """Leave a connection as the pool expects it; one that breaks now is replaced by the pool."""
    if not connection.closed:
        with suppress(psycopg.OperationalError):
            await connection.execute("ROLLBACK")


def _first_read(caller: Caller, wanted: datetime | None) -> sql.Composed:
    query = sql.SQL("SELECT instant, time_zone, language FROM brain_begin_read({}, {})")
    return query.format(caller.namespace, wanted)


def _commit(work: Work) -> sql.Composed | sql.SQL:
    if work.stamped is None:
        return sql.SQL("COMMIT")
    return sql.SQL("UPDATE namespaces SET last_known = {instant} WHERE namespace = {namespace}; COMMIT").format(
        instant=sql.Literal(work.stamped), namespace=sql.Literal(work.namespace)
    )
