"""`brain serve` as a client meets it: a real process over stdio, from its first byte to its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from brain import embedded, migrate
from brain.tools.catalogue import ALL
from brain.tools.protocol import reading_tools
from tests.brain_process import Served

SECRET = "a-secret-that-must-not-leak"


@contextmanager
def serving(environment: Mapping[str, str], *arguments: str) -> Iterator[Served]:
    served = Served(environment, *arguments)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.kill()


@pytest.fixture
def silent() -> Iterator[str]:
    """Conninfo of a host that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        yield f"host=127.0.0.1 port={port} user=postgres password={SECRET} dbname=postgres"


def wait_until_gone(dsn: str, *, application: str = "brain%") -> int:
    """How many of the application's connections are left, once they had time to end."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(200):
            found = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE %s",
                (application,),
            ).fetchone()
            if found == (0,):
                return 0
            connection.execute("SELECT pg_sleep(0.05)")
    assert found is not None
    return int(found[0])


def wait_until_waiting(connection: psycopg.Connection[tuple[int]]) -> None:
    """Return once another connection of this database waits for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while connection.execute(query).fetchone() == (0,):
        connection.execute("SELECT pg_sleep(0.05)")
        connection.commit()


def test_a_host_that_never_answers_delays_neither_initialize_nor_the_list_of_tools(silent: str) -> None:
    environment = {**os.environ, "DATABASE_URL": silent, "BRAIN_CONNECT_TIMEOUT_SECONDS": "1"}
    with serving(environment) as served:
        assert "get_session_continuation" in served.hello()["result"]["instructions"]
        served.call(1, "get_status")
        served.send(2, "tools/list")
        listed = served.receive()
        assert listed["id"] == 2
        assert [tool["name"] for tool in listed["result"]["tools"]] == [tool.name for tool in ALL]
        failed = served.receive()
        assert failed["id"] == 1
        assert failed["result"]["isError"]
        assert "cannot be reached" in failed["result"]["content"][0]["text"]
        assert SECRET not in json.dumps(failed)
        served.call(3, "get_status")
        began = time.monotonic()
        assert served.end() == 0
        assert time.monotonic() - began < 10
        assert SECRET.encode() not in served.stderr


def test_nothing_that_is_slow_to_load_loads_before_initialize_is_answered() -> None:
    program = (
        "import sys, brain.cli.main as entry, brain.tools.server, brain.tools.stdio, brain.config\n"
        "from brain.tools.server import project_of_folder, surface\n"
        "surface(brain.config.load(), project=project_of_folder).server()\n"
        "heavy = {'psycopg', 'psycopg_pool', 'numpy', 'alembic', 'sqlalchemy', 'typer', 'rich', 'psutil'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_line_on_stdout_is_json_rpc_in_a_session_that_migrates_and_hears_notices(empty_dsn: str) -> None:
    noisy = make_conninfo(empty_dsn, options="-c client_min_messages=debug1")
    with serving({**os.environ, "DATABASE_URL": noisy, "BRAIN_LOG_LEVEL": "DEBUG"}) as served:
        served.hello()
        served.send(1, "tools/list")
        served.send(2, "prompts/list")
        served.send(3, "resources/templates/list")
        served.call(4, "get_session_continuation")
        served.call(5, "write_memory", text="Kestrel exports at night.", key="kestrel-export")
        served.call(6, "read_memory", query="when does kestrel export?")
        served.call(7, "read_memory", qury="a slip")
        served.call(8, "no_such_tool")
        served.send(9, "resources/list")
        served.send(10, "resources/read", {"uri": "brain://session"})
        served.send(11, "no/such/method")
        seen = {served.receive()["id"] for _ in range(11)}
        assert seen == set(range(1, 12))
        assert served.end() == 0
    messages = [json.loads(line) for line in served.lines]
    assert all(m["jsonrpc"] == "2.0" and ("result" in m) != ("error" in m) for m in messages)
    assert len(messages) == 12


def test_a_setting_that_cannot_be_read_ends_the_start_with_one_line_and_nothing_on_stdout() -> None:
    with serving({**os.environ, "BRAIN_POOL_SIZE": "many"}) as served:
        assert served.end() == 2
        assert served.lines == []
        assert served.stderr.decode().splitlines() == [
            "brain serve: BRAIN_POOL_SIZE is not valid: Input should be a valid integer, unable to parse string as an"
            " integer."
        ]


def test_a_model_that_cannot_work_is_an_error_of_each_call_and_not_the_end_of_the_server(dsn: str) -> None:
    with serving({**os.environ, "DATABASE_URL": dsn, "BRAIN_EMBEDDER": "local", "BRAIN_EMBED_MODEL": "x"}) as served:
        served.hello()
        for number in (1, 2):
            worked, text = served.ask(number, "get_status")
            assert not worked
            assert text.startswith("BRAIN_EMBED_MODEL must be")
        assert served.end() == 0


def test_a_wrong_password_is_one_clean_sentence(dsn: str) -> None:
    wrong = make_conninfo(dsn, user="nobody_such", password=SECRET)
    with serving({**os.environ, "DATABASE_URL": wrong}) as served:
        served.hello()
        worked, text = served.ask(1, "get_status")
        assert not worked
        assert text.startswith(("The database refused the login.", "The database cannot be reached just now."))
        for hidden in (SECRET, "nobody_such", "host", "socket", "FATAL"):
            assert hidden not in text
        assert served.end() == 0


def test_a_postgres_that_stops_in_a_session_is_a_clean_error_and_its_return_is_noticed() -> None:
    with embedded.temporary() as server:
        migrate.upgrade(server.dsn)
        with serving({**os.environ, "DATABASE_URL": server.dsn, "BRAIN_CONNECT_TIMEOUT_SECONDS": "1"}) as served:
            served.hello()
            assert served.ask(1, "write_memory", text="Written before the stop.", key="before")[0]
            server.close()
            worked, text = served.ask(2, "read_memory", query="before the stop")
            assert not worked
            assert text == "The database cannot be reached just now. Run: brain doctor"
            server.open()
            worked, text = served.ask(3, "read_memory", query="before the stop")
            assert worked
            assert "Written before the stop." in text
            assert served.end() == 0


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT"])
def test_the_process_ends_while_a_query_waits_and_leaves_no_connection(
    how: str, dsn: str, environment: dict[str, str]
) -> None:
    with serving(environment) as served, psycopg.connect(dsn) as blocker:
        served.hello()
        assert served.ask(1, "get_status")[0]
        blocker.execute("LOCK TABLE pins IN ACCESS EXCLUSIVE MODE")
        served.call(2, "get_session_continuation")
        with psycopg.connect(dsn) as watcher:
            wait_until_waiting(watcher)
        if how == "end of input":
            assert served.end() == 0
        else:
            served.process.send_signal(getattr(signal, how))
            assert served.process.wait(timeout=30) == 0
        assert wait_until_gone(dsn) == 0


def test_killed_processes_leave_no_connections_behind(dsn: str, environment: dict[str, str]) -> None:
    for _ in range(5):
        with serving(environment) as served:
            served.hello()
            assert served.ask(1, "get_status")[0]
            served.kill()
    assert wait_until_gone(dsn) == 0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory of the embedded server, which its first user fills."""
    return tmp_path_factory.mktemp("embedded") / "home"


@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_the_embedded_server_stops_with_its_last_process(how: str, home: Path) -> None:
    with serving({**os.environ, "BRAIN_HOME": str(home)}) as served:
        served.hello()
        assert served.ask(1, "write_memory", text="The first fact.", key="first")[0]
        assert (home / "cluster" / "postmaster.pid").exists()
        if how == "SIGTERM":
            served.process.send_signal(signal.SIGTERM)
            assert served.process.wait(timeout=30) == 0
        else:
            assert served.end() == 0
    assert not (home / "cluster" / "postmaster.pid").exists()


def test_a_write_brings_an_embedded_server_back_that_was_killed(home: Path) -> None:
    with serving({**os.environ, "BRAIN_HOME": str(home), "BRAIN_CONNECT_TIMEOUT_SECONDS": "1"}) as served:
        served.hello()
        assert served.ask(1, "get_status")[0]
        first, *_ = (home / "cluster" / "postmaster.pid").read_text().split()
        os.kill(int(first), signal.SIGKILL)
        worked, text = served.ask(2, "write_memory", text="After the kill.", key="after")
        assert worked, text
        assert served.end() == 0


def test_a_read_only_process_offers_only_the_reading_tools(environment: dict[str, str]) -> None:
    with serving(environment, "--read-only", "--namespace", "other", "--project", "Kestrel") as served:
        served.hello()
        served.send(1, "tools/list")
        names = [tool["name"] for tool in served.receive()["result"]["tools"]]
        assert names == [tool.name for tool in reading_tools(ALL)]
        worked, text = served.ask(2, "get_status")
        assert worked
        assert text.startswith("Brain other as of")
        assert "Bound to project:kestrel; read-only." in text
        worked, text = served.ask(3, "write_memory", text="No.")
        assert not worked
        assert "no tool 'write_memory'" in text


def test_writes_outside_the_write_scope_are_refused(environment: dict[str, str]) -> None:
    with serving(environment, "--project", "kestrel", "--write-scope", "project") as served:
        served.hello()
        assert served.ask(1, "set_pin", state="Inside.")[0]
        worked, text = served.ask(2, "set_pin", state="Outside.", scope="lane:work")
        assert not worked
        assert "lane:work is outside what this process may write" in text


def test_an_unknown_argument_ends_the_start_with_the_usage() -> None:
    with serving(os.environ, "--projekt", "x") as served:
        assert served.end() == 2
        assert served.lines == []
        assert b"unrecognized arguments: --projekt x" in served.stderr


def test_the_client_names_itself_unless_the_launch_names_it(environment: dict[str, str], dsn: str) -> None:
    with serving(environment) as served:
        served.hello()
        assert served.ask(1, "set_pin", state="By its own name.", scope="lane:work")[0]
    with serving(environment, "--client", "launched") as served:
        served.hello()
        assert served.ask(1, "set_pin", state="By the launch.", scope="lane:school")[0]
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT id, client, origin FROM pins ORDER BY id").fetchall()
    assert found == [("school", "launched", "model"), ("work", "raw", "model")]
