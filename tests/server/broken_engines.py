"""Engines for the server's tests that fail in ways the shipped bad ones do not."""

from __future__ import annotations

from paddlecloud.engines.protocols import Capacity, JobRun
from paddlecloud.testing.engines import FakeEngine


class Raising(FakeEngine):
    """A bug in `capacity`."""

    def capacity(self) -> Capacity:
        raise ZeroDivisionError("a bug")


class Forgetful(FakeEngine):
    """The first `put` of every job fails."""

    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        self._tried: set[str] = set()

    def put(self, job: JobRun) -> None:
        if job.job_id not in self._tried:
            self._tried.add(job.job_id)
            raise OSError("not now")
        super().put(job)


class Refusing(FakeEngine):
    """No `put` ever works."""

    def put(self, job: JobRun) -> None:
        raise OSError("never")


class Alone(FakeEngine):
    """No sandbox: one account only."""

    multi_account = False
    single_account_reason = "there is no sandbox on this machine"
