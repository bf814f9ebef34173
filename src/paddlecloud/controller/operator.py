"""The operator's loop: look at a job, plan, act, tell its status once.

Informers keep copies of the jobs and of what belongs to them, and put the name of the job of
everything that changed into a queue; workers take names and reconcile. All that is remembered is
on the API server: an operator killed at any moment is replaced by one that looks and goes on. The
lease keeps two operators from doing the same work; correctness does not rest on it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from paddlecloud import clock
from paddlecloud.controller import families, holding, in_front, resource_groups, restless, statuses
from paddlecloud.controller.acting import Actor, NameTaken
from paddlecloud.controller.admission import Admission
from paddlecloud.controller.families import Families, JobKey, job_key
from paddlecloud.controller.identity import Identity, Json, identity_of, is_owned_by
from paddlecloud.controller.inventory import GROUPS_VERSION, Inventory
from paddlecloud.controller.peers import Site
from paddlecloud.controller.planning import plan
from paddlecloud.controller.plans import CONFIG_MAPS, PODS, Delete, Nudge, Plan
from paddlecloud.controller.podgroups import POD_GROUPS, PodGroups, names_volcano
from paddlecloud.controller.remembering import readable
from paddlecloud.controller.restless import Restless, Watchfulness
from paddlecloud.controller.surroundings import Surroundings
from paddlecloud.controller.workers import LONGEST_RETRY_S, Names
from paddlecloud.core.actions import Event, Severity
from paddlecloud.kube.client import Client, collection, member
from paddlecloud.kube.definitions import RESOURCE_GROUPS
from paddlecloud.kube.informers import Informer, Key, Watched, key_of
from paddlecloud.kube.kinds import KINDS, Kind
from paddlecloud.kube.leases import Lease
from paddlecloud.kube.refusals import Refused
from paddlecloud.kube.words import JOB_LABEL

log = logging.getLogger(__name__)

COMPONENT = "paddlecloud"
# What the API server will not have (a template, more than the quota) is offered again this late:
# only somebody's change will help, and that of a quota is not heard of.
FINAL_PAUSE_S, LONGEST_FINAL_PAUSE_S = 5.0, 60.0
FENCED_S = 0.3  # after which a job is looked at again that a lost lease interrupted
TELL_S = 1.0  # how pods of a job come up is told this often


@dataclass(frozen=True, slots=True)
class Settings:
    """How one operator runs."""

    namespace: str = ""  # empty: all
    workers: int = 8  # jobs reconciled at once; each is mostly waiting for the API server
    resync_s: float = 600.0  # every job is looked at this often even if nothing was heard of it
    site: Site = field(default_factory=Site)
    plans: bool = True  # False: pods are made at once, whatever there is
    log_wait_s: float = holding.WAIT_S  # how long pods are held for their logs to be stored


def _generation(body: Json) -> int:
    return int(body["metadata"].get("generation") or 0)


class Operator:
    def __init__(
        self,
        client: Client,
        settings: Settings | None = None,
        lease: Lease | None = None,
        clock: Callable[[], float] = clock.now,
    ) -> None:
        self._client = client
        self._settings = settings or Settings()
        self._lease = lease
        self._clock = clock
        self.names: Names[JobKey] = Names()
        self._families = Families(lambda plural, child: self._informers[plural].find(child))
        self._admission = self._make_admission() if self._settings.plans else None
        self._pod_groups = PodGroups(client, self._settings.namespace, self._group_changed)
        self._informers = self._make_informers()
        self._actor = Actor(client, self._learn, COMPONENT)
        self._watchful = Watchfulness()
        self._threads: list[threading.Thread] = []
        self._stopped = threading.Event()
        self._has_lost_the_lead, self._lead_lock = False, threading.Lock()
        self._surroundings = Surroundings(client, self._settings.site)
        self._is_started = threading.Event()
        self._told_at: dict[str, float] = {}  # by the uid of a job, when its status was written
        self.reconciles = self.failures = 0

    def _make_informers(self) -> dict[str, Informer]:
        namespace = self._settings.namespace
        found = {
            kind.plural: Informer(
                self._client,
                Watched(collection(kind.api_version, kind.plural, namespace)),
                lambda body, kind=kind: self._job_changed(kind, body),  # type: ignore[misc]
            )
            for kind in KINDS
        }
        for plural in families.PLURALS:
            found[plural] = Informer(
                self._client,
                Watched(collection("v1", plural, namespace), JOB_LABEL),
                lambda body, plural=plural: self._child_changed(plural, body),  # type: ignore[misc]
                in_front.without_text if plural == CONFIG_MAPS else None,
            )
        return found

    def _make_admission(self) -> Admission:
        """The planner, with the copies that the operator has anyway."""

        def jobs() -> Iterable[tuple[Kind, Json]]:
            for kind in KINDS:
                for body in self._informers[kind.plural].all():
                    yield kind, body

        def wake(kind: Kind, body: Mapping[str, Any]) -> None:
            metadata = body["metadata"]
            self.names.add(JobKey(kind, metadata.get("namespace", ""), metadata["name"]))

        return Admission(
            Inventory(self._client, self._settings.namespace),
            jobs,
            lambda: self._informers[PODS].all(),
            wake,
            self._clock,
            lambda: self._lease is None or self._lease.leads.is_set(),
            self._tell_groups,
        )

    # --- what belongs to which job ---------------------------------------------------------------

    def _job_changed(self, kind: Kind, body: Json) -> None:
        self.names.add(job_key(kind, body))
        if self._informers[kind.plural].find(key_of(body)) is None:
            self._told_at.pop(body["metadata"]["uid"], None)
            if self._admission is not None:
                self._admission.forget(body["metadata"]["uid"])

    def _group_changed(self, key: Key) -> None:
        for kind in KINDS:
            job = (key[0], key[1].removesuffix(kind.suffix))
            if self._informers[kind.plural].find(job) is not None:
                self.names.add(JobKey(kind, *job))

    def _child_changed(self, plural: str, body: Json) -> None:
        key = self._families.file(plural, body)
        if plural == PODS and self._admission is not None:
            is_there = self._informers[PODS].find(key_of(body)) is not None
            self._admission.pod_changed(body, is_there)
        if key is not None:
            self.names.add(key)

    def _learn(self, plural: str, body: Json) -> None:
        if plural == POD_GROUPS:
            return self._pod_groups.learn(body)
        self._informers[plural].learn(body)
        if plural in families.PLURALS:
            self._families.file(plural, body)

    # --- life ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Reconcile until `stop`. Raises nothing that a later look could mend."""
        for informer in self._all_informers():
            informer.start()
        if self._lease is not None and not self._lease.hold():
            return self._finish()
        for informer in self._all_informers():
            while not informer.listed.wait(0.2) and not informer.is_missing:
                if self._stopped.is_set():
                    return self._finish()
        if self._admission is not None:
            self._admission.begin()
        log.info("this operator leads")
        self._is_started.set()
        for number in range(self._settings.workers):
            worker = threading.Thread(target=self._work, name=f"worker {number}", daemon=True)
            worker.start()
            self._threads.append(worker)
        while not self._stopped.wait(self._settings.resync_s):
            for kind in KINDS:
                for body in self._informers[kind.plural].all():
                    self.names.add(job_key(kind, body))
        return self._finish()

    def _all_informers(self) -> list[Informer]:
        planners = self._admission.inventory.informers if self._admission is not None else []
        return [*self._informers.values(), *planners]

    def is_ready(self) -> bool:
        """Whether it leads and has its copies whole."""
        return self._is_started.is_set() and (self._lease is None or self._lease.leads.is_set())

    def _leads(self) -> bool:
        """Wait until we do, as after a lease that was lost; False when stopped first."""
        while self._lease is not None and not self._lease.leads.wait(0.5):
            self._has_lost_the_lead = True
            if self._stopped.is_set():
                return False
        if self._has_lost_the_lead:
            with self._lead_lock:
                if self._has_lost_the_lead and self._admission is not None:
                    self._admission.begin_anew()
                self._has_lost_the_lead = False
        return True

    def stop(self) -> None:
        """Begin to stop; jobs in hand are finished first. Safe to call from a signal handler."""
        self._stopped.set()

    def _finish(self) -> None:
        self._is_started.clear()
        self.names.close()
        for worker in self._threads:
            worker.join(30)
        if self._admission is not None:
            self._admission.stop()
        for informer in self._all_informers():
            informer.stop()
        self._pod_groups.stop()
        if self._lease is not None:
            self._lease.stop()

    # --- one job ---------------------------------------------------------------------------------

    def _work(self) -> None:
        while (key := self.names.take()) is not None and self._leads():
            ok, least_s, longest_s = False, 0.0, LONGEST_RETRY_S
            try:
                self.reconcile(key)
                ok = True
            except Refused as error:
                least_s = error.retry_after_s or 0.0
                if error.is_final:
                    least_s, longest_s = FINAL_PAUSE_S, LONGEST_FINAL_PAUSE_S
                if error.is_fenced:
                    longest_s = FENCED_S  # it is no fault of the job's
                elif not error.is_outdated:
                    log.warning("%s: %s", key, error.message, extra=key.logged)
            except Restless as error:
                least_s = error.pause_s
                log.warning("%s: %s", key, error, extra=key.logged)
            except NameTaken as error:
                least_s = 1.0
                log.info("%s: %s", key, error, extra=key.logged)
            except Exception as error:
                # One job that nobody thought of must not stop the others.
                log.exception("%s could not be reconciled", key, extra=key.logged)
                self._tell_puzzle(key, error)
                least_s, longest_s = FINAL_PAUSE_S, LONGEST_FINAL_PAUSE_S
            self.reconciles += 1
            self.failures += not ok
            self.names.done(key, ok, least_s, longest_s)
        self._client.forget_connection()

    def reconcile(self, key: JobKey) -> None:
        body = self._informers[key.kind.plural].find((key.namespace, key.name))
        who = None if body is None else identity_of(body, key.kind)
        now = self._clock()
        self._let_go(key, who, now)
        if body is None or who is None:
            return
        site = self._surroundings.site()
        family, allotted = self._families.of(who, self._pod_group(who, body)), None
        if self._admission is not None:
            if (body.get("status") or {}).get("phase") in key.kind.phases.final:
                self._admission.forget(who.uid)
            else:
                allotted = self._admission.answer(key.kind, body, family.pods)
                if allotted is None:
                    return  # it is woken when somebody has decided
        decided = plan(body, family, site, now, key.kind, allotted)
        try:
            self._actor.carry_out(who, decided.actions)
        except Refused as error:
            if error.is_farewell:
                return
            if not error.is_final:
                raise
            if self._roll_back(who, body, error) and self._admission is not None:
                self._admission.give_back(key.kind, body, error.message)
                event = Event("Refused", error.message, Severity.WARNING)
                return self._actor.tell(who, event, _generation(body), now)
            self._tell_refusal(who, body, decided, error, now)
            raise
        is_told = self._tell(who, body, decided, now)
        if is_told or decided.actions:
            # Our own writes are no news to the informers; what follows from them is for the next
            # look, which finds nothing to do in the end.
            self.names.add(key)
            if is_told or not all(isinstance(action, Nudge) for action in decided.actions):
                self._watchful.acted(key, restless.picture(body, family.pods), time.monotonic())
        if decided.wake_after_s is not None:
            self.names.add_after(key, max(decided.wake_after_s, 0.01))

    def _let_go(self, key: JobKey, who: Identity | None, now: float) -> None:
        pods, wait_s = self._families.pods(key), self._settings.log_wait_s
        wake_after_s = self._actor.let_go(pods, wait_s, who, now)
        if wake_after_s is not None:
            self.names.add_after(key, wake_after_s + 0.01)

    def _tell(self, who: Identity, body: Json, decided: Plan, now: float) -> bool:
        """Write the status if it is another; whether it was."""
        generation, old = _generation(body), body.get("status") or {}
        if decided.status is None or decided.status == old:
            return False
        if statuses.may_wait(who.kind, old, decided.status):
            left_s = self._told_at.get(who.uid, -TELL_S) + TELL_S - time.monotonic()
            if left_s > 0:
                self.names.add_after(JobKey(who.kind, who.namespace, who.name), left_s)
                return False
        # Events first: an operator that dies in between tells them again, under the same names.
        for event in decided.events:
            self._actor.tell(who, event, generation, now)
        self._actor.write_status(who, body, decided.status)
        self._log_phase(who, old, decided.status)
        self._told_at[who.uid] = time.monotonic()
        if decided.status.get("phase") in who.kind.phases.final:
            self._told_at.pop(who.uid, None)
        return True

    def _log_phase(self, who: Identity, old: Json, new: Json) -> None:
        phase, why = new.get("phase"), new.get("reason")
        if phase != old.get("phase"):
            key = JobKey(who.kind, who.namespace, who.name)
            words = f"{phase}: {why}" if why else phase
            log.info("%s is %s", key, words, extra=key.logged)

    def _tell_refusal(
        self, who: Identity, body: Json, decided: Plan, error: Refused, now: float
    ) -> None:
        """The API server will not have what the template asks for: say so on the job."""
        event = Event("Refused", error.message, Severity.WARNING)
        if decided.status is not None:
            status = {**decided.status, "reason": error.message}
            if status != (body.get("status") or {}):
                self._actor.write_status(who, body, status)
        generation = _generation(body)
        self._actor.tell(who, event, generation, now)

    def _tell_puzzle(self, key: JobKey, error: Exception) -> None:
        """Say on the job that this operator cannot cope with it; what runs of it goes on."""
        body = self._informers[key.kind.plural].find((key.namespace, key.name))
        if body is None:
            return
        old, problem = readable(body.get("status")), f"{type(error).__name__}: {error}"
        problem = f"the operator cannot cope with this object: {problem}"[:1000]
        status = statuses.build_invalid(
            key.kind.phases, problem, old, _generation(body), self._clock()
        )
        if status != (body.get("status") or {}):
            with suppress(Refused):
                self._actor.write_status(identity_of(body, key.kind), body, status)

    def _roll_back(self, who: Identity, body: Json, error: Refused) -> bool:
        """A gang that the quota cuts in half gives back what it has, so that another may run."""
        if error.status != 403 or (body.get("status") or {}).get("startTime"):
            return False
        pods = [pod["metadata"] for pod in self._families.of(who).pods if is_owned_by(pod, who.uid)]
        deletions = [Delete(PODS, pod["name"], pod["uid"]) for pod in pods]
        self._actor.carry_out(who, deletions)
        return True

    def _pod_group(self, who: Identity, body: Json) -> Json | None:
        if not names_volcano(body) or not self._surroundings.site().has_volcano:
            return None
        return self._pod_groups.find(who.namespace, who.group_name)

    def _tell_groups(self) -> None:
        """Say on every ResourceGroup whether it could be read."""
        if self._admission is None:
            return
        for body, seen in self._admission.inventory.groups():
            status = resource_groups.status(body, seen, self._clock())
            if status != (body.get("status") or {}):
                name = body["metadata"]["name"]
                path = member(GROUPS_VERSION, RESOURCE_GROUPS, "", name, "status")
                try:
                    self._client.patch(path, {"status": status})
                except Refused as error:
                    log.warning("ResourceGroup %s: %s", name, error.message)

    def figures(self) -> dict[str, float]:
        """For `/metrics`."""
        planned = self._admission.figures() if self._admission is not None else {}
        return planned | {
            "jobs": sum(len(self._informers[kind.plural].all()) for kind in KINDS),
            "pods": len(self._informers[PODS].all()),
            "waiting": self.names.waiting(),
            "reconciles_total": self.reconciles,
            "reconcile_failures_total": self.failures,
            "created_total": self._actor.created,
            "deleted_total": self._actor.deleted,
            "status_writes_total": self._actor.patched,
            "api_calls_total": self._client.calls,
            "relists_total": sum(one.relists for one in self._informers.values()),
            "leads": float(self._lease is None or self._lease.leads.is_set()),
        }
