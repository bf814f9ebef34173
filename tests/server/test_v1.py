"""The first server's interface, in both spellings, as its clients read it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.running import Caller, Running


def _multipart(data: bytes, name: str = "file") -> tuple[bytes, str]:
    body = (
        b'--XyZ\r\nContent-Disposition: form-data; name="' + name.encode() + b'"; filename="f"'
        b"\r\nContent-Type: application/octet-stream\r\n\r\n" + data + b"\r\n--XyZ--\r\n"
    )
    return body, "multipart/form-data; boundary=XyZ"


def _put(caller: Caller, path: str, data: bytes, slash: str = "/") -> Any:
    body, content_type = _multipart(data)
    return caller.call("POST", f"/api/v1/file{slash}?path={path}", body, Content_Type=content_type)


@pytest.fixture
def home(user: Caller) -> str:
    return f"/pfs/local/home/{user.get('/api/v2/whoami').json['name']}"


def _uploaded(user: Caller, home: str, name: str) -> dict[str, Any]:
    """What the first client does: files first, then a body with every key it knows."""
    assert _put(user, f"{home}/jobs/{name}/train.py", b"print(1)\n").json["msg"] == ""
    return {
        "name": name,
        "jobPackage": f"./{name}",
        "parallelism": 2,
        "cpu": 1,
        "memory": "1Gi",
        "gpu": 0,
        "pservers": 1,
        "pscpu": 1,
        "psmemory": "1Gi",
        "entry": "fake hold=1",
        "topology": "",
        "passes": 1,
        "faulttolerant": False,
        "image": "",
        "registry": "",
        "datacenter": "local",
        "minInstance": 1,
        "maxInstance": 1,
    }


@pytest.mark.parametrize(("slash", "msg"), [("", "OK"), ("/", "")])
def test_submits_and_kills(user: Caller, home: str, slash: str, msg: str) -> None:
    answer = user.post(f"/api/v1/jobs{slash}", _uploaded(user, home, "old"))
    assert (answer.status, answer.json) == (200, {"code": 200, "msg": msg})
    user.wait("old", "running")
    answer = user.call("DELETE", f"/api/v1/jobs{slash}", {"jobname": "old"})
    assert (answer.status, answer.json) == (200, {"code": 200, "msg": msg})
    assert user.wait("old")["phase"] == "Killed"
    answer = user.call("DELETE", f"/api/v1/jobs{slash}", {"jobname": "old", "rm": True})
    assert answer.status == 200
    assert user.get("/api/v1/jobs").json["msg"] == []


def test_takes_the_body_of_the_design_document(user: Caller, home: str) -> None:
    _put(user, f"{home}/job_word_emb/train.py", b"")
    body = {
        "name": "paddle-job",
        "job_package": f"{home}/job_word_emb",
        "parallelism": 3,
        "cpu": 1,
        "gpu": 1,
        "memory": "1Gi",
        "pservers": 3,
        "pscpu": 1,
        "psmemory": "1Gi",
        "topology": "train.py",
    }
    refused = user.post("/api/v1/jobs", body)
    assert refused.json["field"] == "entry"  # this runtime has no `paddle train`
    answer = user.post("/api/v1/jobs", body | {"entry": "fake"})
    assert answer.json == {"code": 200, "msg": "OK"}
    (listed,) = user.get("/api/v1/jobs").json["msg"]
    assert listed == body | {"entry": "fake"}


def test_says_when_the_package_is_not_there(user: Caller, home: str) -> None:
    answer = user.post("/api/v1/jobs/", {"name": "none", "entry": "fake"})
    assert answer.status == 400
    assert answer.json["code"] == 400
    assert answer.json["msg"] == f"package not exist in cloud: {home}/jobs/none"


def test_lists_batch_jobs_as_the_shipped_client_reads_them(user: Caller, home: str) -> None:
    user.post("/api/v1/jobs/", _uploaded(user, home, "tab"))
    user.wait("tab", "running")
    body = user.get("/api/v1/jobs/").json
    (item,) = body["items"]
    assert item["metadata"]["name"] == "tab-trainer"
    assert item["status"]["active"] == 2
    assert item["status"]["succeeded"] is None
    assert item["status"]["failed"] is None
    assert item["status"]["completion_time"] is None
    assert len(item["status"]["start_time"]) == len("2017-05-24T07:52:45Z")
    assert body["terminating"] == []
    (servers,) = user.get("/api/v1/pservers/").json["items"]
    assert servers["metadata"]["name"] == "tab-pserver"
    assert servers["status"] == {"replicas": 1, "ready_replicas": 1}


def test_shows_workers_with_how_they_ended(user: Caller, home: str) -> None:
    user.post("/api/v1/jobs/", _uploaded(user, home, "w") | {"entry": "fake exit=7"})
    user.wait("w")
    items = user.get("/api/v1/workers/?jobname=w").json["items"]
    assert [item["metadata"]["name"] for item in items] == [
        *("w-trainer-0", "w-trainer-1", "w-pserver-0")
    ]
    first = items[0]["status"]
    assert first["phase"] == "Failed"
    assert first["container_statuses"][0]["state"]["terminated"]["exit_code"] == 7
    assert items[1]["status"]["phase"] == "Succeeded"
    assert user.get("/api/v1/workers?jobname=w").json["msg"] == items
    assert len(user.get("/api/v1/workers/").json["items"]) == 3
    missing = user.get("/api/v1/workers/?jobname=none")
    assert (missing.status, missing.json["code"]) == (404, 404)


def test_gives_logs_under_a_rule_and_bare_for_one(user: Caller, home: str) -> None:
    user.post("/api/v1/jobs/", _uploaded(user, home, "g") | {"entry": "fake lines=30"})
    user.wait("g")
    body = user.get("/api/v1/logs/?jobname=g&n=2").json
    rule = "=" * 26
    assert body["code"] == 200
    assert body["msg"].startswith(f"{rule}g-trainer-0{rule}\nline 29 of trainer-0\nline 30 of")
    assert f"{rule}g-pserver-0{rule}\n" in body["msg"]
    one = user.get("/api/v1/logs?jobname=g&w=g-trainer-1").json["msg"]
    assert one.splitlines() == [f"line {n} of trainer-1" for n in range(21, 31)]
    assert user.get("/api/v1/logs?jobname=g&w=g-trainer-9").status == 404
    assert user.get("/api/v1/logs").status == 400


def test_shows_limits_as_a_resource_quota(server: Running, user: Caller, home: str) -> None:
    (item,) = user.get("/api/v1/quota/").json["items"]
    assert item["status"]["hard"] == {}
    name = home.rsplit("/", 1)[1]
    server.admin.call("PUT", f"/api/v2/accounts/{name}/quota", {"cpu": 8, "memory": "4Gi"})
    (item,) = user.get("/api/v1/quota/").json["items"]
    assert item["status"]["hard"] == {"requests.cpu": "8", "requests.memory": "4Gi"}
    assert user.get("/api/v1/quota").json["msg"]["limits"]["cpu"] == "8"


@pytest.mark.parametrize("slash", ["", "/"])
def test_refuses_a_method_in_the_shape_of_its_other_errors(user: Caller, slash: str) -> None:
    answer = user.call("PUT", f"/api/v1/jobs{slash}")
    assert answer.status == 405
    assert answer.json["code"] == 405
    assert answer.json["msg"] == "PUT is not possible here; DELETE, GET, POST is"


def test_names_the_owner_of_a_token(user: Caller, home: str) -> None:
    for slash in ("", "/"):
        assert user.get(f"/api/v1/token2user{slash}").json["user"] == home.rsplit("/", 1)[1]


# --- files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("size", [0, 1, 65536, 3_000_001])
def test_puts_and_gets_a_file(user: Caller, home: str, slash: str, size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    path = f"{home}/deep/er/f{size}.bin"
    answer = _put(user, path, data, slash)
    assert (answer.status, answer.json["msg"]) == (200, "")
    got = user.get(f"/api/v1/file{slash}?path={path}")
    assert got.status == 200
    assert got.body == data
    assert got.headers["content-type"] == "application/force-download"
    assert _put(user, path, b"shorter", slash).status == 200
    assert user.get(f"/api/v1/file{slash}?path={path}").body == b"shorter"
    names = user.get(f"/api/v1/filelist{slash}?path={home}/deep/er&dc=local").json
    assert (names["msg"], names["items"]) == ("", [f"f{size}.bin"])


def test_leaves_nothing_of_an_upload_that_breaks_off(
    server: Running, user: Caller, home: str
) -> None:
    body, content_type = _multipart(b"x" * 200_000)
    connection = user.connect()
    headers = {"Content-Type": content_type, "Content-Length": str(len(body))}
    connection.request(
        "POST", f"/api/v1/file/?path={home}/half", body[:100_000], user.headers(headers)
    )
    connection.close()
    folder = server.state / "pfs" / home.removeprefix("/pfs/local/")
    _put(user, f"{home}/whole", b"")
    while [path.name for path in folder.iterdir()] != ["whole"]:
        assert user.get(f"/api/v1/file/?path={home}/half").status == 404


@pytest.mark.parametrize(
    ("path", "status", "msg"),
    [
        ("/etc/passwd", 400, "path must start with /pfs"),
        ("/pfs/local", 400, "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/nowhere/home/{me}", 400, "no datacenter nowhere"),
        ("/pfs/local/home/root", 403, "not a valid user: root"),
        ("/pfs/local/home/{me}/../root", 400, "a path cannot contain '..'"),
        ("/pfs/local/home/{me}/%2e%2e/root", 400, "a path cannot contain '..'"),
        ("/pfs/local/home/{me}/none", 404, "dir not exist"),
        ("", 400, "path is needed"),
    ],
)
def test_refuses_paths_in_the_words_of_the_first_server(
    user: Caller, home: str, path: str, status: int, msg: str
) -> None:
    asked = path.format(me=home.rsplit("/", 1)[1])
    answer = user.get(f"/api/v1/filelist/?path={asked}")
    assert (answer.status, answer.json["msg"]) == (status, msg)
    assert answer.json["code"] == status
    assert user.get(f"/api/v1/file/?path={asked}").status in (400, 403, 404)
    assert _put(user, asked + "/x", b"").status in (400, 403) or status == 404


def test_never_follows_a_link_out_of_the_home(server: Running, user: Caller, home: str) -> None:
    folder = server.state / "pfs" / home.removeprefix("/pfs/local/")
    _put(user, f"{home}/real", b"")
    (folder / "key").symlink_to(server.state / "secrets" / "django-key")
    (folder / "secrets").symlink_to(server.state / "secrets")
    (folder / "up").symlink_to("..")
    for path in ("key", "secrets/django-key", "up/root"):
        answer = user.get(f"/api/v1/file/?path={home}/{path}")
        assert answer.status == 404, path
    assert user.get(f"/api/v1/filelist/?path={home}/secrets").status == 404
    before = (server.state / "secrets" / "django-key").read_bytes()
    assert _put(user, f"{home}/secrets/django-key", b"mine").status in (400, 404)
    assert _put(user, f"{home}/key", b"mine").status == 200  # replaces the link, not its target
    assert (server.state / "secrets" / "django-key").read_bytes() == before


def test_reads_public_data_and_does_not_write_it(server: Running, user: Caller) -> None:
    public = server.state / "pfs" / "public"
    public.mkdir(exist_ok=True)
    (public / "words.txt").write_text("for all")
    assert user.get("/api/v1/file/?path=/pfs/local/public/words.txt").body == b"for all"
    assert _put(user, "/pfs/local/public/mine", b"").status == 403


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"plain", "application/octet-stream"),
        (b"plain", "multipart/form-data"),
        (_multipart(b"x", "other")[0], "multipart/form-data; boundary=XyZ"),
        (_multipart(b"x")[0][:-8], "multipart/form-data; boundary=XyZ"),
    ],
)
def test_refuses_an_upload_it_does_not_understand(
    user: Caller, home: str, body: bytes, content_type: str
) -> None:
    path = f"/api/v1/file/?path={home}/odd"
    answer = user.call("POST", path, body, Content_Type=content_type)
    assert (answer.status, answer.json["field"]) == (400, "file")
    assert user.get(path).status == 404
