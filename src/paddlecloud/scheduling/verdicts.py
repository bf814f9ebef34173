"""What becomes of a waiting job, and the job as the desk looks at it. Plain values.

Made by `admission`, worded by `reasons`, shown by `explain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from paddlecloud.scheduling.ordering import Rank
from paddlecloud.scheduling.placement import Batch, Vector, batches_of, resized, total_need
from paddlecloud.scheduling.quotas import claim
from paddlecloud.scheduling.reservations import Release, ends_at
from paddlecloud.scheduling.snapshot import JobView, Placed


class Cause(StrEnum):
    TOO_BIG = "too_big"  # would not fit the empty cluster
    QUOTA_TOO_SMALL = "quota_too_small"  # would not fit its account's unused quota
    LIMIT_TOO_SMALL = "limit_too_small"  # would not fit its group's unused limit
    ALL_GUARANTEED = "all_guaranteed"  # others' guarantees leave too little even when all is idle
    OVER_QUOTA = "over_quota"
    OVER_LIMIT = "over_limit"  # its group's
    GUARANTEED = "guaranteed"  # what is left is guaranteed to other groups
    RECLAIMING = "reclaiming"  # borrowers of its group's guarantee are stopping for it
    STOPPING = "stopping"  # it was preempted and still holds what it held
    NO_ROOM = "no_room"
    BEHIND = "behind"  # there is room, and it is kept for an earlier job


NEVER = frozenset(
    {Cause.TOO_BIG, Cause.QUOTA_TOO_SMALL, Cause.LIMIT_TOO_SMALL, Cause.ALL_GUARANTEED}
)
Purse = int | str  # an account's quota, a group's limit


@dataclass(frozen=True, slots=True)
class Verdict:
    """Starts with so many trainers at these places, or waits for a cause."""

    trainers: int = 0
    placed: tuple[Placed, ...] = ()
    cause: Cause | None = None
    behind: JobView | None = None  # for whom the room is kept
    stops: tuple[Release, ...] = ()  # who is to stop for it


# Most jobs in a long queue wait; their verdicts are alike.
PLAIN = {cause: Verdict(cause=cause) for cause in Cause}


class Applicant:
    """A waiting job with what the desk asks about it again and again, worked out once."""

    __slots__ = (
        "claim",
        "ends_at",
        "is_guaranteed",
        "least",
        "most",
        "need",
        "rank",
        "smallest",
        "view",
    )
    rank: Rank

    def __init__(self, view: JobView, cluster: Vector, now: float) -> None:
        trainers = view.spec.trainers
        self.view = view
        self.smallest = max(1, trainers.min_replicas)
        self.most = max(self.smallest, trainers.max_replicas)
        self.least = batches_of(view.spec, self.smallest, cluster, view.where)
        self.need = total_need(self.least)  # at its smallest size, as all that follows
        self.claim = claim(self.least)
        self.ends_at = ends_at(view, now)  # if it starts now
        self.is_guaranteed = False  # `ordering` finds out, and its rank

    def batches(self, trainers: int) -> tuple[Batch, ...]:
        return self.least if trainers == self.smallest else resized(self.least, trainers)


def is_waiting(view: JobView) -> bool:
    return not view.granted and not view.released
