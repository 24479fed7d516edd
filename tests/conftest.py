"""Fixtures that every test may ask for: a migrated database of its own, settings for it, and an open Database."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from brain.config import Settings
from brain.database import Database
from tests import postgres

if TYPE_CHECKING:
    from brain.runtime import Brain

_RUN = pytest.StashKey[postgres.Run]()
_CLEANUP = pytest.StashKey[ExitStack]()
_PREFIXES = ("BRAIN_", "PG")
_VARIABLES = ("DATABASE_URL", "MIGRATION_DATABASE_URL")


def pytest_configure(config: pytest.Config) -> None:
    """Begin the run, or join it as a worker of xdist, in an environment that says nothing about a developer's brain."""
    for name in list(os.environ):
        if name.startswith(_PREFIXES) or name in _VARIABLES:
            del os.environ[name]
    Settings.model_config["env_file"] = None
    stack = config.stash[_CLEANUP] = ExitStack()
    workerinput = getattr(config, "workerinput", None)
    run = postgres.Run.from_text(workerinput["brain_run"]) if workerinput else postgres.begin(stack)
    config.stash[_RUN] = run
    # A process that opens the default embedded server opens one of this run, never the developer's.
    os.environ["XDG_DATA_HOME"] = str(run.directory / "home")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the run: nothing that it started is left."""
    if _CLEANUP in config.stash:
        config.stash[_CLEANUP].close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the run to a worker of xdist."""
    node.workerinput["brain_run"] = node.config.stash[_RUN].to_text()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the server, before marks select, and run it after what does not."""
    for item in items:
        if "maintenance_dsn" in getattr(item, "fixturenames", ()):
            item.add_marker("database")
    items.sort(key=lambda item: item.get_closest_marker("database") is not None)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def test_run(pytestconfig: pytest.Config) -> postgres.Run:
    return pytestconfig.stash[_RUN]


@pytest.fixture(scope="session")
def maintenance_dsn(test_run: postgres.Run) -> Iterator[str]:
    """Superuser's conninfo of the server's maintenance database; the template for clones exists."""
    with postgres.server(test_run) as dsn:
        postgres.make_template(test_run, dsn)
        yield dsn


@pytest.fixture
def dsn(test_run: postgres.Run, maintenance_dsn: str) -> Iterator[str]:
    """A migrated, empty database for one test."""
    with postgres.clone(test_run, maintenance_dsn) as conninfo:
        yield conninfo


@pytest.fixture
def empty_dsn(test_run: postgres.Run, maintenance_dsn: str) -> Iterator[str]:
    """A database that no migration has touched."""
    with postgres.clone(test_run, maintenance_dsn, template="template0") as conninfo:
        yield conninfo


@pytest.fixture(scope="module")
def module_dsn(test_run: postgres.Run, maintenance_dsn: str) -> Iterator[str]:
    """A migrated database for the tests of one module, which keep apart by namespace."""
    with postgres.clone(test_run, maintenance_dsn) as conninfo:
        yield conninfo


@pytest.fixture
def settings(dsn: str) -> Settings:
    """Default settings for the test's own database; change them with `settings.model_copy(update={...})`."""
    return Settings(database_url=SecretStr(dsn))


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    """The test's own database, open; closed after the test."""
    opened = Database(settings)
    yield opened
    await opened.close()


@pytest.fixture
async def brain(module_dsn: str) -> AsyncIterator[Brain]:
    """A brain of the test's own, a namespace of the module's database; the model writes."""
    from tests import factories

    opened = factories.brain_on(module_dsn)
    yield opened
    await opened.close()


@pytest.fixture
def environment(dsn: str) -> dict[str, str]:
    """The environment of a child process that works on the test's own database."""
    return {**os.environ, "DATABASE_URL": dsn}
