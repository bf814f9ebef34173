"""Access keys: making, listing, rotating, revoking, and what each may do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.server.running import Answer, Caller, Running
from tests.server.signing import Signer

WHOAMI = "/api/v2/whoami"


def name_of(caller: Caller) -> str:
    return str(caller.get(WHOAMI).json["name"])


def keys_of(caller: Caller) -> str:
    return f"/api/v2/accounts/{name_of(caller)}/keys"


def made(caller: Caller, **body: Any) -> dict[str, str]:
    answer = caller.post(keys_of(caller), body)
    assert answer.status == 201, answer.body
    key: dict[str, str] = answer.json
    return key


def signer(caller: Caller, **body: Any) -> Signer:
    key = made(caller, **body)
    return Signer(caller.port, key["ak"], key["sk"])


def revoke(caller: Caller, **body: Any) -> Answer:
    return caller.post(f"/api/v2/accounts/{name_of(caller)}/revoke", body)


def test_a_new_key_signs_requests_of_its_account(user: Caller) -> None:
    key = made(user, name="laptop", scope="submit")
    assert (key["name"], key["scope"]) == ("laptop", "submit")
    assert key["ak"].isalnum()
    assert key["sk"].isalnum()
    answer = Signer(user.port, key["ak"], key["sk"]).complete("GET", WHOAMI)
    assert (answer.status, answer.json["name"]) == (200, name_of(user))


def test_the_list_says_everything_but_the_secret(user: Caller) -> None:
    key = made(user, name="one")
    Signer(user.port, key["ak"], key["sk"]).complete("GET", WHOAMI)
    (row,) = user.get(keys_of(user)).json["items"]
    assert (row["ak"], row["name"], row["scope"]) == (key["ak"], "one", "all")
    assert row["created_at"]
    assert row["last_used_at"]
    assert (row["revoked_at"], row["rotated_at"], row["old_secret_until"]) == (None, None, None)
    assert key["sk"] not in str(row)


def test_the_secret_is_nowhere_on_the_disk(make_server: Callable[..., Running]) -> None:
    server = make_server(PADDLECLOUD_DATABASE_URL="").start()  # the files of SQLite are ours
    key = made(server.admin)
    server.stop()
    with closing(sqlite3.connect(server.state / "server.db")) as rows:
        dump = "\n".join(rows.iterdump())
    assert key["ak"] in dump
    assert key["sk"] not in dump
    assert bytes(key["sk"], "ascii").hex() not in dump
    for path in server.state.rglob("*"):
        if path.is_file():
            assert key["sk"].encode() not in path.read_bytes(), path
    assert key["sk"] not in server.log.read_text()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"scope": "everything"}, "scope"),
        ({"name": "x" * 65}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": 7}, "name"),
        ({"nmae": "x"}, "nmae"),
        ({"ak": "abc"}, "ak"),
        ({"ak": "a-b", "sk": "x" * 20}, "ak"),
        ({"ak": "abc", "sk": "short"}, "sk"),
    ],
)
def test_refuses_bad_wishes_by_their_field(user: Caller, body: Any, field: str) -> None:
    answer = user.post(keys_of(user), body)
    assert (answer.status, answer.json["field"]) == (400, field)
    assert user.get(keys_of(user)).json["items"] == []


def test_a_pair_that_scripts_have_can_be_brought(user: Caller) -> None:
    pair = {"ak": f"ak{user.port}brought", "sk": "0123456789abcdefABCDEF"}
    key = made(user, **pair)
    assert (key["ak"], key["sk"]) == (pair["ak"], pair["sk"])
    assert Signer(user.port, *pair.values()).complete("GET", WHOAMI).status == 200
    assert user.post(keys_of(user), pair | {"sk": "another0secret0000"}).status == 409


def test_the_same_wish_again_gives_the_same_pair(user: Caller) -> None:
    one = user.post(keys_of(user), {"name": "a"}, Idempotency_Key="once")
    two = user.post(keys_of(user), {"name": "a"}, Idempotency_Key="once")
    assert one.json == two.json
    assert len(user.get(keys_of(user)).json["items"]) == 1


# --- rotating and revoking ---------------------------------------------------------------------


def rotate(caller: Caller, **body: Any) -> Answer:
    return caller.post(keys_of(caller) + "/rotate", body)


def test_rotating_ends_the_old_secret_at_once(user: Caller) -> None:
    old = signer(user)
    answer = rotate(user, ak=old.ak)
    assert answer.json["sk"] != old.sk
    assert old.complete("GET", WHOAMI).status == 401
    assert Signer(user.port, old.ak, answer.json["sk"]).complete("GET", WHOAMI).status == 200


def test_an_overlap_keeps_the_old_secret_for_a_while(user: Caller) -> None:
    old = signer(user)
    new = Signer(user.port, old.ak, rotate(user, ak=old.ak, overlap_s=600).json["sk"])
    assert old.complete("GET", WHOAMI).status == 200
    assert new.complete("GET", WHOAMI).status == 200
    assert user.get(keys_of(user)).json["items"][0]["old_secret_until"]
    rotate(user, ak=old.ak)
    assert old.complete("GET", WHOAMI).status == 401
    assert new.complete("GET", WHOAMI).status == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "ak"), ({"ak": 1}, "ak"), ({"ak": "x", "overlap_s": -1}, "overlap_s")],
)
def test_refuses_a_bad_rotation_by_its_field(user: Caller, body: Any, field: str) -> None:
    answer = rotate(user, **body)
    assert (answer.status, answer.json["field"]) == (400, field)


def test_a_revoked_key_is_refused_with_the_next_request(user: Caller) -> None:
    key = signer(user)
    assert key.complete("GET", WHOAMI).status == 200
    assert revoke(user, key=key.ak, reason="lost").json["keys"] == 1
    answer = key.complete("GET", WHOAMI)
    assert (answer.status, "revoked" in answer.json["message"]) == (401, True)
    assert user.get(keys_of(user)).json["items"][0]["reason"] == "lost"
    assert rotate(user, ak=key.ak).status == 409


def test_revoking_everything_takes_keys_along(server: Running, user: Caller) -> None:
    keys = [signer(user) for _ in range(2)]
    name = name_of(user)
    done = server.admin.post(f"/api/v2/accounts/{name}/revoke", {"all": True})
    assert done.json["keys"] == 2
    assert [key.complete("GET", WHOAMI).status for key in keys] == [401, 401]


def test_a_disabled_account_has_no_keys(server: Running, user: Caller) -> None:
    key, name = signer(user), name_of(user)
    server.admin.post(f"/api/v2/accounts/{name}/disable", {})
    assert key.complete("GET", WHOAMI).status == 401
    server.admin.post(f"/api/v2/accounts/{name}/enable", {})
    assert key.complete("GET", WHOAMI).status == 200


def test_everybody_their_own_and_an_administrator_anyones(server: Running, user: Caller) -> None:
    name = name_of(user)
    other = server.account(f"{name}-other")
    key = made(user)
    for method, path, body in (
        ("GET", f"/api/v2/accounts/{name}/keys", None),
        ("POST", f"/api/v2/accounts/{name}/keys", {}),
        ("POST", f"/api/v2/accounts/{name}/keys/rotate", {"ak": key["ak"]}),
        ("POST", f"/api/v2/accounts/{name}/revoke", {"key": key["ak"]}),
    ):
        assert other.call(method, path, body).status == 403, path
    assert rotate(other, ak=key["ak"]).status == 404
    assert revoke(other, key=key["ak"]).status == 404
    assert server.admin.get(f"/api/v2/accounts/{name}/keys").json["items"][0]["ak"] == key["ak"]
    assert server.admin.post(f"/api/v2/accounts/{name}/keys", {}).status == 201


def test_a_key_whose_secret_cannot_be_read_is_refused_until_it_is_rotated(
    make_server: Callable[..., Running],
) -> None:
    server = make_server().start()
    key = signer(server.admin)
    server.stop()
    (server.state / "secrets" / "access-keys").write_text("another" * 8)
    server.start()
    key.port = server.port
    answer = key.complete("GET", WHOAMI)
    assert (answer.status, "not known" in answer.json["message"]) == (401, True)
    made_again = rotate(server.admin, ak=key.ak).json
    assert Signer(server.port, key.ak, made_again["sk"]).complete("GET", WHOAMI).status == 200


# --- scopes ------------------------------------------------------------------------------------


def test_a_reading_key_only_looks(user: Caller) -> None:
    job = user.submit("looked-at", "fake hold=1")
    key = signer(user, scope="read")
    assert key.complete("GET", f"/api/v2/jobs/{job['id']}").status == 200
    for method, path in (
        ("POST", "/api/v2/jobs"),
        ("POST", f"/api/v2/jobs/{job['id']}/cancel"),
        ("DELETE", f"/api/v2/jobs/{job['id']}"),
        ("POST", keys_of(user)),
        ("POST", "/api/v2/pfs/snapshots"),
    ):
        answer = key.complete(method, path, {})
        assert (answer.status, answer.json["code"]) == (403, "not_allowed"), path
        assert "scope read" in answer.json["message"]


def test_a_submitting_key_runs_jobs_and_no_accounts(user: Caller) -> None:
    job = user.submit("ended-by-key", "fake hold=1")
    key = signer(user, scope="submit")
    assert key.complete("POST", keys_of(user), {}).status == 403
    assert key.complete("PUT", "/api/v2/accounts/x/password", {"password": "x"}).status == 403
    assert key.complete("POST", f"/api/v2/jobs/{job['id']}/cancel", {}).status == 202


def test_a_key_of_an_administrator_is_one_only_with_the_scope_all(server: Running) -> None:
    for scope, status in (("read", 403), ("submit", 403), ("all", 200)):
        key = signer(server.admin, scope=scope)
        assert key.complete("GET", "/api/v2/accounts").status == status
        assert key.complete("GET", WHOAMI).json["admin"] is (scope == "all")
