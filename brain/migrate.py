"""Bring a database to this version's schema: numbered migrations, each in one transaction, one process at a time."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brain.errors import ConfigurationError, Unavailable
from brain.names import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg
    from alembic.config import Config
    from sqlalchemy import Connection

_LOCK = 5_472_001
_SESSION = "SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '15min'; SET LOCAL TIME ZONE 'UTC'"


def migrations_directory() -> Path:
    """Where the migrations lie: inside an installed wheel, or beside the package in a checkout."""
    package = Path(__file__).parent
    installed = package / "_migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def head() -> str:
    """The newest migration's number, read from the file names so that a start need not import Alembic."""
    return max(path.name.split("_")[0] for path in (migrations_directory() / "versions").glob("[0-9]*.py"))


def run_sql(module_file: str, direction: str) -> None:
    """Execute a migration's raw SQL, the file beside it, through the driver (no placeholder is interpreted)."""
    from alembic import op

    path = Path(module_file).with_suffix(f".{direction}.sql")
    driver = op.get_bind().connection.driver_connection
    if driver is None:
        raise Unavailable("The database connection was lost during a migration.")
    driver.execute(path.read_text(encoding="utf-8"))


def upgrade(dsn: str, target: str = "head") -> list[str]:
    """Apply every missing migration up to target; return the numbers applied, oldest first.

    Raises Unavailable when the database cannot be reached, and ConfigurationError when its schema is newer than
    this program or the role may not change it.
    """
    applied: list[str] = []
    while True:
        with _transaction(dsn) as connection:
            following = _following(_current(connection), target)
            if following is None:
                return applied
            _command(connection, "upgrade", following)
        applied.append(following)


def downgrade(dsn: str, target: str = "base") -> list[str]:
    """Undo migrations until target is the newest one left; return the numbers undone, newest first."""
    undone: list[str] = []
    while True:
        with _transaction(dsn) as connection:
            current = _current(connection)
            if current is None or current == target:
                return undone
            _command(connection, "downgrade", _preceding(current))
        undone.append(current)


@contextmanager
def _transaction(dsn: str) -> Iterator[Connection]:
    """Open a transaction that takes the lock before it reads anything.

    A transaction-level lock is released by the server whatever becomes of this process, and works through a
    transaction pooler.
    """
    import psycopg
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    def connect() -> psycopg.Connection[Any]:
        return psycopg.connect(dsn, fallback_application_name="brain migrate")

    engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(_SESSION)
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield connection
    except (DBAPIError, psycopg.Error) as error:
        raise _translated(error, dsn) from error
    finally:
        engine.dispose()


def _translated(error: Exception, dsn: str) -> Exception:
    import psycopg

    cause = getattr(error, "orig", None) or error
    if isinstance(cause, psycopg.errors.LockNotAvailable):
        return Unavailable(
            f"Another process{_holder(dsn)} has been migrating this database for over a minute; try again later.",
            hint="If it hangs, end that backend at the database server.",
        )
    if isinstance(cause, psycopg.errors.InsufficientPrivilege):
        return ConfigurationError(
            "The database role may not create the schema.",
            hint="Set MIGRATION_DATABASE_URL to a role that owns the database and has CREATEROLE.",
        )
    if isinstance(cause, psycopg.OperationalError):
        return Unavailable("The database cannot be reached.", hint="Check DATABASE_URL and that the server is running.")
    return error


def _holder(dsn: str) -> str:
    """Say which backend holds the lock, as far as the server tells."""
    import psycopg

    query = (
        "SELECT l.pid, coalesce(a.application_name, '') FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = %s AND l.objsubid = 1"
        " AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())"
    )
    try:
        with psycopg.connect(dsn, connect_timeout=5) as connection:
            found = connection.execute(query, [_LOCK]).fetchone()
    except psycopg.Error:
        return ""
    if found is None:
        return ""
    pid, name = found
    return f" ({excerpt(name)}, backend {pid})" if name else f" (backend {pid})"


def _current(connection: Connection) -> str | None:
    from alembic.runtime.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision()


def _revisions() -> list[str]:
    from alembic.script import ScriptDirectory

    script = ScriptDirectory.from_config(_config())
    return [revision.revision for revision in script.walk_revisions()][::-1]


def _following(current: str | None, target: str) -> str | None:
    known = _revisions()
    if current is not None and current not in known:
        raise ConfigurationError(
            f"The database has schema {current}, which is newer than this program knows ({known[-1]}).",
            hint="Install a newer version of layered-memory.",
        )
    done = known.index(current) + 1 if current is not None else 0
    wanted = len(known) if target == "head" else known.index(target) + 1
    return known[done] if done < wanted else None


def _preceding(current: str) -> str:
    known = _revisions()
    position = known.index(current)
    return known[position - 1] if position else "base"


def _config(connection: Connection | None = None) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations_directory()))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _command(connection: Connection, direction: str, revision: str) -> None:
    from alembic import command

    getattr(command, direction)(_config(connection), revision)
