"""Groups as people use them: by the command line, on real processes and pretended cards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.platform import Platform

ONE = ("-m", "64Mi", "-c", "100m", "--mode", "single")


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[Platform]:
    """Four cards, all guaranteed to a group that alice is in."""
    started = Platform(tmp_path, PADDLECLOUD_FAKE_GPUS="4")
    started.up()
    started.ok("group", "create", "owners", "--owner", "alice", "--guarantee-gpu", "4")
    yield started
    started.down()


def test_a_borrower_gives_back_is_explained_and_goes_on(cards: Platform, tmp_path: Path) -> None:
    package = str(cards.package("plain", run_sh="exec sleep 1000\n"))
    script = str(Path(package) / "run.sh")
    wish = ("--start-cmd", "sh run.sh", "--files", script, "--k8s-memory", "64Mi")
    more = ("--k8s-gpu-cards", "4", "--is-auto-over-sell", "1", "--json")
    borrower = json.loads(cards.ok("job", "train", "--job-name", "lend", *wish, *more))["jobId"]
    cards.ok("wait", "--for", "running", borrower)
    idle = json.loads(cards.ok("group", "info", "--group-name", "owners", "--json"))
    assert idle["idleQuota"]["gpu"] == 0

    more = ("--k8s-gpu-cards", "4", "--group-name", "owners", "--json")
    owner = json.loads(cards.ok("job", "train", "--job-name", "mine", *wish, *more))
    assert owner["groupName"] == "owners"
    cards.ok("wait", "--for", "running", owner["jobId"])
    told = cards.ok("explain", borrower)
    assert "gpu: 4 needed, 0 free." in told
    events = cards.json("events", borrower)["items"]  # type: ignore[index]
    (preempted,) = [event for event in events if event["reason"] == "Preempted"]
    assert "group owners takes its guarantee back" in preempted["message"]

    cards.ok("kill", owner["jobId"])
    cards.ok("wait", "--for", "running", borrower)
    with cards.client() as client:
        job = client.get(borrower)
    assert (job["restarts"], job["phase"]) == (0, "Running")


def test_an_ordinary_job_is_told_what_it_may_not_use(cards: Platform) -> None:
    package = str(cards.package("plain", run_sh="true\n"))
    done = cards.run("submit", "-jobname", "x", *ONE, "-g", "1", "-entry", "true", package)
    assert done.returncode == 1
    assert "only for jobs that may be preempted (--may-borrow)" in done.stderr
    borrowed = ("--may-borrow", "--wait", "-entry", "true", package)
    assert cards.run("submit", "-jobname", "x", *ONE, "-g", "1", *borrowed).returncode == 0


def test_a_limit_is_kept_over_a_crash_of_the_platform(cards: Platform) -> None:
    """Two of three wait when it dies; who comes back plans with the limit from the first moment."""
    cards.ok("group", "create", "tight", "--owner", "alice", "--limit-replicas", "1")
    package = str(cards.package("plain", run_sh="true\n"))
    words = (*ONE, "--group", "tight", "-entry", "exec sleep 1000", package)
    for number in range(3):
        cards.ok("submit", "-jobname", f"job-{number}", *words)
    cards.ok("wait", "--for", "running", "job-0")
    cards.kill_9()
    cards.up()
    told = cards.ok("explain", "job-2")
    assert "limit of group tight: replicas: 1 needed, 0 left. job-0 (alice) holds 1." in told
    info = cards.json("group", "info", "tight")
    assert info["used"]["replicas"] == 1  # type: ignore[index]
    assert info["jobs"] == {"running": 1, "waiting": 2}  # type: ignore[index]
