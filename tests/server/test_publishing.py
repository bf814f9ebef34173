"""Published files: who may make a link, what it gives, and when it is no more."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from urllib.parse import quote, urlsplit

import pytest

from tests.server.running import Answer, Caller, Running

WEEK_S = 7 * 86400


def _put(caller: Caller, path: str, data: bytes) -> None:
    body = (
        b'--B\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        + data
        + b"\r\n--B--\r\n"
    )
    answer = caller.call(
        "POST",
        f"/api/v1/file/?path={quote(path)}",
        body,
        Content_Type="multipart/form-data; boundary=B",
    )
    assert answer.status == 200, answer.body


def _fetch(server: Running, url: str, **headers: str) -> Answer:
    place = urlsplit(url)
    return server.anonymous.get(f"{place.path}?{place.query}", **headers)


@pytest.fixture
def home(user: Caller) -> str:
    return f"/pfs/local/home/{user.get('/api/v2/whoami').json['name']}"


@pytest.fixture
def model(user: Caller, home: str) -> str:
    path = f"{home}/out/mödel 1.bin"
    _put(user, path, b"0123456789")
    return path


def _publish(user: Caller, path: str, **more: object) -> dict:
    answer = user.post("/api/v2/publications", {"path": path, **more})
    assert answer.status == 201, answer.body
    return answer.json


def test_gives_a_file_to_whoever_has_the_link(server: Running, user: Caller, model: str) -> None:
    made = _publish(user, model)
    assert made["path"] == model
    assert made["url"].startswith(f"http://127.0.0.1:{server.port}/filepub/?uuid=")
    got = _fetch(server, made["url"])
    assert (got.status, got.body) == (200, b"0123456789")
    assert got.headers["content-disposition"] == (
        "attachment; filename=\"m_del_1.bin\"; filename*=UTF-8''m%C3%B6del%201.bin"
    )
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-type"] == "application/octet-stream"
    assert server.anonymous.call("HEAD", made["url"].partition(str(server.port))[2]).status == 200


def test_gives_a_part_of_it(server: Running, user: Caller, model: str) -> None:
    got = _fetch(server, _publish(user, model)["url"], Range="bytes=2-4")
    assert (got.status, got.body, got.headers["content-range"]) == (206, b"234", "bytes 2-4/10")


def test_serves_what_is_there_now(server: Running, user: Caller, model: str) -> None:
    url = _publish(user, model)["url"]
    _put(user, model, b"newer")
    assert _fetch(server, url).body == b"newer"
    assert user.post("/api/v2/pfs/remove", {"paths": [model]}).status == 200
    gone = _fetch(server, url)
    assert gone.status == 404
    assert model.encode() not in gone.body


def test_lists_and_ends_links(server: Running, user: Caller, model: str) -> None:
    first, second = _publish(user, model), _publish(user, model)
    listed = user.get("/api/v2/publications").json["items"]
    assert {row["url"] for row in listed} == {first["url"], second["url"]}
    assert user.call("DELETE", f"/api/v2/publications/{first['id']}").status == 204
    assert _fetch(server, first["url"]).status == 404
    assert _fetch(server, second["url"]).status == 200
    assert user.call("DELETE", f"/api/v2/publications/{first['id']}").status == 404


def test_the_same_key_gives_the_same_link(user: Caller, model: str) -> None:
    body = {"path": model}
    made = [
        user.post("/api/v2/publications", body, Idempotency_Key="once").json["url"]
        for _ in range(2)
    ]
    assert made[0] == made[1]
    assert len(user.get("/api/v2/publications").json["items"]) == 1


@pytest.mark.parametrize("slash", ["", "/"])
def test_answers_as_the_first_server_did(
    server: Running, user: Caller, model: str, slash: str
) -> None:
    url = user.post(f"/api/v1/publish{slash}", {"path": model}).json["url"]
    assert _fetch(server, url).body == b"0123456789"
    listed = user.get(f"/api/v1/publish{slash}").json
    assert listed == {"files": [model], "urls": [url]}
    assert user.call("DELETE", f"/api/v1/publish{slash}", {"path": model}).status == 200
    assert _fetch(server, url).status == 404


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("{home}/out", 400),
        ("{home}", 400),
        ("{home}/out/none", 404),
        ("{home}/../root/x", 400),
        ("/pfs/local/home/root/x", 403),
        ("/pfs/local/public/x", 403),
        ("/etc/passwd", 400),
        ("", 400),
        (7, 400),
    ],
)
def test_publishes_only_existing_files_of_the_caller(
    user: Caller, home: str, model: str, path: object, status: int
) -> None:
    asked = path.format(home=home) if isinstance(path, str) else path
    answer = user.post("/api/v2/publications", {"path": asked})
    assert (answer.status, answer.json["field"]) == (status, "path")


def test_does_not_publish_through_a_link_of_the_file_system(
    server: Running, user: Caller, home: str, model: str
) -> None:
    folder = server.state / "pfs" / "home" / home.rpartition("/")[2]
    (folder / "out" / "sly").symlink_to("/etc/passwd")
    assert user.post("/api/v2/publications", {"path": f"{home}/out/sly"}).status == 404
    url = _publish(user, model)["url"]
    (folder / "out" / "mödel 1.bin").unlink()
    (folder / "out" / "mödel 1.bin").symlink_to("/etc/passwd")
    assert _fetch(server, url).status == 404


@pytest.mark.parametrize("lives_s", [0, -1, 59, 366 * 86400, "7", True])
def test_refuses_a_lifetime_that_is_none(user: Caller, model: str, lives_s: object) -> None:
    answer = user.post("/api/v2/publications", {"path": model, "expires_in_s": lives_s})
    assert (answer.status, answer.json["field"]) == (400, "expires_in_s")


def test_a_guessed_link_is_no_link(server: Running, user: Caller, model: str) -> None:
    url = _publish(user, model)["url"]
    last = "0" if url[-1] != "0" else "1"
    for wrong in (url[:-1] + last, url[:-32], url + "0", url.partition("=")[0] + "="):
        assert _fetch(server, wrong).status == 404


def test_another_account_cannot_end_a_link(server: Running, user: Caller, model: str) -> None:
    made = _publish(user, model)
    other = server.admin
    assert other.call("DELETE", f"/api/v2/publications/{made['id']}").status == 404
    assert other.call("DELETE", "/api/v1/publish/", {"path": model}).status == 404
    assert _fetch(server, made["url"]).status == 200


def test_ends_with_its_time_and_with_its_account(make_server: Callable[..., Running]) -> None:
    server = make_server().start()
    bob = server.account("bob")
    _put(bob, "/pfs/local/home/bob/x", b"x")
    made = [_publish(bob, "/pfs/local/home/bob/x") for _ in range(2)]
    assert [_fetch(server, row["url"]).status for row in made] == [200, 200]
    assert time.time() < _seconds(made[0]["expires_at"]) < time.time() + WEEK_S + 5
    database = sqlite3.connect(server.state / "server.db")
    with database:
        database.execute("UPDATE jobs_publication SET expires_at = 1 WHERE id = ?", [made[0]["id"]])
    assert [_fetch(server, row["url"]).status for row in made] == [404, 200]
    assert len(bob.get("/api/v2/publications").json["items"]) == 1
    with database:
        database.execute("UPDATE accounts_account SET is_active = 0 WHERE username = 'bob'")
    database.close()
    assert _fetch(server, made[1]["url"]).status == 404


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def test_the_database_does_not_hold_the_secret(make_server: Callable[..., Running]) -> None:
    server = make_server().start()
    _put(server.admin, "/pfs/local/home/root/x", b"x")
    answer = server.admin.post(
        "/api/v2/publications", {"path": "/pfs/local/home/root/x"}, Idempotency_Key="k"
    )
    secret = answer.json["url"][-32:]
    assert server.stop() == 0
    for path in server.state.glob("server.db*"):
        assert secret.encode() not in path.read_bytes()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_a_link_does_not_lead_where_a_header_says(
    server: Running, user: Caller, model: str, host: str
) -> None:
    answer = user.post("/api/v2/publications", {"path": model}, Host=host)
    assert answer.status == 201, answer.body
    assert answer.json["url"].startswith(f"http://127.0.0.1:{server.port}/")
