"""Who runs when: the planner's place in the operator.

`answer(kind, body, pods)` says what a job has been granted; None means that it is not decided yet.
A job that fits while nobody waits is granted at once, without a plan: that is the common case, and
costs no call and no other thread. All others wait for a turn: one thread takes a snapshot of the
cluster (`engines.kubernetes.snapshots`), plans, and wakes the jobs whose grant or reason is
another. Turns come when something changed and somebody waits, with a pause after each that grows
with what it cost, so that planning takes a fifth of a core at most.

Nothing is known here that is not also on the API server: grants are written with the status of
their job, and a new operator begins with what it reads there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paddlecloud import clock
from paddlecloud.controller.allotments import (
    REFUSED,
    SUSPENDED,
    UNPLACED,
    Allotted,
    cause_word,
    resized,
    settle,
    unplaced_since,
    warnings,
)
from paddlecloud.controller.free_room import FreeRoom
from paddlecloud.controller.identity import Json
from paddlecloud.controller.inventory import Inventory, Readings
from paddlecloud.controller.remembering import seconds
from paddlecloud.core.errors import InvalidInput
from paddlecloud.engines.kubernetes import allocations, snapshots
from paddlecloud.engines.kubernetes.allocations import Allocation
from paddlecloud.engines.kubernetes.inventory import PodSeen, read_pod
from paddlecloud.engines.kubernetes.shares import UNLIMITED, Shares
from paddlecloud.engines.kubernetes.snapshots import Cluster, LiveJob, id_of
from paddlecloud.forms.custom_resources import ClusterJob
from paddlecloud.kube.kinds import Kind
from paddlecloud.scheduling.plan import Plan, plan
from paddlecloud.scheduling.verdicts import NEVER

log = logging.getLogger(__name__)

Jobs = Callable[[], Iterable[tuple[Kind, Json]]]
Wake = Callable[[Kind, Mapping[str, Any]], None]

PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
PAUSE_FACTOR = 4.0  # of what a turn cost
TOLD_AT_ONCE = 20  # so many at the head of the queue have their sentence renewed ...
RETELL_S = 5.0  # ... this often, and everybody's when its cause is another
FIRST_BAR_S, LONGEST_BAR_S = 5.0, 60.0  # how long a job that was refused stands aside
UNPLACED_S = 60.0  # how long a gang may hold others up that kube-scheduler cannot place whole
# A group may be told of a little later than a job that names it: so old must a job be before it is
# believed that it may not use the group.
GROUP_LATE_S = 3.0
RESYNC_S = 60.0  # somebody waits: look again even if nothing was heard

_NEVER = frozenset(cause_word(cause) for cause in NEVER)


class Admission:
    def __init__(
        self,
        inventory: Inventory,
        jobs: Jobs,
        pods: Callable[[], Iterable[Json]],
        wake: Wake,
        clock: Callable[[], float] = clock.now,
        leads: Callable[[], bool] = lambda: True,
        tell_groups: Callable[[], None] = lambda: None,
    ) -> None:
        self.inventory = inventory
        self._jobs, self._pod_bodies, self._wake_job = jobs, pods, wake
        self._clock, self._leads, self._tell_groups = clock, leads, tell_groups
        self._lock = threading.RLock()
        self._pods = Readings(read_pod)
        self._parsed: dict[str, tuple[object, ClusterJob | None]] = {}  # by uid, as all that follow
        self._known: dict[str, Allocation] = {}  # of live jobs that were looked at
        self._waiting: dict[str, str] = {}  # why; empty: no turn has looked at it yet
        self._told_at: dict[str, float] = {}  # when its sentence was last renewed
        self._barred: dict[str, tuple[float, float]] = {}  # until when, and for how long
        self._retell_at: float | None = None
        self._early_until: float | None = None
        self._room = FreeRoom()
        self._is_planning = False
        self._groups_changed = True
        inventory.changed, inventory.group_changed = self.notice, self._group_changed
        self._changed, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop, name="planner", daemon=True)
        self.turns, self.turn_s = 0, 0.0

    # --- life ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Before anybody asks: take over what was granted, and know who waits."""
        self.turn()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._changed.set()

    def begin_anew(self) -> None:
        """Another operator may have decided meanwhile: what counts is what it has written."""
        with self._lock:
            for memory in (self._known, self._waiting, self._told_at, self._barred):
                memory.clear()  # type: ignore[attr-defined]
            self.turn()

    def _group_changed(self) -> None:
        self._groups_changed = True
        self._changed.set()

    def notice(self) -> None:
        """Nodes, groups, namespaces or what others hold is not as it was."""
        self._room.forget()
        if self._waiting:
            self._changed.set()

    def pod_changed(self, body: Json, is_there: bool) -> None:
        with self._lock:
            is_other = self._pods.is_other(body, is_there)
        # While nobody waits the room is believed to be less than it is, which does no harm.
        if is_other and self._waiting:
            self._changed.set()

    def forget(self, uid: str) -> None:
        """The job has ended or is gone."""
        with self._lock:
            was_known = self._known.pop(uid, None) is not None
            self._parsed.pop(uid, None)
            self._waiting.pop(uid, None)
            self._told_at.pop(uid, None)
            self._barred.pop(uid, None)
        if was_known and self._waiting:
            self._changed.set()

    # --- one job ---------------------------------------------------------------------------------

    def answer(self, kind: Kind, body: Json, pods: Sequence[Json]) -> Allotted | None:
        uid, job = body["metadata"]["uid"], self._parse(kind, body)
        if job is None:
            return Allotted()  # nothing will be made of it
        shares = self.inventory.shares()
        with self._lock:
            known = self._known.get(uid)
            seen = [read_pod(pod) for pod in pods] if known is None else []
            mine = [pod for pod in seen if pod.owner == uid]
            live = LiveJob(body, job, mine, known)
            found = self._decide(live, known or self._remember(live), shares)
            if found is not None:
                self._known[uid] = found
        return None if found is None else Allotted(found, warnings(live, shares))

    def _remember(self, live: LiveJob) -> Allocation | None:
        """What the object says, or its pods do."""
        told, granted = allocations.read(live.body.get("status")), live.granted
        if granted and (told is None or not told.workers):
            return resized(told, granted)
        return told

    def _decide(self, live: LiveJob, known: Allocation | None, shares: Shares) -> Allocation | None:
        uid = live.uid
        if live.is_leaving:
            self._waiting.pop(uid, None)
            if not live.job.suspend:
                return known or Allocation()
            is_told = known is not None and known.cause == SUSPENDED
            return known if is_told else resized(known, 0, "it is suspended", SUSPENDED)
        if known is not None and known.workers:
            return self._resize(live, known, shares)
        if uid in self._waiting or uid in self._barred:
            return known
        if self._is_early(live, shares, self._clock()):
            self._queue(uid)
            return known
        if self._may_pass(live, shares) and self._fits(live):
            return resized(known, live.wish)
        self._queue(uid)
        return None if known is None or known.cause == SUSPENDED else known

    def _resize(self, live: LiveJob, known: Allocation, shares: Shares) -> Allocation:
        """Its user has changed its size: less is had at once, more is applied for."""
        if live.wish > known.workers:
            # Room for as many again is more than it needs, and asked for without a plan.
            if self._may_pass(live, shares) and self._fits(live):
                return resized(known, live.wish)
            if live.uid not in self._waiting:
                self._queue(live.uid)
            return known
        self._waiting.pop(live.uid, None)
        if live.wish < known.workers:
            if self._waiting:
                self._changed.set()
            return resized(known, live.wish)
        return replace(known, reason="") if known.reason else known

    def _is_early(self, live: LiveJob, shares: Shares, now: float) -> bool:
        """Whether it names a group that it seems not to be in, and is new."""
        _, odd = shares.group_of(live.namespace, live.job.spec.group)
        made_at = seconds(live.body["metadata"].get("creationTimestamp"))
        return bool(odd) and made_at is not None and 0.0 <= now - made_at < GROUP_LATE_S

    def _queue(self, uid: str) -> None:
        self._waiting[uid] = ""
        self._changed.set()

    def give_back(self, kind: Kind, body: Json, reason: str) -> None:
        """The API server would not have all of the gang: others may go first for a while."""
        uid = body["metadata"]["uid"]
        with self._lock:
            self._bar(uid, reason, REFUSED)
        self._changed.set()
        self._wake_job(kind, body)

    def _bar(self, uid: str, reason: str, cause: str) -> None:
        before_s = self._barred.get(uid, (0.0, 0.0))[1]
        bar_s = min(max(2 * before_s, FIRST_BAR_S), LONGEST_BAR_S)
        self._barred[uid] = (self._clock() + bar_s, bar_s)
        self._known[uid] = resized(self._known.get(uid), 0, reason, cause)
        self._waiting.pop(uid, None)
        self._room.forget()

    # --- the fast way ----------------------------------------------------------------------------

    def _may_pass(self, live: LiveJob, shares: Shares) -> bool:
        """Whether it may start without a plan: nobody waits, and nothing is shared out."""
        if self._is_planning or any(cause not in _NEVER for cause in self._waiting.values()):
            return False
        return not shares.groups and shares.namespace(live.namespace).quota == UNLIMITED

    def _fits(self, live: LiveJob) -> bool:
        now = self._clock()
        if self._room.take(live, now):
            return True
        self._room.look(self._look(), now)
        return self._room.take(live, now)

    # --- looking ---------------------------------------------------------------------------------

    def _parse(self, kind: Kind, body: Json) -> ClusterJob | None:
        uid, generation = body["metadata"]["uid"], body["metadata"].get("generation")
        known = self._parsed.get(uid)
        if known is not None and known[0] == generation:
            return known[1]
        try:
            job: ClusterJob | None = kind.parse(body)[0]
        except InvalidInput:
            job = None
        self._parsed[uid] = (generation, job)
        if known is not None and uid in self._waiting:
            self._changed.set()  # perhaps what it asks for now fits
        return job

    def _look(self) -> Cluster:
        """Everything there is now. What is known of jobs that are gone is forgotten."""
        by_owner: dict[str, list[PodSeen]] = defaultdict(list)
        for pod in self._pods.all(self._pod_bodies()):
            by_owner[pod.owner].append(pod)
        jobs, gone = [], set(self._parsed)
        for kind, body in self._jobs():
            uid = body["metadata"]["uid"]
            if (body.get("status") or {}).get("phase") in kind.phases.final:
                continue
            gone.discard(uid)
            job = self._parse(kind, body)
            if job is None:
                continue
            live = LiveJob(body, job, by_owner.pop(uid, ()), self._known.get(uid))
            if live.allocation is None:
                live = replace(live, allocation=self._remember(live))
            jobs.append(live)
        for uid in gone:
            self.forget(uid)
        orphans = [pod for pods in by_owner.values() for pod in pods]
        return Cluster(
            self.inventory.nodes(),
            jobs,
            self.inventory.strangers(),
            orphans,
            self.inventory.shares(),
        )

    # --- turns -----------------------------------------------------------------------------------

    def _loop(self) -> None:
        while not self._stopped.is_set():
            self._changed.wait(self._next_look_s())
            if self._stopped.is_set():
                return
            self._changed.clear()
            began = time.thread_time()
            try:
                self._do_what_is_due()
            except Exception:
                # A cluster that nobody thought of must not stop the jobs that run.
                log.exception("planning failed")
                self._stopped.wait(1.0)
            self.turn_s = time.thread_time() - began
            self._stopped.wait(min(max(PAUSE_S, PAUSE_FACTOR * self.turn_s), LONGEST_PAUSE_S))

    def _do_what_is_due(self) -> None:
        if not self._leads():
            return
        if self._groups_changed:
            self._groups_changed = False
            self._tell_groups()
        if self._waiting or self._barred:
            self.turn()

    def _next_look_s(self) -> float:
        with self._lock:
            now = self._clock()
            due = [until for until, _ in self._barred.values() if until > now]
            due += [at for at in (self._retell_at, self._early_until) if at is not None]
            return min(RESYNC_S, max(0.0, min(due, default=now + RESYNC_S) - now))

    def turn(self) -> None:
        """Plan once for everybody, and wake those for whom something is new."""
        with self._lock:
            now = self._clock()
            cluster = self._look()
            self._is_planning = True  # nobody passes while it is decided who may
            stuck = self._bar_the_stuck(cluster.jobs, now)
            jobs = [live for live in cluster.jobs if not self._stands_aside(live, cluster, now)]
            self._early_until = now + GROUP_LATE_S if len(jobs) < len(cluster.jobs) else None
        try:
            decided = plan(snapshots.build(replace(cluster, jobs=jobs), now))
            with self._lock:
                news = [*stuck, *self._apply(jobs, decided, now)]
        finally:
            self._is_planning = False
            self._room.forget()
        self.turns += 1
        kinds = {body["metadata"]["uid"]: kind for kind, body in self._jobs()} if news else {}
        for live in news:
            if live.uid in kinds:
                self._wake_job(kinds[live.uid], live.body)

    def _bar_the_stuck(self, jobs: Iterable[LiveJob], now: float) -> list[LiveJob]:
        """Gangs that were let in and found no place whole, while others wait for what they hold."""
        found = []
        for live in jobs:
            late = unplaced_since(live, now - UNPLACED_S)
            if late and self._waiting.keys() - {live.uid} and not self._is_barred(live.uid, now):
                reason = f"{late} found no node for {UNPLACED_S:.0f} s; others may go first"
                self._bar(live.uid, reason, UNPLACED)
                found.append(live)
        return found

    def _stands_aside(self, live: LiveJob, cluster: Cluster, now: float) -> bool:
        if self._is_barred(live.uid, now):
            return True
        return not live.granted and self._is_early(live, cluster.shares, now)

    def _is_barred(self, uid: str, now: float) -> bool:
        return uid in self._barred and self._barred[uid][0] > now

    def _apply(self, jobs: Iterable[LiveJob], decided: Plan, now: float) -> list[LiveJob]:
        """Remember what was decided; those about whom there is something to tell."""
        self._retell_at = None
        first, news = set(decided.order[:TOLD_AT_ONCE]), []
        for live in jobs:
            before = self._known.get(live.uid)
            is_other = before is not None and before != live.allocation  # decided meanwhile
            if live.is_leaving or is_other:
                continue
            self._waiting.pop(live.uid, None)
            found, cause = settle(live, live.allocation, decided, now)
            if cause:
                self._waiting[live.uid] = cause
            if self._is_worth_telling(live, found, id_of(live.body) in first, now):
                self._known[live.uid] = found
                self._told_at[live.uid] = now
                news.append(live)
        return news

    def _is_worth_telling(
        self, live: LiveJob, found: Allocation, is_at_the_head: bool, now: float
    ) -> bool:
        """Sentences name who holds what, so one start changes a thousand of them."""
        before = live.allocation
        if before is None or (before.workers, before.cause) != (found.workers, found.cause):
            told = allocations.read(live.body.get("status")) or Allocation()
            # The event about a preemption is made of its reason, which must not pass untold.
            return before is None or before.preemptions <= told.preemptions or bool(found.workers)
        if before.reason == found.reason:
            return live.uid not in self._known
        told_at = self._told_at.get(live.uid, 0.0)
        if not is_at_the_head and not found.workers:
            return False
        if now - told_at >= RETELL_S:
            return True
        self._retell_at = min(self._retell_at or told_at + RETELL_S, told_at + RETELL_S)
        return False

    def figures(self) -> dict[str, float]:
        """For `/metrics`."""
        return {
            "jobs_waiting": len(self._waiting),
            "plans_total": self.turns,
            "plan_seconds": self.turn_s,
        }
