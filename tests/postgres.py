"""The real Postgres that the tests run against: where it comes from, and databases cloned from one migrated template.

All processes of a run share one server. TEST_DATABASE_URL names one (its role must be a superuser);
TEST_DATABASE=docker starts one with testcontainers; otherwise it is the embedded one, in a temporary directory.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from brain import embedded, migrate

IMAGE = "pgvector/pgvector:pg18"
_FOLDER = "brain-tests-"
_PREFIX = "brain_test_"
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Run:
    """What the processes of one test run share; plain text, so that xdist can hand it to its workers."""

    name: str
    directory: Path
    url: str

    @classmethod
    def from_text(cls, text: str) -> Run:
        given = json.loads(text)
        return cls(given["name"], Path(given["directory"]), given["url"])

    def to_text(self) -> str:
        return json.dumps({"name": self.name, "directory": str(self.directory), "url": self.url})

    @property
    def template(self) -> str:
        return f"{_PREFIX}{self.name}"

    @property
    def cluster(self) -> Path:
        return self.directory / "postgres"


def begin(stack: ExitStack) -> Run:
    """Start what the whole run needs; the stack undoes it, also after a worker was killed."""
    _sweep()
    directory = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
    stack.callback(shutil.rmtree, directory, ignore_errors=True)
    url = os.environ.get("TEST_DATABASE_URL", "")
    if not url and os.environ.get("TEST_DATABASE") == "docker":
        url = stack.enter_context(_container())
    run = Run(name=directory.name.rpartition("-")[2].lower(), directory=directory, url=url)
    stack.callback(_drop_databases, run) if url else stack.callback(_stop_abandoned_server, run.cluster)
    return run


@contextmanager
def server(run: Run) -> Iterator[str]:
    """Conninfo of the run's server, in its maintenance database; an embedded server stops with its last process."""
    if run.url:
        yield make_conninfo(run.url, dbname="postgres")
        return
    embedded_server = embedded.open_server(run.cluster, settings=embedded.THROWAWAY)
    try:
        yield make_conninfo(embedded_server.dsn, dbname="postgres")
    finally:
        embedded_server.close()


@contextmanager
def clone(run: Run, maintenance: str, *, template: str = "") -> Iterator[str]:
    """Conninfo of a fresh copy of a template, the migrated one by default; dropped at the end, in use or not."""
    name = f"{run.template}_{os.getpid()}_{next(_numbers)}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(template or run.template)))
    try:
        yield make_conninfo(maintenance, dbname=name)
    finally:
        with psycopg.connect(maintenance, autocommit=True) as connection:
            connection.execute(_drop(name))


def make_template(run: Run, maintenance: str) -> None:
    """Migrate the database that the clones are copied from, once a run; the mark of a template is set last."""
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", (run.template,))
        found = connection.execute("SELECT datistemplate FROM pg_database WHERE datname = %s", (run.template,))
        state = found.fetchone()
        if state == (True,):
            return
        name = sql.Identifier(run.template)
        if state is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        migrate.upgrade(make_conninfo(maintenance, dbname=run.template))
        connection.execute(sql.SQL("ALTER DATABASE {} IS_TEMPLATE true").format(name))


@contextmanager
def _container() -> Iterator[str]:
    # Testcontainers' own clean-up container would be one more image to fetch; the end of the run stops this one.
    # The variable is read when the package is imported.
    os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
    from testcontainers.postgres import PostgresContainer

    container = PostgresContainer(IMAGE, username="postgres", password="tests-only", dbname="postgres", driver=None)
    with container.with_command("postgres -c fsync=off -c synchronous_commit=off -c full_page_writes=off") as running:
        yield running.get_connection_url()


def _drop(name: str) -> sql.Composed:
    return sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))


def _drop_databases(run: Run) -> None:
    """Drop what a killed process left behind on a server that outlives the run."""
    with psycopg.connect(make_conninfo(run.url, dbname="postgres"), autocommit=True) as connection:
        names = connection.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s) ORDER BY datistemplate", (run.template,)
        ).fetchall()
        for (name,) in names:
            connection.execute(sql.SQL("ALTER DATABASE {} IS_TEMPLATE false").format(sql.Identifier(name)))
            connection.execute(_drop(name))


def _stop_abandoned_server(directory: Path) -> None:
    """Stop an embedded server whose last process was killed before it could."""
    if (directory / "cluster" / "postmaster.pid").exists():
        embedded.open_server(directory).close()


def _sweep() -> None:
    """Remove what earlier runs of this user left behind because they were killed as a whole."""
    for leftover in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*"):
        owner = leftover.name.removeprefix(_FOLDER).partition("-")[0]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)) and os.access(leftover, os.W_OK):
            _stop_abandoned_server(leftover / "postgres")
            shutil.rmtree(leftover, ignore_errors=True)
