"""`plan`: what to do next about one job, and what its status should say.

Pure and level triggered: the object, what exists of it and the time go in; changes to make, the
whole status and events come out, the same however often it is asked. The life of the job is
decided by `core.lifecycle`; here it is translated into pods of fixed names, their services and
their ConfigMap. `operator` calls it for one job at a time.

Two orders matter. How an attempt ended is in the status before its pod is deleted, so that it is
never forgotten. And the ConfigMap with the peers' addresses is deleted before pods are made that
would read old addresses from it; it comes back when every pod has its address.
"""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.controller import (
    allotments,
    in_front,
    nudging,
    orders,
    podgroups,
    predecessors,
    statuses,
)
from paddlecloud.controller import pods as making
from paddlecloud.controller.allotments import Allotted
from paddlecloud.controller.holding import is_to_be_read
from paddlecloud.controller.identity import (
    Json,
    identity_of,
    is_owned_by,
)
from paddlecloud.controller.looking import Look
from paddlecloud.controller.observing import probe_left_s
from paddlecloud.controller.peers import Site, Slot, shared_data
from paddlecloud.controller.plans import (
    CONFIG_MAPS,
    PODS,
    SERVICES,
    Action,
    Children,
    Create,
    Delete,
    End,
    Nudge,
    Plan,
    Replace,
)
from paddlecloud.controller.podgroups import POD_GROUPS
from paddlecloud.controller.remembering import readable
from paddlecloud.core import lifecycle, restart
from paddlecloud.core.actions import Decision, Event, Severity, Start, Stop
from paddlecloud.core.cleanup import wants_removal
from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.observed import ReplicaKey, ReplicaState
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.engines.kubernetes import allocations
from paddlecloud.forms.custom_resources import ClusterJob, Intranet, Warned
from paddlecloud.kube.kinds import PADDLE_JOB, Kind


def plan(
    body: Json,
    children: Children,
    site: Site,
    now: float,
    kind: Kind = PADDLE_JOB,
    allotted: Allotted | None = None,
) -> Plan:
    """`allotted` is what the planner says; None: nobody plans, so pods are made at once."""
    metadata, old = body["metadata"], readable(body.get("status"))
    if metadata.get("deletionTimestamp"):
        return Plan()  # what it owns goes with it
    who, generation = identity_of(body, kind), int(metadata.get("generation") or 0)
    mine, has_ended = _owned(children, who.uid), old.get("phase") in kind.phases.final
    asked = orders.read(body)
    try:
        job, warnings = kind.parse(body)
    except InvalidInput as error:
        if has_ended:
            return Plan()
        if asked.cancel:
            return _end_unread(kind, mine, asked.cancel, old, generation, now)
        status = statuses.build_invalid(kind.phases, error.message, old, generation, now)
        return Plan((), status, (Event("InvalidSpec", error.message, Severity.WARNING),))
    if has_ended:
        return Plan(tuple(_after_the_end(job, mine, kind.phase_of(body))))
    warnings = (*warnings, *asked.warnings, *(allotted.warnings if allotted else ()))
    warnings = (*warnings, *_without_etcd(job, site))
    look = _Steps(who, job, site, children, mine, old, asked, allotted, now)
    decision = lifecycle.decide(who.job_id, 1, job.spec, look.grant, look.observed(body), now)
    status = statuses.build(
        who,
        job,
        warnings,
        decision.status,
        look.seen,
        pods=look.pods,
        trouble=look.trouble(),
        remembered=look.remembered_after(decision),
        old=old,
        generation=generation,
        now=now,
    )
    events = [Event("OddSpec", str(one), Severity.WARNING) for one in warnings]
    if allotted is not None:
        statuses.add_allocation(status, allotted.allocation, old, now)
        before = allocations.read(old)
        events += allotments.events(job.spec, before, allotted.allocation)
    if look.lacks_volcano():
        events.append(Event("NoVolcano", look.lacks_volcano(), Severity.WARNING))
    cleared = predecessors.left_behind(who, metadata.get("creationTimestamp"), children)
    return Plan(
        (*cleared, *look.actions(decision)),
        status,
        (*events, *decision.events),
        look.wake_after_s(decision),
    )


def _without_etcd(job: ClusterJob, site: Site) -> tuple[Warned, ...]:
    if not job.elastic or site.elastic_server:
        return ()
    problem = "needs an etcd, which this operator was not given (--etcd-server); it does nothing"
    return (Warned("spec.elastic", problem),)


def _owned(children: Children, uid: str) -> Children:
    def mine(body: Json | None) -> Json | None:
        return body if body is not None and is_owned_by(body, uid) else None

    return Children(
        [pod for pod in children.pods if is_owned_by(pod, uid)],
        [service for service in children.services if is_owned_by(service, uid)],
        mine(children.config_map),
        mine(children.gate),
        mine(children.pod_group),
        mine(children.runtime),
    )


def _end_unread(
    kind: Kind, mine: Children, why: str, old: Json, generation: int, now: float
) -> Plan:
    """Killed although nobody can read the spec (any more): no policy is known, so all pods go."""
    deletions = [
        _delete(PODS, pod) for pod in mine.pods if not pod["metadata"].get("deletionTimestamp")
    ]
    if mine.pods:
        return Plan(tuple(deletions))
    status = statuses.build_killed(kind.phases, why, old, generation, now)
    return Plan((), status, (Event("Killed", why),))


def _after_the_end(job: ClusterJob, mine: Children, ended: Phase) -> Iterable[Action]:
    """By the clean-up policy; the ConfigMap stays until the job is deleted."""
    if mine.pod_group is not None:
        yield _delete(POD_GROUPS, mine.pod_group)
    if wants_removal(job.spec.clean, ended):
        for pod in mine.pods:
            if not (pod["metadata"].get("deletionTimestamp") or is_to_be_read(pod)):
                yield _delete(PODS, pod)
        for service in mine.services:
            yield _delete(SERVICES, service)


def _delete(plural: str, body: Json) -> Delete:
    return Delete(plural, body["metadata"]["name"], body["metadata"]["uid"])


class _Steps(Look):
    """What to do next about it."""

    def actions(self, decision: Decision) -> Iterable[Action]:
        if decision.status.phase in TERMINAL:
            return  # told first; what is left is removed at the next look
        for action in decision.actions:
            if isinstance(action, Stop):
                yield from self._stop(action, decision.ending)
        if decision.ending or self.grant.trainers == 0:
            if self.mine.pod_group is not None and not self.pods:
                yield _delete(POD_GROUPS, self.mine.pod_group)
            return
        yield from self._pod_group()
        yield from self._services()
        yield from self._runtime()
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
        for pod in self._nudgeable():
            if nudging.left_s(pod, self.now) <= 0:
                yield Nudge(pod["metadata"]["name"], pod["metadata"]["uid"])

    def _nudgeable(self) -> list[Json]:
        """Pods whose kubelet misses what is there by now."""
        maps = {self.who.peers_name: self.mine.config_map, self.who.gate_name: self.mine.gate}
        there = [name for name, body in maps.items() if body is not None]
        return nudging.waiting(self.mine.pods, there)

    def _stop(self, action: Stop, is_ending: bool) -> Iterable[Action]:
        slot = (action.key.role, action.key.index)
        pod = self.pods.get(slot)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        if not is_ending and slot in self.ordered_away():
            return  # told first; its successor's creation removes it
        # Without a node there is no kubelet that would end it, and no log to keep.
        if is_ending and self.is_kept() and (pod.get("spec") or {}).get("nodeName"):
            yield End(pod["metadata"]["name"], pod["metadata"]["uid"], action.reason)
        else:
            yield _delete(PODS, pod)

    def _pod_group(self) -> Iterable[Action]:
        if making.scheduler_of(self.job) != making.VOLCANO or not self.site.has_volcano:
            return
        there = self.everybody.pod_group
        wanted = podgroups.pod_group(self.who, self.job, self.grant.trainers)
        if there is None:
            yield Create(POD_GROUPS, wanted)
        elif self.mine.pod_group is not None and not podgroups.is_as_wanted(there, wanted):
            yield Replace(POD_GROUPS, podgroups.updated(there, wanted))

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

    def _runtime(self) -> Iterable[Action]:
        """Before the pods that mount it."""
        if self.everybody.runtime is None and in_front.is_used(self.job, self.who):
            yield Create(CONFIG_MAPS, in_front.config_map(self.who))

    def _creations(self, decision: Decision) -> Iterable[Action]:
        """Pods to make; first, and then alone, those that stand in the way of new attempts."""
        starts = [action.key for action in decision.actions if isinstance(action, Start)]
        in_the_way = [key for key in starts if (key.role, key.index) in self.pods]
        for key in in_the_way:
            pod = self.pods[key.role, key.index]
            is_going = pod["metadata"].get("deletionTimestamp")
            if self.is_told(pod) and not is_going and not is_to_be_read(pod):
                yield _delete(PODS, pod)
        if in_the_way:
            return
        taken = set(self.strangers())
        for key in [*starts, *self.planned()]:
            if self.who.pod_name(key.role, key.index) not in taken:
                yield Create(PODS, self._pod(key))

    def _pod(self, key: ReplicaKey) -> Json:
        made = making.pod(self.job, self.who, self.site, self.grant.trainers, key)
        away = {
            move.host
            for move in self.asked.moves
            if (move.role, move.index) == (key.role, key.index) and move.attempt < key.attempt
        }
        making.keep_off(made["spec"], sorted(away))
        if restart.joins_trained_servers(key, self.seen):
            making.leave_servers_alone(made["spec"])
        return made

    # --- the peers -------------------------------------------------------------------------------

    def _data(self) -> dict[str, str] | None:
        """The content of the ConfigMap; None while an address is not known."""
        addresses = self.addresses()
        if any(not addresses.get(slot) for slot in self.wanted):
            return None
        return shared_data(self.job, self.who, self.site, self.grant.trainers, addresses)

    # --- servers first ---------------------------------------------------------------------------

    def _servers(self) -> list[Slot]:
        return [slot for slot in self.wanted if slot[0] in making.SERVERS]

    def _lacks_a_server(self) -> bool:
        return any(slot not in self.pods for slot in self._servers())

    def _servers_listen(self) -> bool:
        return making.starts_servers_first(self.job) and all(
            slot in self.pods and (self.latest[slot].state == ReplicaState.RUNNING)
            for slot in self._servers()
        )

    def wake_after_s(self, decision: Decision) -> float | None:
        """When to look again: by the job's life, or when a server's time to listen is over."""
        left = [probe_left_s(pod, self.now) for pod in self.mine.pods]
        waits = [*(one for one in left if one is not None and one > 0)]
        waits += [nudging.left_s(pod, self.now) for pod in self._nudgeable()]
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
