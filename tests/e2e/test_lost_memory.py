"""The engine's database is deleted, or an old copy of it put back, while the server's stays."""

from __future__ import annotations

import shutil

from tests.e2e.platform import Platform, processes_with, until

HOLDS = "sleep 1000"
MEMORY = "engine.db"


def submitted(platform: Platform, name: str, entry: str = HOLDS, **more: str) -> dict:
    form = {"name": name, "mode": "single", "memory": "32Mi", "entry": entry, **more}
    with platform.client() as client:
        return client.submit(form, package=str(platform.package("none", a_txt="")))


def running(platform: Platform, name: str, **more: str) -> dict:
    job = submitted(platform, name, **more)
    with platform.client() as client:
        client.wait(job["id"], "running", timeout_s=30)
    return job


def forget(platform: Platform) -> None:
    for path in platform.state.glob(f"{MEMORY}*"):
        path.unlink()


def remember(platform: Platform, copy) -> None:
    forget(platform)
    for path in copy.iterdir():
        shutil.copy(path, platform.state)


def ended(platform: Platform, job: dict, timeout_s: float = 30) -> dict:
    with platform.client() as client:
        done = client.wait(job["id"], timeout_s=timeout_s)
    assert done is not None, "nothing more is told of it"
    return done


def test_a_running_job_goes_on_and_its_end_is_told(breakable):
    job = running(breakable, "goes-on")
    before = set(processes_with(job["id"]))
    breakable.ok("down")
    forget(breakable)
    breakable.up()
    with breakable.client() as client:
        assert client.get(job["id"])["phase"] == "Running"
    assert set(processes_with(job["id"])) == before
    later = submitted(breakable, "later", "true")
    assert ended(breakable, later)["phase"] == "Succeeded"
    breakable.ok("kill", "goes-on")
    assert ended(breakable, job)["phase"] == "Killed"
    assert processes_with(job["id"]) == []


def test_what_ended_meanwhile_is_told_as_it_ended(breakable):
    """Its record is lost, its attempt on disk is not."""
    gate = "while [ ! -e go ]; do sleep 0.05; done; exit 7"
    job = running(breakable, "ends", entry=gate)
    breakable.kill_9()
    forget(breakable)
    (breakable.state / "pfs" / "home" / "alice" / "jobs" / "ends" / "go").write_text("")
    breakable.up()
    done = ended(breakable, job)
    assert (done["phase"], done["failure"]["code"]) == ("Failed", 7)


def test_a_job_that_began_and_left_no_trace_ends_with_the_reason(breakable):
    job = running(breakable, "lost", entry="echo x >> ../lost-count; sleep 1000")
    breakable.ok("kill", "lost")
    ended(breakable, job)
    job = running(breakable, "gone", entry="echo x >> ../gone-count; sleep 1000")
    breakable.kill_9()
    forget(breakable)
    end_by_hand(breakable, job)
    breakable.up()
    done = ended(breakable, job)
    assert done["phase"] == "Failed"
    assert "has lost its records" in done["reason"]
    assert done["roles"]["trainer"]["running"] == 0
    count = breakable.state / "pfs" / "home" / "alice" / "jobs" / "gone-count"
    assert count.read_text() == "x\n", "it ran twice"
    workers = breakable.ok("get", "workers", "-a", "gone", "-o", "json")
    assert '"Running"' not in workers


def end_by_hand(platform: Platform, job: dict) -> None:
    """As if the disk with the attempts had been another one."""
    import contextlib
    import os
    import signal

    for pid in processes_with(job["id"]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(platform.state / "jobs" / job["id"])
    for marker in (platform.state / "live").glob(f"{job['id']}*"):
        marker.unlink()


def test_a_job_that_had_not_begun_is_handed_over_again(breakable):
    capacity = breakable.json("status")["capacity"]
    first = running(breakable, "holds-all", memory=capacity["memory"])
    waits = submitted(breakable, "waits", "true")
    until(lambda: "waits " in breakable.ok("explain", "waits"))
    breakable.ok("down")
    forget(breakable)
    breakable.up()
    with breakable.client() as client:
        until(lambda: client.get(waits["id"])["phase"] == "Queued")
    breakable.ok("kill", "holds-all")
    assert ended(breakable, first)["phase"] == "Killed"
    assert ended(breakable, waits)["phase"] == "Succeeded"


def test_an_older_copy_is_no_obstacle(breakable, tmp_path):
    ended(breakable, submitted(breakable, "first", "true"))
    breakable.ok("down")
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in breakable.state.glob(f"{MEMORY}*"):
        shutil.copy(path, copy)
    breakable.up()
    for number in range(5):
        ended(breakable, submitted(breakable, f"more-{number}", "true"))
    job = running(breakable, "since-then")
    breakable.ok("down")
    remember(breakable, copy)
    breakable.up()
    with breakable.client() as client:
        assert client.get(job["id"])["phase"] == "Running"
    assert ended(breakable, submitted(breakable, "next", "true"))["phase"] == "Succeeded"
    events = breakable.ok("events", "first")
    assert events.count("Succeeded") == 1, "told twice"
    breakable.ok("kill", "since-then")
    assert ended(breakable, job)["phase"] == "Killed"
