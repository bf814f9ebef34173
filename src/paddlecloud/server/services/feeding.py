"""Hands wishes to the engines, in order and off the request's path.

Rows hold what is wished (a job that should run, a kill, a deletion); this thread compares and
tells the engine, and tries again when the engine fails. So a slow or dead engine delays nothing
but itself, and a crash at any moment is repaired by looking at the rows again at start. Folders of
jobs are filled on the way: a small package while the request waits, a large one beside everything.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from dataclasses import replace

import msgspec
from django.db import DatabaseError

from paddlecloud.core import jobspec
from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.core.phases import Phase
from paddlecloud.engines.protocols import Engine, JobRun
from paddlecloud.server.database import forget_broken_connection, writing
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.pools import Pool
from paddlecloud.server.process import here
from paddlecloud.server.services import (
    accounts,
    finding,
    mirroring,
    moving,
    packages,
    registries,
    scaling,
    tokens,
    workspaces,
)
from paddlecloud.server.services.revisions import announce, next_revision

log = logging.getLogger(__name__)

_RETRY_FIRST_S = 0.5
_RETRY_CAP_S = 30.0
_COPIERS = 2  # large packages at a time


class _Copying:
    """A large package on its way into the folder of its job."""

    def __init__(self) -> None:
        self.is_begun = False
        self.is_wanted = True

    def run(self, job: Job) -> bool:
        self.is_begun = True
        return self.is_wanted and workspaces.prepare(job, lambda: self.is_wanted)


class Feeder:
    """A queue of job ids and one daemon thread."""

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._due: list[tuple[float, int, str]] = []
        self._waiting: set[str] = set()
        self._number = 0
        self._failures: dict[str, int] = {}
        self._told: set[tuple[str, int]] = set()  # runs this process has put
        self._thread = threading.Thread(target=self._work, name="feeder", daemon=True)
        self._copiers = Pool("copying", _COPIERS)
        self._copying: dict[str, _Copying] = {}  # jobs whose large package is being copied

    def start(self) -> None:
        """Look at every job that may owe the engine something, then serve the queue."""
        rows = Job.objects.filter(live=True) | Job.objects.filter(deleted=True)
        for job_id in rows.order_by("submitted_at", "id").values_list("id", flat=True):
            self.look_at(job_id)
        self._thread.start()

    def begin(self, job: Job) -> None:
        """A new run was committed."""
        if not packages.is_large(job.account_id, job.package_digest):
            workspaces.prepare(job)
        self.look_at(job.id)

    def look_at(self, job_id: str, after_s: float = 0.0) -> None:
        with self._ready:
            if job_id in self._waiting:
                return
            self._waiting.add(job_id)
            self._number += 1
            heapq.heappush(self._due, (time.monotonic() + after_s, self._number, job_id))
            self._ready.notify()

    def _next(self) -> str:
        with self._ready:
            while True:
                wait_s = self._due[0][0] - time.monotonic() if self._due else None
                if wait_s is not None and wait_s <= 0:
                    job_id = heapq.heappop(self._due)[2]
                    self._waiting.discard(job_id)
                    return job_id
                self._ready.wait(wait_s)

    def _work(self) -> None:
        while True:
            job_id = self._next()
            try:
                self._feed(job_id)
                self._failures.pop(job_id, None)
            except PaddleCloudError as error:
                log.warning("telling the engine about %s failed: %s", job_id, error.message)
                _say_why_it_waits(job_id, error.message)
                self._again(job_id)
            except Exception:
                log.exception("telling the engine about %s failed", job_id)
                forget_broken_connection()
                self._again(job_id)

    def _again(self, job_id: str) -> None:
        count = self._failures[job_id] = self._failures.get(job_id, 0) + 1
        self.look_at(job_id, min(_RETRY_CAP_S, _RETRY_FIRST_S * 2 ** (count - 1)))

    def _feed(self, job_id: str) -> None:
        job = Job.objects.select_related("account").filter(pk=job_id).first()
        if job is None:
            return
        engine = here().engines.engine(job.cluster)
        if job.live and not job.prepared and not self._prepare(job):
            return  # it has been ended, with the reason, or is looked at again
        if job.live and (job.id, job.run) not in self._told:
            self._put(engine, job)
        if job.live and job.cancel_asked:
            engine.cancel(job.id, job.run, job.cancel_asked)
        if job.live and (orders := moving.orders_of(job)):
            engine.move(job.id, job.run, orders)
        if job.live:
            scaling.tell(engine, job)
        if job.deleted and not job.live:
            engine.delete(job.id)
            with writing():
                Job.objects.filter(pk=job.id).delete()
                packages.forget_if_unused(job.account_id, job.package_digest)
            self._told = {told for told in self._told if told[0] != job.id}

    def _prepare(self, job: Job) -> bool:
        """Whether its folder is filled now."""
        if not packages.is_large(job.account_id, job.package_digest):
            return workspaces.prepare(job)
        if job.cancel_asked:
            self._end_before_it_began(job)
            return False
        size = packages.size_in_words(job.account_id, job.package_digest)
        with self._ready:
            if job.id in self._copying:
                return False
            copying = self._copying[job.id] = _Copying()
        _say_why_it_waits(job.id, f"its package is being copied ({size})")

        def done(_: bool, error: BaseException | None) -> None:
            with self._ready:
                del self._copying[job.id]
            if error is None:
                self.look_at(job.id)
            else:
                log.error("copying the package of %s failed", job.id, exc_info=error)
                forget_broken_connection()
                self._again(job.id)

        self._copiers.submit(copying.run, (job,), done)
        return False

    def _end_before_it_began(self, job: Job) -> None:
        """Killed before the engine was told of it. Whoever fills its folder stops first, as the
        next job may have the same one."""
        with self._ready:
            copying = self._copying.get(job.id)
            if copying is not None:
                copying.is_wanted = False
        if copying is None or not copying.is_begun:
            mirroring.record_end(job, Phase.KILLED, job.cancel_asked)

    def _put(self, engine: Engine, job: Job) -> None:
        try:
            run = job_run(job)
            if finding.is_found(run.spec) and job.run == 1:
                self._told.add((job.id, job.run))
                return  # somebody made it on the cluster
            if run.spec.registry:
                registries.tell(engine, job.account_id, job.account.username)
            engine.put(run)
        except Exception:
            if not job.cancel_asked:
                raise
            # What cannot even be started can still be killed; the engine is told all the same.
            log.exception("the engine does not take %s, which is to be killed", job.id)
            engine.cancel(job.id, job.run, job.cancel_asked)
            mirroring.record_end(job, Phase.KILLED, job.cancel_asked)
            job.live = False
            return
        self._told.add((job.id, job.run))


def _say_why_it_waits(job_id: str, why: str) -> None:
    """Only of a run the engine does not have: afterwards the engine says how it is."""
    try:
        with writing():
            waiting = Job.objects.filter(pk=job_id, live=True, phase=Phase.SUBMITTED.value)
            job = waiting.exclude(reason=why).first()
            if job is not None:
                revision = next_revision()
                waiting.update(reason=why, revision=revision)
                announce(job.account_id, job_id, revision)
    except DatabaseError:
        forget_broken_connection()


def job_run(job: Job) -> JobRun:
    """What the engine gets; rebuilt from rows whenever it has to be told again."""
    spec = jobspec.from_json(msgspec.json.decode(job.spec))
    return JobRun(
        job_id=job.id,
        run=job.run,
        spec=replace(spec, package=job.package, cluster=job.cluster),
        account_id=job.account_id,
        account=job.account.username,
        # Of the run: a re-run queues behind what was submitted before it.
        submitted_at=job.runs.values_list("submitted_at", flat=True).get(run=job.run),
        uid=accounts.uid_of(job.account_id),
        secret_env=tokens.job_environment(job),
    )
