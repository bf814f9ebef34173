"""The directory of one attempt: everything known about it, on disk.

    <state>/jobs/<job id>/run-<n>/<role>-<index>.a<attempt>/
        launch.json      the intent, written before anything is started
        status           what the shim and bubblewrap said; locked while the attempt is alive
        sandbox.json     bubblewrap's word on the process it made (its pid on the host)
        process.json     the process the platform started: pid and start time
        stop.json        we were asked to stop it
        result.json      how it ended, judged once; nothing changes after it
        log, dropped     its output, and the range of it that was given up
        termination-log  what the program wants to say last
        files/, tmp/     /trainer_id and the like; its private /tmp

Whoever reads this directory after a kill -9 of the platform knows as much as the platform did:
no launch.json means nothing was started; a locked status file means it is alive; an empty and
unlocked one means the program never began. Only `Processes` and its helpers write here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import EndCause, Exit, ReplicaKey, ReplicaState
from paddlecloud.engines.local import linux
from paddlecloud.engines.protocols import Launch


@dataclass(frozen=True, slots=True)
class Status:
    """What the status file says so far."""

    ready: bool = False  # the shim ran
    started_at: float | None = None
    start_failure: str = ""
    wait_status: int | None = None  # of the program, as waitpid gives it
    ended_at: float | None = None
    complaints: tuple[str, ...] = ()  # lines of bubblewrap or the interpreter


@dataclass(frozen=True, slots=True)
class Result:
    """How it ended."""

    state: ReplicaState  # ENDED or LOST
    started_at: float | None
    ended_at: float
    exit: Exit | None


def parse_status(data: bytes) -> Status:
    ready, started_at, failure, wait_status, ended_at = False, None, "", None, None
    complaints: list[str] = []
    for line in data.decode("utf-8", "replace").splitlines():
        word, _, rest = line.partition(" ")
        if word == "ready":
            ready = True
        elif word == "started":
            started_at = float(rest)
        elif word == "startfail":
            failure = rest
        elif word == "ended":
            code, _, at = rest.partition(" ")
            wait_status, ended_at = int(code), float(at)
        elif line.strip():
            complaints.append(line.strip())
    return Status(ready, started_at, failure, wait_status, ended_at, tuple(complaints))


def write_atomically(path: Path, body: Mapping[str, Any]) -> None:
    """All of it or nothing, for every reader and after a kill at any instant."""
    part = path.with_name(path.name + ".part")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(body, file)
    os.rename(part, path)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError):  # a power cut may leave an empty file
        return None


def describe(launch: Launch, cookie: str, boot_id: str, now: float) -> dict[str, Any]:
    """The intent: the launch without values of its environment, which hold secrets."""
    return {
        "cookie": cookie,
        "boot_id": boot_id,
        "created_at": now,
        "job_id": launch.key.job_id,
        "run": launch.key.run,
        "role": launch.key.role.value,
        "index": launch.key.index,
        "attempt": launch.key.attempt,
        "job_name": launch.job_name,
        "account": launch.account,
        "account_id": launch.account_id,
        "uid": launch.uid,
        "cluster": launch.cluster,
        "entry": launch.entry,
        "workdir": launch.workdir,
        "env_names": sorted(launch.env),
        "cpu_milli": launch.resources.cpu_milli,
        "memory_bytes": launch.resources.memory_bytes,
        "gpus": list(launch.gpus),
        "address": launch.address,
        "runtime": launch.runtime,
    }


class AttemptDir:
    """Reads and writes one attempt's directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "log"
        self.dropped = path / "dropped"
        self.status = path / "status"
        self.sandbox = path / "sandbox.json"
        self.termination = path / "termination-log"
        self.files = path / "files"
        self.tmp = path / "tmp"

    def read_status(self) -> Status:
        try:
            return parse_status(self.status.read_bytes())
        except FileNotFoundError:
            return Status()

    def has_begun(self) -> bool:
        """Whether its process ever said something, or is alive and about to."""
        try:
            said = self.status.stat().st_size
        except FileNotFoundError:
            return False
        return said > 0 or linux.is_locked(self.status)

    def read_launch(self) -> dict[str, Any] | None:
        return _read_json(self.path / "launch.json")

    def write_launch(self, body: Mapping[str, Any]) -> None:
        write_atomically(self.path / "launch.json", body)

    def write_process(self, pid: int, start_ticks: int) -> None:
        write_atomically(self.path / "process.json", {"pid": pid, "start_ticks": start_ticks})

    def read_process(self) -> tuple[int, int] | None:
        body = _read_json(self.path / "process.json")
        return (body["pid"], body["start_ticks"]) if body else None

    def sandbox_pid(self) -> int | None:
        """The host's pid of process 1 in the sandbox, if bubblewrap got that far."""
        body = _read_json(self.sandbox)
        return body.get("child-pid") if body else None

    def write_stop(self, kill_at_s: float) -> None:
        """`kill_at_s` is on the monotonic clock, which all processes of one boot share."""
        write_atomically(self.path / "stop.json", {"kill_at_s": kill_at_s})

    def read_stop(self) -> float | None:
        body = _read_json(self.path / "stop.json")
        return float(body["kill_at_s"]) if body else None

    def write_result(self, result: Result) -> None:
        end = result.exit
        body = {
            "state": result.state.value,
            "started_at": result.started_at,
            "ended_at": result.ended_at,
            "exit": None
            if end is None
            else {
                "cause": end.cause.value,
                "code": end.code,
                "signal": end.signal,
                "message": end.message,
            },
        }
        write_atomically(self.path / "result.json", body)

    def read_result(self) -> Result | None:
        body = _read_json(self.path / "result.json")
        if body is None:
            return None
        end = body["exit"]
        return Result(
            ReplicaState(body["state"]),
            body["started_at"],
            body["ended_at"],
            end and Exit(EndCause(end["cause"]), end["code"], end["signal"], end["message"]),
        )


def attempt_path(jobs_dir: Path, key: ReplicaKey) -> Path:
    return jobs_dir / key.job_id / f"run-{key.run}" / f"{key.short}.a{key.attempt}"


def _parse_name(job_id: str, run: int, name: str) -> ReplicaKey | None:
    replica, _, attempt = name.rpartition(".a")
    role, _, index = replica.rpartition("-")
    try:
        return ReplicaKey(job_id, run, Role(role), int(index), int(attempt))
    except ValueError:
        return None  # not ours


def attempts_of_run(
    jobs_dir: Path, job_id: str, run: int
) -> Iterator[tuple[ReplicaKey, AttemptDir]]:
    """Every attempt directory of this run, whatever its state."""
    try:
        paths = sorted((jobs_dir / job_id / f"run-{run}").iterdir())
    except FileNotFoundError:
        return
    for path in paths:
        key = _parse_name(job_id, run, path.name)
        if key is not None:
            yield key, AttemptDir(path)


def marker_name(key: ReplicaKey) -> str:
    """The name of the empty file that says: this attempt is not over."""
    return f"{key.job_id}~{key.run}~{key.short}.a{key.attempt}"


def parse_marker(name: str) -> ReplicaKey | None:
    job_id, _, rest = name.partition("~")
    run, _, attempt = rest.partition("~")
    return _parse_name(job_id, int(run), attempt) if run.isdigit() else None
