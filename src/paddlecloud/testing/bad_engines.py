"""Engines that are slow, dead or lying, for tests of what stands before them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from paddlecloud.core.errors import Fault
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.engines.protocols import Capacity, Change, JobRun, LogSlice
from paddlecloud.scheduling.explain import Explanation
from paddlecloud.testing.engines import FakeEngine


class SlowEngine(FakeEngine):
    """Every answer takes `delay_s`."""

    delay_s = 30.0

    def put(self, job: JobRun) -> None:
        time.sleep(self.delay_s)
        super().put(job)

    def check(self, spec: JobSpec) -> Sequence[Fault]:
        time.sleep(self.delay_s)
        return super().check(spec)

    def capacity(self) -> Capacity:
        time.sleep(self.delay_s)
        return super().capacity()

    def log(self, key: ReplicaKey, start: int, limit_bytes: int) -> LogSlice:
        time.sleep(self.delay_s)
        return super().log(key, start, limit_bytes)

    def explain(self, job_id: str) -> Explanation | None:
        time.sleep(self.delay_s)
        return super().explain(job_id)


class DeadEngine(SlowEngine):
    """Never answers at all."""

    delay_s = 10.0**8

    def watch(self, after: int, timeout_s: float) -> Sequence[Change]:
        time.sleep(self.delay_s)
        return []

    def cancel(self, job_id: str, run: int, reason: str) -> None:
        time.sleep(self.delay_s)


class LyingEngine(FakeEngine):
    """Speaks of jobs nobody submitted, repeats old cursors, and revives what has ended."""

    _ended: tuple[Change, ...] = ()

    def watch(self, after: int, timeout_s: float) -> Sequence[Change]:
        tales = []
        for change in super().watch(after, timeout_s):
            stranger = replace(change, job_id="job-ffffffffffffffff", cursor=change.cursor - 1)
            tales += [stranger, change, replace(change, cursor=1)]
            if change.status is not None and change.status.phase in TERMINAL:
                self._ended += (change,)
        # Also in later batches: what has ended would run again.
        for number, change in enumerate(self._ended, 1):
            if tales and change.status is not None:
                alive = replace(change.status, phase=Phase.RUNNING)
                cursor = max(tale.cursor for tale in tales) + number
                tales.append(replace(change, cursor=cursor, status=alive))
        return tales
