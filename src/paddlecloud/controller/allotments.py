"""What the planner says about one job, as the operator carries it out and tells it. Pure.

An `Allotted` is made by `admission` and read by `planning`, which turns it into a grant, into
`status.allocation`, the condition `Admitted` and events. The events follow from what the status
said before, so an operator that died in between tells the same ones again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from paddlecloud.controller.pods import VOLCANO, scheduler_of
from paddlecloud.core import completion, restart
from paddlecloud.core.actions import Event, Grant, Severity
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.observed import ReplicaObserved
from paddlecloud.engines.kubernetes.allocations import Allocation
from paddlecloud.engines.kubernetes.shares import Shares
from paddlecloud.engines.kubernetes.snapshots import GROWTH, LiveJob, id_of
from paddlecloud.forms.custom_resources import ClusterJob, Warned
from paddlecloud.scheduling.plan import Plan
from paddlecloud.scheduling.verdicts import Cause

SUSPENDED, PREEMPTED, REFUSED, UNPLACED = "Suspended", "Preempted", "Refused", "Unplaced"
_ADMITTED = "Admitted"


def cause_word(cause: Cause | None) -> str:
    """`no_room` as the reason of a condition is written: `NoRoom`."""
    return "" if cause is None else "".join(part.title() for part in cause.value.split("_"))


@dataclass(frozen=True, slots=True)
class Allotted:
    allocation: Allocation = field(default_factory=Allocation)
    warnings: tuple[Warned, ...] = ()  # about the job's group and its namespace's quota


def resized(
    before: Allocation | None, workers: int, reason: str = "", cause: str = ""
) -> Allocation:
    """The next allocation of a job whose number of workers is another."""
    old = before or Allocation()
    return replace(old, workers=workers, revision=old.revision + 1, reason=reason, cause=cause)


def settle(
    live: LiveJob, before: Allocation | None, decided: Plan, now: float
) -> tuple[Allocation, str]:
    """What a plan makes of a job, and why it waits for another plan; or nothing."""
    job_id = id_of(live.body)
    found, cause = decided.grants[job_id], _cause(decided, job_id)
    old = before or Allocation()
    if found.trainers and not old.workers:
        return resized(before, found.trainers), ""
    if not found.trainers and old.workers:
        given_up = resized(before, 0, found.reason, PREEMPTED)
        times = old.preemptions + 1
        return replace(given_up, preemptions=times, preempted_at=now), PREEMPTED
    if not found.trainers:
        return replace(old, reason=found.reason, cause=cause), cause
    more = decided.grants.get(job_id + GROWTH)
    if more is None:
        return (replace(old, reason="") if old.reason else old), ""
    if more.trainers:
        return resized(before, live.wish), ""
    reason = f"has {old.workers} of {live.wish} workers: {more.reason}"
    return replace(old, reason=reason), _cause(decided, job_id + GROWTH)


def _cause(decided: Plan, job_id: str) -> str:
    verdict = decided.waits.get(job_id)
    return cause_word(verdict.cause) if verdict is not None else ""


def unplaced_since(live: LiveJob, at: float) -> str:
    """The first pod that has had no node since then, of a granted job that has never run."""
    has_run = (live.body.get("status") or {}).get("startTime")
    if has_run or live.is_leaving or not live.granted or scheduler_of(live.job) == VOLCANO:
        return ""
    waiting = (pod for pod in live.pods if not (pod.node or pod.is_over or pod.is_leaving))
    return min((pod.name for pod in waiting if pod.created_at < at), default="")


def warnings(live: LiveJob, shares: Shares) -> tuple[Warned, ...]:
    """What is odd about the job's group, and about its namespace."""
    _, odd = shares.group_of(live.namespace, live.job.spec.group)
    found = [Warned("spec.schedulingPolicy.group", odd)] if odd else []
    return (*found, *shares.namespace(live.namespace).odd)


def grant(job: ClusterJob, allotted: Allotted | None, seen: Sequence[ReplicaObserved]) -> Grant:
    """The size the job has now; without a planner it is what it asks for."""
    wish = job.spec.trainers.replicas
    if job.suspend:
        return Grant(0, "it is suspended")
    if allotted is None:
        return Grant(wish)
    allocation = allotted.allocation
    if not allocation.workers and allocation.preemptions:
        # Whose workers were done before they could be stopped is done, and not run again.
        latest = completion.latest_attempts(seen)
        had = sum(role == Role.TRAINER for role, _ in latest)
        if completion.trainers_are_done(latest, had, restart.given_up(job.spec, seen)):
            return Grant(had)
    return Grant(min(allocation.workers, wish), allocation.reason, allocation.revision)


def events(spec: JobSpec, before: Allocation | None, now: Allocation) -> list[Event]:
    old = before or Allocation()
    if now.preemptions > old.preemptions and not now.workers:
        again = f" (preemption {now.preemptions})" if now.preemptions > 1 else ""
        words = f"{now.reason}; it goes back to the queue with its age{again}"
        return [Event(PREEMPTED, words, Severity.WARNING)]
    if now.workers and not old.workers:
        count = spec.replicas_at(now.workers)
        words = f"starts with {now.workers} trainer{'s' if now.workers > 1 else ''}"
        words += f", {count} replicas in all" if count > 1 else ""
        words += f" (after preemption {now.preemptions})" if now.preemptions else ""
        return [Event(_ADMITTED, words)]
    is_told = old.cause not in ("", SUSPENDED)
    if not now.workers and now.cause not in ("", SUSPENDED) and not is_told:
        return [Event("Queued", now.reason)]
    return []


def condition(allocation: Allocation) -> tuple[str, bool, str, str]:
    """Type, whether it is so, reason and message."""
    if allocation.workers:
        return _ADMITTED, True, _ADMITTED, allocation.reason
    return _ADMITTED, False, allocation.cause or "Waiting", allocation.reason
