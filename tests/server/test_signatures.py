"""Signed requests, against signatures made step by step (`tests.server.signing`)."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import sqlite3
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.server.running import Answer, Caller, Running
from tests.server.signing import Signer, authorization
from tests.server.test_access_keys import keys_of, made, signer

WHOAMI = "/api/v2/whoami"
LIST = "/v1/job?type=normal&page=1&maxKeys=10"
_SAME_WORDS = "the access key is not known, or the signature does not fit"


@pytest.fixture
def key(user: Caller) -> Signer:
    return signer(user)


@pytest.fixture
def lenient(make_server: Callable[..., Running]) -> Callable[..., Signer]:
    """A server of the test's own, whose counts of wrong signatures are nobody else's."""

    def start(**env: str) -> Signer:
        server = make_server(**env).start()
        own = made(server.admin)
        return Signer(server.port, own["ak"], own["sk"])

    return start


# --- what is signed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        LIST,
        "/v1/job?maxKeys=10&type=normal&page=1",  # any order: they are sorted before signing
        "/v1/job?page=1&type=normal&maxKeys=10&other=a%20b%2Fc~%E4%BD%A0",
        "/v1/users_auth",
        "/v1/quota?cluster_name=local",
    ],
)
def test_believes_the_old_client(key: Signer, target: str) -> None:
    answer = key.legacy("GET", target)
    assert (answer.status, answer.json["code"]) == (200, 0), answer.body


def test_believes_a_path_with_anything_in_it(user: Caller, key: Signer) -> None:
    user.submit("plain")
    answer = key.complete("GET", "/api/v2/jobs/%E4%BD%A0%20%2A%7Eb")
    assert (answer.status, answer.json["code"]) == (404, "not_found")


def test_signs_the_host_without_its_port(key: Signer) -> None:
    for host in ("127.0.0.1", f"127.0.0.1:{key.port}", "127.0.0.1:80"):
        assert key.legacy("GET", LIST, headers={"host": host}).status == 200


@pytest.mark.parametrize("listed", ["host", "host;content-length;content-type", "host;expires"])
def test_honours_the_names_of_what_is_signed(key: Signer, listed: str) -> None:
    assert key.legacy("GET", LIST, listed=listed).status == 200
    changed = key.legacy("GET", LIST, listed=listed, after={"host": "elsewhere"})
    assert changed.status == 401


def test_a_header_of_ours_is_signed_or_refused(key: Signer) -> None:
    assert key.legacy("GET", LIST, headers={"x-paddle-a": "1"}).status == 200
    assert key.legacy("GET", LIST, after={"x-paddle-a": "1"}).status == 401
    # Named signatures say which; then what is not named is as if it were not there.
    after = {"x-paddle-nonce": "n", "x-paddle-content-sha256": "0" * 64}
    for _ in range(2):
        assert key.legacy("GET", LIST, listed="host", after=after).status == 200


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"at_s": -1801}, "older"),
        ({"at_s": 301}, "future"),
        ({"expires_s": 0}, "expires must be"),
        ({"expires_s": 86401}, "expires must be"),
        ({"listed": "content-type"}, "host must be"),
    ],
)
def test_is_good_in_its_time_and_as_it_should_be(key: Signer, how: Any, word: str) -> None:
    if "at_s" in how:
        how = {"at_s": int(time.time()) + how["at_s"]}
    answer = key.legacy("GET", LIST, **how)
    assert (answer.status, word in answer.json["message"]) == (401, True), answer.body


def test_a_clock_that_is_a_little_off_does_no_harm(key: Signer) -> None:
    now_s = int(time.time())
    for at_s in (now_s - 1790, now_s + 290):
        assert key.legacy("GET", LIST, at_s=at_s).status == 200


def _sent_twice(key: Signer, name: str) -> Answer:
    headers = key.headers(b"")
    headers["Authorization"] = authorization(key.ak, key.sk, "GET", LIST, headers)
    connection = http.client.HTTPConnection("127.0.0.1", key.port, timeout=PATIENCE_S)
    try:
        connection.putrequest("GET", LIST, skip_host=True, skip_accept_encoding=True)
        for each, value in headers.items():
            connection.putheader(each, value)
        connection.putheader(name, headers[name])
        connection.endheaders()
        response = connection.getresponse()
        return Answer(response.status, {}, response.read())
    finally:
        connection.close()


def test_refuses_a_signed_header_that_is_there_twice(key: Signer) -> None:
    answer = _sent_twice(key, "content-type")
    assert (answer.status, "twice" in answer.json["message"]) == (401, True)


@pytest.mark.parametrize(
    "header",
    [
        "paddle-auth-v1/",
        "paddle-auth-v1/ak/1/2//00",
        f"paddle-auth-v1/a/01/2//{'0' * 64}",
        f"paddle-auth-v1/{'a' * 200}/1/2//{'0' * 64}",
        f"paddle-auth-v1/ak/1/2/{';' * 5000}/{'0' * 64}",
    ],
)
def test_refuses_a_header_of_another_shape(server: Running, header: str) -> None:
    answer = Caller(server.port, header).get(LIST)
    assert (answer.status, answer.json["code"], answer.json["data"]) == (401, 401, None)


def test_the_length_is_signed_and_the_type(key: Signer) -> None:
    data = b'{"jobIds": ["x"], "opType": "Kill"}'
    headers = key.headers(data)
    headers["Authorization"] = authorization(key.ak, key.sk, "PUT", "/v1/job", headers)
    assert key.send("PUT", "/v1/job", headers, data).status == 404
    longer = {**headers, "content-length": str(len(data) + 1), "request-id": "2"}
    assert key.send("PUT", "/v1/job", longer, data + b" ").status == 401
    other = {**headers, "content-type": "text/plain", "request-id": "3"}
    assert key.send("PUT", "/v1/job", other, data).status == 401


# --- wrong ones ----------------------------------------------------------------------------------


def test_an_unknown_key_and_a_wrong_signature_look_the_same(
    lenient: Callable[..., Signer],
) -> None:
    key = lenient()
    wrong = Signer(key.port, key.ak, "0" * 64).complete("GET", WHOAMI)
    unknown = Signer(key.port, uuid.uuid4().hex, key.sk).complete("GET", WHOAMI)
    assert (wrong.status, wrong.body) == (unknown.status, unknown.body)
    assert (wrong.status, wrong.json["message"]) == (401, _SAME_WORDS)
    # Not even what else is wrong with it.
    late = {"at_s": int(time.time()) - 9999}
    assert Signer(key.port, key.ak, "0" * 64).complete("GET", WHOAMI, **late).body == wrong.body


def test_wrong_signatures_are_slowed_down(lenient: Callable[..., Signer]) -> None:
    key = lenient()
    wrong = Signer(key.port, key.ak, "0" * 64)
    answers = [wrong.complete("GET", WHOAMI) for _ in range(5)]
    assert {answer.status for answer in answers} == {401}
    while answers[-1].status == 401 and len(answers) < 20:  # each one doubles the wait
        answers.append(wrong.complete("GET", WHOAMI))
    assert answers[-1].status == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert "wrong signatures" in answers[-1].json["message"]


def test_others_at_the_same_address_are_not_kept_out(lenient: Callable[..., Signer]) -> None:
    key = lenient()
    answers = [Signer(key.port, f"ak{n}", "0" * 64).complete("GET", WHOAMI) for n in range(20)]
    assert [answer.status for answer in answers] == [401] * 20
    while answers[-1].status == 401 and len(answers) < 35:  # each one doubles the wait
        answers.append(Signer(key.port, f"ak{len(answers)}", "0" * 64).complete("GET", WHOAMI))
    assert answers[-1].status == 429
    assert key.complete("GET", WHOAMI).status == 200


def test_what_only_the_owner_can_get_wrong_is_not_counted(lenient: Callable[..., Signer]) -> None:
    key = lenient()
    for _ in range(8):
        late = key.complete("GET", WHOAMI, at_s=int(time.time()) - 9999)
        assert late.status == 401
    assert key.complete("GET", WHOAMI).status == 200


# --- complete signatures -------------------------------------------------------------------------


def test_a_complete_request_is_good_once(key: Signer) -> None:
    headers = key.headers(b"", "once" + uuid.uuid4().hex)
    headers["Authorization"] = authorization(key.ak, key.sk, "GET", WHOAMI, headers)
    assert key.send("GET", WHOAMI, headers, b"").status == 200
    again = key.send("GET", WHOAMI, {**headers, "request-id": "another"}, b"")
    assert (again.status, "made before" in again.json["message"]) == (401, True)


def test_of_many_copies_at_once_one_is_taken(key: Signer) -> None:
    headers = key.headers(b"", uuid.uuid4().hex)
    headers["Authorization"] = authorization(key.ak, key.sk, "GET", WHOAMI, headers)
    with ThreadPoolExecutor(16) as threads:
        answers = threads.map(lambda _: key.send("GET", WHOAMI, headers, b"").status, range(16))
    assert sorted(answers) == [200] + [401] * 15


def test_nonces_are_forgotten_when_their_signatures_have_expired(
    make_server: Callable[..., Running],
) -> None:
    server = make_server(PADDLECLOUD_DATABASE_URL="").start()
    key = signer(server.admin)
    for _ in range(3):
        assert key.complete("GET", WHOAMI).status == 200
    server.stop()
    with closing(sqlite3.connect(server.state / "server.db")) as rows, rows:
        rows.execute("UPDATE accounts_seennonce SET good_until = good_until - 9999")
    server.start()
    key.port = server.port
    assert key.complete("GET", WHOAMI).status == 200
    with closing(sqlite3.connect(server.state / "server.db")) as rows:
        assert rows.execute("SELECT count(*) FROM accounts_seennonce").fetchone() == (1,)


def test_a_replay_is_refused_after_a_restart(make_server: Callable[..., Running]) -> None:
    server = make_server().start()
    own = made(server.admin)
    key = Signer(server.port, own["ak"], own["sk"])
    headers = key.headers(b"{}", uuid.uuid4().hex)
    target = keys_of(server.admin)
    headers["Authorization"] = authorization(key.ak, key.sk, "POST", target, headers)
    assert key.send("POST", target, headers, b"{}").status == 201
    server.kill_9()
    server.start()
    headers["host"] = f"127.0.0.1:{server.port}"  # the port is not signed
    key.port = server.port
    assert key.send("POST", target, headers, b"{}").status == 401
    assert len(server.admin.get(target).json["items"]) == 2


def test_a_nonce_is_a_keys_own(user: Caller, key: Signer) -> None:
    nonce = uuid.uuid4().hex
    assert key.complete("GET", WHOAMI, nonce=nonce).status == 200
    assert signer(user).complete("GET", WHOAMI, nonce=nonce).status == 200


@pytest.mark.parametrize("target", ["/api/v2/jobs", "/api/v2/pfs/snapshots", "/v1/job"])
def test_another_body_is_refused(user: Caller, key: Signer, target: str) -> None:
    data = b'{"name": "one"}'
    headers = key.headers(data, uuid.uuid4().hex)
    headers["Authorization"] = authorization(key.ak, key.sk, "POST", target, headers)
    answer = key.send("POST", target, headers, b'{"name": "two"}')
    assert answer.status in (401, 503)  # a relayed body is cut before its end
    assert user.get("/api/v2/jobs?phase=all").json["items"] == []


def test_only_a_signed_key_says_that_a_change_was_made_before(user: Caller, key: Signer) -> None:
    target = keys_of(user)
    made_by = [
        key.complete("POST", target, {}, headers={"Idempotency-Key": "same"}).json["ak"]
        for _ in range(2)
    ]
    assert len(set(made_by)) == 2
    repeated = [
        key.complete("POST", target, {}, headers={"x-paddle-idempotency-key": "same"}).json["ak"]
        for _ in range(2)
    ]
    assert len(set(repeated)) == 1


def test_a_key_that_is_not_signed_is_not_there(user: Caller, key: Signer) -> None:
    target = keys_of(user)
    named = "host;x-paddle-nonce;x-paddle-content-sha256"
    made_by = [
        key.complete(
            "POST", target, {}, listed=named, headers={"x-paddle-idempotency-key": "same"}
        ).json["ak"]
        for _ in range(2)
    ]
    assert len(set(made_by)) == 2


def test_a_held_request_ends_with_its_key(user: Caller) -> None:
    user.submit("held", "fake hold=1")
    key = signer(user)
    target = "/api/v2/jobs/held/wait?for=end&timeout_s=20"
    headers = key.headers(b"", uuid.uuid4().hex)
    headers["Authorization"] = authorization(key.ak, key.sk, "GET", target, headers)
    connection = http.client.HTTPConnection("127.0.0.1", key.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", target, headers=headers)
        name = user.get(WHOAMI).json["name"]
        other = signer(user)
        user.post(f"/api/v2/accounts/{name}/revoke", {"key": other.ak})
        user.post(f"/api/v2/accounts/{name}/revoke", {"key": key.ak})
        assert connection.getresponse().status == 401
    finally:
        connection.close()


# --- legacy signatures ---------------------------------------------------------------------------


def test_a_legacy_signature_is_for_the_job_service_only(key: Signer) -> None:
    answer = key.legacy("GET", WHOAMI)
    assert (answer.status, "nonce" in answer.json["message"]) == (401, True)
    assert key.legacy("GET", "/v1/nothing").status == 404


def test_legacy_changes_need_a_request_id(key: Signer) -> None:
    body = {"jobIds": ["x"], "opType": "Kill"}
    answer = key.legacy("PUT", "/v1/job", body, headers={"request-id": ""})
    assert (answer.status, answer.json["field"]) == (400, "request-id")


def test_a_signed_md5_covers_the_body(key: Signer) -> None:
    body = {"jobIds": ["x"], "opType": "Kill"}
    right = hashlib.md5(json.dumps(body).encode()).digest()
    for given in (right.hex(), base64.b64encode(right).decode()):
        answer = key.legacy("PUT", "/v1/job", body, headers={"content-md5": given})
        assert answer.status == 404
    answer = key.legacy("PUT", "/v1/job", body, headers={"content-md5": "0" * 32})
    assert (answer.status, "content-md5" in answer.json["message"]) == (401, True)


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("POST", "/api/v2/jobs", 401),
        ("POST", "/api/v2/pfs/batch?path=/pfs/local/home/x&files=0&bytes=0", 401),
        ("PUT", f"/api/v2/pfs/uploads/{'0' * 32}?offset=0", 404),
    ],
)
def test_a_streamed_body_is_taken_only_where_its_digest_comes_later(
    key: Signer, method: str, target: str, status: int
) -> None:
    headers = key.headers(b"{}", uuid.uuid4().hex)
    headers["x-paddle-content-sha256"] = "streamed"
    headers["Authorization"] = authorization(key.ak, key.sk, method, target, headers)
    assert key.send(method, target, headers, b"{}").status == status


def test_legacy_signatures_can_be_switched_off(lenient: Callable[..., Signer]) -> None:
    key = lenient(PADDLECLOUD_LEGACY_SIGNATURES="0")
    answer = key.legacy("GET", LIST)
    assert (answer.status, answer.json["code"]) == (403, 403)
    assert "switched them off" in answer.json["message"]
    assert key.complete("GET", LIST).status == 200
    # Who cannot sign does not learn it.
    assert Signer(key.port, key.ak, "0" * 64).legacy("GET", LIST).json["message"] == _SAME_WORDS
