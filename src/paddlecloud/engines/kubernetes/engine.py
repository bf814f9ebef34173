"""`KubernetesEngine`: the `Engine` protocol on a cluster.

A run is one custom resource in its account's namespace; the operator makes its pods. Calls write
at once and fail with `Unavailable` when the API server does not answer; one thread reads what
informers see, puts it into the words of `core` and tells it through the journal. All truth about a
run is on the cluster: kill -9 at any moment loses nothing, and a successor tells only what is news.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from paddlecloud import clock
from paddlecloud.core.actions import Event, Severity, Status
from paddlecloud.core.errors import Conflict, Fault, InvalidInput, Unavailable
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.observed import Move, ReplicaKey
from paddlecloud.core.phases import Phase
from paddlecloud.core.resources import Resources
from paddlecloud.engines.kubernetes import rendering
from paddlecloud.engines.kubernetes.config import KubernetesConfig
from paddlecloud.engines.kubernetes.journal import Entry, Journal, Place
from paddlecloud.engines.kubernetes.logs import Logs
from paddlecloud.engines.kubernetes.orders import Orders, Rejected
from paddlecloud.engines.kubernetes.reading import Seen
from paddlecloud.engines.kubernetes.surveying import Survey, too_many
from paddlecloud.engines.kubernetes.telling import Teller, is_untended
from paddlecloud.engines.kubernetes.tenancy import Tenancy
from paddlecloud.engines.kubernetes.tenant_bodies import Terms, namespace_of
from paddlecloud.engines.kubernetes.watching import ClusterView
from paddlecloud.engines.protocols import Capacity, Change, History, JobRun, LogSlice
from paddlecloud.engines.workqueue import WorkQueue
from paddlecloud.forms.custom_resources import GPU_NAMES
from paddlecloud.kube import kubeconfig
from paddlecloud.kube.client import Client
from paddlecloud.kube.pods import owner_uid, seconds, slot_of
from paddlecloud.kube.refusals import Refused
from paddlecloud.kube.words import (
    ACCOUNT_ANNOTATION,
    ACCOUNT_ID_ANNOTATION,
)
from paddlecloud.scheduling.explain import Explanation, explain
from paddlecloud.scheduling.plan import never_fits, never_fits_pool
from paddlecloud.scheduling.snapshot import Group, Quota, Snapshot

log = logging.getLogger(__name__)

Json = dict[str, Any]

_GROUPS, _QUOTAS, _FORGET = "groups", "quotas", "forget "
_RETRY_S = 1.0
_MOMENT_S = 1.0  # that a first look at the nodes may take
_GLANCE_S = 0.3  # the same, for who asks what there is and waits a second in all
_LISTING_S = 0.1  # between looks whether the copies are whole


class Homes(Protocol):
    """Accounts' namespaces, and what stands in them besides jobs."""

    def ensure(self, account_id: int, account: str) -> str: ...

    def set_quotas(self, quotas: Mapping[int, Quota]) -> None: ...

    def set_registries(
        self, account_id: int, account: str, registries: Mapping[str, str]
    ) -> None: ...


class KubernetesEngine:
    kind = "kubernetes"

    def __init__(self, config: KubernetesConfig, homes: Homes | None = None) -> None:
        if config.gpu_resource not in GPU_NAMES:
            problem = f"must be one of {', '.join(GPU_NAMES)}"
            raise InvalidInput(faults=[Fault("gpu_resource", problem, config.gpu_resource)])
        self.cluster = config.cluster
        self._config = config
        access = (
            kubeconfig.from_file(config.kubeconfig, config.context)
            if config.kubeconfig is not None
            else kubeconfig.from_pod()
        )
        client = Client(access, "paddlecloud-server", patience_s=config.patience_s)
        config.state_dir.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(config.state_dir / "engine.db")
        self._queue = WorkQueue()
        self._view = ClusterView(client, self._heard, self._pod_changed, self._pod_gone)
        self._orders = Orders(client, self._view.learn)
        self._logs = Logs(
            client,
            config,
            pod_of=self._pod_of,
            key_of=self._key_of,
            is_over=self._is_over,
            is_forgotten=lambda pod: owner_uid(pod) in self._teller.deleted,
            release=self._orders.release,
        )
        self._survey = Survey(self._view, self._journal)
        self._homes = homes or _tenancy(client, config)
        self._groups: Mapping[str, Group] = {}
        self._teller = Teller(self._view, self._journal, self._again, self._after_end)
        self._has_started = False
        self._thread = threading.Thread(target=self._loop, name="engine", daemon=True)

    # --- the Engine protocol -----------------------------------------------------------------

    def start(self) -> None:
        self._has_started = True
        self._view.start()
        for entry in self._journal.live():
            self._heard(entry.place)
        self._thread.start()

    def close(self) -> None:
        self._queue.close()
        if self._has_started:
            self._view.stop()
            self._thread.join()
        self._logs.close()
        self._journal.close()

    def put(self, job: JobRun) -> None:
        known = self._journal.find(job.job_id, job.run)
        if known is not None and (known.uid or not known.live):
            return
        namespace = self._home(job)
        body = rendering.custom_resource(job, self._config, namespace)
        place = (body["kind"], namespace, body["metadata"]["name"])
        entry = self._journal.add(Entry(job.job_id, job.run, place))
        self._join_group(job.spec.group, namespace)
        try:
            made = self._orders.make(job, body)
        except Rejected as error:
            words = f"the cluster does not take it: {error}"
            event = Event("Rejected", words, Severity.WARNING)
            self._journal.save(entry, Seen(_ended(Phase.FAILED, words)), [event])
            return
        self._journal.made(entry, made["metadata"]["uid"])
        self._heard(place)

    def _home(self, job: JobRun) -> str:
        try:
            return self._homes.ensure(job.account_id, job.account)
        except Refused as error:
            raise Unavailable(
                f"the namespace of {job.account} could not be made: {error.message}",
                hint="the cluster is asked again by itself",
            ) from None

    def _join_group(self, group: str, namespace: str) -> None:
        """The server has checked that the account may use it; the operator must know, too."""
        if group and self._journal.join(group, namespace):
            try:
                self._publish()
            except Unavailable as error:
                log.warning("%s", error.message)
                self._queue.add_after(_GROUPS, _RETRY_S)

    def cancel(self, job_id: str, run: int, reason: str) -> None:
        entry = self._journal.find(job_id, run)
        if entry is None or not entry.live:
            return
        if not self._orders.cancel(entry, reason) and not entry.uid:
            # It never came to the cluster.
            event = Event("Killed", reason)
            self._journal.save(entry, Seen(_ended(Phase.KILLED, reason)), [event])
        self._heard(entry.place)

    def move(self, job_id: str, run: int, moves: Sequence[Move]) -> None:
        entry = self._journal.find(job_id, run)
        if entry is not None and entry.live and moves:
            self._orders.move(entry, moves)

    def delete(self, job_id: str) -> None:
        live = [entry for entry in self._journal.of_job(job_id) if entry.live]
        if not live:
            self._forget(job_id)
            return
        self._journal.forget_when_ended(job_id)
        for entry in live:
            self.cancel(job_id, entry.run, "deleted")

    def watch(self, after: int, timeout_s: float) -> Sequence[Change]:
        return self._journal.changes(after, timeout_s)

    def history(self) -> History:
        return self._journal.history()

    def knows(self, job_id: str, run: int) -> bool:
        if self._journal.find(job_id, run) is not None:
            return True
        try:
            return self._orders.find(job_id, run) is not None
        except Unavailable:
            # Nobody can say that it is lost while the cluster does not answer.
            return True

    def log(self, key: ReplicaKey, start: int, limit_bytes: int) -> LogSlice:
        if self._journal.find(key.job_id, key.run) is None:
            return LogSlice(0, 0, 0, b"", ended=True)
        return self._logs.read(key, start, limit_bytes)

    def log_wait(self, key: ReplicaKey, size: int, timeout_s: float) -> None:
        if self._journal.find(key.job_id, key.run) is not None:
            self._logs.wait(key, size, timeout_s)

    def check(self, spec: JobSpec) -> Sequence[Fault]:
        faults = too_many(spec)
        if not self._view.has_nodes(_MOMENT_S):
            return faults  # nobody can say what fits
        nodes = self._survey.nodes()
        faults += never_fits(spec, nodes)
        return faults or never_fits_pool(spec, self._groups, nodes)

    def capacity(self) -> Capacity:
        has_nodes = self._view.has_nodes(_GLANCE_S)
        nodes = self._survey.nodes()
        total = sum((node.total for node in nodes), Resources())
        notes = []
        if not self._view.is_whole or not has_nodes:
            notes.append("the API server does not answer, or the definitions are not installed")
        alone = sum(is_untended(body) for _, body in self._view.jobs())
        if alone:
            jobs = "1 job" if alone == 1 else f"{alone} jobs"
            notes.append(f"{jobs} waited for an operator in vain: start `paddlecloud controller`")
        return Capacity(total, self._survey.free(), self._survey.cores(), tuple(notes))

    def set_quota(self, quotas: Mapping[int, Quota]) -> None:
        self._homes.set_quotas(quotas)
        self._queue.add(_QUOTAS)

    def set_groups(self, groups: Mapping[str, Group]) -> None:
        self._groups = dict(groups)
        self._queue.add(_GROUPS)

    def snapshot(self) -> Snapshot:
        return self._survey.snapshot(self._groups, clock.now())

    def explain(self, job_id: str) -> Explanation | None:
        return explain(self.snapshot(), job_id)

    # --- beyond the protocol -----------------------------------------------------------------

    def set_registries(self, account_id: int, account: str, registries: Mapping[str, str]) -> None:
        self._homes.set_registries(account_id, account, registries)

    def scale(self, job_id: str, run: int, trainers: int) -> None:
        """Wish for another number of trainers; the least and the most are on the object."""
        entry = self._journal.find(job_id, run)
        if entry is not None and entry.live:
            self._orders.scale(entry, trainers)

    def found(self, job_id: str) -> JobRun | None:
        """The run somebody made on the cluster itself, as its object says; None if this is not
        such a job."""
        entry = self._journal.find(job_id, 1)
        if entry is None or entry.is_ours:
            return None
        body = self._view.job(entry.place)
        home = self._view.namespace(entry.place[1])
        if body is None or home is None or body["metadata"]["uid"] != entry.uid:
            return None
        try:
            spec = rendering.spec_of(body, self._config)
        except InvalidInput:
            return None
        notes = home["metadata"].get("annotations") or {}
        number = str(notes.get(ACCOUNT_ID_ANNOTATION) or "")
        return JobRun(
            job_id,
            1,
            spec,
            int(number) if number.isdecimal() else 0,
            str(notes[ACCOUNT_ANNOTATION]),
            seconds(body["metadata"].get("creationTimestamp")) or clock.now(),
        )

    # --- hearing -----------------------------------------------------------------------------

    def _heard(self, place: Place) -> None:
        self._queue.add("/".join(place))

    def _again(self, place: Place, delay_s: float) -> None:
        self._queue.add_after("/".join(place), delay_s)

    def _pod_changed(self, pod: Json) -> None:
        self._logs.pod_changed(pod)

    def _pod_gone(self, pod: Json) -> None:
        self._logs.pod_gone(pod)

    def _pod_of(self, key: ReplicaKey) -> Json | None:
        entry = self._journal.find(key.job_id, key.run)
        if entry is None:
            return None
        wanted = (key.role, key.index, key.attempt)
        pods = self._view.pods(entry.place, entry.uid)
        return next((pod for pod in pods if slot_of(pod) == wanted), None)

    def _key_of(self, pod: Json) -> ReplicaKey | None:
        entry, slot = self._journal.by_uid(owner_uid(pod)), slot_of(pod)
        return ReplicaKey(entry.job_id, entry.run, *slot) if entry and slot else None

    def _is_over(self, key: ReplicaKey) -> bool:
        """Whether an attempt without a pod has been, and not merely is to come."""
        entry = self._journal.find(key.job_id, key.run)
        if entry is None or not self._view.is_whole:
            return False
        known = {one.key: one for one in self._journal.known(entry)[1]}
        return not entry.live or (key in known and not known[key].alive)

    # --- the loop ----------------------------------------------------------------------------

    def _loop(self) -> None:
        while names := self._queue.take():
            if not self._view.is_whole:
                # What is not in the copies yet is not gone.
                for name in names:
                    self._queue.add_after(name, _LISTING_S)
                continue
            for name in names:
                try:
                    self._work(name)
                except Unavailable as error:
                    log.warning("%s", error.message)
                    self._queue.add_after(name, _RETRY_S)
                except Exception:
                    # One sick object must not stop the others; it is looked at again.
                    log.exception("%s could not be looked at", name)
                    self._queue.add_after(name, _RETRY_S)

    def _work(self, name: str) -> None:
        if name == _GROUPS:
            self._publish()
        elif name == _QUOTAS:
            self._write_quotas()
        elif name.startswith(_FORGET):
            self._forget(name.removeprefix(_FORGET))
        else:
            kind, namespace, job = name.split("/")
            self._teller.look((kind, namespace, job))
            self._claim_logs((kind, namespace, job))

    def _claim_logs(self, place: Place) -> None:
        """The pods of a run of ours wait for us from the start; those of a job that somebody made
        on the cluster itself are asked to."""
        entry = self._journal.at(place)
        if entry is None or not self._config.archive_logs:
            return
        for pod in self._view.pods(place, entry.uid):
            self._logs.pod_changed(pod)  # it may have ended before we knew whose it is
            if not entry.is_ours and self._logs.is_unclaimed(pod):
                self._orders.hold(pod)

    def _write_quotas(self) -> None:
        """To everybody who has a namespace, also from before this process. Other platforms on the
        cluster number their accounts too: theirs have another prefix."""
        for home in self._view.namespaces():
            notes = home["metadata"].get("annotations") or {}
            number, account = notes.get(ACCOUNT_ID_ANNOTATION, ""), notes.get(ACCOUNT_ANNOTATION)
            if not account or not number.isdecimal() or home["metadata"].get("deletionTimestamp"):
                continue
            if home["metadata"]["name"] != namespace_of(account, self._config.namespace_prefix):
                continue
            try:
                self._homes.ensure(int(number), account)
            except Refused as error:
                raise Unavailable(f"quotas could not be written: {error.message}") from None
            except Conflict as error:
                log.warning("%s", error.message)

    def _publish(self) -> None:
        self._orders.publish(self._groups, self._journal.members())

    def _after_end(self, entry: Entry) -> None:
        if self._journal.is_to_forget(entry.job_id):
            self._queue.add(_FORGET + entry.job_id)

    def _forget(self, job_id: str) -> None:
        for entry in self._journal.of_job(job_id):
            if entry.uid:
                self._teller.deleted.add(entry.uid)
                self._orders.remove(entry)
        self._journal.forget(job_id)
        self._logs.discard(job_id)


def _ended(phase: Phase, reason: str) -> Status:
    return Status(phase, reason, ended_at=clock.now())


def _tenancy(client: Client, config: KubernetesConfig) -> Homes:
    terms = Terms(
        config.namespace_prefix, config.pod_security, config.gpu_resource, config.kubectl_user
    )
    return Tenancy(client, terms)
