"""Where the file service is asked, how long is tried, and who is logged in."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.core.errors import NotLoggedIn, OutOfSpace, ServerUnreachable, Unavailable
from paddlecloud.sdk import Client, Profile
from paddlecloud.sdk.http import Connection, Cut, Endpoint
from paddlecloud.sdk.transfers.connections import (
    DELAYS_S,
    Lane,
    Patience,
    data_endpoint,
    persist,
)
from paddlecloud.testing.ports import free_port
from tests.scripted_server import Answer, Request, ScriptedServer

ENTRY = "GET /api/v2/pfs/entry"
STATUS = "GET /api/v2/status"
FILE = {"name": "f", "type": "file", "size": 3}


@pytest.fixture
def main() -> Iterator[ScriptedServer]:
    started = ScriptedServer()
    yield started
    started.close()


@pytest.fixture
def data() -> Iterator[ScriptedServer]:
    started = ScriptedServer()
    yield started
    started.close()


def port_of(server: ScriptedServer) -> int:
    return int(server.url.rpartition(":")[2])


def files_of(main: ScriptedServer, data: ScriptedServer | None = None, **login: str) -> Client:
    told = {} if data is None else {"pfs": {"port": port_of(data), "url": ""}}
    main.routes[STATUS] = Answer(told)
    return Client(profile=Profile("dc", main.url, **(login or {"token": "t"})))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("main_url", "told", "url"),
    [
        ("http://h:8000", {"port": 9000, "url": ""}, "http://h:9000"),
        ("https://h:8000", {"port": 9000, "url": ""}, "https://h:9000"),
        ("http://[::1]:8000", {"port": 9000, "url": ""}, "http://[::1]:9000"),
        ("http://h:8000", {"port": 9000, "url": "http://files:1"}, "http://files:1"),
        ("https://h:8000", {"port": 9000, "url": "https://files"}, "https://files"),
        # a token never leaves encryption
        ("https://h:8000", {"port": 9000, "url": "http://files"}, None),
        ("http://h:8000", {"port": 8000, "url": ""}, None),
        ("http://h:8000", {"port": 0, "url": ""}, None),
        ("http://h:8000", {"url": "ftp://x"}, None),
        ("http://h:8000", None, None),
        ("http://h:8000", "nonsense", None),
    ],
)
def test_where_the_data_port_is(main_url: str, told: object, url: str | None) -> None:
    found = data_endpoint(Endpoint(main_url), {"pfs": told})
    assert (found.url if found else None) == url


def test_the_data_port_is_asked_with_the_token(main: ScriptedServer, data: ScriptedServer) -> None:
    data.routes[ENTRY] = Answer(FILE)
    assert files_of(main, data).files.entry("/pfs/dc/home/a/f") == FILE
    [request] = data.asked("GET", "/api/v2/pfs/entry")
    assert request.headers["authorization"] == "Token t"
    assert request.query["path"] == "/pfs/dc/home/a/f"
    assert main.asked("GET", "/api/v2/pfs/entry") == []


def test_who_has_no_token_asks_the_server_that_knows_certificates(
    main: ScriptedServer, data: ScriptedServer
) -> None:
    main.routes[ENTRY] = Answer(FILE)
    client = files_of(main, data, usercert="a.pem", userkey="a-key.pem")
    assert client.files.entry("/pfs/dc/home/a/f") == FILE
    assert data.asked("GET", "/api/v2/pfs/entry") == []


def test_an_old_server_is_asked_itself(main: ScriptedServer) -> None:
    main.routes[ENTRY] = Answer(FILE)
    client = files_of(main)
    assert client.files.entry("/pfs/dc/home/a/f") == FILE
    assert client.files.plane.take_notes() == []


def test_a_closed_data_port_means_the_relay_with_one_note(main: ScriptedServer) -> None:
    main.routes[ENTRY] = Answer(FILE)
    client = files_of(main)
    port = free_port()
    main.routes[STATUS] = Answer({"pfs": {"port": port, "url": ""}})
    for _ in range(3):
        client.files.entry("/pfs/dc/home/a/f")
    [note] = client.files.plane.take_notes()
    assert f":{port}" in note
    assert main.url in note
    assert client.files.plane.take_notes() == []


def test_a_refused_token_is_renewed_once_with_the_password(
    main: ScriptedServer, data: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    main.routes["POST /api-token-auth/"] = Answer({"token": "new"})

    def entry(request: Request) -> Answer:
        if request.headers.get("authorization") == "Token new":
            return Answer(FILE)
        return Answer({"code": "not_logged_in", "message": "no"}, 401)

    data.routes[ENTRY] = entry
    client = files_of(main, data, username="a", password="p", token="old")
    assert client.files.entry("/pfs/dc/home/a/f") == FILE
    assert len(main.asked("POST", "/api-token-auth/")) == 1


def test_without_a_password_a_refused_token_is_an_error(
    main: ScriptedServer, data: ScriptedServer
) -> None:
    data.routes[ENTRY] = Answer({"code": "not_logged_in", "message": "no"}, 401)
    with pytest.raises(NotLoggedIn):
        files_of(main, data).files.entry("/pfs/dc/home/a/f")


def test_a_server_that_is_not_ready_is_asked_again(
    main: ScriptedServer, data: ScriptedServer
) -> None:
    busy = Answer({"code": "unavailable", "message": "the file service is starting"}, 503)
    data.routes[ENTRY] = [busy, busy, Answer(FILE)]
    assert files_of(main, data).files.entry("/pfs/dc/home/a/f") == FILE


def test_one_that_stays_busy_is_an_error_with_its_own_words(
    main: ScriptedServer, data: ScriptedServer
) -> None:
    data.routes[ENTRY] = Answer({"code": "unavailable", "message": "disk gone"}, 503)
    client = files_of(main, data)
    client.files.plane.give_up_s = 0.1
    with pytest.raises(Unavailable, match="disk gone"):
        client.files.entry("/pfs/dc/home/a/f")


def test_a_server_that_vanishes_is_unreachable_in_the_end(
    main: ScriptedServer, data: ScriptedServer
) -> None:
    data.routes[ENTRY] = Answer(FILE)
    client = files_of(main, data)
    client.files.entry("/pfs/dc/home/a/f")
    client.close()
    data.close()
    main.close()
    client.files.plane.give_up_s = 0.1
    with pytest.raises(ServerUnreachable):
        client.files.entry("/pfs/dc/home/a/f")


def test_a_refusal_in_the_middle_of_a_body_is_heard(main: ScriptedServer) -> None:
    """The server speaks and stops reading: the client must not send gigabytes first."""
    listening = socket.create_server(("127.0.0.1", 0))
    client = files_of(main)
    main.routes[STATUS] = Answer({"pfs": {"port": listening.getsockname()[1], "url": ""}})
    lane = Lane(client.files.plane)
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        connection, _ = listening.accept()
        connection.recv(65536)
        body = b'{"code":"out_of_space","message":"full"}'
        head = b"HTTP/1.1 507 Full\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection.sendall(head + body)
        for _ in range(1000):
            sent += 65536
            yield bytes(65536)

    with pytest.raises(OutOfSpace, match="full"), listening:
        lane.send("PUT", "/api/v2/pfs/uploads/x", pieces, 65_536_000)
    assert sent < 1_000_000


# --- patience ----------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def sleep(self, delay_s: float) -> None:
        self.slept.append(delay_s)
        self.now_s += delay_s


def persist_until_it_ends(patience: Patience) -> int:
    tries = 0

    def attempt() -> None:
        nonlocal tries
        tries += 1
        raise Cut("gone")

    with pytest.raises(Cut, match="gone"):
        persist(patience, attempt)
    return tries


def test_patience_backs_off_and_ends_after_about_thirty_seconds() -> None:
    clock = Clock()
    patience = Patience(30.0, clock=lambda: clock.now_s, sleep=clock.sleep)
    tries = persist_until_it_ends(patience)
    assert tries > len(DELAYS_S)
    assert clock.slept[: len(DELAYS_S)] == list(DELAYS_S)
    assert 30.0 <= clock.now_s <= 35.0


def test_progress_renews_patience() -> None:
    clock = Clock()
    patience = Patience(30.0, clock=lambda: clock.now_s, sleep=clock.sleep)
    for _ in range(100):
        patience.wait(Cut("gone"))
        patience.progressed()
    assert set(clock.slept) == {DELAYS_S[0]}


def test_a_certificate_that_is_not_trusted_is_not_tried_again() -> None:
    import ssl

    with pytest.raises(ssl.SSLCertVerificationError):
        Patience(30.0, sleep=lambda s: None).wait(ssl.SSLCertVerificationError())


@pytest.mark.parametrize("body", [b"<html>welcome</html>", b"", b"[1]", b"\xff"])
def test_an_answer_that_is_not_ours_is_a_clear_error(
    main: ScriptedServer, data: ScriptedServer, body: bytes
) -> None:
    client = files_of(main, data)
    data.routes["POST /api/v2/pfs/batch"] = Answer(body)
    with pytest.raises(Unavailable, match="not ours"):
        Lane(client.files.plane).send("POST", "/api/v2/pfs/batch", lambda: [b"x"], 1)
    if body:
        with pytest.raises(Unavailable, match="not ours"):
            Lane(client.files.plane).call("POST", "/api/v2/pfs/batch", {})


def test_a_data_port_that_was_reached_before_is_waited_for(
    main: ScriptedServer, data: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main endpoint could pass everything on, but slower, and for the whole transfer."""
    client = files_of(main, data)
    data.routes[ENTRY] = Answer(FILE)
    client.files.entry("/pfs/dc/home/a/f")
    client.files.plane.close()
    connect, refusals = client.files.plane.transport.connect_to, iter([True] * 3)

    def starting(endpoint: Endpoint, timeout_s: float) -> Connection:
        if port_of(data) == endpoint.port and next(refusals, False):
            raise ConnectionRefusedError
        return connect(endpoint, timeout_s)

    monkeypatch.setattr(client.files.plane.transport, "connect_to", starting)
    assert client.files.entry("/pfs/dc/home/a/f") == FILE
    assert next(refusals, False) is False
    assert main.asked("GET", "/api/v2/pfs/entry") == []
    assert client.files.plane.take_notes() == []
