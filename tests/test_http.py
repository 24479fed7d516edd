"""The HTTP surface over a real socket: who gets in, what is refused, and what a restart does not break."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from starlette.applications import Starlette

from brain.caller import Caller
from brain.errors import ConfigurationError, Unavailable
from brain.tools.protocol import build_server
from brain.web.app import build_app, http_server
from brain.web.auth import Principal, StaticTokens, bearer_token
from brain.web.limits import AllowList, Buckets, Rate, without_port
from tests.dummy_tools import TOOLS, DummySession

TOKEN = "correct-horse-battery-staple-0123456789"
OTHER = "another-token-for-another-person-0123"
ALICE = Principal("alice", Caller(namespace="alice"))
BOB = Principal("bob", Caller(namespace="bob"))
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
SIGNED = JSON | {"Authorization": f"Bearer {TOKEN}"}


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def application(**options: Any) -> Starlette:
    given: dict[str, Any] = {
        "authenticate": StaticTokens({TOKEN: ALICE, OTHER: BOB}),
        "allow": AllowList.of(["127.0.0.1", "localhost"], ["https://app.example.org"]),
        "body_limit": 10_000,
    }
    return build_app(build_server(TOOLS, DummySession), **(given | options))


@contextmanager
def serving(app: Starlette) -> Iterator[int]:
    """The port of a running server. It listens before it is ready, so that clients need not try twice."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = http_server(app)
    thread = threading.Thread(target=lambda: anyio.run(lambda: server.serve(sockets=[listener])))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(application()) as bound:
        yield bound


def ask(
    port: int,
    method: str = "POST",
    path: str = "/mcp",
    headers: Mapping[str, str | bytes] = SIGNED,
    body: bytes | None = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    host: str | None = None,
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest(method, path, skip_host=host is not None, skip_accept_encoding=True)
    if host:
        connection.putheader("Host", host)
    for name, value in headers.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    response = connection.getresponse()
    answer = Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    connection.close()
    return answer


def tool_call(name: str, arguments: str = "{}") -> bytes:
    return (
        f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}'
    ).encode()


def test_health_says_only_ok_and_needs_no_token(port: int) -> None:
    answer = ask(port, "GET", "/healthz", headers={}, body=None)
    assert (answer.status, answer.json) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_both_forms_of_the_path_answer_without_a_redirect(port: int, path: str) -> None:
    answer = ask(port, path=path)
    assert answer.status == 200
    assert [tool["name"] for tool in answer.json["result"]["tools"]] == [tool.name for tool in TOOLS]


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong-wrong-wrong-wrong-wrong-wrong-wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN} {TOKEN}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer ü".encode("latin-1"),
        "Bearer ü".encode(),
    ],
)
def test_without_a_valid_token_the_answer_is_401_with_a_challenge(port: int, given: str | bytes | None) -> None:
    headers = JSON if given is None else JSON | {"Authorization": given}
    answer = ask(port, headers=headers, body=b"this is not even JSON")
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER {TOKEN}", f"Bearer {TOKEN} "])
def test_the_scheme_may_have_any_case_and_white_space_may_follow(port: int, given: str) -> None:
    assert ask(port, headers=JSON | {"Authorization": given}).status == 200


def test_a_token_in_the_query_string_is_refused(port: int) -> None:
    for name in ("token", "access_token", "authorization"):
        assert ask(port, path=f"/mcp?{name}={TOKEN}", headers=JSON).status == 401


def test_two_authorization_headers_are_refused(port: int) -> None:
    assert ask(port, headers=SIGNED | {"authorization": f"Bearer {OTHER}"}).status == 401


def test_an_unknown_path_is_hidden_from_callers_without_a_token(port: int) -> None:
    assert ask(port, "GET", "/admin", headers={}, body=None).status == 401
    assert ask(port, "GET", "/admin", body=None).status == 404


def test_the_token_decides_who_the_caller_is(port: int) -> None:
    names = [
        ask(port, headers=JSON | {"Authorization": f"Bearer {token}"}, body=tool_call("whoami")).json
        for token in (TOKEN, OTHER)
    ]
    assert [answer["result"]["structuredContent"]["principal"] for answer in names] == ["alice", "bob"]


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "localhost:x"]
)
def test_a_foreign_host_is_refused_with_the_name_of_the_setting(port: int, host: str) -> None:
    answer = ask(port, host=host or " ")
    assert answer.status == 421
    assert b"BRAIN_ALLOWED_HOSTS" in answer.body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8765"])
def test_a_listed_host_is_accepted_with_and_without_a_port(port: int, host: str) -> None:
    assert ask(port, host=host).status == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "https://app.example.org:8443", "http://app.example.org", "null"]
)
def test_a_foreign_origin_is_refused_with_the_name_of_the_setting(port: int, origin: str) -> None:
    answer = ask(port, headers=SIGNED | {"Origin": origin})
    assert answer.status == 403
    assert b"BRAIN_ALLOWED_ORIGINS" in answer.body


def test_a_listed_origin_and_the_servers_own_are_accepted(port: int) -> None:
    assert ask(port, headers=SIGNED | {"Origin": "https://app.example.org"}).status == 200
    assert ask(port, headers=SIGNED | {"Origin": f"http://127.0.0.1:{port}"}).status == 200


def test_allow_lists_are_checked_before_the_token(port: int) -> None:
    assert ask(port, headers=JSON, host="evil.example").status == 421


def test_a_body_over_the_limit_is_refused_declared_or_not(port: int) -> None:
    long = b"x" * 10_001
    assert ask(port, body=long).status == 413
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/mcp", body=iter([long[:6_000], long[6_000:]]), headers=SIGNED, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_only_post_is_answered_because_there_is_no_session(port: int, method: str) -> None:
    answer = ask(port, method, body=None)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_another_content_type_is_refused(port: int) -> None:
    assert ask(port, headers=SIGNED | {"Content-Type": "text/plain"}).status == 415


@pytest.mark.parametrize(
    ("body", "code", "request_id"),
    [
        (b"nonsense", -32700, None),
        (b"[]", -32600, None),
        (b'{"jsonrpc":"2.0","id":5}', -32600, 5),
        (tool_call("echo", r'{"text":"a\ud800b"}'), -32602, 7),
    ],
)
def test_what_is_no_message_is_answered_under_its_id(port: int, body: bytes, code: int, request_id: int | None) -> None:
    answer = ask(port, body=body)
    assert answer.status == 400
    assert (answer.json["error"]["code"], answer.json["id"]) == (code, request_id)
    assert b"pydantic" not in answer.body


def test_an_accept_header_without_event_stream_is_enough(port: int) -> None:
    assert ask(port, headers=SIGNED | {"Accept": "application/json"}).status == 200


def test_text_is_kept_byte_for_byte(port: int) -> None:
    for text in ("null", "true", "123", '{"a":1}', "[1]", "a\u2028b", "👍"):
        answer = ask(port, body=tool_call("echo", json.dumps({"text": text})))
        assert answer.json["result"]["structuredContent"]["text"] == text


def test_a_session_id_from_before_a_restart_keeps_working() -> None:
    for _ in range(2):
        with serving(application()) as port:
            answer = ask(port, headers=SIGNED | {"Mcp-Session-Id": "from-another-life"}, body=tool_call("whoami"))
            assert answer.json["result"]["isError"] is False
            assert "mcp-session-id" not in answer.headers


def test_a_token_that_calls_too_often_waits_and_others_do_not() -> None:
    with serving(application(rate=Rate(per_second=0.001, burst=2))) as port:
        assert [ask(port).status for _ in range(3)] == [200, 200, 429]
        answer = ask(port)
        assert int(answer.headers["retry-after"]) > 0
        assert ask(port, headers=JSON | {"Authorization": f"Bearer {OTHER}"}).status == 200
        assert ask(port, "GET", "/healthz", headers={}, body=None).status == 200


def test_a_bucket_refills_with_time_up_to_its_burst() -> None:
    now = [0.0]
    buckets = Buckets(Rate(per_second=2.0, burst=3), clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    now[0] = 0.5
    assert [buckets.take("a") for _ in range(2)] == [0.0, 0.5]
    now[0] = 100.0
    assert [buckets.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


def test_a_token_store_that_is_down_gives_503_and_a_broken_one_500_without_its_text() -> None:
    async def down(token: bytes) -> Principal | None:
        raise Unavailable("The database cannot be reached just now.")

    async def broken(token: bytes) -> Principal | None:
        raise RuntimeError("hunter2")

    with serving(application(authenticate=down)) as port:
        assert ask(port).status == 503
    with serving(application(authenticate=broken)) as port:
        answer = ask(port)
        assert answer.status == 500
        assert b"hunter2" not in answer.body


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_lists_and_calls(port: int, mode: Any) -> None:
    async def session() -> tuple[int, Any]:
        async with create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"}) as http_client:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http_client)
            async with mcp.Client(transport, mode=mode) as client:
                listed = await client.list_tools()
                result = await client.call_tool("echo", {"text": "null", "limit": None})
                return len(listed.tools), result.structured_content

    count, content = anyio.run(session)
    assert count == len(TOOLS)
    assert content["text"] == "null"


def test_static_tokens_need_a_token_of_32_characters() -> None:
    with pytest.raises(ConfigurationError, match="token"):
        StaticTokens({})
    with pytest.raises(ConfigurationError, match="32"):
        StaticTokens({"x" * 31: ALICE})
    assert anyio.run(StaticTokens({"x" * 32: ALICE}), b"x" * 32) == ALICE


@pytest.mark.parametrize("hosts", [[], [""], ["*"]])
def test_an_allow_list_cannot_be_switched_off(hosts: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="BRAIN_ALLOWED_HOSTS"):
        AllowList.of(hosts)


def test_an_origin_needs_its_scheme() -> None:
    with pytest.raises(ConfigurationError, match="BRAIN_ALLOWED_ORIGINS"):
        AllowList.of(["localhost"], ["app.example.org"])


def test_a_port_on_the_list_accepts_only_that_port() -> None:
    allow = AllowList.of(["brain.example.org:443", "[::1]", "any.example:*"], ["http://localhost:*"])
    assert allow.accepts_host("brain.example.org:443")
    assert not allow.accepts_host("brain.example.org:80")
    assert not allow.accepts_host("brain.example.org")
    assert allow.accepts_host("[::1]:8765")
    assert allow.accepts_host("any.example:1")
    assert allow.accepts_origin("http://localhost:3000", "brain.example.org")
    assert not allow.accepts_origin("http://localhost.evil:3000", "brain.example.org")


def test_a_port_is_told_from_an_ipv6_address() -> None:
    assert [without_port(h) for h in ("a:1", "a", "[::1]", "[::1]:9", "::1")] == ["a", "a", "[::1]", "[::1]", "::1"]


def test_a_digest_header_carries_no_bearer_token() -> None:
    from starlette.datastructures import Headers

    assert bearer_token(Headers(raw=[(b"authorization", b"Digest " + TOKEN.encode())])) is None
