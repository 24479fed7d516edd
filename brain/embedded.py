"""The embedded Postgres: one server a data directory, shared by every process that opens it.

DIRECTORY/lock          held while anything is created, started or stopped
DIRECTORY/clients/      one file a process, locked while it lives, so that kill -9 releases it as well
DIRECTORY/password      of the owner role; the only way in, beside a socket in a private directory
DIRECTORY/cluster/      the data (the directory itself, when it was initialised by other means)
DIRECTORY/socket/       or a link to a short directory, when the path is too long for a socket
DIRECTORY/postgres.log  starts, stops and refused connections
"""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import platformdirs

from brain import accounts, cluster, private_files
from brain.accounts import Account
from brain.cluster import Cluster
from brain.errors import BrainError, ConfigurationError

THROWAWAY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "32MB"}
"""Settings of a server whose data may be lost with the machine: tests and benchmarks."""

_PATIENCE = 120.0


def default_directory(settings_dir: Path | None) -> Path:
    """The configured data directory, else the one of this platform for this user."""
    if settings_dir is not None:
        return settings_dir.expanduser().absolute()
    return platformdirs.user_data_path("layered-memory", appauthor=False) / "postgres"


async def start(directory: Path, *, settings: Mapping[str, str] | None = None) -> Server:
    """Start or join the server of a data directory without blocking the event loop; see `open_server`."""
    return await asyncio.to_thread(open_server, directory, settings=settings)


def open_server(directory: Path, *, settings: Mapping[str, str] | None = None) -> Server:
    """Start or join the server of a data directory, creating what is missing.

    `settings` are Postgres settings beside the built-in ones; a server that already runs keeps its own.
    Raises ConfigurationError when the directory cannot serve, Unavailable when the server does not come up now.
    """
    server = Server(directory, settings or {})
    server.open()
    return server


@contextmanager
def temporary(*, settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A private server in a temporary directory, quick and not durable, removed with its data at the end."""
    with tempfile.TemporaryDirectory(prefix="brain-", ignore_cleanup_errors=True) as folder:
        server = open_server(Path(folder), settings={**THROWAWAY, **(settings or {})})
        try:
            yield server
        finally:
            server.close()


class Server:
    """This process's hold on the server of one data directory; the last hold that is released stops the server."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.directory = directory.expanduser().resolve()
        self.dsn = ""
        """Conninfo of the owner role in the brain's database; `ensure` may change it."""
        self._settings = settings
        self._cluster: Cluster | None = None
        self._keeper: Account | None = None
        self._hold: int | None = None
        self._hold_path = self.directory / "clients" / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._process = os.getpid()

    @property
    def bin_path(self) -> Path:
        """The directory of psql, pg_dump and the other programs."""
        return cluster.programs()

    @property
    def log_path(self) -> Path:
        """The log of the server."""
        return self.directory / "postgres.log"

    @property
    def postmaster_pid(self) -> int | None:
        """The process id of the running server."""
        running = self._cluster.running() if self._cluster else None
        return running.pid if running else None

    async def ensure(self) -> None:
        """Start the server again if it died; cheap if it did not. Raises like `open_server`."""
        postgres = self._cluster if self._hold is not None else None
        running = postgres.running() if postgres else None
        password = self._password()
        if postgres and running and password and postgres.serves(running):
            self.dsn = _conninfo(postgres.host(), running.port, password)
        else:
            await asyncio.to_thread(self.open)

    async def stop(self) -> None:
        """`close` without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def open(self) -> None:
        """Take a hold and see that the server runs; harmless when repeated."""
        try:
            self._cluster = self._make_directory()
            with self._locked():
                self._take_hold()
                try:
                    self._bring_up(self._cluster)
                except BaseException:
                    self._drop_hold()
                    raise
        except OSError as error:
            known = cluster.explained(error.strerror or "", self.directory)
            raise known or ConfigurationError(f"{self.directory} cannot be the data directory.") from error

    def close(self) -> None:
        """Release the hold, and stop the server when it was the last; harmless when repeated."""
        if self._cluster is None or self._hold is None or self._process != os.getpid():
            return
        with suppress(FileNotFoundError), self._locked():
            self._drop_hold()
            if not self._is_held():
                self._cluster.halt()
                self._cluster.drop_short_directory()

    def _close_at_exit(self) -> None:
        with suppress(OSError, BrainError):
            self.close()

    def _make_directory(self) -> Cluster:
        """Create the directory, settle which account runs the server, and let that account reach what it needs."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sys.platform != "win32" and self.directory.stat().st_mode & 0o002:
            raise ConfigurationError(f"The data directory {self.directory} is writable by every user.")
        runner = None
        if accounts.is_root():
            self._keeper = accounts.owner(self.directory)
            runner = self._keeper if self._keeper.uid else accounts.system_account()
            accounts.let_pass(runner, self.directory)
            accounts.let_run(runner, self.bin_path)
        private_files.make_directory(self._hold_path.parent, self._keeper)
        return Cluster(self.directory, self._settings, runner)

    def _bring_up(self, postgres: Cluster) -> None:
        password = self._password()
        fresh = password or secrets.token_urlsafe(32)
        postgres.prepare(fresh, renew=not password)
        if not password:
            # Only now: a crash before this line makes the next start set a new one.
            private_files.replace(self.directory / "password", fresh, self._keeper)
        running = postgres.bring_up()
        self.dsn = _conninfo(postgres.host(), running.port, fresh)

    def _password(self) -> str:
        with suppress(FileNotFoundError):
            return (self.directory / "password").read_text().strip()
        return ""

    def _locked(self) -> AbstractContextManager[None]:
        return private_files.locked(self.directory / "lock", self._keeper, patience=_PATIENCE)

    def _take_hold(self) -> None:
        if self._hold is None:
            self._hold = private_files.open_file(self._hold_path, self._keeper)
            private_files.try_lock(self._hold)
            atexit.register(self._close_at_exit)

    def _drop_hold(self) -> None:
        if self._hold is not None:
            os.close(self._hold)
            self._hold = None
            self._hold_path.unlink(missing_ok=True)
            atexit.unregister(self._close_at_exit)

    def _is_held(self) -> bool:
        """Whether a hold of a live process is left; files of the dead are removed."""
        held = False
        for path in self._hold_path.parent.iterdir():
            handle = private_files.open_file(path, self._keeper)
            try:
                dead = private_files.try_lock(handle)
            finally:
                os.close(handle)
            if dead:
                path.unlink(missing_ok=True)
            held = held or not dead
        return held


def _conninfo(host: str, port: int, password: str) -> str:
    place = {"host": host, "port": str(port), "dbname": cluster.DATABASE}
    # Whoever else might listen there is to learn nothing from the answer to its challenge.
    proof = {"user": cluster.OWNER, "password": password, "require_auth": "scram-sha-256"}
    return " ".join(f"{name}={cluster.quoted(value)}" for name, value in (place | proof).items())
