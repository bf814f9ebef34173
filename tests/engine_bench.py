"""An engine under test with real programs: what it has told, and how to make jobs for it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from paddlecloud.core.errors import Unavailable
from paddlecloud.core.jobspec import JobSpec, Mode, Role, RoleSpec
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.core.resources import Resources
from paddlecloud.engines.kubernetes.config import KubernetesConfig
from paddlecloud.engines.kubernetes.engine import KubernetesEngine
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.engine import LocalEngine
from paddlecloud.engines.protocols import Change, Engine, JobRun
from paddlecloud.scheduling.snapshot import JobView
from tests.kube.running import RealCluster, until
from tests.patience import PATIENCE_S

TIMEOUT_S = PATIENCE_S
SMALL = Resources(100, 64 * 2**20)
_ids = itertools.count(1)
_accounts = itertools.count(1)


@dataclass
class Bench:
    """One engine, what it has told so far, and a place for jobs' files."""

    make: Callable[[], Engine]  # on the same state each time
    engine: Engine
    pfs: Path
    account: str = "alice"
    cluster: RealCluster | None = None  # where accounts must have different names
    told: list[Change] = field(default_factory=list)
    put_ids: set[str] = field(default_factory=set)

    def live(self) -> list[JobView]:
        """Jobs of this test that have not ended; a cluster may have others."""
        return [view for view in self.engine.snapshot().jobs if view.job_id in self.put_ids]

    @property
    def home(self) -> str:
        return self._home(self.account)

    @property
    def workdir(self) -> str:
        return f"{self.home}/work"

    def _home(self, account: str) -> str:
        (self.pfs / "home" / account / "work").mkdir(parents=True, exist_ok=True)
        return f"/pfs/local/home/{account}"

    def restart(self) -> None:
        self.engine.close()
        self.engine = self.make()
        self.engine.start()

    def read(self, timeout_s: float = 0) -> None:
        after = self.told[-1].cursor if self.told else 0
        self.told += self.engine.watch(after, timeout_s)

    def phases(self, job: JobRun) -> list[Phase]:
        self.read()
        seen = [c.status.phase for c in self._of(job) if c.status]
        return [phase for phase, _ in itertools.groupby(seen)]

    def last(self, job: JobRun) -> Change:
        return [c for c in self._of(job) if c.status][-1]

    def events(self, job: JobRun) -> list[str]:
        self.read()
        return [c.event.reason for c in self._of(job) if c.event]

    def _of(self, job: JobRun) -> list[Change]:
        return [c for c in self.told if (c.job_id, c.run) == (job.job_id, job.run)]

    def until(self, job: JobRun, *phases: Phase) -> Change:
        """Wait until the run is in one of these phases; fails when the time is up."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            seen = [c for c in self._of(job) if c.status]
            if seen and seen[-1].status.phase in phases:
                return seen[-1]
            self.read(1.0)
        raise AssertionError(f"never {phases}; told {self.phases(job)}: {self.told[-3:]}")

    def until_told(self, job: JobRun, words: str) -> Change:
        """Wait until the run's reason has these words."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            for change in self._of(job):
                if change.status and words in change.status.reason:
                    return change
            self.read(1.0)
        raise AssertionError(f"never {words!r}: {self.told[-3:]}")

    def delete_objects(self, job: JobRun) -> None:
        """As somebody with kubectl does."""
        assert self.cluster is not None
        label = f"paddlepaddle.org/job-id={job.job_id}"
        self.cluster.kubectl(
            "delete", "pdj,tj", "-n", f"paddlecloud-{job.account}", "-l", label, "--wait=false"
        )

    def end(self, job: JobRun) -> Change:
        return self.until(job, *TERMINAL)

    def log_text(self, job: JobRun, role: Role = Role.TRAINER, index: int = 0, attempt=1) -> str:
        key = ReplicaKey(job.job_id, job.run, role, index, attempt)
        return self.engine.log(key, 0, 2**20).data.decode()

    def put(self, entry: str = "true", **changes) -> JobRun:
        number = changes.get("account_id", 1)
        is_other = self.cluster is not None and number != 1
        account = f"{self.account}-{number}" if is_other else self.account
        package = changes.pop("package", f"{self._home(account)}/work")
        job = a_job(package, entry, account=account, **changes)
        self.put_ids.add(job.job_id)
        until(lambda: self._is_taken(job), f"{job.spec.name} is taken", TIMEOUT_S)
        return job

    def _is_taken(self, job: JobRun) -> bool:
        """As the server does, who comes again when the cluster had no time."""
        try:
            self.engine.put(job)
        except Unavailable:
            return False
        return True


def a_job(
    workdir: str,
    entry: str,
    *,
    mode: Mode = Mode.SINGLE,
    trainers: int = 1,
    pservers: int = 0,
    each: Resources = SMALL,
    least: int = -1,
    most: int = -1,
    account_id: int = 1,
    account: str = "alice",
    run: int = 1,
    **spec,
) -> JobRun:
    number = next(_ids)
    roles = [RoleSpec(Role.TRAINER, trainers, each, least, most)]
    if pservers:
        roles.append(RoleSpec(Role.PSERVER, pservers, each))
    wish = JobSpec(
        name=f"job{number}",
        mode=mode,
        roles=tuple(roles),
        entry=entry,
        package=workdir,
        cluster="local",
        grace_s=spec.pop("grace_s", 1.0),
        **spec,
    )
    job_id = f"job-{number:08x}{number:08x}"
    return JobRun(job_id, run, wish, account_id, account, time.time() + number / 1e3)


EMBEDDED = ["plain", pytest.param("bwrap", marks=pytest.mark.needs("bubblewrap"))]
ON_CLUSTER = pytest.param("kubernetes", marks=pytest.mark.needs("kube", "node"))
KINDS = [*EMBEDDED, ON_CLUSTER]


@contextmanager
def started(bench: Bench) -> Iterator[Bench]:
    """Its engine runs and knows what there is; all its jobs are ended when the test is over."""
    bench.engine.start()
    try:
        until(lambda: bench.engine.capacity().total.cpu_milli, "the engine's nodes", TIMEOUT_S)
        yield bench
    finally:
        for view in bench.live():
            bench.engine.cancel(view.job_id, 1, "test is over")
            bench.engine.cancel(view.job_id, 2, "test is over")
        deadline = time.monotonic() + TIMEOUT_S
        while bench.live() and time.monotonic() < deadline:
            bench.read(0.5)
        bench.engine.close()


@contextmanager
def on_this_machine(kind: str, tmp_path: Path) -> Iterator[Bench]:
    with started(_on_this_machine(kind, tmp_path)) as bench:
        yield bench


@contextmanager
def on_cluster(cluster: RealCluster, tmp_path: Path) -> Iterator[Bench]:
    with started(_on_cluster(cluster, tmp_path)) as bench:
        yield bench


def _on_this_machine(kind: str, tmp_path: Path) -> Bench:
    pfs = tmp_path / "pfs"
    (pfs / "public").mkdir(parents=True)
    (pfs / "home" / "alice" / "work").mkdir(parents=True)
    config = LocalConfig(
        state_dir=tmp_path,
        pfs_root=pfs,
        sandbox="none" if kind == "plain" else "bwrap",
        gpus=4,
    )
    return Bench(lambda: LocalEngine(config), LocalEngine(config), pfs)


def _on_cluster(cluster: RealCluster, tmp_path: Path) -> Bench:
    """An account, and so a namespace, for this test alone."""
    account = f"alice{next(_accounts)}"
    pfs = cluster.shared / account
    (pfs / "public").mkdir(parents=True)
    config = KubernetesConfig(
        state_dir=tmp_path / "engine",
        cluster="local",
        kubeconfig=cluster.kubeconfig,
        image=cluster.image,
        pfs_volume={"hostPath": {"path": str(pfs), "type": "Directory"}},
        pod_security="privileged",
    )
    return Bench(lambda: KubernetesEngine(config), KubernetesEngine(config), pfs, account, cluster)
