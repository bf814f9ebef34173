"""The cluster as the planner sees it, with the platform's own names for jobs and groups.

Built from the engine's copies by `snapshots`, which the operator decides by; so what is explained
here is what was decided there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.names import dns_label
from paddlecloud.core.phases import TERMINAL
from paddlecloud.core.resources import Resources
from paddlecloud.engines import peer_lists
from paddlecloud.engines.kubernetes import inventory, snapshots
from paddlecloud.engines.kubernetes.journal import Journal
from paddlecloud.engines.kubernetes.shares import Shares, read_group, read_namespace
from paddlecloud.engines.kubernetes.snapshots import GROWTH, Cluster, LiveJob
from paddlecloud.engines.kubernetes.watching import ClusterView
from paddlecloud.kube.kinds import PADDLE_JOB, kind_named
from paddlecloud.scheduling.snapshot import Group, JobView, Node, Snapshot

Json = dict[str, Any]

_LONGEST_ENDPOINT = "255.255.255.255:65535,"
MOST_PEERS = peer_lists.most(_LONGEST_ENDPOINT)


def too_many(spec: JobSpec) -> list[Fault]:
    return peer_lists.too_many(spec, MOST_PEERS)


class Survey:
    def __init__(self, view: ClusterView, journal: Journal) -> None:
        self._view = view
        self._journal = journal

    def cluster(self) -> Cluster:
        nodes = tuple(map(inventory.read_node, self._view.nodes()))
        shares = Shares(
            {body["metadata"]["name"]: read_group(body) for body in self._view.groups()},
            {body["metadata"]["name"]: read_namespace(body) for body in self._view.namespaces()},
        )
        strangers = tuple(map(inventory.read_pod, self._view.strangers()))
        return Cluster(
            nodes=nodes, jobs=tuple(self._live_jobs()), strangers=strangers, shares=shares
        )

    def _live_jobs(self) -> list[LiveJob]:
        found = []
        for place, body in self._view.jobs():
            kind = kind_named(place[0]) or PADDLE_JOB
            if kind.phase_of(body) in TERMINAL:
                continue
            try:
                job = kind.parse(body)[0]
            except InvalidInput:
                continue  # it never gets pods
            pods = self._view.pods(place, body["metadata"]["uid"])
            found.append(LiveJob(body, job, tuple(map(inventory.read_pod, pods))))
        return found

    def nodes(self) -> tuple[Node, ...]:
        """With what is left when none of our jobs run."""
        return self._without(self._view.strangers())

    def free(self) -> Resources:
        """What is left on the nodes that may be used. A pod on any other takes nothing from it."""
        nodes = self._without([*self._view.strangers(), *self._view.all_pods()])
        return sum((node.total for node in nodes), Resources())

    def _without(self, pods: Sequence[Json]) -> tuple[Node, ...]:
        nodes = tuple(map(inventory.read_node, self._view.nodes()))
        return snapshots.free_nodes(Cluster(nodes, strangers=tuple(map(inventory.read_pod, pods))))

    def cores(self) -> int:
        """Of nodes that may be used, whatever others hold there."""
        nodes = map(inventory.read_node, self._view.nodes())
        return sum(node.total.cpu_milli for node in nodes if node.is_usable) // 1000

    def snapshot(self, groups: Mapping[str, Group], now: float) -> Snapshot:
        """What the operator's planner would see now, in the platform's words."""
        found = snapshots.build(self.cluster(), now)
        ids = {
            snapshots.id_of(body): entry.job_id
            for _, body in self._view.jobs()
            if (entry := self._journal.by_uid(body["metadata"]["uid"])) is not None
        }
        names = {dns_label(name): name for name in groups}

        def renamed(view: JobView) -> JobView:
            bare = view.job_id.removesuffix(GROWTH)
            tail = view.job_id[len(bare) :]
            group = names.get(view.spec.group, view.spec.group)
            return replace(
                view, job_id=ids.get(bare, bare) + tail, spec=replace(view.spec, group=group)
            )

        return replace(
            found,
            jobs=tuple(map(renamed, found.jobs)),
            groups={
                names.get(key, key): replace(group, name=names.get(key, key))
                for key, group in found.groups.items()
            },
        )
