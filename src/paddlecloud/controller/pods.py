"""The pods, services and the ConfigMap of a job, as JSON for the API server.

A pod is the user's template, whole, with what makes it a replica added: name, host name, owner,
labels, variables, the peers' ConfigMap, the ports and our runtime (`in_front`). On a clash of
variables ours win, as with the first operator. Pure; `planning` calls it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from paddlecloud.controller import in_front
from paddlecloud.controller.identity import (
    Identity,
    Json,
)
from paddlecloud.controller.peers import Site, pod_environment
from paddlecloud.core.contract import DEFAULT_PORTS_NUM
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.forms.custom_resources import ClusterJob, Intranet
from paddlecloud.kube.kinds import TRAINING_JOB
from paddlecloud.kube.words import (
    ATTEMPT_LABEL,
    INDEX_LABEL,
    LOG_FINALIZER,
    POD_LABEL,
    PROBED_ANNOTATION,
    ROLE_ANNOTATION,
    ROLE_LABEL,
    TRAINER_COUNT_ANNOTATION,
    TRAINER_ID_ANNOTATION,
)

PEERS_VOLUME, PEERS_PATH = "paddlecloud-peers", "/var/run/paddlecloud/peers"
SAMPLES_VOLUME = "paddlecloud-samples"
GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
VOLCANO = "volcano"
SERVERS = (Role.MASTER, Role.PSERVER)
# Files of generation A, which programs of that time read.
FILES_VOLUME = "paddlecloud-files"
FILES = {"/trainer_id": TRAINER_ID_ANNOTATION, "/trainer_count": TRAINER_COUNT_ANNOTATION}


def scheduler_of(job: ClusterJob) -> str:
    """The scheduler the worker template names; the other roles inherit it."""
    for role in job.spec.roles:
        named = _pod_spec(role.template).get("schedulerName")
        if named:
            return str(named)
    return ""


def _pod_spec(template: Any) -> Json:
    spec = (template or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def starts_servers_first(job: ClusterJob) -> bool:
    """Whether workers wait until the parameter servers listen, and a master runs.

    Not where gloo makes the servers wait for the workers (withGloo: 2): both would wait for ever.
    """
    return any(role.role in SERVERS for role in job.spec.roles) and job.with_gloo < 2


def pod(job: ClusterJob, who: Identity, site: Site, size: int, key: ReplicaKey) -> Json:
    """One attempt of one replica."""
    found = job.spec.role(key.role)
    assert found is not None, "a replica of a role the job does not have"
    template: Json = copy.deepcopy(dict(found.template or {}))
    name = who.pod_name(key.role, key.index)
    spec: Json = template.get("spec") or {}
    _name_and_restart(spec, job, key.role, name)
    _schedule(spec, job)
    container = spec["containers"][0]
    _give_environment(container, job, who, site, size, key)
    _mount(spec, container, job, who)
    _open_ports(spec, container, job, who)
    metadata = _metadata(template.get("metadata") or {}, job, who, key, name)
    _probe(container, metadata, job, who, key.role)
    in_front.put_in_front(spec, container, who)
    if who.kind is TRAINING_JOB:
        _give_files(spec, container, metadata, size, key)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _metadata(written: Json, job: ClusterJob, who: Identity, key: ReplicaKey, name: str) -> Json:
    ours = who.metadata(name)
    ours["labels"] = {
        **(written.get("labels") or {}),
        **ours["labels"],
        ROLE_LABEL: who.kind.role_word(key.role),
        INDEX_LABEL: str(key.index),
        ATTEMPT_LABEL: str(key.attempt),
    }
    ours["annotations"] = {
        **(written.get("annotations") or {}),
        ROLE_ANNOTATION: who.kind.role_word(key.role),
    }
    if who.is_archived:
        ours["finalizers"] = [LOG_FINALIZER]
    if scheduler_of(job) == VOLCANO:
        ours["annotations"][GROUP_ANNOTATION] = who.group_name
    return ours


def _name_and_restart(spec: Json, job: ClusterJob, role: Role, name: str) -> None:
    spec["hostname"] = spec["subdomain"] = name
    if job.elastic:
        spec["restartPolicy"] = "OnFailure"
    elif not spec.get("restartPolicy"):
        is_reached_by_name = job.intranet == Intranet.SERVICE and role == Role.TRAINER
        spec["restartPolicy"] = "OnFailure" if is_reached_by_name else "Never"


def _schedule(spec: Json, job: ClusterJob) -> None:
    scheduler = scheduler_of(job)
    if scheduler and not spec.get("schedulerName"):
        spec["schedulerName"] = scheduler
    if job.gang is not None and job.gang.priority_class and not spec.get("priorityClassName"):
        spec["priorityClassName"] = job.gang.priority_class
    if job.intranet == Intranet.HOST:
        spec["hostNetwork"] = True
        spec.setdefault("dnsPolicy", "ClusterFirstWithHostNet")


def leave_servers_alone(spec: Json) -> None:
    """For a trainer 0 that comes back: unless the user says otherwise."""
    container = spec["containers"][0]
    written = container.get("env") or []
    if all(one.get("name") != "TEST_MODE" for one in written):
        container["env"] = [*written, {"name": "TEST_MODE", "value": "1"}]


def keep_off(spec: Json, hosts: Sequence[str]) -> None:
    """Have the scheduler place the pod on none of these nodes, besides what the template says."""
    if not hosts:
        return
    if spec.get("nodeName") in hosts:
        del spec["nodeName"]
    affinity = spec["affinity"] = dict(spec.get("affinity") or {})
    node = affinity["nodeAffinity"] = dict(affinity.get("nodeAffinity") or {})
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    required = node[key] = dict(node.get(key) or {})
    # One of the terms has to match, so each gets it. An empty one matches no node, and stays so.
    off = [{"key": "metadata.name", "operator": "NotIn", "values": [host]} for host in hosts]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), *off]} if term else term
        for term in required.get("nodeSelectorTerms") or [{"matchFields": []}]
    ]


def _give_environment(
    container: Json, job: ClusterJob, who: Identity, site: Site, size: int, key: ReplicaKey
) -> None:
    ours = pod_environment(job, who, site, size, key.role, key.index)
    names = {one["name"] for one in ours}
    users = [one for one in container.get("env") or () if one.get("name") not in names]
    # Ours first: a user's variable may refer to them, and they to none of the user's.
    container["env"] = [*ours, *users]
    waits_for = [who.peers_name]
    if key.role not in SERVERS and starts_servers_first(job):
        waits_for.append(who.gate_name)
    container["envFrom"] = [
        *(container.get("envFrom") or ()),
        *({"configMapRef": {"name": name}} for name in waits_for),
    ]


def _probe(container: Json, metadata: Json, job: ClusterJob, who: Identity, role: Role) -> None:
    """Have the kubelet see when a server listens: a worker that comes earlier dies or hangs."""
    if role != Role.PSERVER or not starts_servers_first(job) or container.get("readinessProbe"):
        return
    port = who.base_port(job)
    container["readinessProbe"] = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    metadata["annotations"][PROBED_ANNOTATION] = str(port)


def _mount(spec: Json, container: Json, job: ClusterJob, who: Identity) -> None:
    """The peers as a file, and the samples.

    The peers' volume is optional: the kubelet gives a pod no address before its volumes are there,
    and the ConfigMap is made of the addresses.
    """
    volumes: list[Json] = [
        {"name": PEERS_VOLUME, "configMap": {"name": who.peers_name, "optional": True}}
    ]
    mounts: list[Json] = [{"name": PEERS_VOLUME, "mountPath": PEERS_PATH, "readOnly": True}]
    if job.samples is not None:
        claim = {"claimName": job.samples.claim}
        volumes.append({"name": SAMPLES_VOLUME, "persistentVolumeClaim": claim})
        mounts.append({"name": SAMPLES_VOLUME, "mountPath": job.samples.mount_path})
    spec["volumes"] = [*(spec.get("volumes") or ()), *volumes]
    container["volumeMounts"] = [*(container.get("volumeMounts") or ()), *mounts]


def _give_files(spec: Json, container: Json, metadata: Json, size: int, key: ReplicaKey) -> None:
    """The rank and the size as files. The line ends that programs cut off are in the values."""
    metadata["annotations"] |= {
        TRAINER_ID_ANNOTATION: f"{key.index}\n",
        TRAINER_COUNT_ANNOTATION: f"{size}\n",
    }
    items = [
        {"path": path.lstrip("/"), "fieldRef": {"fieldPath": f"metadata.annotations['{name}']"}}
        for path, name in FILES.items()
    ]
    spec["volumes"].append({"name": FILES_VOLUME, "downwardAPI": {"items": items}})
    container["volumeMounts"] += [
        {"name": FILES_VOLUME, "mountPath": path, "subPath": path.lstrip("/"), "readOnly": True}
        for path in FILES
    ]


def _open_ports(spec: Json, container: Json, job: ClusterJob, who: Identity) -> None:
    """Named where others need to know: on a host's network they keep two pods that would fight
    for the same ports off one node."""
    if job.intranet == Intranet.POD_IP:
        return
    port, is_host = who.base_port(job), job.intranet == Intranet.HOST
    ours: list[Json] = [
        {
            "name": f"p-{offset}",
            "containerPort": port + offset,
            **({"hostPort": port + offset} if is_host else {}),
        }
        for offset in range(DEFAULT_PORTS_NUM if is_host else 1)
    ]
    container["ports"] = [*(container.get("ports") or ()), *ours]


def service(who: Identity, job: ClusterJob, role: Role, index: int) -> Json:
    """A name that leads to one pod, before it is ready too: peers wait for each other."""
    name, port = who.pod_name(role, index), who.base_port(job)
    ports = [
        {"name": f"p-{offset}", "port": port + offset, "targetPort": port + offset}
        for offset in range(DEFAULT_PORTS_NUM)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": who.metadata(name),
        "spec": {
            "clusterIP": "None",
            "selector": {POD_LABEL: name},
            "ports": ports,
            "publishNotReadyAddresses": True,
        },
    }


def config_map(who: Identity, data: dict[str, str]) -> Json:
    """The peers."""
    metadata = who.metadata(who.peers_name)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def gate(who: Identity) -> Json:
    """Lets the workers start."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": who.metadata(who.gate_name),
        "data": {"PADDLECLOUD_SERVERS": "listening"},
    }
