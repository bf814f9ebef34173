"""The planner's `Snapshot` of a cluster, from what the API server holds. Pure.

`build(cluster, now)` is called by the operator, which decides by it, and by the server's engine,
which explains by it: both see the same queue. What a job was granted is in its status; a job
that has pods without a grant (made by an operator that died before it could write it, or by one
that does not plan) is taken as granted. Sizes are rigid: a job has the workers it asks for, or
none; one whose wish has grown applies for the difference as a job of its own, marked by `GROWTH`.

Placing is kube-scheduler's. Replicas with a pod count where the pod is; for those without one a
place is guessed, as the planner itself would choose it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paddlecloud.core import completion
from paddlecloud.core.jobspec import JobSpec, Mode, Role, RoleSpec
from paddlecloud.core.resources import Resources
from paddlecloud.engines.kubernetes.allocations import Allocation, read
from paddlecloud.engines.kubernetes.inventory import Eligibility, NodeSeen, PodSeen, seconds
from paddlecloud.engines.kubernetes.shares import Shares, own_group
from paddlecloud.forms.custom_resources import ClusterJob
from paddlecloud.kube.words import CANCEL_ANNOTATION, JOB_NAME_ANNOTATION, SUBMITTED_ANNOTATION
from paddlecloud.scheduling.placement import (
    Batch,
    Room,
    held_in,
    minus,
    place,
    take,
    vector,
)
from paddlecloud.scheduling.snapshot import JobView, Node, Placed, Snapshot

Json = Mapping[str, Any]

GROWTH = "+"  # ends the id of what a running job applies for besides
# A job made by the server was submitted a little before its object was made. More is not believed:
# nobody may make himself older than he is.
BELIEVED_S = 60.0


def id_of(body: Json) -> str:
    """A job's id in a snapshot. Jobs of the same second are served by name."""
    metadata = body["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}/{metadata['uid']}"


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job that has not ended, and its pods."""

    body: Json
    job: ClusterJob
    pods: Sequence[PodSeen] = ()
    allocation: Allocation | None = None  # newer than what the object says; None: it says all

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace", ""))

    @property
    def wish(self) -> int:
        return self.job.spec.trainers.replicas

    @property
    def is_leaving(self) -> bool:
        """It wants nothing any more, or not now."""
        metadata = self.body["metadata"]
        return bool(
            self.job.suspend
            or metadata.get("deletionTimestamp")
            or CANCEL_ANNOTATION in (metadata.get("annotations") or {})
        )

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def granted(self) -> int:
        if self.allocation is not None:
            return self.allocation.workers
        known = read(self.body.get("status"))
        if known is not None and known.workers:
            return known.workers
        since = -1.0 if known is None or known.preempted_at is None else known.preempted_at
        # Whoever made them had decided; what was stopped for another is older than that.
        is_made = any(not pod.is_leaving and pod.created_at > since for pod in self.pods)
        return self.wish if is_made and not self.is_leaving else 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """What there is, as far as planning is concerned."""

    nodes: Sequence[NodeSeen] = ()
    jobs: Sequence[LiveJob] = ()
    strangers: Sequence[PodSeen] = ()  # pods of others: what they hold is not there
    leftovers: Sequence[PodSeen] = ()  # pods of jobs that have ended: they leave soon
    shares: Shares = field(default_factory=Shares)


def build(cluster: Cluster, now: float) -> Snapshot:
    nodes = free_nodes(cluster)
    views = _views(cluster, nodes, now)
    namespaces = sorted({live.namespace for live in cluster.jobs})
    return Snapshot(
        now=now,
        nodes=nodes,
        jobs=tuple(views),
        quotas=cluster.shares.quotas(),
        groups=cluster.shares.planned_groups(namespaces),
        private=True,
    )


def free_nodes(cluster: Cluster) -> tuple[Node, ...]:
    """The nodes that may be used, less what others hold there."""
    held: dict[str, Resources] = {}
    for pod in cluster.strangers:
        if _holds(pod):
            held[pod.node] = held.get(pod.node, Resources()) + pod.holds
    found = []
    for node in cluster.nodes:
        if node.is_usable:
            left = node.total - held.get(node.name, Resources())
            floor = Resources(max(0, left.cpu_milli), max(0, left.memory_bytes), max(0, left.gpu))
            found.append(Node(node.name, floor))
    return tuple(found)


def free_room(cluster: Cluster) -> Room:
    """What is free on every node: the room that a `Desk` of the whole snapshot has, for less."""
    nodes = sorted(free_nodes(cluster), key=lambda node: node.name)
    room: Room = {node.name: vector(node.total) for node in nodes}
    own = (pod for live in cluster.jobs for pod in live.pods)
    for pod in (*cluster.leftovers, *own):
        if pod.node in room and not pod.is_over:
            room[pod.node] = minus(room[pod.node], vector(pod.holds))
    eligibility = Eligibility(cluster.nodes)
    for live in cluster.jobs:
        granted = 0 if live.is_leaving else live.granted
        lacking = _unplaced(live, granted)
        if lacking:
            spec = live.job.spec
            _somewhere(spec, places_of(spec, eligibility), lacking, room)
    return room


def places_of(spec: JobSpec, eligibility: Eligibility) -> dict[Role, frozenset[str]]:
    """The roles that may not run everywhere, and where they may."""
    found = {}
    for role in spec.roles:
        names = eligibility.of(role.template)
        if names is not None:
            found[role.role] = names
    return found


# --- jobs --------------------------------------------------------------------------------------


def _views(cluster: Cluster, nodes: Iterable[Node], now: float) -> list[JobView]:
    eligibility = Eligibility(cluster.nodes)
    views = [
        view for live in cluster.jobs for view in _seen(live, cluster.shares, eligibility, now)
    ]
    missing = {
        view.job_id: _unplaced(live, view.granted) for view, live in _pairs(views, cluster.jobs)
    }
    views += [_left_over(pod, cluster.shares) for pod in cluster.leftovers if _holds(pod)]
    return _guess(views, missing, nodes)


def _holds(pod: PodSeen) -> bool:
    return bool(pod.node) and not pod.is_over


def _pairs(views: Iterable[JobView], jobs: Iterable[LiveJob]) -> Iterable[tuple[JobView, LiveJob]]:
    by_id = {id_of(live.body): live for live in jobs}
    return ((view, by_id[view.job_id]) for view in views if view.job_id in by_id)


def _seen(live: LiveJob, shares: Shares, eligibility: Eligibility, now: float) -> Iterable[JobView]:
    """The job as it is, and what it applies for besides."""
    granted, placed = live.granted, _placed(live)
    if live.is_leaving and not placed:
        return
    metadata, status = live.body["metadata"], live.body.get("status") or {}
    spec = planned_spec(live, shares, granted or live.wish)
    started = seconds(status.get("startTime")) if granted else None
    remaining = None
    if spec.wall_time_s and started is not None:
        remaining = max(0.0, started + spec.wall_time_s - now)
    account = shares.namespace(live.namespace)
    view = JobView(
        job_id=id_of(live.body),
        spec=spec,
        account_id=account.account_id,
        account=account.account,
        submitted_at=_submitted_at(metadata),
        granted=0 if live.is_leaving else granted,
        started_at=started,
        remaining_s=remaining,
        released=live.is_leaving,
        placed=placed,
        where=places_of(spec, eligibility),
    )
    yield view
    if view.granted and live.wish > view.granted:
        yield replace(
            view,
            job_id=view.job_id + GROWTH,
            spec=_only_trainers(spec, live.wish - view.granted),
            granted=0,
            started_at=None,
            remaining_s=None,
            placed=(),
        )


def _left_over(pod: PodSeen, shares: Shares) -> JobView:
    account = shares.namespace(pod.namespace)
    role = RoleSpec(Role.TRAINER, 1, pod.holds)
    return JobView(
        job_id=f"{pod.namespace}/{pod.name}",
        spec=JobSpec(pod.name, Mode.SINGLE, (role,), group=own_group(pod.namespace)),
        account_id=account.account_id,
        account=account.account,
        submitted_at=pod.created_at,
        released=True,
        placed=(Placed(Role.TRAINER, pod.node, 1),),
    )


def _submitted_at(metadata: Json) -> float:
    made = seconds(metadata.get("creationTimestamp")) or 0.0
    text = str((metadata.get("annotations") or {}).get(SUBMITTED_ANNOTATION) or "")
    try:
        said = float(text)
    except ValueError:
        return made
    return said if made - BELIEVED_S <= said < made + 1.0 else made


def planned_spec(live: LiveJob, shares: Shares, size: int) -> JobSpec:
    """The job's wish with one size and with the group it really belongs to."""
    spec = live.job.spec
    notes = live.body["metadata"].get("annotations") or {}
    group, _ = shares.group_of(live.namespace, spec.group)
    roles = tuple(
        replace(role, replicas=size, min_replicas=size, max_replicas=size)
        if role.role == Role.TRAINER
        else role
        for role in spec.roles
    )
    name = str(notes.get(JOB_NAME_ANNOTATION) or spec.name)
    return replace(spec, name=name, roles=roles, group=group)


def _only_trainers(spec: JobSpec, size: int) -> JobSpec:
    role = replace(spec.trainers, replicas=size, min_replicas=size, max_replicas=size)
    return replace(spec, roles=(role,))


def _placed(live: LiveJob) -> tuple[Placed, ...]:
    """Where pods of the job hold something."""
    counts = Counter(
        (pod.slot[0], pod.node) for pod in live.pods if pod.slot is not None and _holds(pod)
    )
    known = {role.role for role in live.job.spec.roles}
    return tuple(
        Placed(role, node, count) for (role, node), count in sorted(counts.items()) if role in known
    )


def _unplaced(live: LiveJob, granted: int) -> Counter[Role]:
    """Replicas that the job was granted and that have no node yet, or not again."""
    if not granted:
        return Counter()
    done = {pod.slot for pod in live.pods if pod.ended_well or _holds(pod)}
    wanted = completion.wanted_replicas(live.job.spec, granted)
    return Counter(role for role, index in wanted if (role, index) not in done)


def _guess(
    views: Sequence[JobView], missing: Mapping[str, Counter[Role]], nodes: Iterable[Node]
) -> list[JobView]:
    """Give a place to replicas that have none; older jobs choose first."""
    room: Room = {node.name: vector(node.total) for node in sorted(nodes, key=lambda n: n.name)}
    for view in views:
        for part in view.placed:
            if part.node in room:
                each = _each(view.spec, part.role)
                room[part.node] = minus(room[part.node], tuple(n * part.count for n in each))
    found = {}
    for view in sorted(views, key=lambda view: (view.submitted_at, view.job_id)):
        lacking = missing.get(view.job_id)
        placed = view.placed
        if lacking:
            placed += _somewhere(view.spec, view.where, lacking, room)
        if view.granted and not placed:  # all its replicas are done
            view = replace(view, used=Resources(), replicas_used=0)
        found[view.job_id] = replace(view, placed=placed) if lacking else view
    return [found[view.job_id] for view in views]


def _each(spec: JobSpec, role: Role) -> tuple[int, ...]:
    found = spec.role(role)
    return vector(found.resources) if found is not None else (0, 0, 0)


def _somewhere(
    spec: JobSpec, where: Mapping[Role, frozenset[str]], lacking: Counter[Role], room: Room
) -> tuple[Placed, ...]:
    batches = tuple(
        Batch(role, _each(spec, role), count, where.get(role))
        for role, count in sorted(lacking.items())
    )
    placed = place(batches, room)
    if placed is None:  # nobody has room for them; they still are promised to it
        placed = tuple(
            Placed(batch.role, node, batch.wanted)
            for batch in batches
            for node in [next((n for n in room if batch.where is None or n in batch.where), "")]
        )
    take(room, held_in(batches, placed))
    return placed
