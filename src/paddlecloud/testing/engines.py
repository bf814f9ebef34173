"""An engine without processes: it plays a script.

`FakeEngine` runs a job by its entry: `fake seconds=0.5 lines=3 every=0.1 exit=1 hold=1 queue=1`.
Each word is optional: how long it runs, how many log lines each replica writes (at once, or one
`every` so many seconds), the exit code of trainer-0, hold (runs until cancelled or `finish`),
queue (waits until `admit`), linger (how long it takes to stop when cancelled). State is in memory
only; a state directory gets `fake-engine.jsonl` with one line per first put, so that tests can
count what reached the engine across restarts. The server's tests and the command line's use it.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from paddlecloud.core.actions import Event, Failure, RoleCount, Status
from paddlecloud.core.errors import Fault
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.observed import (
    EndCause,
    Exit,
    Move,
    ReplicaKey,
    ReplicaObserved,
    ReplicaState,
)
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.core.resources import Resources
from paddlecloud.engines.protocols import Capacity, Change, History, JobRun, LogSlice
from paddlecloud.scheduling.explain import Blocker, Explanation
from paddlecloud.scheduling.snapshot import Group, JobView, Node, Quota, Snapshot

FAKE_TOTAL = Resources(64_000, 256 << 30, 8)


@dataclass(slots=True)
class _Run:
    job: JobRun
    status: Status
    script: Mapping[str, float]
    replicas: dict[ReplicaKey, ReplicaObserved] = field(default_factory=dict)

    @property
    def trainers(self) -> int:
        return self.job.spec.trainers.replicas if self.replicas else 0


def read_script(entry: str) -> dict[str, float]:
    """The words of a fake entry; anything else is a job that ends at once."""
    words = dict.fromkeys(("seconds", "every", "exit", "hold", "queue", "linger"), 0.0)
    words["lines"] = 1.0
    head, *rest = entry.split() or [""]
    if head != "fake":
        return words
    for word in rest:
        name, _, value = word.partition("=")
        words[name] = float(value)
    return words


class FakeEngine:
    kind = "fake"
    multi_account = True
    single_account_reason = ""

    def __init__(
        self,
        cluster: str = "local",
        state_dir: Path | None = None,
        runtimes: Mapping[str, Path] | None = None,
    ) -> None:
        self.cluster = cluster
        self.quotas: Mapping[int, Quota] = {}
        self.groups: Mapping[str, Group] = {}
        self.total = FAKE_TOTAL
        self._record = None if state_dir is None else state_dir / "fake-engine.jsonl"
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._runs: dict[tuple[str, int], _Run] = {}
        self._logs: dict[ReplicaKey, bytearray] = {}
        self._changes: list[Change] = []
        # Grows across restarts, as a real engine's stored cursor does.
        self._cursor = time.time_ns()
        self._order = itertools.count()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._closed = False
        self._thread = threading.Thread(target=self._play, name="fake-engine", daemon=True)

    # --- the Engine protocol ----------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def put(self, job: JobRun) -> None:
        with self._lock:
            if (job.job_id, job.run) in self._runs:
                return
            if self._record is not None:
                with self._record.open("a") as file:
                    record = {"job": job.job_id, "run": job.run, "env": dict(job.secret_env)}
                    file.write(json.dumps(record) + "\n")
            run = _Run(job, Status(Phase.SUBMITTED), read_script(job.spec.entry))
            self._runs[job.job_id, job.run] = run
            if run.script["queue"]:
                self._tell(run, replace(run.status, phase=Phase.QUEUED, reason="waits for cpu"))
            else:
                self._begin(run)

    def cancel(self, job_id: str, run: int, reason: str) -> None:
        with self._lock:
            found = self._runs.get((job_id, run))
            if found is None or found.status.phase in TERMINAL:
                return
            if linger_s := found.script["linger"]:
                for key, seen in found.replicas.items():
                    found.replicas[key] = replace(seen, stopping=True)
                self._tell(found, found.status)
                self._later(linger_s, lambda: self._kill(found, reason))
            else:
                self._kill(found, reason)

    def _kill(self, run: _Run, reason: str) -> None:
        if run.status.phase not in TERMINAL:
            self._end(run, Phase.KILLED, reason, Exit(EndCause.SIGNALED, 143, 15))

    def move(self, job_id: str, run: int, moves: Sequence[Move]) -> None:
        with self._lock:
            found = self._runs.get((job_id, run))
            if found is None:
                return
            for move in moves:
                self._replace(found, ReplicaKey(job_id, run, move.role, move.index, move.attempt))

    def _replace(self, run: _Run, key: ReplicaKey) -> None:
        new, seen = replace(key, attempt=key.attempt + 1), run.replicas.get(key)
        if seen is None or not seen.alive or run.status.phase in TERMINAL:
            return
        now = time.time()
        end = Exit(EndCause.SIGNALED, 143, 15)
        run.replicas[key] = replace(
            seen, state=ReplicaState.ENDED, ended_at=now, exit=end, stopping=True
        )
        run.replicas[new] = replace(seen, key=new, started_at=now)
        self._logs[new] = bytearray()
        self._tell_event(run, Event("Moved", f"{key.short} starts again", replica=key.short))
        self._tell(run, run.status)

    def delete(self, job_id: str) -> None:
        with self._lock:
            for key in [key for key in self._runs if key[0] == job_id]:
                self.cancel(*key, "deleted")
                for replica in self._runs.pop(key).replicas:
                    self._logs.pop(replica, None)

    def watch(self, after: int, timeout_s: float) -> Sequence[Change]:
        with self._lock:
            self._changed.wait_for(
                lambda: self._closed or (self._changes and self._changes[-1].cursor > after),
                timeout_s,
            )
            return [change for change in self._changes if change.cursor > after]

    def history(self) -> History:
        with self._lock:
            return History("fake", self._cursor)

    def knows(self, job_id: str, run: int) -> bool:
        with self._lock:
            return (job_id, run) in self._runs

    def log(self, key: ReplicaKey, start: int, limit_bytes: int) -> LogSlice:
        with self._lock:
            data = self._logs.get(key, bytearray())
            size = len(data)
            start = max(0, size + start) if start < 0 else min(start, size)
            part = bytes(data[start : start + limit_bytes])
            run = self._runs.get((key.job_id, key.run))
            seen = run.replicas.get(key) if run else None
            ended = seen is None or not seen.alive
            return LogSlice(start, start + len(part), size, part, 0, ended)

    def log_wait(self, key: ReplicaKey, size: int, timeout_s: float) -> None:
        def is_news() -> bool:
            run = self._runs.get((key.job_id, key.run))
            seen = run.replicas.get(key) if run else None
            grown = len(self._logs.get(key, b"")) > size
            return self._closed or grown or seen is None or not seen.alive

        with self._lock:
            self._changed.wait_for(is_news, timeout_s)

    def check(self, spec: JobSpec) -> Sequence[Fault]:
        need = spec.resources_at(spec.trainers.min_replicas)
        return [
            Fault(name, f"the job needs more {name} than the cluster has in all")
            for name in need.shortages(self.total)
        ]

    def capacity(self) -> Capacity:
        return Capacity(self.total, self.total - self._held(), 16, ("a fake engine",))

    def set_quota(self, quotas: Mapping[int, Quota]) -> None:
        self.quotas = dict(quotas)

    def set_groups(self, groups: Mapping[str, Group]) -> None:
        self.groups = dict(groups)

    def snapshot(self) -> Snapshot:
        with self._lock:
            jobs = tuple(
                JobView(
                    run.job.job_id,
                    run.job.spec,
                    run.job.account_id,
                    run.job.account,
                    run.job.submitted_at,
                    granted=run.trainers,
                    started_at=run.status.started_at,
                )
                for run in self._runs.values()
                if run.status.phase not in TERMINAL
            )
        node = Node("fake", self.total)
        return Snapshot(time.time(), (node,), jobs, self.quotas, self.groups)

    def explain(self, job_id: str) -> Explanation | None:
        with self._lock:
            waiting = [r for r in self._runs.values() if r.status.phase == Phase.QUEUED]
        for place, run in enumerate(waiting, 1):
            if run.job.job_id == job_id:
                need = run.job.spec.resources_at(run.job.spec.trainers.replicas)
                blocker = Blocker("cpu", str(need.cpu_milli // 1000), "0")
                return Explanation(
                    place, len(waiting), "some cpu", run.status.reason, blockers=(blocker,)
                )
        return None

    # --- what a test may do -----------------------------------------------------------------

    def admit(self, job_id: str, run: int = 1) -> None:
        """Let a queued job start."""
        with self._lock:
            self._begin(self._runs[job_id, run])

    def write_log(self, key: ReplicaKey, data: bytes) -> None:
        with self._lock:
            self._logs.setdefault(key, bytearray()).extend(data)
            self._changed.notify_all()

    def finish(self, job_id: str, code: int = 0, run: int = 1) -> None:
        """End a job that holds."""
        with self._lock:
            self._finish(self._runs[job_id, run], code)

    def keys(self, job_id: str, run: int = 1) -> list[ReplicaKey]:
        with self._lock:
            return sorted(self._runs[job_id, run].replicas)

    def puts(self) -> list[tuple[str, int]]:
        with self._lock:
            return list(self._runs)

    # --- playing ----------------------------------------------------------------------------

    def _held(self) -> Resources:
        held = Resources()
        with self._lock:
            for run in self._runs.values():
                if run.status.phase not in TERMINAL and run.trainers:
                    held += run.job.spec.resources_at(run.trainers)
        return held

    def _play(self) -> None:
        with self._lock:
            while not self._closed:
                now = time.monotonic()
                while self._timers and self._timers[0][0] <= now:
                    heapq.heappop(self._timers)[2]()
                wait_s = self._timers[0][0] - time.monotonic() if self._timers else None
                if wait_s is None or wait_s > 0:
                    self._changed.wait(wait_s)

    def _later(self, after_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (time.monotonic() + after_s, next(self._order), action))
        self._changed.notify_all()

    def _begin(self, run: _Run) -> None:
        now = time.time()
        number = 0
        for spec in run.job.spec.roles:
            for index in range(spec.replicas):
                number += 1
                key = ReplicaKey(run.job.job_id, run.job.run, spec.role, index, 1)
                address = f"127.1.{number // 250}.{number % 250 + 1}"
                run.replicas[key] = ReplicaObserved(
                    key, ReplicaState.RUNNING, now, address=address, node="fake"
                )
                self._write_lines(key, int(run.script["lines"]), run.script["every"])
        self._tell(run, replace(run.status, phase=Phase.STARTING, started_at=now))
        self._tell_event(run, Event("Started", f"{number} replicas started"))
        self._tell(run, replace(run.status, phase=Phase.RUNNING, reason=""))
        if not run.script["hold"]:
            code = int(run.script["exit"])
            self._later(run.script["seconds"], lambda: self._finish(run, code))

    def _write_lines(self, key: ReplicaKey, count: int, every_s: float) -> None:
        self._logs[key] = bytearray()
        for number in range(1, count + 1):
            line = f"line {number} of {key.short}\n".encode()
            if every_s:
                self._later(number * every_s, functools.partial(self.write_log, key, line))
            else:
                self._logs[key] += line

    def _finish(self, run: _Run, code: int) -> None:
        if run.status.phase in TERMINAL:
            return
        if code:
            self._end(run, Phase.FAILED, f"trainer-0 exited {code}", Exit(EndCause.EXITED, code))
        else:
            self._end(run, Phase.SUCCEEDED, "", Exit(EndCause.EXITED, 0))

    def _end(self, run: _Run, phase: Phase, reason: str, end: Exit) -> None:
        now = time.time()
        failure = None
        for key, seen in run.replicas.items():
            is_first = key.role == Role.TRAINER and key.index == 0
            mine = end if is_first or phase == Phase.KILLED else Exit(EndCause.EXITED, 0)
            run.replicas[key] = replace(seen, state=ReplicaState.ENDED, ended_at=now, exit=mine)
            if is_first and phase == Phase.FAILED:
                failure = Failure(key.short, end, now)
        self._tell_event(run, Event(phase.value, reason or "every trainer ended well"))
        ended = replace(run.status, phase=phase, reason=reason, ended_at=now, failure=failure)
        self._tell(run, ended)

    def _tell(self, run: _Run, status: Status) -> None:
        counts = {}
        for spec in run.job.spec.roles:
            mine = [seen for key, seen in run.replicas.items() if key.role == spec.role]
            ended = [seen for seen in mine if seen.exit is not None]
            well = sum(1 for seen in ended if seen.exit and seen.exit.ok)
            counts[spec.role] = RoleCount(
                spec.replicas, len(mine) - len(ended), well, len(ended) - well
            )
        run.status = replace(status, roles=counts)
        self._append(
            run, status=run.status, replicas=tuple(run.replicas.values()), granted=run.trainers
        )

    def _tell_event(self, run: _Run, event: Event) -> None:
        self._append(run, event=event)

    def _append(
        self,
        run: _Run,
        status: Status | None = None,
        replicas: tuple[ReplicaObserved, ...] = (),
        event: Event | None = None,
        granted: int = 0,
    ) -> None:
        self._cursor += 10  # strictly growing, not without gaps
        change = Change(
            self._cursor, run.job.job_id, run.job.run, time.time(), status, replicas, event, granted
        )
        self._changes.append(change)
        self._changed.notify_all()
