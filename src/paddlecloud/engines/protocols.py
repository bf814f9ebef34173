"""The two protocols of the project's engines.

`Engine` is job level: what the server calls. `Replicas` is replica level: what the reconcile loop
calls. Both are small on purpose; everything that decides is in `core` and `scheduling`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from paddlecloud.core.actions import Event, Status
from paddlecloud.core.errors import Fault
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.observed import Move, ReplicaKey, ReplicaObserved
from paddlecloud.core.resources import Resources
from paddlecloud.scheduling.explain import Explanation
from paddlecloud.scheduling.snapshot import Group, Quota, Snapshot


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of one job as the server hands it to an engine. Plain values, storable as JSON."""

    job_id: str
    run: int
    spec: JobSpec
    account_id: int
    account: str  # the user's name as in /pfs/<dc>/home/<account>
    submitted_at: float  # unix seconds
    uid: int | None = None  # run replicas as this uid (platform is root); None = our own
    secret_env: Mapping[str, str] = field(default_factory=dict)  # the job's own token; never shown


@dataclass(frozen=True, slots=True)
class Change:
    """One thing the engine has to tell: a new status, or an event, of one run."""

    cursor: int  # strictly growing; ask for what comes after it
    job_id: str
    run: int
    at: float
    status: Status | None = None
    replicas: tuple[ReplicaObserved, ...] = ()  # all attempts, given with a status
    event: Event | None = None
    trainers_granted: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """Which memory an engine's cursors belong to, and the last cursor it has given."""

    epoch: str  # made with the memory; another one means that the memory is another
    last: int


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Bytes [start, end) of one attempt's log. `gaps` are ranges whose bytes were dropped.

    `data` skips gaps; a reader shows `[... N bytes dropped ...]` in their place. `next` is the
    cursor to ask for next; `size` the log's length now; `ended` = nothing will be added.
    """

    start: int
    next: int
    size: int
    data: bytes
    dropped_bytes: int = 0  # bytes of gaps that lie just before `data`
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the cluster has, for people and for `status`."""

    total: Resources  # what may be granted (CPU: cores × overcommit)
    free: Resources
    cores: int
    notes: tuple[str, ...] = ()  # what this machine cannot enforce, in words


class Engine(Protocol):
    """Runs jobs on one cluster. Every call is quick; nothing waits for a replica."""

    cluster: str
    kind: str  # "embedded" or "kubernetes"

    def start(self) -> None:
        """Adopt what still runs and begin to reconcile."""

    def close(self) -> None:
        """Stop reconciling; replicas live on."""

    def put(self, job: JobRun) -> None:
        """Accept this run. Idempotent by (job_id, run): a second call changes nothing.

        A run whose record was lost, but not its replicas, goes on with them.
        """

    def cancel(self, job_id: str, run: int, reason: str) -> None:
        """Ask the run to end as Killed. Idempotent; unknown or ended runs are left alone."""

    def move(self, job_id: str, run: int, moves: Sequence[Move]) -> None:
        """End these attempts and start the next ones off their hosts, at no cost to the budget.

        Idempotent: an attempt that is no longer the current one is left alone, and so are unknown
        and ended runs. Where there is one host only, the replica starts again on it.
        """

    def delete(self, job_id: str) -> None:
        """Forget an ended job: its logs, events and rows. A live one is killed first."""

    def watch(self, after: int, timeout_s: float) -> Sequence[Change]:
        """Changes with a cursor above `after`, oldest first; waits up to `timeout_s` for one."""

    def history(self) -> History:
        """Where `watch` stands. Asked before `start`, so that what follows is news."""

    def knows(self, job_id: str, run: int) -> bool:
        """Whether it has a record of this run, or finds what the run left; asked before `start`."""

    def log(self, key: ReplicaKey, start: int, limit_bytes: int) -> LogSlice:
        """Part of one attempt's log. `start` < 0 counts from the end."""

    def log_wait(self, key: ReplicaKey, size: int, timeout_s: float) -> None:
        """Return when the log is longer than `size`, has ended, or the time is up."""

    def check(self, spec: JobSpec) -> Sequence[Fault]:
        """Why this spec could never run here, even on the empty cluster; fields in spec words."""

    def capacity(self) -> Capacity: ...

    def set_quota(self, quotas: Mapping[int, Quota]) -> None:
        """Limits per account id, used by every later plan."""

    def set_groups(self, groups: Mapping[str, Group]) -> None:
        """Every group that may use this cluster, by name; used by every later plan."""

    def snapshot(self) -> Snapshot:
        """What the planner would see now."""

    def explain(self, job_id: str) -> Explanation | None:
        """Why the job waits and what would help; None if it does not wait."""


@dataclass(frozen=True, slots=True)
class Launch:
    """All that is needed to make one attempt of a replica."""

    key: ReplicaKey
    job_name: str
    account: str
    account_id: int
    uid: int | None
    cluster: str
    entry: str  # run by `sh -c`
    workdir: str  # a /pfs/... path
    env: Mapping[str, str]  # the whole contract, secrets included
    resources: Resources
    address: str
    gpus: tuple[int, ...] = ()  # device numbers given to this replica alone
    files: Mapping[str, str] = field(default_factory=dict)  # "/trainer_id": "0\n", ...
    runtime: str = ""


class Replicas(Protocol):
    """Makes, stops and looks at replicas. Level triggered: callers re-ask, never assume."""

    def create(self, launch: Launch) -> None:
        """Make the attempt. Idempotent by key; a failure shows up in `observe` as START_FAILED."""

    def stop(self, key: ReplicaKey, grace_s: float) -> None:
        """Begin to stop it (TERM, grace, KILL, remains). Idempotent; returns at once."""

    def observe(self, job_id: str, run: int) -> Sequence[ReplicaObserved]:
        """Every attempt of this run that exists or has existed."""

    def remove(self, key: ReplicaKey) -> None:
        """Drop the remains of an ended attempt (not its log)."""
