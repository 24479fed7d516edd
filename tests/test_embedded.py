"""The embedded Postgres, with real processes and real signals."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from brain import accounts, cluster, embedded
from brain.caller import Caller
from brain.config import Settings
from brain.database import Database
from brain.errors import ConfigurationError, Unavailable
from brain.private_files import open_file, try_lock
from brain.work import Work

# What a crash of Postgres must not lose stays on; only a crash of the machine could lose something.
QUICK = {"fsync": "off", "shared_buffers": "32MB"}

CLIENT = """
import os, pathlib, signal, sys
import psycopg

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits it as ignored
from brain import embedded

if len(sys.argv) > 2:
    psycopg.conninfo.make_conninfo("host=x")
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[2]))
settings = {"fsync": "off", "shared_buffers": "32MB"}
server = embedded.open_server(pathlib.Path(sys.argv[1]), settings=settings)
with psycopg.connect(server.dsn) as connection:
    connection.execute("SELECT 1")
print(server.postmaster_pid, flush=True)
sys.stdin.readline()
"""

STRANGER = """
import os, pathlib, sys
import psycopg

os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    psycopg.connect(sys.argv[1])
except psycopg.OperationalError as error:
    print("socket:", error)
try:
    pathlib.Path(sys.argv[2]).read_text()
except PermissionError:
    print("password: closed")
"""


@contextmanager
def client(directory: Path, *account: int) -> Iterator[subprocess.Popen[str]]:
    """A process that opens the directory, prints the postmaster's id and ends when told to."""
    arguments = [sys.executable, "-c", CLIENT, str(directory), *map(str, account)]
    process = subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def postmaster_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def end(process: subprocess.Popen[str]) -> int:
    process.communicate("\n", timeout=30)
    return process.returncode


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(timeout=10)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def alive(pid: int | None) -> bool:
    try:
        return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def any_process_names(folder: Path) -> bool:
    lines = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    return any(str(folder) in part for line in lines for part in line)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def kill_postmaster(pid: int | None) -> None:
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not alive(pid))


def answer(server: embedded.Server, query: str) -> object:
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def write_a_row(server: embedded.Server) -> None:
    with psycopg.connect(server.dsn) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT 'walnut' AS word")


def rules(path: Path) -> list[str]:
    lines = (line.split("#")[0].split() for line in (path / "pg_hba.conf").read_text().splitlines())
    return [words[-1] for words in lines if words]


def refusal(dsn: str) -> str:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(dsn)
    return str(caught.value)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, so that the socket lies in the data directory."""
    with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve() / "brain"


def open_here(folder: Path) -> embedded.Server:
    return embedded.open_server(folder, settings=QUICK)


@pytest.fixture(scope="module")
def server() -> Iterator[embedded.Server]:
    """One server for every test that leaves it running."""
    with tempfile.TemporaryDirectory(prefix="t-", ignore_cleanup_errors=True) as name:
        opened = open_here(Path(name).resolve() / "brain")
        yield opened
        opened.close()


# Sharing


def test_eight_processes_at_once_on_an_empty_directory_share_one_server_and_the_last_stops_it(folder: Path) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(client(folder)) for _ in range(8)]
        postmasters = {postmaster_of(process) for process in clients}
        assert len(postmasters) == 1
        assert [end(process) for process in clients[1:]] == [0] * 7
        assert alive(min(postmasters))
        assert end(clients[0]) == 0
        assert not alive(min(postmasters))
    assert list((folder / "clients").iterdir()) == []


def test_the_last_process_stops_the_server_even_if_an_earlier_one_was_killed(folder: Path) -> None:
    with client(folder) as first, client(folder) as second:
        postmaster = postmaster_of(first)
        assert postmaster_of(second) == postmaster
        kill(first)
        assert end(second) == 0
    assert not alive(postmaster)
    assert list((folder / "clients").iterdir()) == []


def test_a_killed_process_leaves_a_server_that_the_next_takes_over_and_stops(folder: Path) -> None:
    with client(folder) as first:
        postmaster = postmaster_of(first)
        kill(first)
    assert alive(postmaster)
    with client(folder) as second:
        assert postmaster_of(second) == postmaster
        assert end(second) == 0
    assert not alive(postmaster)


def test_a_process_killed_while_it_creates_the_database_does_not_hinder_the_next(folder: Path) -> None:
    with client(folder) as first:
        assert eventually(lambda: any(folder.glob("cluster.new-*/base")))
        kill(first)
    server = open_here(folder)
    try:
        assert answer(server, "SELECT current_database()") == "brain"
    finally:
        server.close()
    assert eventually(lambda: not any_process_names(folder))
    open_here(folder).close()
    assert [path.name for path in folder.glob("cluster*")] == ["cluster"]


def test_two_holds_of_one_process_count_as_two(server: embedded.Server) -> None:
    second = open_here(server.directory)
    second.close()
    second.close()
    assert answer(server, "SELECT 1") == 1


def test_an_interrupt_from_the_terminal_ends_the_client_and_not_the_server(server: embedded.Server) -> None:
    with client(server.directory) as other:
        postmaster = postmaster_of(other)
        os.killpg(other.pid, signal.SIGINT)
        other.wait(timeout=60)
    assert server.postmaster_pid == postmaster
    assert answer(server, "SELECT 1") == 1


def test_a_lock_ends_with_its_descriptor(tmp_path: Path) -> None:
    first, second = open_file(tmp_path / "lock"), open_file(tmp_path / "lock")
    try:
        assert try_lock(first)
        assert not try_lock(second)
        os.close(first)
        assert try_lock(second)
    finally:
        os.close(second)


async def _start_beside_a_counter(folder: Path) -> int:
    turns = 0
    starting = asyncio.create_task(embedded.start(folder, settings=QUICK))
    while not starting.done():
        await asyncio.sleep(0.001)
        turns += 1
    await starting.result().stop()
    return turns


def test_the_event_loop_runs_on_while_the_server_starts(folder: Path) -> None:
    assert asyncio.run(_start_beside_a_counter(folder)) > 10


# Recovery


def test_a_running_process_brings_back_a_killed_postmaster_with_its_data(server: embedded.Server) -> None:
    write_a_row(server)
    killed = server.postmaster_pid
    kill_postmaster(killed)
    asyncio.run(server.ensure())
    assert server.postmaster_pid not in (None, killed)
    assert answer(server, "SELECT word FROM kept") == "walnut"


def test_the_next_start_recovers_when_postmaster_and_client_were_killed(folder: Path) -> None:
    with client(folder) as first:
        postmaster = postmaster_of(first)
        kill(first)
        kill_postmaster(postmaster)
    server = open_here(folder)
    try:
        assert answer(server, "SELECT 1") == 1
        assert server.postmaster_pid != postmaster
    finally:
        server.close()


async def test_a_write_goes_on_when_the_postmaster_is_killed_while_it_runs(folder: Path) -> None:
    database = Database(Settings(database_url=None, home=folder))
    calls = 0

    async def job(work: Work) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            kill_postmaster(int((folder / "cluster" / "postmaster.pid").read_text().split()[0]))
        [found] = await work.values("SELECT count(*) FROM namespaces", {})
        return int(found)

    try:
        assert await database.write(Caller(namespace="kept"), job) == 1
    finally:
        await database.close()
    assert calls == 2


def test_a_stuck_backend_of_a_killed_postmaster_does_not_hinder_the_restart(
    server: embedded.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_ORPHAN_PATIENCE", 0.2)
    write_a_row(server)
    with psycopg.connect(server.dsn) as busy:
        backend = busy.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        kill_postmaster(server.postmaster_pid)
        asyncio.run(server.ensure())
    assert not alive(backend)
    assert answer(server, "SELECT word FROM kept") == "walnut"


def test_ensure_leaves_a_healthy_server_alone(server: embedded.Server) -> None:
    before = (server.postmaster_pid, server.dsn)
    asyncio.run(server.ensure())
    assert (server.postmaster_pid, server.dsn) == before


def test_a_removed_socket_is_made_again(server: embedded.Server) -> None:
    (server.directory / "socket" / ".s.PGSQL.5432").unlink()
    asyncio.run(server.ensure())
    assert answer(server, "SELECT 1") == 1


def test_a_stale_process_id_that_now_belongs_to_another_process_is_no_server(folder: Path) -> None:
    open_here(folder).close()
    stale = [
        str(os.getpid()),
        str(folder / "cluster"),
        "1700000000",
        "5432",
        str(folder / "socket"),
        "",
        "1 2",
        "ready",
    ]
    (folder / "cluster" / "postmaster.pid").write_text("\n".join(stale) + "\n")
    server = open_here(folder)
    try:
        assert server.postmaster_pid != os.getpid()
        assert answer(server, "SELECT 1") == 1
    finally:
        server.close()


# Access


def test_every_rule_of_access_asks_for_a_password(server: embedded.Server) -> None:
    assert set(rules(server.directory / "cluster")) == {"scram-sha-256"}
    assert answer(server, "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method <> 'scram-sha-256'") == 0
    assert "trust" not in (server.directory / "cluster" / "pg_hba.conf").read_text()
    assert answer(server, "SHOW listen_addresses") == ""


def test_a_wrong_or_missing_password_is_refused(server: embedded.Server) -> None:
    assert "password authentication failed" in refusal(make_conninfo(server.dsn, password="guess"))
    assert "no password supplied" in refusal(make_conninfo(server.dsn, password=""))


def test_another_user_of_the_machine_reaches_neither_the_socket_nor_the_password(server: embedded.Server) -> None:
    assert mode(server.directory) & 0o007 == 0
    assert [mode(server.directory / name) for name in ("socket", "cluster", "clients")] == [0o700] * 3
    assert [mode(server.directory / name) for name in ("password", "lock", "postgres.log")] == [0o600] * 3
    if accounts.is_root():
        command = [sys.executable, "-c", STRANGER, server.dsn, str(server.directory / "password")]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        assert "Permission denied" in lines[0]
        assert lines[-1] == "password: closed"


def test_a_directory_that_trusted_everybody_asks_for_a_password_and_keeps_its_data(folder: Path) -> None:
    server = open_here(folder)
    write_a_row(server)
    server.close()
    old = folder.with_name("old")
    (folder / "cluster").rename(old)
    (old / "pg_hba.conf").write_text("local all all trust\nhost all all 127.0.0.1/32 trust\n")
    server = open_here(old)
    try:
        assert set(rules(old)) == {"scram-sha-256"}
        assert "password authentication failed" in refusal(make_conninfo(server.dsn, password="guess"))
        assert answer(server, "SELECT word FROM kept") == "walnut"
    finally:
        server.close()


def test_trust_on_a_running_server_ends_with_the_next_start(server: embedded.Server) -> None:
    (server.directory / "cluster" / "pg_hba.conf").write_text("local all all trust\n")
    answer(server, "SELECT pg_reload_conf()")
    anybody = make_conninfo(server.dsn, password="guess", require_auth="")
    assert eventually(lambda: connects(anybody))
    second = open_here(server.directory)
    try:
        assert not connects(anybody)
        assert answer(second, "SELECT 1") == 1
    finally:
        second.close()


def connects(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_lost_password_file_is_replaced_by_a_new_password(server: embedded.Server) -> None:
    (server.directory / "password").unlink()
    second = open_here(server.directory)
    try:
        assert second.dsn != server.dsn
        assert answer(second, "SELECT 1") == 1
        assert not connects(server.dsn)
        asyncio.run(server.ensure())
        assert server.dsn == second.dsn
    finally:
        second.close()


# Accounts and places


def test_an_ordinary_user_runs_its_own_server() -> None:
    base = Path(tempfile.mkdtemp(prefix="t-"))
    account = accounts.system_account() if accounts.is_root() else accounts.this()
    account.own(base)
    try:
        with client(base / "brain", *((account.uid, account.gid) if accounts.is_root() else ())) as process:
            assert set(psutil.Process(postmaster_of(process)).uids()) == {account.uid}
            assert {path.stat().st_uid for path in base.rglob("*") if path.exists()} == {account.uid}
            assert end(process) == 0
    finally:
        shutil.rmtree(base)


def test_the_server_does_not_run_as_root_and_closed_parents_stay_closed(server: embedded.Server) -> None:
    assert 0 not in psutil.Process(server.postmaster_pid).uids()
    assert mode(server.directory.parent) & 0o007 == 0


def test_root_runs_the_server_of_another_users_directory_as_that_user(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    account = accounts.system_account() if accounts.is_root() else accounts.this()
    account.own(folder)
    server = open_here(folder)
    try:
        assert {path.stat().st_uid for path in folder.rglob("*")} == {account.uid}
        assert answer(server, "SELECT 1") == 1
    finally:
        server.close()


def test_a_path_too_long_for_a_socket_works_through_a_short_private_directory(folder: Path) -> None:
    long = folder / ("d" * 90) / ("e" * 90)
    server = open_here(long)
    try:
        assert answer(server, "SELECT 1") == 1
        short = Path(str(conninfo_to_dict(server.dsn)["host"]))
        assert len(str(short)) < 60
        assert mode(short) == 0o700
        shutil.rmtree(short)
        asyncio.run(server.ensure())
        assert answer(server, "SELECT 1") == 1
        short = Path(str(conninfo_to_dict(server.dsn)["host"]))
    finally:
        server.close()
    assert not short.exists()


def test_a_path_with_quotes_spaces_and_other_scripts_works(folder: Path) -> None:
    server = open_here(folder / "Jo's, größe 名")
    try:
        assert answer(server, "SELECT 1") == 1
    finally:
        server.close()


def test_a_temporary_server_is_removed_with_its_data() -> None:
    with embedded.temporary() as server:
        directory, postmaster = server.directory, server.postmaster_pid
        assert answer(server, "SHOW fsync") == "off"
    assert not directory.exists()
    assert not alive(postmaster)


def test_a_server_is_durable_and_frugal_unless_told_otherwise(folder: Path) -> None:
    server = embedded.open_server(folder, settings={"shared_buffers": "32MB"})
    try:
        wanted = {
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "data_checksums": "on",
            "server_encoding": "UTF8",
            "TimeZone": "UTC",
            "jit": "off",
            "max_connections": "100",
            "shared_buffers": "32MB",
        }
        assert {name: answer(server, f"SHOW {name}") for name in wanted} == wanted
        assert answer(server, "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'") == 1
    finally:
        server.close()


def test_the_log_is_bounded_and_keeps_statements_out(folder: Path) -> None:
    open_here(folder).close()
    log = folder / "postgres.log"
    log.write_text("x" * 1_100_000)
    server = open_here(folder)
    try:
        with psycopg.connect(server.dsn) as connection, pytest.raises(psycopg.DataError):
            connection.execute("SELECT 'walnut'::int")
        text = log.read_text()
    finally:
        server.close()
    assert len(text) < 10_000
    assert "walnut" not in text
    assert (folder / "postgres.log.old").stat().st_size == 1_100_000


# Refusals


def test_a_directory_that_cannot_be_made_is_a_configuration_error(folder: Path) -> None:
    folder.write_text("a file")
    with pytest.raises(ConfigurationError):
        open_here(folder / "brain")


def test_a_directory_that_everybody_may_write_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ConfigurationError, match="writable by every user"):
        open_here(folder)


def test_a_database_of_another_major_version_is_refused_by_name(folder: Path) -> None:
    (folder / "cluster").mkdir(parents=True)
    (folder / "cluster" / "PG_VERSION").write_text("16\n")
    with pytest.raises(ConfigurationError, match=re.compile("PostgreSQL 16.*PostgreSQL 18")):
        open_here(folder)
    assert list((folder / "clients").iterdir()) == []


def test_a_setting_that_postgres_does_not_know_fails_with_one_sentence(folder: Path) -> None:
    with pytest.raises(Unavailable, match=r"^The embedded database could not be started\.$"):
        embedded.open_server(folder, settings={**QUICK, "max_walnuts": "1"})


def test_the_configured_directory_wins_over_the_one_of_the_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert embedded.default_directory(Path("~/mine")) == tmp_path / "mine"
    assert embedded.default_directory(None).is_relative_to(tmp_path)
    assert "layered-memory" in embedded.default_directory(None).parts
