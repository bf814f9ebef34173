"""Requests of the SDK with an access key: what is sent is what is signed, each attempt anew."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from paddlecloud.sdk import Client
from paddlecloud.sdk.config import Profile
from paddlecloud.sdk.http import Endpoint
from paddlecloud.sdk.signed_requests import signed
from paddlecloud.wire import signing
from tests.scripted_server import Answer, Request, ScriptedServer

PROFILE = Profile("x")
PROFILE.ak, PROFILE.sk = "a1", "s3cret"


def proven(method: str, url: str, headers: dict[str, str], sk: str = "s3cret") -> signing.Proven:
    """As a server checks it, from what arrives."""
    parts = urlsplit(url)
    claim = signing.read_claim(
        next(value for name, value in headers.items() if name.lower() == "authorization")
    )
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    request = signing.Signed(method, unquote(parts.path), pairs, headers)
    return signing.verify(claim, request, sk, now_s=claim.timestamp_s)


@pytest.mark.parametrize(
    ("url", "method", "target", "body"),
    [
        ("http://h", "GET", "/v1/job?type=normal&page=1", b""),
        ("http://h:8000", "POST", "/api/v2/jobs", b'{"name": "x"}'),
        ("http://[::1]:8000", "PUT", "/api/v2/jobs/x/favorite", b""),
        ("https://h/behind/a/proxy", "DELETE", "/api/v2/jobs/a%20b%2Fc", b""),
        ("http://h", "GET", "/api/v2/jobs?name=%E4%BD%A0+a&cursor=", b""),
    ],
)
def test_signs_what_is_sent(url: str, method: str, target: str, body: bytes) -> None:
    endpoint = Endpoint(url)
    given = {"Content-Type": "application/json", "Authorization": "Token old"}
    headers = signed(PROFILE, endpoint, method, target, given, body)
    sent = {**headers, "Host": endpoint.authority}
    if body or method in ("POST", "PUT"):
        sent["Content-Length"] = str(len(body))
    found = proven(method, endpoint.prefix + target, sent)
    assert found.is_complete
    signing.check_body(found, body)
    assert "s3cret" not in str(headers)
    assert "Token" not in str(headers)


def test_a_body_in_pieces_is_signed_whole() -> None:
    def pieces() -> Iterator[bytes]:
        yield from (b"one", b"two")

    given = {"Content-Length": "6"}
    headers = signed(PROFILE, Endpoint("http://h"), "POST", "/x", given, pieces)
    assert headers[signing.BODY_DIGEST] == hashlib.sha256(b"onetwo").hexdigest()
    streamed = signed(PROFILE, Endpoint("http://h"), "POST", "/x", given, None)
    assert streamed[signing.BODY_DIGEST] == signing.STREAMED


def test_the_idempotency_key_is_signed() -> None:
    given = {"Idempotency-Key": "k"}
    headers = signed(PROFILE, Endpoint("http://h"), "POST", "/x", given, b"")
    assert headers[signing.REPEATED_KEY] == "k"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.delenv("PADDLECLOUD_TOKEN", raising=False)
    started = ScriptedServer()
    yield started
    started.close()


def _client(server: ScriptedServer) -> Client:
    return Client(server.url, ak="a1", sk="s3cret")


def test_a_client_with_a_key_signs_and_sends_no_token(server: ScriptedServer) -> None:
    server.routes["GET /api/v2/whoami"] = Answer({"name": "alice"})
    with _client(server) as client:
        assert client.whoami()["name"] == "alice"
    (request,) = server.requests
    assert proven("GET", request.path, request.headers).ak == "a1"


def test_a_repeated_request_has_a_new_nonce_and_the_same_key(server: ScriptedServer) -> None:
    tries: list[Request] = []

    def answer(request: Request) -> Any:
        tries.append(request)
        if len(tries) == 1:
            raise ConnectionResetError  # the first answer is lost
        return Answer({"id": "job-1"}, 202)

    server.routes["POST /api/v2/jobs/x/cancel"] = answer
    with _client(server) as client:
        client.cancel("x")
    one, two = (request.headers for request in tries)
    assert one[signing.NONCE] != two[signing.NONCE]
    assert one[signing.REPEATED_KEY] == two[signing.REPEATED_KEY]
    for request in tries:
        signing.check_body(proven("POST", request.path, request.headers), request.body)


def test_a_refused_key_is_not_tried_again(server: ScriptedServer) -> None:
    from paddlecloud.core.errors import NotLoggedIn

    refusal = {"code": "not_logged_in", "message": "no", "hint": "h", "field": ""}
    server.routes["GET /api/v2/whoami"] = Answer(refusal, 401)
    with _client(server) as client, pytest.raises(NotLoggedIn):
        client.whoami()
    assert len(server.requests) == 1
