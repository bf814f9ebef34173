"""Room for jobs that start without a plan.

`admission` asks it, under its own lock: a look at the whole cluster is believed for a moment, so
that a hundred jobs that come together cost one.
"""

from __future__ import annotations

from paddlecloud.engines.kubernetes import snapshots
from paddlecloud.engines.kubernetes.inventory import Eligibility
from paddlecloud.engines.kubernetes.snapshots import Cluster, LiveJob
from paddlecloud.scheduling import placement

HOLDS_S = 2.0  # how long a look is believed


class FreeRoom:
    """What is free on every node, for jobs that start without a plan.

    What jobs take is noted at once, what they give back is seen at the next look.
    """

    def __init__(self) -> None:
        self._room: placement.Room | None = None
        self._looked_at = 0.0
        self._total: placement.Vector = (0, 0, 0)
        self._eligibility = Eligibility(())

    def forget(self) -> None:
        self._room = None

    def look(self, cluster: Cluster, now: float) -> None:
        self._eligibility = Eligibility(cluster.nodes)
        self._room, self._looked_at = snapshots.free_room(cluster), now
        self._total = placement.total_of(self._room.values())

    def take(self, live: LiveJob, now: float) -> bool:
        """Whether the whole job fits; its room is then taken."""
        room = self._room
        if room is None or not 0.0 <= now - self._looked_at < HOLDS_S:
            return False
        where = snapshots.places_of(live.job.spec, self._eligibility)
        batches = placement.batches_of(live.job.spec, live.wish, self._total, where)
        placed = placement.place(batches, room)
        if placed is None:
            return False
        placement.take(room, placement.held_in(batches, placed))
        return True
