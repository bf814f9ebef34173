"""One look at a job that has not ended: what there is of it, and what that means.

Everything that is asked of the object and its pods and changes nothing; `planning` builds on it
what is to be done. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecloud.controller import allotments, remembering
from paddlecloud.controller import pods as making
from paddlecloud.controller.allotments import Allotted
from paddlecloud.controller.identity import Identity, Json, is_owned_by, slot_of
from paddlecloud.controller.observing import observe, trouble
from paddlecloud.controller.orders import Orders
from paddlecloud.controller.peers import Site, Slot
from paddlecloud.controller.plans import Children
from paddlecloud.controller.remembering import seconds
from paddlecloud.core import completion, moving, restart
from paddlecloud.core.actions import Decision, Grant, Start, Stop
from paddlecloud.core.cleanup import wants_removal
from paddlecloud.core.observed import Observed, ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.core.phases import Phase
from paddlecloud.forms.custom_resources import ClusterJob, Intranet


@dataclass
class Look:
    """One look at a job that has not ended."""

    who: Identity
    job: ClusterJob
    site: Site
    everybody: Children
    mine: Children
    old: Json
    asked: Orders
    allotted: Allotted | None
    now: float
    grant: Grant = field(init=False)
    seen: tuple[ReplicaObserved, ...] = field(init=False)
    latest: Mapping[Slot, ReplicaObserved] = field(init=False)
    without: frozenset[Slot] = field(init=False)  # trainers that are given up
    pods: dict[Slot, Json] = field(init=False)

    def __post_init__(self) -> None:
        self.seen = observe(
            self.who, self.job.spec, self.job.intranet, self.mine.pods, self.old, self.now
        )
        self.grant = allotments.grant(self.job, self.allotted, self.seen)
        self.latest = completion.latest_attempts(self.seen)
        self.without = restart.given_up(self.job.spec, self.seen, self.asked.moves)
        self.pods = {}
        for pod in self.mine.pods:
            slot = slot_of(pod)
            if slot is not None:
                self.pods[slot[0], slot[1]] = pod

    def observed(self, body: Json) -> Observed:
        since = self.allotted.allocation.preempted_at if self.allotted else None
        told = seconds(self.old.get("startTime"))
        starts = [told, *(one.started_at for one in self.seen if not since or not one.stopping)]
        return Observed(
            self.seen,
            cancel_asked=self.asked.cancel,
            moves=self.asked.moves,
            submitted_at=seconds(body["metadata"].get("creationTimestamp")) or 0.0,
            # The time it may run begins anew when it was stopped for another.
            first_started_at=min(
                (at for at in starts if at is not None and at > (since or 0.0)), default=None
            ),
        )

    @property
    def wanted(self) -> list[Slot]:
        return completion.wanted_replicas(self.job.spec, self.grant.trainers)

    # --- what would be forgotten with the pods -------------------------------------------------

    def _failing(self, decision: Decision) -> list[ReplicaObserved]:
        """Failed attempts whose pods stand in the way of the next, or that have no next."""
        starting = {
            (action.key.role, action.key.index)
            for action in decision.actions
            if isinstance(action, Start)
        }
        return [
            self.latest[slot]
            for slot in starting | self.without
            if slot in self.pods
            and slot in self.latest
            and completion.has_failed(self.latest[slot])
        ]

    def ordered_away(self) -> dict[Slot, ReplicaObserved]:
        """Attempts that are to leave their node and whose pods are there."""
        away = moving.ordered_away(self.asked.moves, dict(self.latest))
        return {
            slot: self.latest[slot]
            for slot in away
            if slot in self.pods and self.latest[slot].alive
        }

    def remembered_after(self, decision: Decision) -> Json:
        leaving = [] if decision.ending else list(self.ordered_away().values())
        failing = self._failing(decision)
        rows = remembering.rows_after(self.who, self.old, self.latest, failing, leaving, self.now)
        return rows | remembering.preempted_rows(self.who, self.old, self._stopped(decision))

    def _stopped(self, decision: Decision) -> list[ReplicaObserved]:
        """Attempts that end now, for another job or with their peers, and whose number no other
        record keeps: a number is never given twice."""
        if decision.ending:
            return []
        stops = {action.key for action in decision.actions if isinstance(action, Stop)}
        wanted, away = set(self.wanted), self.ordered_away()
        return [
            one
            for one in self.seen
            if one.key in stops
            and (slot := (one.key.role, one.key.index)) not in away
            and (not self.grant.trainers or (slot in wanted and one.key.attempt > 1))
        ]

    def trouble(self) -> str:
        """What keeps it from running although it may; a sentence, or nothing."""
        if not self.grant.trainers:
            return ""
        return self.blocked() or self.lacks_volcano() or trouble(self.mine.pods)

    def lacks_volcano(self) -> str:
        """That nobody will place the pods; a sentence, or nothing."""
        if self.site.has_volcano or making.scheduler_of(self.job) != making.VOLCANO:
            return ""
        return "the job wants the scheduler volcano, which is not installed in this cluster"

    # --- names that somebody else has ------------------------------------------------------------

    def blocked(self) -> str:
        """Why a pod cannot be made although it should; a sentence, or nothing."""
        strangers = self.strangers()
        return (
            f"{strangers[0]} exists and is not of this job; it has to go first" if strangers else ""
        )

    def strangers(self) -> list[str]:
        names = {self.who.pod_name(*slot) for slot in self.wanted}
        return sorted(
            pod["metadata"]["name"]
            for pod in self.everybody.pods
            if pod["metadata"]["name"] in names and not is_owned_by(pod, self.who.uid)
        )

    def is_kept(self) -> bool:
        """Whether the policy keeps pods after the end that is coming."""
        ending = Phase.KILLED if self.asked.cancel else Phase.FAILED
        if completion.trainers_are_done(dict(self.latest), self.grant.trainers, self.without):
            ending = Phase.SUCCEEDED
        return not wants_removal(self.job.spec.clean, ending)

    def is_told(self, pod: Json) -> bool:
        slot = slot_of(pod)
        if slot is None:
            return False
        return remembering.is_told(self.old, self.who.kind.role_word(slot[0]), slot[1], slot[2])

    def planned(self) -> list[ReplicaKey]:
        """Replicas of a restart under way that have no pod yet."""
        return [
            one.key
            for one in self.seen
            if one.state == ReplicaState.PENDING and (one.key.role, one.key.index) not in self.pods
        ]

    def addresses(self) -> Mapping[Slot, str]:
        if self.job.intranet == Intranet.SERVICE:
            return {slot: self.who.pod_name(*slot) for slot in self.wanted}
        known = {
            slot: one.address
            for slot, one in self.latest.items()
            if slot in self.pods and not one.stopping
        }
        # Who is done needs no address, but the lists have a place for every rank.
        gone = {
            slot: self.who.pod_name(*slot)
            for slot, one in self.latest.items()
            if completion.ended_well(one) or slot in self.without
        }
        return gone | {slot: address for slot, address in known.items() if address}
