"""Logs: by byte cursor, by last lines, and followed to the end."""

from __future__ import annotations

import socket
import threading
from collections import defaultdict

import pytest

from paddlecloud.sdk import Client
from paddlecloud.sdk.config import Profile
from tests.patience import PATIENCE_S
from tests.scripted_server import Proxy
from tests.server.running import Caller, Running, is_readable


def _text(lines: list) -> dict[str, str]:
    found: dict[str, str] = defaultdict(str)
    for line in lines:
        if line and "data" in line:
            found[line["replica"]] += line["data"]
    return found


def _expected(replica: str, count: int) -> str:
    return "".join(f"line {n} of {replica}\n" for n in range(1, count + 1))


def test_reads_a_log_by_byte_cursor(user: Caller) -> None:
    user.submit("l", "fake lines=3")
    user.wait("l")
    whole = user.get("/api/v2/jobs/l/logs")
    assert whole.body.decode() == _expected("trainer-0", 3)
    assert whole.headers["x-log-ended"] == "1"
    part = user.get("/api/v2/jobs/l/logs?cursor=5&limit_bytes=10")
    assert part.body == whole.body[5:15]
    assert part.headers["x-log-next"] == "15"
    assert part.headers["x-log-size"] == str(len(whole.body))
    assert part.headers["x-log-ended"] == "0"


@pytest.mark.parametrize(("tail", "count"), [(0, 0), (1, 1), (2, 2), (50, 5)])
def test_reads_the_last_lines(user: Caller, tail: int, count: int) -> None:
    user.submit("t", "fake lines=5")
    user.wait("t")
    lines = user.get(f"/api/v2/jobs/t/logs?tail={tail}").body.decode().splitlines()
    assert lines == _expected("trainer-0", 5).splitlines()[5 - count :]


def test_finds_last_lines_far_back(user: Caller) -> None:
    user.submit("far", "fake lines=20000")
    user.wait("far")
    body = user.get("/api/v2/jobs/far/logs?tail=15000").body.decode()
    assert body.splitlines() == _expected("trainer-0", 20000).splitlines()[5000:]


def test_names_replicas_both_ways(user: Caller) -> None:
    user.submit("two", "fake lines=1", mode="ps", parallelism=2, pservers=1)
    user.wait("two")
    for name in ("trainer-1", "two-trainer-1"):
        assert user.get(f"/api/v2/jobs/two/logs?replica={name}").body == b"line 1 of trainer-1\n"
    assert user.get("/api/v2/jobs/two/logs?replica=pserver-0").body == b"line 1 of pserver-0\n"
    assert user.get("/api/v2/jobs/two/logs?replica=trainer-2").status == 404
    assert user.get("/api/v2/jobs/two/logs?replica=nonsense").status == 400
    assert user.get("/api/v2/jobs/two/logs?attempt=2").status == 404


def test_follows_every_replica_to_the_end(user: Caller) -> None:
    user.submit("f", "fake seconds=0.5 lines=20 every=0.02", mode="ps", parallelism=2, pservers=1)
    lines = list(user.lines("/api/v2/jobs/f/logs?follow=1"))
    assert lines[-1] == {"end": True, "phase": "Succeeded"}
    text = _text(lines)
    for replica in ("trainer-0", "trainer-1", "pserver-0"):
        assert text[replica] == _expected(replica, 20)
    cursors = [line["cursor"] for line in lines[:-1] if line["replica"] == "trainer-0"]
    assert cursors == sorted(cursors)
    assert cursors[-1] == len(text["trainer-0"])


def test_follows_one_replica_from_its_last_lines(user: Caller) -> None:
    user.submit("one", "fake lines=9", mode="ps", parallelism=2, pservers=1)
    user.wait("one")
    lines = list(user.lines("/api/v2/jobs/one/logs?follow=1&replica=one-trainer-1&tail=2"))
    expected = _expected("trainer-1", 9).splitlines(keepends=True)[-2:]
    assert _text(lines) == {"trainer-1": "".join(expected)}


def test_says_first_where_it_enters_a_log_at_its_last_lines(user: Caller) -> None:
    user.submit("enter", "fake lines=9")
    user.wait("enter")
    size = len(_expected("trainer-0", 9))
    lines = list(user.lines("/api/v2/jobs/enter/logs?follow=1&tail=0"))
    assert lines[0] == {"replica": "trainer-0", "attempt": 1, "cursor": size, "data": ""}
    assert [line for line in lines if line][-1]["end"] is True


def test_a_follower_of_what_comes_is_cut_off_before_the_first_line(
    server: Running, user: Caller
) -> None:
    """Neither is the old log shown again, nor is lost what was written during the cut."""
    user.submit("cut", "fake lines=30 every=0.05 seconds=3")
    user.wait("cut", "running")

    def size() -> int:
        return len(user.get("/api/v2/jobs/cut/logs").body)

    before = size()
    proxy = Proxy(server.port)
    token = user.headers()["Authorization"].removeprefix("Token ")
    client = Client(profile=Profile(endpoint=proxy.url, token=token))
    cuts: list[str] = []
    got: list[dict] = []

    def follow() -> None:
        got.extend(client.follow_logs("cut", tail=0, on_cut=lambda: cuts.append("")))

    reader = threading.Thread(target=follow)
    reader.start()
    assert proxy.passed.wait(PATIENCE_S)
    entered = size()
    proxy.mends.clear()
    proxy.cut()
    while size() < entered + 3 * len("line 1 of trainer-0"):
        pass  # each look is a request
    proxy.mends.set()
    reader.join(PATIENCE_S)
    proxy.close()
    assert cuts
    assert got[-1].get("end") is True
    text = "".join(record.get("data", "") for record in got)
    whole = _expected("trainer-0", 30)
    assert whole.endswith(text)
    assert len(whole) - entered <= len(text) <= len(whole) - before


def test_goes_on_where_a_follower_stopped(user: Caller) -> None:
    user.submit("resume", "fake lines=4")
    user.wait("resume")
    lines = list(user.lines("/api/v2/jobs/resume/logs?follow=1&cursors=trainer-0.1:40"))
    assert _text(lines)["trainer-0"] == _expected("trainer-0", 4)[40:]
    assert user.get("/api/v2/jobs/resume/logs?follow=1&cursors=zzz").status == 400


def test_waits_for_a_job_that_has_not_started(user: Caller) -> None:
    user.submit("queued", "fake queue=1")
    ended: list = []
    follower = threading.Thread(
        target=lambda: ended.extend(user.lines("/api/v2/jobs/queued/logs?follow=1"))
    )
    follower.start()
    user.post("/api/v2/jobs/queued/cancel")
    follower.join(PATIENCE_S)
    assert ended == [{"end": True, "phase": "Killed"}]


def test_follows_an_earlier_run(user: Caller) -> None:
    user.submit("runs", "fake lines=2")
    user.wait("runs")
    user.post("/api/v2/jobs/runs/rerun")
    user.wait("runs")
    for run in (1, 2):
        lines = list(user.lines(f"/api/v2/jobs/runs/logs?follow=1&run={run}"))
        assert _text(lines)["trainer-0"] == _expected("trainer-0", 2)
    assert user.get("/api/v2/jobs/runs/logs?follow=1&run=3").status == 404


def test_two_hundred_followers_of_one_job_all_get_everything(server: Running, user: Caller) -> None:
    user.submit("crowd", "fake seconds=3 lines=40 every=0.05")
    head = (
        f"GET /api/v2/jobs/crowd/logs?follow=1 HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: {user.headers()['Authorization']}\r\nConnection: close\r\n\r\n"
    ).encode()
    sockets = []
    for _ in range(200):
        sock = socket.create_connection(("127.0.0.1", server.port))
        sock.sendall(head)
        sockets.append(sock)
    assert user.get("/api/v2/jobs").status == 200
    for sock in sockets:
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            assert is_readable(sock, 30)
            piece = sock.recv(65536)
            assert piece, data
            data += piece
        sock.close()
        assert b"line 40 of trainer-0" in data
        assert data.count(b"line 7 of") == 1
        assert b'{"end":true,"phase":"Succeeded"}' in data


def test_a_follower_that_leaves_is_forgotten(server: Running, user: Caller) -> None:
    user.submit("left", "fake hold=1 lines=3")
    user.wait("left", "running")
    stream = user.lines("/api/v2/jobs/left/logs?follow=1")
    assert next(stream)["replica"] == "trainer-0"
    stream.close()
    user.post("/api/v2/jobs/left/cancel")
    assert user.wait("left")["phase"] == "Killed"
