"""The calls of `Client`: pages, waiting, logs over cuts, files, packages on their way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.core import errors
from paddlecloud.sdk import Client, Profile
from paddlecloud.sdk import following as following_module
from paddlecloud.sdk.snapshots import collect
from tests.cli.taking import take_packages
from tests.scripted_server import Answer, RawServer, Request, ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    started = ScriptedServer()
    yield started
    started.close()


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    with Client(profile=Profile("dc", server.url, token="t")) as made:
        yield made


def test_walks_all_pages_of_jobs(server: ScriptedServer, client: Client) -> None:
    def page(request: Request) -> Answer:
        if request.query.get("cursor") == "two":
            return Answer({"items": [{"name": "c"}], "next": None, "revision": 9})
        return Answer({"items": [{"name": "a"}, {"name": "b"}], "next": "two", "revision": 9})

    server.routes["GET /api/v2/jobs"] = page
    assert [job["name"] for job in client.list_jobs("all")] == ["a", "b", "c"]
    assert all(request.query["phase"] == "all" for request in server.requests)


def test_walks_all_pages_of_events(server: ScriptedServer, client: Client) -> None:
    def page(request: Request) -> Answer:
        after = int(request.query.get("after", "0"))
        more = after < 4
        return Answer({"items": [{"seq": after + 1}], "next": after + 2 if more else None})

    server.routes["GET /api/v2/jobs/x/events"] = page
    assert [event["seq"] for event in client.events("x")] == [1, 3, 5]


def test_a_name_cannot_become_another_path(server: ScriptedServer, client: Client) -> None:
    server.routes["GET /api/v2/jobs/a%2F..%2Fb"] = Answer({"name": "odd"})
    assert client.get("a/../b")["name"] == "odd"


def test_waits_through_as_many_long_polls_as_it_takes(
    server: ScriptedServer, client: Client
) -> None:
    server.routes["GET /api/v2/jobs/x/wait"] = [
        Answer({"phase": "Queued"}),
        Answer({"phase": "Running"}),
        Answer({"phase": "Failed"}),
    ]
    done = client.wait("x")
    assert done is not None
    assert done["phase"] == "Failed"
    assert len(server.requests) == 3


def test_waiting_for_running_ends_with_a_job_that_has_ended(
    server: ScriptedServer, client: Client
) -> None:
    server.routes["GET /api/v2/jobs/x/wait"] = Answer({"phase": "Killed"})
    done = client.wait("x", "running")
    assert done is not None
    assert done["phase"] == "Killed"


def test_gives_up_waiting_when_the_time_is_up(server: ScriptedServer, client: Client) -> None:
    server.routes["GET /api/v2/jobs/x/wait"] = Answer({"phase": "Running"})
    assert client.wait("x", timeout_s=0) is None


# --- following -------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunks(*pieces: bytes, is_whole: bool = False) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return HEAD + body + (b"0\r\n\r\n" if is_whole else b"")


def record(replica: str, cursor: int, data: str, attempt: int = 1) -> bytes:
    fields = {"replica": replica, "attempt": attempt, "cursor": cursor, "data": data}
    return json.dumps(fields).encode() + b"\n"


END = b'{"end": true, "phase": "Succeeded"}\n'


def test_never_loses_or_repeats_a_byte_over_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "RECONNECT_DELAYS_S", (0.001,) * 20)
    half = record("trainer-1", 9, "CUT IN THE MIDDLE")[:20]
    server = RawServer(
        chunks(record("trainer-0", 3, "abc"), b"\n", record("trainer-1", 2, "xy") + half),
        b"",
        chunks(is_whole=True),
        chunks(record("trainer-0", 5, "de"), record("trainer-1", 9, "zzzzzzz") + END),
    )
    cuts: list[int] = []
    client = Client(profile=Profile(endpoint=server.url, token="t"))
    records = list(client.follow_logs("job", tail=7, on_cut=lambda: cuts.append(1)))
    text = {"trainer-0": "", "trainer-1": ""}
    for item in records[:-1]:
        text[item["replica"]] += item["data"]
    assert text == {"trainer-0": "abcde", "trainer-1": "xyzzzzzzz"}
    assert records[-1]["end"] is True
    asked = [head.split(b" ")[1].decode() for head in server.heads]
    assert "tail=7" in asked[0]
    assert "cursors" not in asked[0]
    assert asked[-1].endswith("cursors=trainer-0.1:3,trainer-1.1:2")
    assert "tail" not in asked[-1]
    assert cuts == [1]
    server.close()


@pytest.mark.parametrize(
    ("opening", "cursors"),
    [
        (
            record("trainer-0", 900, "") + record("trainer-1", 7, "", 2),
            "trainer-0.1:900,trainer-1.2:7",
        ),
        (b"\n", ""),  # no log yet: what comes is read from its beginning
    ],
)
def test_goes_on_where_it_entered_when_cut_before_the_first_byte(
    monkeypatch: pytest.MonkeyPatch, opening: bytes, cursors: str
) -> None:
    monkeypatch.setattr(following_module, "RECONNECT_DELAYS_S", (0.001,) * 20)
    server = RawServer(b"", chunks(opening), chunks(record("trainer-0", 903, "abc") + END))
    client = Client(profile=Profile(endpoint=server.url, token="t"))
    records = list(client.follow_logs("job", tail=0))
    assert [item.get("data") for item in records] == ["abc", None]
    asked = [head.split(b" ")[1].decode() for head in server.heads]
    assert all("tail=0" in path for path in asked[:-1])
    assert "tail" not in asked[-1]
    assert asked[-1].endswith(f"cursors={cursors}" if cursors else "follow=1")
    server.close()


def test_following_a_job_that_is_not_there_fails_at_once(
    server: ScriptedServer, client: Client
) -> None:
    with pytest.raises(errors.NotFound):
        list(client.follow_logs("nobody"))
    assert len(server.requests) == 1


def test_following_ends_when_the_server_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "RECONNECT_DELAYS_S", (0.001,) * 3)
    monkeypatch.setattr("paddlecloud.sdk.transport.RETRY_DELAYS_S", (0.001,))
    server = RawServer(chunks(record("trainer-0", 3, "abc")))
    client = Client(profile=Profile(endpoint=server.url, token="t"))
    records = client.follow_logs("job")
    assert next(records)["data"] == "abc"
    with pytest.raises(errors.ServerUnreachable):
        next(records)
    server.close()


def test_a_log_with_bad_bytes_is_still_text(server: ScriptedServer, client: Client) -> None:
    facts = {"X-Log-Next": "6", "X-Log-Size": "6", "X-Log-Dropped": "0"}
    server.routes["GET /api/v2/jobs/x/logs"] = Answer(b"ok \xff\xfe\n", headers=facts)
    assert client.logs("x", "trainer-0", tail=2) == "ok \ufffd\ufffd\n"
    (asked,) = server.requests
    assert asked.query.items() >= {"replica": "trainer-0", "tail": "2"}.items()


def test_reads_a_long_log_in_parts_and_says_what_was_dropped(
    server: ScriptedServer, client: Client
) -> None:
    log = b"0123456789"

    def part(request: Request) -> Answer:
        start = int(request.query["cursor"])
        # Bytes 4 to 6 are gone; the log grows while it is read.
        shown = {0: (b"0123", 4, 0, 10), 4: (log[6:8], 8, 2, 12), 8: (log[8:], 10, 0, 14)}
        data, position, dropped, size = shown[start]
        headers = {"X-Log-Next": position, "X-Log-Dropped": dropped, "X-Log-Size": size}
        return Answer(data, headers={name: str(value) for name, value in headers.items()})

    server.routes["GET /api/v2/jobs/x/logs"] = part
    assert client.logs("x", "trainer-0") == "0123[... 2 bytes dropped ...]\n6789"


# --- packages and files ----------------------------------------------------------------------


def make_package(folder: Path) -> Path:
    (folder / "train.py").write_text("print('hi')\n")
    (folder / "data").mkdir()
    (folder / "data" / "big").write_bytes(b"x" * 700_000)
    return folder


def test_sends_of_a_package_what_the_server_lacks(
    server: ScriptedServer, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    received = take_packages(server, has=1)
    server.routes["POST /api/v2/jobs"] = Answer({"id": "job-1"}, 201)
    (tmp_path / "package").mkdir()
    package = collect(str(make_package(tmp_path / "package")))
    assert client.upload(package) == len("print('hi')\n")
    client.submit({"name": "a"}, package=str(tmp_path / "package"))
    (sent,) = received
    assert b"print('hi')" in sent.body
    (form,) = [request.json for request in server.asked("POST", "/api/v2/jobs")]
    assert form["package_digest"] == package.digest
