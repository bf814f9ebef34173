"""Requests that wait: answered by what happens, not by a clock."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.patience import PATIENCE_S
from tests.server.running import Caller, Running, is_readable


def test_answers_at_once_when_there_is_nothing_to_wait_for(user: Caller) -> None:
    user.submit("done")
    user.wait("done")
    assert user.wait("done", timeout_s=60)["phase"] == "Succeeded"
    assert user.wait("done", "running", timeout_s=60)["phase"] == "Succeeded"


def test_answers_with_the_job_as_it_is_when_the_time_is_up(user: Caller) -> None:
    user.submit("slow", "fake hold=1")
    assert user.wait("slow", timeout_s=0)["phase"] in ("Submitted", "Starting", "Running")
    assert user.wait("slow", timeout_s=0.2)["phase"] == "Running"


def test_is_woken_by_a_kill(user: Caller) -> None:
    user.submit("held", "fake hold=1")
    user.wait("held", "running")
    ended: list[str] = []
    waiter = threading.Thread(target=lambda: ended.append(user.wait("held", timeout_s=60)["phase"]))
    waiter.start()
    user.post("/api/v2/jobs/held/cancel")
    waiter.join(PATIENCE_S)
    assert ended == ["Killed"]


def test_changes_answers_when_something_of_the_callers_changed(user: Caller) -> None:
    before = user.get("/api/v2/jobs").json["revision"]
    answers: list[int] = []
    waiter = threading.Thread(
        target=lambda: answers.append(
            user.get(f"/api/v2/changes?after={before}&timeout_s=60").json["revision"]
        )
    )
    waiter.start()
    user.submit("news")
    waiter.join(PATIENCE_S)
    assert answers
    assert answers[0] > before


def test_changes_does_not_answer_for_the_jobs_of_others(server: Running, user: Caller) -> None:
    before = user.get("/api/v2/jobs").json["revision"]
    server.admin.submit("not-for-you")
    answer = user.get(f"/api/v2/changes?after={before}&timeout_s=0.3").json
    assert answer["revision"] == before


def test_changes_answers_members_for_the_jobs_shared_with_them(server: Running) -> None:
    author, friend, stranger = (server.account(f"sharing-{who}") for who in ("a", "f", "s"))
    assert server.admin.post("/api/v2/groups", {"name": "sharing"}).status == 201
    for name in ("sharing-a", "sharing-f"):
        body = {"account": name, "role": "viewer" if name == "sharing-f" else "member"}
        assert server.admin.call("PUT", "/api/v2/groups/sharing/members", body).status == 200
    group = "/api/v2/jobs?type=group&phase=all"
    before = friend.get(group).json["revision"]
    with ThreadPoolExecutor() as pool:
        woken = pool.submit(friend.get, f"/api/v2/changes?after={before}&timeout_s=60")
        author.submit("ours", group="sharing", annotations={"permission": "group"})
        after = woken.result(30).json["revision"]
    assert after > before
    author.wait("ours")
    shown = friend.get(group).json
    assert [job["phase"] for job in shown["items"]] == ["Succeeded"]
    assert shown["revision"] == author.get("/api/v2/jobs").json["revision"]
    assert stranger.get("/api/v2/changes?timeout_s=0").json["revision"] == 0
    author.submit("mine", group="sharing")
    author.wait("mine")
    assert friend.get(group).json["revision"] == shown["revision"]


def test_many_who_wait_hold_nobody_up(server: Running, user: Caller) -> None:
    user.submit("popular", "fake hold=1")
    user.wait("popular", "running")
    head = (
        f"GET /api/v2/jobs/popular/wait?timeout_s=60 HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: {user.headers()['Authorization']}\r\n\r\n"
    ).encode()
    sockets = []
    for _ in range(300):
        sock = socket.create_connection(("127.0.0.1", server.port))
        sock.sendall(head)
        sockets.append(sock)
    assert user.get("/api/v2/jobs").status == 200
    assert not is_readable(sockets[0], 0.2)
    user.post("/api/v2/jobs/popular/cancel")
    for sock in sockets:
        assert is_readable(sock, 30)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        sock.close()


def test_refuses_what_cannot_be_waited_for(user: Caller) -> None:
    user.submit("w")
    assert user.get("/api/v2/jobs/w/wait?for=ever").json["field"] == "for"
    assert user.get("/api/v2/jobs/none/wait").status == 404
    assert user.get("/api/v2/jobs/w/wait?timeout_s=nan").status == 400


def test_a_stop_of_the_server_ends_waits_quickly(make_server) -> None:
    server = make_server().start()
    server.admin.submit("long", "fake hold=1")
    server.admin.wait("long", "running")
    stream = server.admin.lines("/api/v2/jobs/long/logs?follow=1")
    assert next(stream)["replica"] == "trainer-0"
    with ThreadPoolExecutor(1) as pool:
        wait = pool.submit(server.admin.wait, "long", timeout_s=60)
        # Answered after the wait was received, because both go through the same door in order.
        assert server.admin.get("/api/v2/jobs/long").status == 200
        assert server.stop() == 0
        assert wait.result(10)["phase"] == "Running"
    assert list(stream) == []  # ended without the word that says the job has
