"""`plan`: what to do next about one job, and what its status should say.

Pure and level triggered: the object, what exists of it and the time go in; changes to make, the
whole status and events come out, the same however often it is asked. The life of the job is
decided by `core.lifecycle`; here it is translated into pods of fixed names, their services and
their ConfigMap. `operator` calls it for one job at a time.

Two orders matter. A failure is in the status before its pod is deleted, so that it is never
forgotten. And the ConfigMap with the peers' addresses is deleted before pods are made that would
read old addresses from it; it comes back when every pod has its address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from paddlecloud.controller import pods as making
from paddlecloud.controller import statuses
from paddlecloud.controller.identity import (
    Identity,
    Json,
    identity_of,
    is_owned_by,
    slot_of,
)
from paddlecloud.controller.observing import failure_row, observe, probe_left_s, seconds, trouble
from paddlecloud.controller.peers import Site, Slot, shared_data
from paddlecloud.core import completion, lifecycle
from paddlecloud.core.actions import Decision, Event, Grant, Severity, Start, Stop
from paddlecloud.core.cleanup import wants_removal
from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import CleanPolicy
from paddlecloud.core.observed import Observed, ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.forms.custom_resources import ClusterJob, Intranet
from paddlecloud.kube.kinds import PADDLE_JOB, Kind

PODS, SERVICES, CONFIG_MAPS = "pods", "services", "configmaps"


@dataclass(frozen=True, slots=True)
class Create:
    plural: str
    body: Json


@dataclass(frozen=True, slots=True)
class Replace:
    plural: str
    body: Json  # with the version it was made from


@dataclass(frozen=True, slots=True)
class Delete:
    plural: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class End:
    """Stop a pod but keep it: its deadline is set to now, and its log can still be read."""

    name: str
    uid: str
    reason: str


Action = Create | Replace | Delete | End


@dataclass(frozen=True, slots=True)
class Children:
    """What exists under the job's names in its namespace, whoever owns it."""

    pods: Sequence[Json] = ()
    services: Sequence[Json] = ()
    config_map: Json | None = None  # the peers
    gate: Json | None = None  # what workers wait for until the servers listen


@dataclass(frozen=True, slots=True)
class Plan:
    actions: tuple[Action, ...] = ()
    status: Json | None = None  # None: leave it as it is
    events: tuple[Event, ...] = ()
    wake_after_s: float | None = None


def plan(body: Json, children: Children, site: Site, now: float, kind: Kind = PADDLE_JOB) -> Plan:
    metadata, old = body["metadata"], body.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return Plan()  # what it owns goes with it
    who, generation = identity_of(body, kind), int(metadata.get("generation") or 0)
    mine, has_ended = _owned(children, who.uid), old.get("phase") in kind.phases.final
    try:
        job, warnings = kind.parse(body)
    except InvalidInput as error:
        if has_ended:
            return Plan()
        status = statuses.build_invalid(kind.phases, error.message, old, generation, now)
        return Plan((), status, (Event("InvalidSpec", error.message, Severity.WARNING),))
    if has_ended:
        return Plan(tuple(_after_the_end(job, mine, kind.phase_of(body))))
    look = _Look(who, job, site, children, mine, old, now)
    decision = lifecycle.decide(who.job_id, 1, job.spec, look.grant, look.observed(body), now)
    failures = look.failures_after(decision)
    status = statuses.build(
        who,
        job,
        warnings,
        decision.status,
        look.seen,
        pods=look.pods,
        trouble=look.blocked() or look.lacks_volcano() or trouble(mine.pods),
        failures=failures,
        old=old,
        generation=generation,
        now=now,
    )
    events = [Event("OddSpec", str(one), Severity.WARNING) for one in warnings]
    if look.lacks_volcano():
        events.append(Event("NoVolcano", look.lacks_volcano(), Severity.WARNING))
    return Plan(
        tuple(look.actions(decision)),
        status,
        (*events, *decision.events),
        look.wake_after_s(decision),
    )


def _owned(children: Children, uid: str) -> Children:
    def mine(body: Json | None) -> Json | None:
        return body if body is not None and is_owned_by(body, uid) else None

    return Children(
        [pod for pod in children.pods if is_owned_by(pod, uid)],
        [service for service in children.services if is_owned_by(service, uid)],
        mine(children.config_map),
        mine(children.gate),
    )


def _after_the_end(job: ClusterJob, mine: Children, ended: Phase) -> Iterable[Action]:
    """By the clean-up policy; the ConfigMap stays until the job is deleted."""
    if wants_removal(job.spec.clean, ended):
        for pod in mine.pods:
            if not pod["metadata"].get("deletionTimestamp"):
                yield _delete(PODS, pod)
        for service in mine.services:
            yield _delete(SERVICES, service)


def _delete(plural: str, body: Json) -> Delete:
    return Delete(plural, body["metadata"]["name"], body["metadata"]["uid"])


@dataclass
class _Look:
    """One look at a job that has not ended."""

    who: Identity
    job: ClusterJob
    site: Site
    everybody: Children
    mine: Children
    old: Json
    now: float
    grant: Grant = field(init=False)
    seen: tuple[ReplicaObserved, ...] = field(init=False)
    pods: dict[Slot, Json] = field(init=False)

    def __post_init__(self) -> None:
        wish = self.job.spec.trainers.replicas
        self.grant = Grant(0, "it is suspended") if self.job.suspend else Grant(wish)
        failures = self.old.get("failures") or ()
        self.seen = observe(
            self.who, self.job.spec, self.job.intranet, self.mine.pods, failures, self.now
        )
        self.pods = {}
        for pod in self.mine.pods:
            slot = slot_of(pod)
            if slot is not None:
                self.pods[slot[0], slot[1]] = pod

    def observed(self, body: Json) -> Observed:
        starts = [one.started_at for one in self.seen if one.started_at is not None]
        told = seconds(self.old.get("startTime"))
        return Observed(
            self.seen,
            submitted_at=seconds(body["metadata"].get("creationTimestamp")) or 0.0,
            first_started_at=min([*starts, *([told] if told is not None else [])], default=None),
        )

    @property
    def wanted(self) -> list[Slot]:
        return completion.wanted_replicas(self.job.spec, self.grant.trainers)

    # --- failures that a restart would forget --------------------------------------------------

    def _replaced(self, decision: Decision) -> list[ReplicaObserved]:
        """Failed attempts whose pods stand in the way of the next."""
        starting = {
            (action.key.role, action.key.index)
            for action in decision.actions
            if isinstance(action, Start)
        }
        latest = completion.latest_attempts(self.seen)
        return [
            latest[slot]
            for slot in starting
            if slot in self.pods and slot in latest and completion.has_failed(latest[slot])
        ]

    def failures_after(self, decision: Decision) -> list[Json]:
        rows = list(self.old.get("failures") or ())
        known = {(row["role"], row["index"], row["attempt"]) for row in rows}
        for one in sorted(self._replaced(decision), key=lambda one: one.key):
            word = self.who.kind.role_word(one.key.role)
            if (word, one.key.index, one.key.attempt) not in known:
                rows.append(failure_row(one, word))
        return rows

    def lacks_volcano(self) -> str:
        """That nobody will place the pods; a sentence, or nothing."""
        if self.site.has_volcano or making.scheduler_of(self.job) != making.VOLCANO:
            return ""
        return "the job wants the scheduler volcano, which is not installed in this cluster"

    # --- names that somebody else has ------------------------------------------------------------

    def blocked(self) -> str:
        """Why a pod cannot be made although it should; a sentence, or nothing."""
        strangers = self._strangers()
        return (
            f"{strangers[0]} exists and is not of this job; it has to go first" if strangers else ""
        )

    def _strangers(self) -> list[str]:
        names = {self.who.pod_name(*slot) for slot in self.wanted}
        return sorted(
            pod["metadata"]["name"]
            for pod in self.everybody.pods
            if pod["metadata"]["name"] in names and not is_owned_by(pod, self.who.uid)
        )

    # --- actions ---------------------------------------------------------------------------------

    def actions(self, decision: Decision) -> Iterable[Action]:
        if decision.status.phase in TERMINAL:
            return  # told first; what is left is removed at the next look
        for action in decision.actions:
            if isinstance(action, Stop):
                yield from self._stop(action, decision.ending)
        if decision.ending or self.grant.trainers == 0:
            return
        yield from self._services()
        data = self._data()
        creations = list(self._creations(decision))
        if data is None and self.mine.config_map is not None:
            yield _delete(CONFIG_MAPS, self.mine.config_map)
        if self.mine.gate is not None and self._lacks_a_server():
            yield _delete(CONFIG_MAPS, self.mine.gate)
        yield from creations
        if data is not None:
            yield from self._config_map(data)
        if self.mine.gate is None and self.everybody.gate is None and self._servers_listen():
            yield Create(CONFIG_MAPS, making.gate(self.who))

    def _stop(self, action: Stop, is_ending: bool) -> Iterable[Action]:
        pod = self.pods.get((action.key.role, action.key.index))
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        if is_ending and self._is_kept():
            yield End(pod["metadata"]["name"], pod["metadata"]["uid"], action.reason)
        else:
            yield _delete(PODS, pod)

    def _is_kept(self) -> bool:
        """Whether the policy keeps pods after the end that is coming."""
        well = completion.trainers_are_done(
            completion.latest_attempts(self.seen), self.grant.trainers
        )
        policy: CleanPolicy = self.job.spec.clean
        return not wants_removal(policy, Phase.SUCCEEDED if well else Phase.FAILED)

    def _services(self) -> Iterable[Action]:
        names = {self.who.pod_name(*slot): slot for slot in self.wanted}
        if self.job.intranet != Intranet.SERVICE:
            names = {}
        have = {service["metadata"]["name"] for service in self.mine.services}
        for name, slot in names.items():
            if name not in have:
                yield Create(SERVICES, making.service(self.who, self.job, *slot))
        for service in self.mine.services:
            if service["metadata"]["name"] not in names:
                yield _delete(SERVICES, service)

    def _creations(self, decision: Decision) -> Iterable[Action]:
        """Pods to make; first, and then alone, those that stand in the way of new attempts."""
        told = {
            (row["role"], row["index"], row["attempt"]) for row in self.old.get("failures") or ()
        }
        starts = [action.key for action in decision.actions if isinstance(action, Start)]
        in_the_way = [key for key in starts if (key.role, key.index) in self.pods]
        for key in in_the_way:
            pod = self.pods[key.role, key.index]
            slot = slot_of(pod)
            is_told = slot is not None and (self.who.kind.role_word(slot[0]), *slot[1:]) in told
            if is_told and not pod["metadata"].get("deletionTimestamp"):
                yield _delete(PODS, pod)
        if in_the_way:
            return
        taken = set(self._strangers())
        for key in [*starts, *self._planned()]:
            if self.who.pod_name(key.role, key.index) not in taken:
                size = self.grant.trainers
                yield Create(PODS, making.pod(self.job, self.who, self.site, size, key))

    def _planned(self) -> list[ReplicaKey]:
        """Replicas of a restart under way that have no pod yet."""
        return [
            one.key
            for one in self.seen
            if one.state == ReplicaState.PENDING and (one.key.role, one.key.index) not in self.pods
        ]

    # --- the peers -------------------------------------------------------------------------------

    def _data(self) -> dict[str, str] | None:
        """The content of the ConfigMap; None while an address is not known."""
        addresses = self._addresses()
        if any(not addresses.get(slot) for slot in self.wanted):
            return None
        return shared_data(self.job, self.who, self.site, self.grant.trainers, addresses)

    def _addresses(self) -> Mapping[Slot, str]:
        if self.job.intranet == Intranet.SERVICE:
            return {slot: self.who.pod_name(*slot) for slot in self.wanted}
        latest = completion.latest_attempts(self.seen)
        return {
            slot: one.address
            for slot, one in latest.items()
            if slot in self.pods and not one.stopping
        }

    # --- servers first ---------------------------------------------------------------------------

    def _servers(self) -> list[Slot]:
        return [slot for slot in self.wanted if slot[0] in making.SERVERS]

    def _lacks_a_server(self) -> bool:
        return any(slot not in self.pods for slot in self._servers())

    def _servers_listen(self) -> bool:
        latest = completion.latest_attempts(self.seen)
        return making.starts_servers_first(self.job) and all(
            slot in self.pods and (latest[slot].state == ReplicaState.RUNNING)
            for slot in self._servers()
        )

    def wake_after_s(self, decision: Decision) -> float | None:
        """When to look again: by the job's life, or when a server's time to listen is over."""
        left = [probe_left_s(pod, self.now) for pod in self.mine.pods]
        waits = [*(one for one in left if one is not None and one > 0)]
        if decision.wake_after_s is not None:
            waits.append(decision.wake_after_s)
        return min(waits, default=None)

    def _config_map(self, data: dict[str, str]) -> Iterable[Action]:
        there = self.mine.config_map
        if there is None:
            if self.everybody.config_map is None:
                yield Create(CONFIG_MAPS, making.config_map(self.who, data))
        elif (there.get("data") or {}) != data:
            yield Replace(CONFIG_MAPS, {**there, "data": data})
