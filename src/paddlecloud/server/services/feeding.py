"""Hands wishes to the engines, in order and off the request's path.

Rows hold what is wished (a job that should run, a kill, a deletion); this thread compares and
tells the engine, and tries again when the engine fails. So a slow or dead engine delays nothing
but itself, and a crash at any moment is repaired by looking at the rows again at start.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Iterable

from paddlecloud.core import jobspec
from paddlecloud.engines.protocols import JobRun
from paddlecloud.server.database import writing

log = logging.getLogger(__name__)

_RETRY_FIRST_S = 0.5
_RETRY_CAP_S = 30.0


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

    def start(self) -> None:
        """Look at every job that may owe the engine something, then serve the queue."""
        from paddlecloud.server.jobs.models import Job

        rows = Job.objects.filter(live=True) | Job.objects.filter(deleted=True)
        for job_id in rows.order_by("submitted_at", "id").values_list("id", flat=True):
            self.look_at(job_id)
        self._thread.start()

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
            except Exception:
                count = self._failures[job_id] = self._failures.get(job_id, 0) + 1
                delay_s = min(_RETRY_CAP_S, _RETRY_FIRST_S * 2 ** (count - 1))
                log.exception("telling the engine about %s failed; again in %g s", job_id, delay_s)
                self.look_at(job_id, delay_s)

    def _feed(self, job_id: str) -> None:
        from paddlecloud.server.jobs.models import Job
        from paddlecloud.server.process import here

        job = Job.objects.select_related("account").filter(pk=job_id).first()
        if job is None:
            return
        engine = here().engines.engine(job.cluster)
        if job.live and not job.prepared:
            from paddlecloud.server.services import workspaces

            if not workspaces.prepare(job):
                return  # it has been failed, with the reason
        if job.live and (job.id, job.run) not in self._told:
            engine.put(job_run(job))
            self._told.add((job.id, job.run))
        if job.live and job.cancel_asked:
            engine.cancel(job.id, job.run, job.cancel_asked)
        if job.deleted and not job.live:
            engine.delete(job.id)
            with writing():
                Job.objects.filter(pk=job.id).delete()
            self._told = {told for told in self._told if told[0] != job.id}


def job_run(job) -> JobRun:  # type: ignore[no-untyped-def]  # a Job with its account
    from paddlecloud.server.services import accounts, tokens

    return JobRun(
        job_id=job.id,
        run=job.run,
        spec=_spec(job),
        account_id=job.account_id,
        account=job.account.username,
        submitted_at=_submitted_at(job),
        uid=accounts.uid_of(job.account_id),
        secret_env=tokens.job_environment(job),
    )


def _spec(job) -> jobspec.JobSpec:  # type: ignore[no-untyped-def]
    import dataclasses
    import json

    spec = jobspec.from_json(json.loads(job.spec))
    return dataclasses.replace(spec, package=job.package, cluster=job.cluster)


def _submitted_at(job) -> float:  # type: ignore[no-untyped-def]
    """Of the run: a re-run queues behind what was submitted before it."""
    return float(job.runs.get(run=job.run).submitted_at)


def look_at_all(job_ids: Iterable[str]) -> None:
    from paddlecloud.server.process import here

    for job_id in job_ids:
        here().feeder.look_at(job_id)
