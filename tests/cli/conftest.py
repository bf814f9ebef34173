"""A command line to run in this process, a server that says what the test wants, a fixed clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from paddlecloud.cli import times
from paddlecloud.cli.main import main
from paddlecloud.sdk.platform_calls import PlatformCalls
from tests.cli.scripted_files import ScriptedFiles
from tests.scripted_server import Answer, ScriptedServer

NOW = "2026-11-15T08:00:00.000Z"


@dataclass
class Ran:
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    started = ScriptedServer()
    monkeypatch.setenv("PADDLECLOUD_ENDPOINT", started.url)
    monkeypatch.setenv("PADDLECLOUD_TOKEN", "pct_secret-of-the-test")
    yield started
    started.close()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_it(*words: str) -> Ran:
        code = main(list(words))
        out, err = capsys.readouterr()
        assert "pct_secret" not in out + err
        assert "Traceback" not in err
        return Ran(code, out, err)

    return run_it


@pytest.fixture
def files(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedFiles:
    """Those of a user called bob, in the datacenter dc2; the test fills them."""
    scripted = ScriptedFiles()
    server.routes["GET /api/v2/status"] = Answer({"cluster": "dc2", "account": "bob"})
    monkeypatch.setattr(PlatformCalls, "files", scripted)
    return scripted


@pytest.fixture(autouse=True)
def fixed_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = times.seconds_of(NOW)
    monkeypatch.setattr(times.time, "time", lambda: now_s)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, and no settings of the second client."""
    monkeypatch.setenv("PADDLECLI_HOME", str(tmp_path / "paddlecli"))
    monkeypatch.delenv("PADDLECLOUD_JOB_COMPAT", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work
