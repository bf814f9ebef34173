"""What protocol v2 refuses, beside controls that must pass."""

from __future__ import annotations

import pytest

from paddlecloud.pfs.serving import table
from paddlecloud.wire import records
from tests.pfs.calls import PFS, ask, batch, begin, content, put, stream
from tests.pfs.running import Caller, Running


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/pfs/local/home/bob/f", 403),
        ("/pfs/local/home/nobody/f", 403),
        ("/pfs/local/home/alice/../bob/f", 400),
        ("/pfs/local/home/alice/%2e%2e/bob/f", 400),
        ("/pfs/local/home/alice/a%00b", 400),
        ("/pfs/local/home/alice/a%0ab", 400),
        ("/pfs/local/home/alice/%ff", 400),
        ("/pfs/elsewhere/home/alice/f", 400),
        ("/etc/passwd", 400),
        ("/pfs/local", 400),
        ("/pfs/local/home/alice/" + "x" * 256, 400),
        ("/pfs/local/home/alice/" + "x/" * 2100, 400),
        # controls that must pass the check and are only not there
        ("/pfs/local/home/alice/%252e%252e/f", 404),
        ("/pfs/local/home/alice/..a", 404),
        ("/pfs/local/home/alice/a..b/f", 404),
        ("/pfs/local/home/alice/./f", 404),
        ("/pfs/local/home/alice/%E2%80%A6", 404),
        ("/pfs/local/public/f", 404),
    ],
)
def test_refuses_paths_that_are_not_the_callers(alice: Caller, path: str, status: int) -> None:
    for call in ("entry", "content", "entries", "usage"):
        answer = alice.get(f"{PFS}/{call}?path={path}")
        assert answer.status == status, (call, answer)
        assert set(answer.json) >= {"code", "message", "hint", "field"}


def test_decodes_a_path_exactly_once(server: Running, alice: Caller, home: str) -> None:
    put(alice, f"{home}/%2e%2e", b"three characters, twice")
    folder = server.home() / home.rpartition("/")[2]
    assert (folder / "%2e%2e").read_bytes() == b"three characters, twice"
    got = alice.get(f"{PFS}/content?path={home}/%252e%252e")
    assert got.body == b"three characters, twice"


def test_serves_public_data_and_never_writes_it(server: Running, alice: Caller) -> None:
    (server.root / "public" / "words").write_bytes(b"for all")
    assert content(alice, "/pfs/local/public/words").body == b"for all"
    upload = alice.post(f"{PFS}/uploads", {"path": "/pfs/local/public/mine", "size": 1})
    assert upload.status == 403
    assert batch(alice, "/pfs/local/public", stream({"a": b""}), 1, 0).status == 403
    for call, body in (
        ("directories", {"paths": ["/pfs/local/public/d"]}),
        ("remove", {"paths": ["/pfs/local/public/words"]}),
        ("move", {"from": "/pfs/local/public/words", "to": "/pfs/local/home/alice/w"}),
    ):
        assert alice.post(f"{PFS}/{call}", body).status == 403, call


def test_never_follows_a_link(server: Running, alice: Caller, home: str) -> None:
    folder = server.home() / home.rpartition("/")[2]
    (folder / "out").symlink_to("/etc")
    (folder / "file").symlink_to("/etc/passwd")
    for name in ("out", "out/passwd", "file"):
        assert content(alice, f"{home}/{name}").status in (400, 404), name
        assert ask(alice, "entry", f"{home}/{name}").status == 404, name
    assert ask(alice, "entries", home).json == {
        "path": home,
        "entries": [],
        "next": None,
        "left_out": 2,
    }
    assert batch(alice, home, stream({"out/x": b"1"}), 1, 1).json["stored"] == 0


def test_hides_uploads_of_other_accounts(server: Running, alice: Caller, home: str) -> None:
    upload = begin(alice, f"{home}/f", b"12")["id"]
    bob = server.as_user("bob")
    assert bob.call("PUT", f"{PFS}/uploads/{upload}?offset=0", b"12").status == 404
    assert bob.call("DELETE", f"{PFS}/uploads/{upload}").status == 404
    assert bob.get(f"{PFS}/uploads").json == {"uploads": []}


@pytest.mark.parametrize(
    ("call", "body", "field"),
    [
        ("directories", {"paths": "x"}, "paths"),
        ("directories", {"paths": []}, "paths"),
        ("directories", {}, "body"),
        ("directories", {"paths": ["/pfs/local/home/alice/a"], "mode": 7}, "mode"),
        ("remove", [], "body"),
        ("uploads", {"path": "/pfs/local/home/alice/a", "size": "1"}, "size"),
        ("uploads", {"path": "/pfs/local/home/alice/a", "size": -1}, "size"),
        ("uploads", {"size": 1}, "path"),
        ("uploads", {"blob": "x", "size": 1}, "blob"),
        ("move", {"from": "/pfs/local/home/alice/a"}, "body"),
        ("fetch", {"path": "/pfs/local/home/alice", "files": [1]}, "files[0]"),
    ],
)
def test_names_what_is_wrong_with_a_body(
    alice: Caller, call: str, body: object, field: str
) -> None:
    answer = alice.post(f"{PFS}/{call}", body)
    assert (answer.status, answer.json["code"]) == (400, "invalid_input"), answer
    assert answer.json["field"] == field


def test_names_all_wrong_parameters_at_once(alice: Caller) -> None:
    answer = alice.get(f"{PFS}/entries?limit=0&recursive=perhaps&pth=/pfs/local/home/alice")
    assert answer.status == 400
    assert {row["field"] for row in answer.json["faults"]} == {"limit", "recursive", "pth", "path"}


def test_lets_nobody_in_without_a_name(server: Running) -> None:
    nobody = Caller(server, {})
    for row in table.ROWS:
        path = row.path.format(id="x", digest="x")
        answer = nobody.call(row.method, path)
        assert answer.status == 401, row
    assert nobody.get("/api/v2/pfs/none").status == 401
    assert nobody.get("/healthz").body == b"OK"


def test_answers_every_row_of_the_table(alice: Caller) -> None:
    """Nothing is routed to nowhere, whatever it then says of an empty request."""
    for row in table.ROWS:
        answer = alice.call(row.method, row.path.format(id="0" * 32, digest="0" * 64))
        assert answer.status < 500, (row, answer)
        assert answer.status != 405, row
    assert alice.call("PATCH", f"{PFS}/entries").status == 405
    assert alice.get(f"{PFS}/nothing").status == 404


@pytest.mark.parametrize("name", ["/etc", "/etc/passwd", "//etc", "a//b", "/", "../etc", "."])
def test_takes_no_name_that_is_not_relative(alice: Caller, home: str, name: str) -> None:
    """An absolute name would be looked up from the root of the server."""
    asked = {"path": home, "files": [[name, 1, "0" * 64]]}
    refused = alice.post(f"{PFS}/compare", asked)
    assert (refused.status, refused.json["code"]) == (400, "invalid_input")
    folder = alice.post(
        f"{PFS}/compare", {"path": home, "files": [], "folders": [[name, 1, "0" * 64]]}
    )
    assert folder.status == 400
    sent = batch(alice, home, stream({name: b"x"}), 1, 1)
    assert sent.json["stored"] == 0
    assert [row[0] for row in sent.json["refused"]] == [0]


def test_stores_nothing_that_nobody_could_name(alice: Caller, home: str) -> None:
    deep = f"{home}/" + "/".join(["d" * 250] * 15)
    fits, too_long = "x" * 100, "/".join(["y" * 200] * 3)
    sent = batch(alice, deep, stream({fits: b"1", too_long: b"2"}), 2, 2)
    assert sent.json["stored"] == 1
    assert [row[0] for row in sent.json["refused"]] == [1]
    assert content(alice, f"{deep}/{fits}").body == b"1"


def test_counts_directories_and_refused_records_as_announced(alice: Caller, home: str) -> None:
    def directories(n: int, name: str) -> bytes:
        return records.MAGIC + records.encode_head(records.Kind.DIRECTORY, name) * n + records.END

    for name in ("d", ".."):
        over = batch(alice, home, directories(4, name), 3, 0)
        assert (over.status, over.json["field"]) == (400, "body")
    assert batch(alice, home, directories(3, "d"), 3, 0).status == 200


@pytest.mark.parametrize(
    ("call", "body", "field"),
    [
        ("move", {"from": "nowhere", "to": "/pfs/local/home/alice/x"}, "from"),
        ("move", {"from": "/pfs/local/home/alice/x", "to": "nowhere"}, "to"),
        ("copy", {"from": "/pfs/local/home/alice/x", "to": "nowhere"}, "to"),
        ("remove", {"paths": ["/pfs/local/home/alice/x", "nowhere"]}, "paths[1]"),
        ("directories", {"paths": ["nowhere"]}, "paths[0]"),
    ],
)
def test_names_the_path_that_is_wrong(
    alice: Caller, call: str, body: dict[str, object], field: str
) -> None:
    refused = alice.post(f"{PFS}/{call}", body)
    assert (refused.status, refused.json["field"]) == (400, field)


@pytest.mark.parametrize("call", ["compare", "remove", "snapshots"])
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"path":' * 50_000, b"{" + b"[" * 9, b"\xff"])
def test_refuses_a_body_that_is_no_json(alice: Caller, call: str, body: bytes) -> None:
    refused = alice.call("POST", f"{PFS}/{call}", body)
    assert (refused.status, refused.json["field"]) == (400, "body")


def test_a_long_body_means_the_same_as_a_short_one(alice: Caller, home: str) -> None:
    """More than is kept in memory while it arrives."""
    files = [[f"none-{n:05}", 1, "0" * 64] for n in range(20_000)]
    answer = alice.post(f"{PFS}/compare", {"path": home, "files": files})
    assert answer.json["missing"] == list(range(20_000))
    odd = alice.post(f"{PFS}/compare", {"path": home, "files": files, "more": 1})
    assert (odd.status, odd.json["field"]) == (400, "more")
