"""Packages: pinned by content, kept as long as a job names them, never anybody else's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.server.running import Answer, Caller, Running, digest_of

HELLO = {"train.py": b"print('hello')\n", "lib/a.py": b"a = 1\n"}
WEEK_S = 7 * 86400
LARGE_FILES = 2_000  # as many are still copied while the request waits


def _submit(caller: Caller, name: str, digest: str) -> Answer:
    body = {"name": name, "entry": "fake", "mode": "single", "package_digest": digest}
    return caller.post("/api/v2/jobs", body)


def _name(caller: Caller) -> str:
    return str(caller.get("/api/v2/whoami").json["name"])


def _folder(server: Running, caller: Caller, job: str) -> Path:
    return server.state / "pfs" / "home" / _name(caller) / "jobs" / job


def test_says_what_it_knows_of_a_package(user: Caller) -> None:
    digest = user.upload(HELLO)
    found = user.get(f"/api/v2/packages/{digest}")
    assert (found.status, found.json) == (200, {"digest": digest, "files": 2, "bytes": 21})
    assert user.call("HEAD", f"/api/v2/packages/{digest}").status == 200
    assert user.upload(HELLO) == digest


def test_knows_nothing_of_what_others_have(server: Running, user: Caller) -> None:
    digest = user.upload({"secret.py": os.urandom(16)})
    assert server.admin.call("HEAD", f"/api/v2/packages/{digest}").status == 404
    refused = _submit(server.admin, "thief", digest)
    assert (refused.status, refused.json["field"]) == (400, "package_digest")


@pytest.mark.parametrize("digest", ["0" * 64, "zz", "A" * 64, "../../x"])
def test_refuses_a_digest_nobody_stored(user: Caller, digest: str) -> None:
    assert _submit(user, "none", digest).status == 400
    assert user.get(f"/api/v2/packages/{digest}").status in (400, 404)


@pytest.mark.parametrize(
    "path", ["../x", "/x", "a/../../b", "a//b", "", ".", "x\0", "a" * 300, "e\u0301"]
)
def test_refuses_a_list_that_leads_out_of_its_folder(user: Caller, path: str) -> None:
    body = {"digest": "0" * 64, "base": None, "files": [[path, 0, False, "0" * 64]], "dirs": []}
    assert user.post("/api/v2/pfs/snapshots", body).status == 400


def test_a_job_s_folder_holds_exactly_its_package(server: Running, user: Caller) -> None:
    assert _submit(user, "first", user.upload(HELLO)).status == 201
    folder = _folder(server, user, "first")
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert found == HELLO


def test_a_rerun_runs_exactly_the_same_bytes(server: Running, user: Caller) -> None:
    digest = user.upload(HELLO)
    job = _submit(user, "same", digest).json
    user.wait("same")
    folder = _folder(server, user, "same")
    (folder / "train.py").write_bytes(b"print('edited')\n")
    (folder / "added.py").write_bytes(b"x")
    (folder / "lib" / "a.py").unlink()
    (folder / "output" / "model").write_bytes(b"of run 1")
    assert user.post("/api/v2/jobs/same/rerun").status == 201
    user.wait("same")
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert found == HELLO
    # What the first run left is put aside, whole, and can be looked at.
    home = f"/pfs/local/home/{_name(user)}"
    aside = f"{home}/jobs/.ended/same-{job['id']}-run1"
    listed = user.get(f"/api/v2/pfs/entries?path={aside}/output").json["entries"]
    assert [entry["name"] for entry in listed] == ["model"]
    kept = user.get(f"/api/v2/pfs/content?path={aside}/train.py")
    assert kept.body == b"print('edited')\n"


# --- a large one is copied beside the request ---------------------------------------------------


@pytest.fixture(scope="module")
def many() -> dict[str, bytes]:
    return {f"f{n}": b"seven" if n == 7 else b"another" for n in range(LARGE_FILES + 1)}


@contextmanager
def _held_up(server: Running, data: bytes) -> Iterator[None]:
    """Whoever copies these bytes of a package has to wait until the end."""
    (blob,) = server.state.glob(f"pfs/.paddlefs/blobs/*/*/{digest_of(data)}")
    blob.unlink()
    os.mkfifo(blob)
    try:
        yield
    finally:
        aside = blob.with_suffix(".held")
        blob.rename(aside)
        blob.write_bytes(data)
        with suppress(OSError):  # nobody waits any more
            waited_for = os.open(aside, os.O_WRONLY | os.O_NONBLOCK)
            os.write(waited_for, data)
            os.close(waited_for)
        aside.unlink()


def test_a_large_package_holds_up_neither_its_submit_nor_others(
    make_server: Callable[..., Running], many: dict[str, bytes]
) -> None:
    server = make_server().start()
    user = server.admin
    large, small = user.upload(many), user.upload(HELLO)
    with _held_up(server, many["f7"]):
        assert _submit(user, "large", large).status == 201
        _until(lambda: "being copied" in user.get("/api/v2/jobs/large").json["reason"])
        job = user.get("/api/v2/jobs/large").json
        assert job["reason"] == f"its package is being copied ({len(many):,} files, 0 MB)"
        assert not job["ended_at"]
        assert _submit(user, "small", small).status == 201
        assert user.wait("small")["phase"] == "Succeeded"
    assert user.wait("large")["phase"] == "Succeeded"
    folder = _folder(server, user, "large")
    assert {path.name for path in folder.iterdir()} == {*many, "output"}
    assert (folder / "f7").read_bytes() == many["f7"]


def test_a_large_package_is_copied_after_a_kill_of_the_server(
    make_server: Callable[..., Running], many: dict[str, bytes]
) -> None:
    server = make_server().start()
    digest = server.admin.upload(many)
    with _held_up(server, many["f7"]):
        assert _submit(server.admin, "large", digest).status == 201
        _until(lambda: (_folder(server, server.admin, "large") / "f6").exists())
        server.kill_9()
    server.start()
    assert server.admin.wait("large")["phase"] == "Succeeded"
    folder = _folder(server, server.admin, "large")
    assert {path.name for path in folder.iterdir()} == {*many, "output"}


def test_a_kill_stops_the_copying_of_a_large_package(
    make_server: Callable[..., Running], many: dict[str, bytes]
) -> None:
    server = make_server().start()
    user, last = server.admin, max(many)
    large, small = user.upload(many), user.upload(HELLO)
    with _held_up(server, many["f7"]):
        assert _submit(user, "large", large).status == 201
        _until(lambda: (_folder(server, user, "large") / "f6").exists())
        assert user.post("/api/v2/jobs/large/cancel").status == 202
        assert _submit(user, "small", small).status == 201
        user.wait("small")  # orders are carried out one after the other: the kill is, too
    job = user.wait("large")
    assert (job["phase"], job["reason"]) == ("Killed", f"killed by {_name(user)}")
    assert not (_folder(server, user, "large") / last).exists()
    assert user.post("/api/v2/jobs/large/rerun").status == 201
    assert user.wait("large")["phase"] == "Succeeded"
    assert (_folder(server, user, "large") / last).exists()


def test_a_job_whose_large_package_waits_for_others_is_killed_at_once(
    make_server: Callable[..., Running], many: dict[str, bytes]
) -> None:
    server = make_server().start()
    user = server.admin
    digest = user.upload(many)
    with _held_up(server, many["f7"]):
        for name in ("first", "second", "third"):
            assert _submit(user, name, digest).status == 201
        for name in ("first", "second"):
            _until(lambda name=name: (_folder(server, user, name) / "f6").exists())
        assert user.post("/api/v2/jobs/third/cancel").status == 202
        assert user.wait("third")["phase"] == "Killed"
    assert not (_folder(server, user, "third") / "f0").exists()


def test_a_large_package_that_cannot_be_copied_fails_its_job(
    make_server: Callable[..., Running], many: dict[str, bytes]
) -> None:
    server = make_server().start()
    digest = server.admin.upload(many)
    (blob,) = server.state.glob(f"pfs/.paddlefs/blobs/*/*/{digest_of(many['f7'])}")
    blob.unlink()
    assert _submit(server.admin, "large", digest).status == 201
    job = server.admin.wait("large")
    assert job["phase"] == "Failed"
    assert "the stored bytes of f7 are gone" in job["reason"]


def test_outputs_can_be_looked_at_after_the_end(server: Running, user: Caller) -> None:
    _submit(user, "ended", user.upload(HELLO))
    user.wait("ended")
    (_folder(server, user, "ended") / "output" / "model").write_bytes(b"42")
    output = user.get("/api/v2/jobs/ended").json["output"]
    listed = user.get(f"/api/v2/pfs/entries?path={output}").json["entries"]
    assert [(entry["name"], entry["size"]) for entry in listed] == [("model", 2)]


def test_refuses_a_package_above_the_limit(make_server: Callable[..., Running]) -> None:
    server = make_server(PADDLECLOUD_MAX_PACKAGE_BYTES="1000").start()
    refused = _submit(server.admin, "large", server.admin.upload({"a": b"x" * 1001}))
    assert (refused.status, refused.json["code"]) == (413, "too_large")
    assert _submit(server.admin, "small", server.admin.upload({"a": b"x" * 1000})).status == 201


def test_keeps_a_package_while_a_job_names_it(make_server: Callable[..., Running]) -> None:
    server = make_server().start()
    digest = server.admin.upload(HELLO)
    for name in ("one", "two"):
        assert _submit(server.admin, name, digest).status == 201
        server.admin.wait(name)
    snapshot = next(server.state.glob(f"pfs/.paddlefs/snapshots/*/{digest}"))
    long_ago = time.time() - WEEK_S
    os.utime(snapshot, (long_ago, long_ago))
    assert server.admin.call("DELETE", "/api/v2/jobs/one").status == 204
    _until(lambda: server.admin.get("/api/v2/jobs/one").status == 404)
    assert server.admin.post("/api/v2/jobs/two/rerun").status == 201
    server.admin.wait("two")
    os.utime(snapshot, (long_ago, long_ago))
    assert server.admin.call("DELETE", "/api/v2/jobs/two").status == 204
    _until(lambda: not snapshot.exists())
    assert server.admin.call("HEAD", f"/api/v2/packages/{digest}").status == 404


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_says_why_a_job_cannot_run_when_its_bytes_have_rotted(
    make_server: Callable[..., Running],
) -> None:
    server = make_server().start()
    digest = server.admin.upload(HELLO)
    assert _submit(server.admin, "fine", digest).status == 201
    server.admin.wait("fine")
    for blob in server.state.glob("pfs/.paddlefs/blobs/*/*/*"):
        data = blob.read_bytes()
        blob.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    server.admin.post("/api/v2/jobs/fine/rerun")
    job = server.admin.wait("fine")
    assert job["phase"] == "Failed"
    assert "bit rot" in job["reason"]
    # What was found wrong is gone, so that submitting again heals it.
    assert server.admin.post("/api/v2/pfs/snapshots", _wish(HELLO)).json["missing"]


def _wish(files: dict[str, bytes]) -> dict:
    from paddlecloud.wire import snapshots

    rows = [snapshots.File(path, len(data), False, digest_of(data)) for path, data in files.items()]
    return snapshots.whole(snapshots.make(rows)).to_json()


def test_refuses_to_run_again_what_is_no_longer_kept(make_server: Callable[..., Running]) -> None:
    server = make_server().start()
    job = _submit(server.admin, "old", server.admin.upload({"old.py": b"old"})).json
    server.admin.wait("old")
    digest = server.admin.get(f"/api/v2/jobs/{job['id']}").json["spec"]["package_digest"]
    [kept] = (server.state / "pfs" / ".paddlefs" / "snapshots").glob(f"*/{digest}")
    kept.unlink()
    refused = server.admin.post("/api/v2/jobs/old/rerun")
    assert (refused.status, refused.json["hint"]) == (409, "submit it again")
