from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from paddlecloud.kube.client import Client, collection, member
from paddlecloud.kube.kubeconfig import Access
from paddlecloud.kube.refusals import Refused


class Script:
    """What the server answers next: (status, body, headers), or None to hang up."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.seen: list[tuple[str, str, Any, dict[str, str]]] = []


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def client(script: Script) -> Iterator[Client]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            body = json.loads(text) if text else None
            script.seen.append((self.command, self.path, body, dict(self.headers)))
            answer = script.answers.pop(0)
            if callable(answer):
                answer = answer()
            if answer is None:
                self.close_connection = True
                return
            status, content, headers = answer
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    port = int(server.server_address[1])
    made = Client(Access("127.0.0.1", port, secure=False, token="secret"))
    yield made
    made.forget_connection()
    server.shutdown()
    server.server_close()


def test_names_paths():
    assert collection("v1", "pods", "ns") == "/api/v1/namespaces/ns/pods"
    assert collection("batch.paddlepaddle.org/v1", "paddlejobs") == (
        "/apis/batch.paddlepaddle.org/v1/paddlejobs"
    )
    assert member("v1", "pods", "ns", "a", "status").endswith("/pods/a/status")


def test_sends_json_and_who_it_is(client, script):
    script.answers = [(201, {"a": 1}, {})]
    assert client.create("/api/v1/pods", {"b": 2}) == {"a": 1}
    method, path, body, headers = script.seen[0]
    assert (method, path, body) == ("POST", "/api/v1/pods", {"b": 2})
    assert headers["Authorization"] == "Bearer secret"


def test_deletes_only_the_object_it_saw(client, script):
    script.answers = [(200, {}, {})]
    client.delete("/api/v1/x", uid="u")
    assert script.seen[0][2]["preconditions"] == {"uid": "u"}


@pytest.mark.parametrize(
    ("status", "body", "question"),
    [
        (404, {"reason": "NotFound"}, "is_missing"),
        (409, {"reason": "AlreadyExists"}, "is_taken"),
        (409, {"reason": "Conflict"}, "is_outdated"),
        (410, {"reason": "Expired"}, "is_gone"),
        (422, {"reason": "Invalid", "message": "no"}, "is_final"),
        (403, {"details": {"causes": [{"reason": "NamespaceTerminating"}]}}, "is_farewell"),
    ],
)
def test_words_a_refusal(client, script, status, body, question):
    script.answers = [(status, body, {})]
    with pytest.raises(Refused) as caught:
        client.get("/api/v1/x")
    assert getattr(caught.value, question)


def test_reads_how_long_to_wait(client, script):
    script.answers = [(429, b"slow down", {"Retry-After": "3"})]
    with pytest.raises(Refused) as caught:
        client.get("/api/v1/x")
    assert (caught.value.retry_after_s, caught.value.message) == (3.0, "slow down")


def test_asks_again_when_a_kept_connection_was_closed(client, script):
    script.answers = [(200, {}, {}), None, (200, {"n": 2}, {})]
    client.get("/api/v1/x")
    assert client.get("/api/v1/y") == {"n": 2}
    assert [seen[1] for seen in script.seen] == ["/api/v1/x", "/api/v1/y", "/api/v1/y"]


def test_gives_up_when_a_fresh_connection_gets_no_answer(client, script):
    script.answers = [None]
    with pytest.raises(Refused) as caught:
        client.get("/api/v1/x")
    assert caught.value.status == 0


def test_leaves_a_server_that_says_nothing_and_is_more_patient_next_time(client, script):
    client._patience_s = (0.1, 0.3)
    script.answers = [lambda: time.sleep(1), lambda: time.sleep(1), (200, {}, {}), (200, {}, {})]
    waited = []
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(Refused):
            client.get("/api/v1/x")
        waited.append(time.monotonic() - began)
    assert 0.1 <= waited[0] < 0.2 <= waited[1] < 0.9
    client.get("/api/v1/x")
    assert client._patience() == 0.1


def test_sends_no_write_from_behind_the_fence(client, script):
    client._fence = lambda: False
    script.answers = [(200, {"n": 1}, {})]
    for write in (client.create, client.replace, client.patch):
        with pytest.raises(Refused) as caught:
            write("/api/v1/x", {})
        assert caught.value.reason == "NotLeading"
    with pytest.raises(Refused):
        client.delete("/api/v1/x")
    assert client.get("/api/v1/x") == {"n": 1}
    assert len(script.seen) == 1


def test_names_credentials_that_cannot_be_had(client, tmp_path):
    client.access.token_file = tmp_path / "gone"
    with pytest.raises(Refused) as caught:
        client.get("/api/v1/x")
    assert "no credentials" in caught.value.message


def test_obeys_nobody_for_ever(client, script):
    script.answers = [(429, {}, {"Retry-After": "86400"})]
    with pytest.raises(Refused) as caught:
        client.get("/api/v1/x")
    assert caught.value.retry_after_s == 60


def test_streams_lines_and_refuses_a_cut_one(client, script):
    script.answers = [(200, b'{"type":"A"}\n{"type":"B"}\n{"ty', {})]
    seen: list[str] = []
    with pytest.raises(Refused), client.stream("/api/v1/x", {"watch": "1"}, 5.0) as stream:
        seen.extend(line["type"] for line in stream.lines())
    assert seen == ["A", "B"]


def test_a_refused_watch_is_a_refusal(client, script):
    script.answers = [(410, {"reason": "Expired"}, {})]
    with pytest.raises(Refused) as caught, client.stream("/api/v1/x", {}, 5.0) as stream:
        list(stream.lines())
    assert caught.value.is_gone
