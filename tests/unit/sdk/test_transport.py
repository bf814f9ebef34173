"""Logging in, retrying and error classes, against scripted servers on real sockets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.core import errors
from paddlecloud.sdk import Client, Profile, tokens
from paddlecloud.sdk.transport import FETCHING
from paddlecloud.testing.ports import free_port
from tests.scripted_server import Answer, RawServer, Request, ScriptedServer

STATUS = "GET /api/v2/status"
JOBS = "/api/v2/jobs"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    started = ScriptedServer()
    yield started
    started.close()


def client_of(
    server: ScriptedServer | RawServer, said: list[str] | None = None, **kw: str
) -> Client:
    profile = Profile("dc", server.url, **kw)  # type: ignore[arg-type]
    return Client(profile=profile, say=(said if said is not None else []).append)


def json_bytes(value: object, status: str = "200 OK") -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        errors.NotFound("no job named x", hint="look"),
        errors.Conflict("a live job has that name", field="name"),
        errors.CannotFit("needs 8 cpu, there are 2"),
        errors.NotAllowed("administrators only"),
        errors.RateLimited("later"),
        errors.InvalidInput(faults=[errors.Fault("memory", "unknown suffix", "1GB")]),
    ],
)
def test_rebuilds_the_servers_error(server: ScriptedServer, error: errors.PaddleCloudError) -> None:
    server.routes[STATUS] = Answer(error.to_json(), error.http_status)
    with pytest.raises(type(error)) as caught:
        client_of(server).status()
    assert caught.value.to_json() == error.to_json()


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (
            404,
            {"code": 404, "error": "not_found", "message": "m", "msg": "m"},
            errors.NotFound,
            "m",
        ),
        (403, {"detail": "no"}, errors.NotAllowed, "no"),
        (413, b"<html>", errors.TooLarge, "the server answered 413"),
        (502, b"<html>", errors.Unavailable, "not ours"),
        (302, b"", errors.Unavailable, "not ours"),
        (200, b"<html>", errors.Unavailable, "not ours"),
    ],
)
def test_understands_other_answers(
    server: ScriptedServer, status: int, body: object, kind: type[Exception], message: str
) -> None:
    server.routes[STATUS] = Answer(body, status)
    with pytest.raises(kind, match=message):
        client_of(server).status()


def test_says_that_no_server_answers_and_what_to_type() -> None:
    port = free_port()
    with pytest.raises(errors.ServerUnreachable) as caught:
        Client(profile=Profile(endpoint=f"http://127.0.0.1:{port}")).status()
    assert caught.value.message == (
        f"no server answers at http://127.0.0.1:{port} (connection refused)"
    )
    assert caught.value.hint == "start the embedded platform with: paddlecloud up"


# --- retrying --------------------------------------------------------------------------------


def test_repeats_a_submit_with_the_same_key_after_a_lost_answer() -> None:
    job = {"id": "job-1", "name": "x"}
    server = RawServer(b"", b"HTTP/1.1 201 Created\r\nConte", json_bytes(job, "201 Created"))
    assert client_of(server).submit({"name": "x", "entry": "true"}) == job
    keys = [_header(head, b"Idempotency-Key") for head in server.heads]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len(keys[0]) >= 32
    server.close()


def test_makes_a_new_key_for_every_submit(server: ScriptedServer) -> None:
    server.routes[f"POST {JOBS}"] = Answer({"id": "job-1"}, 201)
    client = client_of(server)
    client.submit({"name": "a"})
    client.submit({"name": "a"})
    client.submit({"name": "a"}, key="mine")
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_never_repeats_a_login() -> None:
    server = RawServer(b"", json_bytes({"token": "t"}))
    with pytest.raises(errors.ServerUnreachable):
        client_of(server, username="u", password="p").status()
    assert len(server.heads) == 1
    server.close()


def test_reuses_a_connection_and_survives_its_end() -> None:
    two = json_bytes({"n": 1})
    server = RawServer(two, two)  # closes each connection after one answer
    client = client_of(server)
    assert client.status() == {"n": 1}
    assert client.status() == {"n": 1}
    client.close()
    server.close()


# --- logging in ------------------------------------------------------------------------------


def login(request: Request) -> Answer:
    form = request.json
    if form["password"] != "right":
        return Answer({"non_field_errors": ["Unable to log in"]}, 400)
    return Answer({"token": f"token-of-{form['username']}"})


def status(request: Request) -> Answer:
    if request.headers.get("authorization") == "Token token-of-u":
        return Answer({"ok": True})
    return Answer({"code": "not_logged_in", "message": "who?", "hint": "", "field": ""}, 401)


def test_fetches_a_token_once_and_keeps_it(server: ScriptedServer) -> None:
    server.routes.update({"POST /api-token-auth/": login, STATUS: status})
    said: list[str] = []
    for _ in range(2):
        assert client_of(server, said, username="u", password="right").status() == {"ok": True}
    assert said == [FETCHING]
    assert FETCHING == "previous token not found, fetching a new one..."
    assert len(server.asked("POST", "/api-token-auth/")) == 1


@pytest.mark.needs("linux")
def test_the_token_cache_is_private_and_holds_no_password(
    server: ScriptedServer, isolated_home: Path
) -> None:
    server.routes.update({"POST /api-token-auth/": login, STATUS: status})
    client_of(server, username="u", password="right").status()
    cache = isolated_home / ".paddle" / "token_cache"
    assert os.stat(cache).st_mode & 0o777 == 0o600
    assert "right" not in cache.read_text()


def test_renews_a_refused_token_once(server: ScriptedServer) -> None:
    server.routes.update({"POST /api-token-auth/": login, STATUS: status})
    profile = Profile("dc", server.url, username="u", password="right")
    tokens.store(profile, "an old one")
    assert Client(profile=profile).status() == {"ok": True}
    assert tokens.cached(profile) == "token-of-u"


def test_a_refused_token_without_a_password_is_an_error(server: ScriptedServer) -> None:
    server.routes[STATUS] = status
    with pytest.raises(errors.NotLoggedIn):
        client_of(server, token="stale").status()
    assert len(server.requests) == 1


def test_a_wrong_password_is_not_tried_again(server: ScriptedServer) -> None:
    server.routes.update({"POST /api-token-auth/": login, STATUS: status})
    with pytest.raises(errors.NotLoggedIn, match="Unable to log in"):
        client_of(server, username="u", password="wrong").status()
    assert len(server.asked("POST", "/api-token-auth/")) == 1


def test_keeps_one_token_per_datacenter_endpoint_and_user() -> None:
    one = Profile("dc1", "http://a", username="u")
    for other in (
        Profile("dc2", "http://a", username="u"),
        Profile("dc1", "http://b", username="u"),
        Profile("dc1", "http://a", username="v"),
    ):
        tokens.store(one, "first")
        assert tokens.cached(other) == ""
    assert tokens.cached(one) == "first"


@pytest.mark.parametrize("text", ["an old raw token", "[]", '{"x": 3}', "\xff"])
def test_a_foreign_token_cache_counts_as_empty(isolated_home: Path, text: str) -> None:
    (isolated_home / ".paddle").mkdir()
    (isolated_home / ".paddle" / "token_cache").write_text(text, encoding="latin-1")
    profile = Profile("x", "http://a", username="u")
    assert tokens.cached(profile) == ""
    tokens.store(profile, "t")
    assert tokens.cached(profile) == "t"


def _header(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n"):
        key, _, value = line.partition(b": ")
        if key.lower() == name.lower():
            return value
    return b""
