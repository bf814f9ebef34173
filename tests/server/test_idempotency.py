"""The same key and request again change nothing and give the same answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.server.running import Caller, Running

REPLAYED = "idempotency-replayed"


def test_a_submit_repeated_under_its_key_is_one_job(user: Caller) -> None:
    body = {"name": "once", "entry": "fake hold=1", "package_digest": user.upload({"a": b""})}
    first = user.post("/api/v2/jobs", body, Idempotency_Key="k")
    second = user.post("/api/v2/jobs", body, Idempotency_Key="k")
    assert (first.status, second.status) == (201, 200)
    assert REPLAYED not in first.headers
    assert second.headers[REPLAYED] == "true"
    assert first.json["id"] == second.json["id"]
    assert len(user.get("/api/v2/jobs?phase=all").json["items"]) == 1


def test_another_request_under_the_same_key_is_refused(user: Caller) -> None:
    body = {"name": "first", "entry": "fake hold=1", "package_digest": user.upload({"a": b""})}
    user.post("/api/v2/jobs", body, Idempotency_Key="k")
    for path, other in (
        ("/api/v2/jobs", body | {"name": "second"}),
        ("/api/v2/jobs/first/cancel", {}),
        ("/api/v1/jobs", body),
    ):
        answer = user.post(path, other, Idempotency_Key="k")
        assert (answer.status, answer.json["field"]) == (409, "Idempotency-Key"), path
    assert user.wait("first", "running")["phase"] == "Running"


def test_twenty_at_once_are_one_job(user: Caller) -> None:
    body = {"name": "race", "entry": "fake hold=1", "package_digest": user.upload({"a": b""})}
    with ThreadPoolExecutor(20) as pool:
        answers = list(
            pool.map(lambda _: user.post("/api/v2/jobs", body, Idempotency_Key="race"), range(20))
        )
    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1


def test_twenty_at_once_without_a_key_are_one_job_and_conflicts(user: Caller) -> None:
    body = {"name": "race", "entry": "fake hold=1", "package_digest": user.upload({"a": b""})}
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: user.post("/api/v2/jobs", body), range(20)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 19


def test_keys_belong_to_an_account(server: Running, user: Caller) -> None:
    other = server.account("other-keys")
    for caller in (user, other):
        body = {"name": "x", "entry": "fake", "package_digest": caller.upload({"a": b""})}
        assert caller.post("/api/v2/jobs", body, Idempotency_Key="same").status == 201


def test_a_refused_request_leaves_its_key_free(user: Caller) -> None:
    body = {"name": "late", "entry": "fake", "package_digest": "0" * 64}
    assert user.post("/api/v2/jobs", body, Idempotency_Key="k").status == 400
    body["package_digest"] = user.upload({"a": b""})
    assert user.post("/api/v2/jobs", body, Idempotency_Key="k").status == 201


def test_a_rerun_repeated_under_its_key_is_one_run(user: Caller) -> None:
    user.submit("again")
    user.wait("again")
    first = user.post("/api/v2/jobs/again/rerun", Idempotency_Key="r")
    second = user.post("/api/v2/jobs/again/rerun", Idempotency_Key="r")
    assert (first.status, second.status) == (201, 200)
    assert second.json["run"] == 2
    assert len(user.get("/api/v2/jobs/again/runs").json["items"]) == 2


def test_orders_and_settings_replay_their_answer(server: Running, user: Caller) -> None:
    user.submit("target", "fake hold=1")
    admin = server.admin
    for caller, method, path, body in (
        (user, "POST", "/api/v2/jobs/target/cancel", {"reason": "x"}),
        (user, "DELETE", "/api/v2/jobs/target", None),
        (admin, "POST", "/api/v2/accounts", {"name": "replayed", "password": "secret words 9"}),
        (admin, "PUT", "/api/v2/accounts/replayed/quota", {"cpu": "4"}),
        (admin, "POST", "/api/v2/accounts/replayed/token", None),
        (user, "DELETE", "/api/v1/jobs", {"jobname": "none"}),
    ):
        key = f"{method} {path}"
        first = caller.call(method, path, body, Idempotency_Key=key)
        second = caller.call(method, path, body, Idempotency_Key=key)
        assert (first.status, first.body) == (second.status, second.body), path
        assert (second.headers.get(REPLAYED) == "true") == (first.status < 400), path


def test_refuses_an_absurd_key(user: Caller) -> None:
    answer = user.post("/api/v2/jobs", {}, Idempotency_Key="k" * 300)
    assert (answer.status, answer.json["field"]) == (400, "Idempotency-Key")
