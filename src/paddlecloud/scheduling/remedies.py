"""What its owner could change so that a job starts sooner, cheapest first.

Every answer is tried on the desk that served the queue up to the job: the job with one thing
changed is judged in its place. Only changes that the planner has confirmed are offered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from paddlecloud.core.durations import format_duration
from paddlecloud.core.jobspec import JobSpec, Priority, Role, RoleSpec
from paddlecloud.core.resources import Resources, format_cpu, format_memory
from paddlecloud.scheduling.admission import keep_room_for
from paddlecloud.scheduling.amounts import amount
from paddlecloud.scheduling.desk import Desk
from paddlecloud.scheduling.estimates import estimate
from paddlecloud.scheduling.explanation import Remedy
from paddlecloud.scheduling.fitting import smallest
from paddlecloud.scheduling.ordering import rank
from paddlecloud.scheduling.placement import plus
from paddlecloud.scheduling.quotas import LIMITS
from paddlecloud.scheduling.reasons import Words
from paddlecloud.scheduling.snapshot import JobView
from paddlecloud.scheduling.verdicts import NEVER, Applicant, Cause, Verdict

_CPU_STEP_MILLI = 100
_MEMORY_STEP_BYTES = 128 * 2**20
_LEAST_SHARE = 2  # no offer takes a trainer below 1/2 of what was asked for it
_OFFERS = 3
_PRIORITY_IS_NO_HELP = (Cause.OVER_QUOTA, Cause.OVER_LIMIT, Cause.RECLAIMING, Cause.STOPPING)


@dataclass(frozen=True, slots=True)
class Case:
    """A waiting job, its verdict, and the desk with the queue served up to it."""

    desk: Desk
    job: Applicant
    verdict: Verdict
    ahead: Sequence[tuple[Applicant, Verdict]]
    words: Words

    def judge(self, spec: JobSpec) -> Verdict:
        view = replace(self.job.view, spec=spec)
        return self.desk.judge(Applicant(view, self.desk.cluster, self.desk.now))

    def helps(self, verdict: Verdict) -> bool:
        """It starts; or, for a job that never could, it could."""
        return verdict.trainers > 0 or (self.verdict.cause in NEVER and verdict.cause not in NEVER)


def remedies(case: Case) -> tuple[Remedy, ...]:
    # Priority comes last: it asks the desk about another place in the queue.
    found = [
        *_borrowing(case),
        *_fewer_trainers(case),
        *_smaller_trainers(case),
        *_higher_limit(case),
        *_higher_priority(case),
    ]
    found.sort(key=lambda remedy: not remedy.effect.startswith("starts now"))
    return tuple(found[:_OFFERS])


def _effect(verdict: Verdict) -> str:
    return "starts now" if verdict.trainers else "can start when its turn comes"


def _largest(most: int, works: Callable[[int], bool]) -> int:
    """The largest number in 1..most that works, given that smaller is easier; 0 if none does."""
    if most < 1 or not works(1):
        return 0
    least = 1
    while least < most:
        middle = (least + most + 1) // 2
        if works(middle):
            least = middle
        else:
            most = middle - 1
    return least


def _with_trainers(spec: JobSpec, trainers: RoleSpec) -> JobSpec:
    roles = (trainers if role.role == Role.TRAINER else role for role in spec.roles)
    return replace(spec, roles=tuple(roles))


def _fewer_trainers(case: Case) -> Iterator[Remedy]:
    spec = case.job.view.spec
    old = spec.trainers
    is_elastic = old.min_replicas < old.max_replicas

    def smaller(count: int) -> JobSpec:
        most = old.max_replicas if is_elastic else count
        return _with_trainers(
            spec, replace(old, replicas=count, min_replicas=count, max_replicas=most)
        )

    count = _largest(smallest(spec) - 1, lambda count: case.helps(case.judge(smaller(count))))
    if count:
        flag = "--min" if is_elastic else "--parallelism"
        yield Remedy(f"{flag} {count}", _effect(case.judge(smaller(count))))


def _smaller_trainers(case: Case) -> Iterator[Remedy]:
    """Less cpu, or less memory, for each trainer."""
    spec = case.job.view.spec
    old = spec.trainers
    each = old.resources

    def with_cpu(steps: int) -> JobSpec:
        less = Resources(steps * _CPU_STEP_MILLI, each.memory_bytes, each.gpu)
        return _with_trainers(spec, replace(old, resources=less))

    def with_memory(steps: int) -> JobSpec:
        less = Resources(each.cpu_milli, steps * _MEMORY_STEP_BYTES, each.gpu)
        return _with_trainers(spec, replace(old, resources=less))

    most = (each.cpu_milli - 1) // _CPU_STEP_MILLI
    steps = _largest(most, lambda steps: case.helps(case.judge(with_cpu(steps))))
    if steps and steps * _CPU_STEP_MILLI * _LEAST_SHARE >= each.cpu_milli:
        cpu = format_cpu(steps * _CPU_STEP_MILLI)
        yield Remedy(f"--cpu {cpu}", _effect(case.judge(with_cpu(steps))))
    most = (each.memory_bytes - 1) // _MEMORY_STEP_BYTES
    steps = _largest(most, lambda steps: case.helps(case.judge(with_memory(steps))))
    if steps and steps * _MEMORY_STEP_BYTES * _LEAST_SHARE >= each.memory_bytes:
        memory = format_memory(steps * _MEMORY_STEP_BYTES)
        yield Remedy(f"--memory {memory}", _effect(case.judge(with_memory(steps))))


def _borrowing(case: Case) -> Iterator[Remedy]:
    """On what other groups are guaranteed and leave idle."""
    spec = case.job.view.spec
    if spec.may_borrow or not case.desk.groups.exist:
        return
    verdict = case.judge(replace(spec, may_borrow=True))
    if case.helps(verdict):
        yield Remedy("--may-borrow", f"{_effect(verdict)}, and may be preempted")


def _higher_limit(case: Case) -> Iterator[Remedy]:
    """What its group's owner would have to ask the administrator for."""
    if case.verdict.cause not in (Cause.OVER_LIMIT, Cause.LIMIT_TOO_SMALL):
        return
    desk, name = case.desk, case.job.view.group
    limit, left = desk.limits[name], desk.purses[name]
    short = [max(0, need - have) for need, have in zip(case.job.claim, left, strict=True)]
    flags = [
        f"--limit-{resource} {amount(resource, limit[index] + short[index], up=True)}"
        for index, resource in enumerate(LIMITS)
        if short[index]
    ]
    desk.limits[name], desk.purses[name] = plus(limit, tuple(short)), plus(left, tuple(short))
    try:
        verdict = desk.judge(case.job)
    finally:
        desk.limits[name], desk.purses[name] = limit, left
    if verdict.cause not in (Cause.OVER_LIMIT, Cause.LIMIT_TOO_SMALL):
        yield Remedy(f"paddlecloud group quota {name} {' '.join(flags)}", _effect(verdict))


def _higher_priority(case: Case) -> Iterator[Remedy]:
    """The lowest priority that brings it forward."""
    spec = case.job.view.spec
    if case.verdict.cause in (*NEVER, *_PRIORITY_IS_NO_HELP):
        return
    for priority in sorted(Priority):
        if priority <= spec.priority:
            continue
        view = replace(case.job.view, spec=replace(spec, priority=priority))
        raised = Applicant(view, case.desk.cluster, case.desk.now)
        raised.is_guaranteed = case.job.is_guaranteed
        key = rank(raised, case.job.rank[2])
        still = [row for row in case.ahead if row[0].rank < key]
        passed = [row[0].view for row in case.ahead[len(still) :]]
        if passed:
            effect = _effect_of_passing(case, view, still, passed)
            if effect:
                yield Remedy(f"--priority {priority.word}", effect)
                return


def _effect_of_passing(
    case: Case,
    view: JobView,
    still: Sequence[tuple[Applicant, Verdict]],
    passed: Sequence[JobView],
) -> str:
    desk = case.desk
    job = Applicant(view, desk.cluster, desk.now)
    keep_room_for(desk, still)
    verdict = desk.judge(job)
    before = _passed_words(passed, case.job.view, case.words)
    if verdict.trainers:
        return "starts now"
    old = estimate(desk, case.job, case.verdict, case.ahead, case.words)
    new = estimate(desk, job, verdict, still, case.words)
    if new.latest_s is None:
        return f"goes {before}"
    if old.latest_s is None or new.latest_s < old.latest_s - 1:
        return f"starts in {format_duration(math.ceil(new.latest_s), up=True)} ({before})"
    return ""


def _passed_words(passed: Sequence[JobView], reader: JobView, words: Words) -> str:
    more = f" and {len(passed) - 1} more" if len(passed) > 1 else ""
    return f"before {words.name(passed[0], reader)}{more}"
