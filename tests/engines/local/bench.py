"""A workbench for tests of replicas: real processes in a state directory of their own.

Four ways to run a replica, by what the machine is allowed to do. Waiting is for events: a change
told by the platform, or a word in a log. Leftovers are looked for by a mark on the command line,
from outside, never with the code under test.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import Exit, ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.core.resources import Resources
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.processes import Processes
from paddlecloud.engines.protocols import Launch
from tests.patience import PATIENCE_S

TIMEOUT_S = PATIENCE_S
# Only root gives each account its own uid; else all jobs have that of the platform.
ACCOUNT_UID, OTHER_UID = (5001, 5002) if os.geteuid() == 0 else (os.geteuid(), os.geteuid())

WAYS: Mapping[str, dict[str, object]] = {
    "sandbox": {"sandbox": "bwrap"},
    "sandbox-without-cgroups": {"sandbox": "bwrap", "use_cgroups": False},
    "plain": {"sandbox": "none"},
    "plain-without-cgroups": {"sandbox": "none", "use_cgroups": False},
}
NEEDS = {
    "sandbox": ("bubblewrap",),
    "sandbox-without-cgroups": ("bubblewrap",),
    "plain": ("cgroup",),
    "plain-without-cgroups": (),
}
EVERY_WAY = [pytest.param(way, marks=pytest.mark.needs(*NEEDS[way]), id=way) for way in WAYS]
HELD = [case for case in EVERY_WAY if case.id in ("sandbox", "plain")]  # all the kernel offers
SANDBOXED = [case for case in EVERY_WAY if case.id and case.id.startswith("sandbox")]
PLAIN = [case for case in EVERY_WAY if case.id and case.id.startswith("plain")]

_numbers = itertools.count(1)


def a_mark() -> str:
    """A number no other command line holds: `sleep <mark>` can be found again."""
    return f"{100000 + next(_numbers)}.{os.getpid()}"


def processes_with(mark: str) -> list[int]:
    """Every process of the machine with this word on its command line, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def until(condition: Callable[[], object], what: str = "it") -> None:
    """For what nobody tells: look often. Prefer the bench's own waiting."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.005)


@dataclass
class Bench:
    root: Path
    way: str
    settings: dict[str, object] = field(default_factory=dict)
    processes: Processes = field(init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        os.chmod(self.root, 0o755)
        self.config = LocalConfig(
            state_dir=self.root / "state",
            pfs_root=self.root / "pfs",
            **{**WAYS[self.way], **self.settings},  # type: ignore[arg-type]
        )
        (self.root / "pfs" / "public").mkdir(parents=True, exist_ok=True)
        self.make_home("ann", ACCOUNT_UID)
        self.open()

    # --- the platform -------------------------------------------------------------------------

    def open(self) -> None:
        self.processes = Processes(self.config, self._on_change)
        self.processes.adopt()

    def reopen(self) -> None:
        """What a restart of the platform does to replicas."""
        self.processes.close()
        self.open()

    def close(self) -> None:
        for observed in self.all_observed():
            self.processes.stop(observed.key, 0)
        self.wait(lambda: not any(o.alive for o in self.all_observed()))
        self.processes.close()

    def _on_change(self, job_id: str) -> None:
        with self._changed:
            self.told.append(job_id)
            self._changed.notify_all()

    @property
    def is_sandboxed(self) -> bool:
        return self.way.startswith("sandbox")

    # --- the account's files ------------------------------------------------------------------

    def make_home(self, account: str, uid: int) -> Path:
        work = self.home(account) / "jobs" / "x"
        work.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0 and self.is_sandboxed:
            for path in (work, work.parent, work.parent.parent):
                os.chown(path, uid, uid)
        os.chmod(self.home(account), 0o700)
        return work

    def home(self, account: str = "ann") -> Path:
        return self.root / "pfs" / "home" / account

    def put(self, name: str, text: str, account: str = "ann") -> Path:
        path = self.home(account) / "jobs" / "x" / name
        path.write_text(text)
        return path

    # --- replicas -----------------------------------------------------------------------------

    def key(self, number: int) -> ReplicaKey:
        """A key that another process makes too."""
        return ReplicaKey(f"job-shared-{number}", 1, Role.TRAINER, 0, 1)

    def launch(self, entry: str, *, account: str = "ann", attempt: int = 1, **changes) -> Launch:
        key = ReplicaKey(f"job-{next(_numbers):016x}", 1, Role.TRAINER, 0, attempt)
        uid = {"ann": ACCOUNT_UID}.get(account, OTHER_UID)
        base = Launch(
            key=key,
            job_name="x",
            account=account,
            account_id=1,
            uid=uid if os.geteuid() == 0 and self.is_sandboxed else None,
            cluster="local",
            entry=entry,
            workdir=f"/pfs/local/home/{account}/jobs/x",
            env={},
            resources=Resources(cpu_milli=100),
            address="127.0.0.2",
        )
        return replace(base, **changes)

    def start(self, entry: str, **changes) -> ReplicaKey:
        launch = self.launch(entry, **changes)
        self.processes.create(launch)
        return launch.key

    def python(self, program: str, **changes) -> ReplicaKey:
        """Run a Python program with the platform's interpreter."""
        self.put("program.py", program, changes.get("account", "ann"))
        return self.start("exec python program.py", **changes)

    def look(self, key: ReplicaKey) -> ReplicaObserved | None:
        seen = self.processes.observe(key.job_id, key.run)
        return next((one for one in seen if one.key == key), None)

    def all_observed(self) -> list[ReplicaObserved]:
        jobs = self.config.state_dir / "jobs"
        return [
            one
            for job in jobs.iterdir()
            for run in job.iterdir()
            for one in self.processes.observe(job.name, int(run.name.removeprefix("run-")))
        ]

    def attempt_dir(self, key: ReplicaKey) -> Path:
        return self.processes.log_path(key).parent

    # --- waiting ------------------------------------------------------------------------------

    def wait(self, condition: Callable[[], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, TIMEOUT_S), self.all_observed()

    def running(self, key: ReplicaKey) -> ReplicaObserved:
        self.wait(lambda: self._state(key) == ReplicaState.RUNNING)
        seen = self.look(key)
        assert seen is not None
        return seen

    def ended(self, key: ReplicaKey) -> ReplicaObserved:
        self.wait(lambda: self._state(key) in (ReplicaState.ENDED, ReplicaState.LOST))
        seen = self.look(key)
        assert seen is not None
        return seen

    def exit_of(self, key: ReplicaKey) -> Exit:
        ended = self.ended(key).exit
        assert ended is not None
        return ended

    def _state(self, key: ReplicaKey) -> ReplicaState | None:
        seen = self.look(key)
        return seen.state if seen else None

    def log(self, key: ReplicaKey) -> str:
        parts, at = [], 0
        while True:
            part = self.processes.read_log(key, at, 2**20)
            parts.append(part.data)
            if part.next == at:
                return b"".join(parts).decode("utf-8", "replace")
            at = part.next

    def says(self, key: ReplicaKey, word: str) -> str:
        """Wait until the log holds the word."""
        deadline = time.monotonic() + TIMEOUT_S
        while word not in (text := self.log(key)):
            seen = self.look(key)
            assert time.monotonic() < deadline, f"never said {word}: {text}"
            assert seen is None or seen.alive, f"ended without saying {word}: {seen}: {text}"
            self.processes.wait_log(key, len(text.encode()), 1.0)
        return text

    def output_of(self, entry: str, **changes) -> str:
        """Run to the end and return what it said, or fail with it."""
        key = self.start(entry, **changes)
        end = self.exit_of(key)
        assert end.ok, f"{end}: {self.log(key)}"
        return self.log(key)


PYTHON = sys.executable
