"""What docker-compose.yml brings up: a database and a service that only the bearer of the token may use."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("compose")]

ROOT = Path(__file__).parent.parent.parent
TOKEN = secrets.token_hex(32)
PATIENCE_SECONDS = 300


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def compose_command() -> list[str]:
    plugin = subprocess.run(["docker", "compose", "version"], check=False, capture_output=True)
    return ["docker", "compose"] if plugin.returncode == 0 else ["docker-compose"]


@dataclass(frozen=True)
class Project:
    """One start of docker-compose.yml under its own name, with a volume and a port of its own."""

    name: str
    environment: Mapping[str, str]
    env_file: Path
    """Empty, as no file of the developer's may lend a token or a password."""

    def compose(self, *arguments: str) -> str:
        command = [*compose_command(), "--project-name", self.name, "--env-file", str(self.env_file), *arguments]
        done = subprocess.run(command, check=True, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True)
        return done.stdout

    def container(self, service: str) -> Any:
        [description] = json.loads(docker("inspect", self.compose("ps", "--quiet", service).strip()))
        return description

    def wait_until_healthy(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (state := self.container("brain")["State"])["Health"]["Status"] != "healthy":
            assert state["Running"], self.compose("logs", "--no-color", "--tail", "50")
            assert time.monotonic() < deadline, self.compose("logs", "--no-color", "--tail", "50")
            time.sleep(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.environment['BRAIN_HTTP_PORT']}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    name = f"brain-test-{secrets.token_hex(4)}"
    secret = {"BRAIN_HTTP_TOKEN": TOKEN, "POSTGRES_PASSWORD": secrets.token_hex(16)}
    env_file = tmp_path_factory.mktemp("compose") / "env"
    env_file.touch()
    given = Project(name, {**os.environ, **secret, "BRAIN_HTTP_PORT": str(free_port())}, env_file)
    try:
        given.compose("up", "--build", "--detach")
        given.wait_until_healthy()
        yield given
    finally:
        given.compose("down", "--volumes", "--remove-orphans")


async def call(project: Project, tool: str, arguments: dict[str, Any]) -> Any:
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"}) as http_client,
        mcp.Client(streamable_http_client(f"{project.url}/mcp", http_client=http_client)) as client,
    ):
        result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def test_an_authenticated_client_writes_and_reads(project: Project) -> None:
    await call(project, "set_pin", {"state": "The draft waits for the tide tables.", "scope": "lane:work"})
    assert "tide tables" in json.dumps(await call(project, "get_session_continuation", {}))


async def test_what_was_written_outlives_the_containers(project: Project) -> None:
    await call(project, "set_pin", {"state": "The lamp is serviced in spring.", "scope": "lane:personal"})
    project.compose("down")
    project.compose("up", "--detach")
    project.wait_until_healthy()
    assert "serviced in spring" in json.dumps(await call(project, "get_session_continuation", {}))


@pytest.mark.parametrize("headers", [{}, {"Authorization": f"Bearer {'x' * 64}"}])
def test_without_the_token_the_service_answers_401(project: Project, headers: dict[str, str]) -> None:
    request = urllib.request.Request(f"{project.url}/mcp", data=b"{}", headers=headers)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 401


def test_a_foreign_host_header_is_refused(project: Project) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "brain.example.org"}
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(f"{project.url}/mcp", data=b"{}", headers=headers), timeout=10)
    assert caught.value.code in {403, 421}


def test_only_this_machine_reaches_the_service_and_nobody_the_database(project: Project) -> None:
    [published] = project.container("brain")["HostConfig"]["PortBindings"]["8765/tcp"]
    assert published["HostIp"] == "127.0.0.1"
    assert not project.container("db")["HostConfig"]["PortBindings"]


def test_the_service_runs_as_an_ordinary_user(project: Project) -> None:
    assert project.compose("exec", "-T", "brain", "id", "-u").strip() == "10001"


def test_the_database_has_shared_memory_for_an_index_build(project: Project) -> None:
    assert project.container("db")["HostConfig"]["ShmSize"] == 512 * 2**20


@pytest.mark.parametrize("variable", ["BRAIN_HTTP_TOKEN", "POSTGRES_PASSWORD"])
def test_compose_refuses_to_start_without_a_secret(project: Project, variable: str) -> None:
    others = {name: value for name, value in project.environment.items() if name != variable}
    without = replace(project, environment=others)
    with pytest.raises(subprocess.CalledProcessError):
        without.compose("config")
