"""Notices a job whose plan never comes to rest.

A plan that undoes what the plan before it did would keep the API server busy for ever. Every look
that changed something is counted under what the world looked like (names and states of the pods,
the wish, what the status remembers). A job that acts on one picture again and again has to wait,
longer each time; after a quiet while it starts anew.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from paddlecloud.controller.identity import Json

PATIENCE = 20
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
QUIET_S = 10.0
MOST_JOBS = 10_000  # remembered at once; the oldest are forgotten


class Restless(Exception):
    """A job acted on the same picture again and again; it has to wait."""

    def __init__(self, times: int, pause_s: float) -> None:
        super().__init__(
            f"its plan does not come to rest: acted {times} times on the same state of things; "
            f"the next look is {pause_s:.0f} s later"
        )
        self.pause_s = pause_s


def picture(body: Json, pods: Iterable[Json]) -> int:
    """What a plan is made from, less what changes with every write of ours."""
    metadata, status = body["metadata"], body.get("status") or {}
    states = frozenset(
        (
            pod["metadata"]["name"],
            (pod.get("status") or {}).get("phase"),
            bool(pod["metadata"].get("deletionTimestamp")),
        )
        for pod in pods
    )
    remembered = [len(status.get(name) or ()) for name in ("failures", "successes", "moved")]
    granted = (status.get("allocation") or {}).get("revision")
    notes = frozenset((metadata.get("annotations") or {}).items())
    return hash((metadata["uid"], metadata.get("generation"), notes, states, *remembered, granted))


@dataclass(slots=True)
class _Record:
    last: float
    times: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    pause_s: float = 0.0


class Watchfulness:
    """Safe to share between workers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[Hashable, _Record] = {}

    def acted(self, job: Hashable, seen: int, now: float) -> None:
        """Note a look that changed something; raises Restless when it is one too many."""
        with self._lock:
            record = self._records.pop(job, None)
            if record is None or now - record.last > QUIET_S + record.pause_s:
                record = _Record(now)
            self._records[job] = record
            if len(self._records) > MOST_JOBS:
                del self._records[next(iter(self._records))]
            record.last = now
            record.times[seen] += 1
            over = record.times[seen] - PATIENCE
            if over <= 0:
                return
            record.pause_s = min(FIRST_PAUSE_S * 2.0 ** min(over - 1, 20), LONGEST_PAUSE_S)
            raise Restless(record.times[seen], record.pause_s)
