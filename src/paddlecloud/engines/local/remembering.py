"""Which attempts there are: those that are alive, and those of runs that were asked about.

`Keeper` changes this memory, `Processes` asks it through him. It promises that one key is one
attempt for everybody, whoever asks first; what is over is read from disk when first asked for, and
of such runs only so many are remembered. It never starts, ends or judges anything.
"""

from __future__ import annotations

import threading
from pathlib import Path

from paddlecloud.clock import SteadyClock
from paddlecloud.core.errors import Conflict
from paddlecloud.core.observed import ReplicaKey, ReplicaState
from paddlecloud.engines.local.attempts import Result, Status, attempts_of_run
from paddlecloud.engines.local.kept import Kept

_RUNS_REMEMBERED = 512


def lost(status: Status, now: float) -> Result:
    """How an attempt ended of which nobody knows how it ended."""
    return Result(ReplicaState.LOST, status.started_at, now, None)


class Remembered:
    """Thread safe."""

    def __init__(self, jobs_dir: Path, clock: SteadyClock) -> None:
        self._jobs_dir = jobs_dir
        self._clock = clock
        self._lock = threading.RLock()
        self._runs: dict[tuple[str, int], dict[ReplicaKey, Kept]] = {}
        self._live: dict[ReplicaKey, Kept] = {}

    # --- asking -------------------------------------------------------------------------------

    def live(self) -> list[Kept]:
        with self._lock:
            return list(self._live.values())

    def is_live(self, key: ReplicaKey) -> bool:
        return key in self._live

    def of_run(self, job_id: str, run: int) -> list[Kept]:
        with self._lock:
            return [kept for _, kept in sorted(self._run(job_id, run).items())]

    def find(self, key: ReplicaKey) -> Kept | None:
        with self._lock:
            return self._run(key.job_id, key.run).get(key)

    def _run(self, job_id: str, run: int) -> dict[ReplicaKey, Kept]:
        known = self._runs.get((job_id, run))
        if known is None:
            known = self._runs[job_id, run] = {}
            for key, directory in attempts_of_run(self._jobs_dir, job_id, run):
                launch = directory.read_launch()
                if launch is not None:
                    known[key] = Kept.from_disk(key, directory, launch)
                    if known[key].result is None:  # a power cut took its result
                        known[key].result = lost(directory.read_status(), self._clock.now())
            self._forget_the_oldest()
        return known

    def _forget_the_oldest(self) -> None:
        spare = len(self._runs) - _RUNS_REMEMBERED
        if spare > 0:
            in_use = {(key.job_id, key.run) for key in self._live}
            # Never the last one: it was just asked for.
            for name in [n for n in list(self._runs)[:-1] if n not in in_use][:spare]:
                del self._runs[name]

    # --- changing -----------------------------------------------------------------------------

    def begin(self, kept: Kept) -> bool:
        """A new attempt is alive; False if there was one of this key already."""
        with self._lock:
            run = self._run(kept.key.job_id, kept.key.run)
            if kept.key in run:
                return False
            run[kept.key] = self._live[kept.key] = kept
            return True

    def adopt(self, kept: Kept) -> None:
        """One that a predecessor began is alive, or as good as."""
        with self._lock:
            self._run(kept.key.job_id, kept.key.run)[kept.key] = self._live[kept.key] = kept

    def end(self, kept: Kept, result: Result) -> None:
        with self._lock:
            kept.result = result
            self._live.pop(kept.key, None)

    def forget(self, kept: Kept) -> None:
        """It never was."""
        with self._lock:
            self._live.pop(kept.key, None)
            self._run(kept.key.job_id, kept.key.run).pop(kept.key, None)

    def forget_job(self, job_id: str) -> None:
        with self._lock:
            if any(key.job_id == job_id for key in self._live):
                raise Conflict(f"{job_id} still has replicas", hint="stop them first")
            for name in [name for name in self._runs if name[0] == job_id]:
                del self._runs[name]
