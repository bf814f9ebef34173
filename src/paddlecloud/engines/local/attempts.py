"""The directory of one attempt: everything known about it, on disk.

    <state>/jobs/<job id>/run-<n>/<role>-<index>.a<attempt>/
        launch.json      the intent, written before anything is started
        status           which process it is, and what the shim and bubblewrap said since, a line
                         each; locked while the attempt is alive
        stop.json        we were asked to stop it
        result.json      how it ended, judged once; nothing changes after it
        log, dropped     its output, and the range of it that was given up
        termination-log  what the program wants to say last
        files/, tmp/     /trainer_id and the like; its private /tmp

Whoever reads this directory after a kill -9 of the platform knows as much as the platform did:
no launch.json means nothing was started; a locked status file means it is alive; an empty and
unlocked one means the program never began. A file cut short by the kill counts as not written,
and each is written before the step that relies on it. Only `Processes` and its helpers write here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import EndCause, Exit, ReplicaKey, ReplicaState
from paddlecloud.engines.local import linux
from paddlecloud.engines.protocols import Launch

# Of a status file no more is read: our own records are a few hundred bytes, and what anybody else
# gets into it must not cost the platform its memory.
MAX_STATUS_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Process:
    """Names one process for ever, within one boot."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> Process | None:
        ticks = linux.start_ticks(pid)
        return None if ticks is None else cls(pid, ticks)

    def is_there(self) -> bool:
        return linux.start_ticks(self.pid) == self.start_ticks


@dataclass(frozen=True, slots=True)
class Status:
    """What the status file says so far."""

    process: Process | None = None  # what we started: bubblewrap, or the shim itself
    shim: Process | None = None
    ready_at: float | None = None  # the shim is about to start the program
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
    """Of each kind of record the first one counts.

    The platform says which process it is before the program may start, and the shim says each thing
    once; a second record is somebody else's.
    """
    status = Status()
    complaints: list[str] = []
    seen: set[str] = set()
    for line in data[:MAX_STATUS_BYTES].decode("utf-8", "replace").splitlines():
        word, *rest = line.split(" ")
        if word in seen:
            continue
        try:
            status = _with_line(status, word, rest)
            seen.add(word)
        except (ValueError, IndexError):
            complaints.append(line.strip())
    return replace(status, complaints=tuple(filter(None, complaints)))


def _with_line(status: Status, word: str, rest: list[str]) -> Status:
    match word:
        case "process":
            pid, ticks, shim_pid, shim_ticks = map(int, rest)
            return replace(status, process=Process(pid, ticks), shim=Process(shim_pid, shim_ticks))
        case "ready":
            return replace(status, ready_at=float(rest[0]))
        case "started":
            return replace(status, started_at=float(rest[0]))
        case "startfail":
            return replace(status, start_failure=" ".join(rest))
        case "ended":
            return replace(status, wait_status=int(rest[0]), ended_at=float(rest[1]))
        case _:
            raise ValueError("not a record")


def _write_json(path: Path, body: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(body), encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any] | None:
    """None if it is not there, or only a part of it."""
    try:
        return dict(json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError):
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
        self.termination = path / "termination-log"
        self.files = path / "files"
        self.tmp = path / "tmp"

    def read_status(self) -> Status:
        try:
            with open(self.status, "rb") as file:
                return parse_status(file.read(MAX_STATUS_BYTES))
        except FileNotFoundError:
            return Status()

    def has_begun(self) -> bool:
        """Whether its process ever said something, or is alive and about to."""
        status = self.read_status()
        has_spoken = status.ready_at is not None or bool(status.complaints)
        return has_spoken or linux.is_locked(self.status)

    def write_process(self, process: Process, shim: Process) -> None:
        """Who it is; written before the program may start."""
        words = ("process", process.pid, process.start_ticks, shim.pid, shim.start_ticks)
        with open(self.status, "a") as file:
            file.write(" ".join(map(str, words)) + "\n")

    def read_launch(self) -> dict[str, Any] | None:
        return _read_json(self.path / "launch.json")

    def write_launch(self, body: Mapping[str, Any]) -> None:
        _write_json(self.path / "launch.json", body)

    def write_stop(self, kill_at_s: float) -> None:
        """`kill_at_s` is on the monotonic clock, which all processes of one boot share."""
        _write_json(self.path / "stop.json", {"kill_at_s": kill_at_s})

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
        _write_json(self.path / "result.json", body)

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
