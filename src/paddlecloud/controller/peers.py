"""How the replicas of a job learn of each other: which variable of the contract comes from where.

`core.contract` says what every replica sees. A pod's own rank and role are written into the pod.
What depends on the addresses or the number of the replicas is in the job's ConfigMap, which holds
the containers back until it exists and is mounted as a file besides, so that changes arrive; what
only one role may see stands there under `<ROLE>__<NAME>` and the pods of that role refer to it.
The pod's own address comes from the kubelet. Pure; `pods` and `planning` call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paddlecloud.controller.identity import Identity, Json
from paddlecloud.core import contract
from paddlecloud.core.contract import JobFacts, Peer, ReplicaFacts
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.forms.custom_resources import ClusterJob, Intranet

Slot = tuple[Role, int]
Addresses = Mapping[Slot, str]

# They differ from replica to replica of one role. (A test looks at all the others.)
OWN = frozenset({"PADDLE_TRAINER_ID", "PADDLE_INIT_TRAINER_ID", "RANK", "JAX_PROCESS_ID"})
OWN_ADDRESS = frozenset({"POD_IP", "PADDLE_CURRENT_ENDPOINT"})
# Written into the pod although all pods may agree: the first operator did, and people look there.
DIRECT = frozenset({"TRAINING_ROLE", "PADDLE_TRAINING_ROLE"})
# An image has its own, and nobody can extend what is in an image from outside.
THE_IMAGES_OWN = frozenset({"PYTHONPATH", "LD_LIBRARY_PATH"})


@dataclass(frozen=True, slots=True)
class Site:
    """What is the same for all jobs of one operator."""

    datacenter: str = "kubernetes"
    elastic_server: str = ""  # host:port of the etcd of Paddle's elastic launcher
    has_volcano: bool = True
    is_ipv6: bool = False  # pods have IPv6 addresses, which stand in brackets before a port


def _facts(job: ClusterJob, who: Identity, site: Site, size: int, addresses: Addresses) -> JobFacts:
    spec, port = job.spec, who.base_port(job)

    def peers(role: Role) -> list[Peer]:
        found = spec.role(role)
        count = 0 if found is None else size if role == Role.TRAINER else found.replicas
        return [Peer(addresses[role, index], port) for index in range(count)]

    needs, masters = spec.trainers.resources, peers(Role.MASTER)
    return JobFacts(
        job_id=who.platform_id or who.job_id,
        name=who.known_as or who.name,
        mode=spec.mode.value,
        datacenter=site.datacenter,
        user=who.user or who.namespace,
        namespace=who.namespace,
        trainers=peers(Role.TRAINER),
        pservers=peers(Role.PSERVER),
        heters=peers(Role.HETER),
        master=masters[0] if masters else None,
        entry=spec.entry,
        topology=spec.topology or spec.entry,
        package=spec.package,
        fault_tolerant=spec.fault_tolerant,
        v2_ports=(port if job.port else contract.LEGACY_PORT, *job.v2_ports),
        passes=spec.passes,
        cpu_milli=needs.cpu_milli,
        gpus=needs.gpu,
        with_gloo=job.with_gloo,
        elastic_server=site.elastic_server if job.elastic else "",
    )


def _by_role(facts: JobFacts, spec: JobSpec) -> dict[Role, dict[str, str]]:
    """What the first replica of every role sees, less what is a replica's own."""
    hidden = OWN | OWN_ADDRESS | THE_IMAGES_OWN | DIRECT
    found = {}
    for role in (role.role for role in spec.roles):
        env = contract.environment(facts, ReplicaFacts(role.value, 0))
        found[role] = {name: value for name, value in env.items() if name not in hidden}
    return found


def _is_shared(name: str, by_role: Mapping[Role, Mapping[str, str]]) -> bool:
    values = {env.get(name) for env in by_role.values()}
    return len(values) == 1 and None not in values


def _key(role: Role, name: str) -> str:
    return f"{role.name}__{name}"


def shared_data(
    job: ClusterJob, who: Identity, site: Site, size: int, addresses: Addresses
) -> dict[str, str]:
    """The content of the job's ConfigMap. Every replica's address must be known."""
    by_role = _by_role(_facts(job, who, site, size, addresses), job.spec)
    data: dict[str, str] = {}
    for role, env in by_role.items():
        for name, value in env.items():
            data[name if _is_shared(name, by_role) else _key(role, name)] = value
    return data


def pod_environment(
    job: ClusterJob, who: Identity, site: Site, size: int, role: Role, index: int
) -> list[Json]:
    """The variables to write into a pod; its addresses, and its peers', need not be known."""
    names = _Names(who)
    facts = _facts(job, who, site, max(size, index + 1), names)
    by_role = _by_role(facts, job.spec)
    env = contract.environment(facts, ReplicaFacts(role.value, index))
    address: Json = {"valueFrom": {"fieldRef": {"fieldPath": _address_field(job.intranet)}}}
    if job.intranet == Intranet.SERVICE:
        address = {"value": who.pod_name(role, index)}
    # First, since what comes after it refers to it.
    written: list[Json] = [{"name": "POD_IP", **address}]
    host = "[$(POD_IP)]" if site.is_ipv6 and job.intranet != Intranet.SERVICE else "$(POD_IP)"
    endpoint = f"{host}:{who.base_port(job)}"
    written.append({"name": "PADDLE_CURRENT_ENDPOINT", "value": endpoint})
    for name, value in env.items():
        if name in OWN or name in DIRECT:
            written.append({"name": name, "value": value})
        elif name in by_role[role] and not _is_shared(name, by_role):
            # Optional: the ConfigMap as a whole is waited for, and a size may not have this one.
            reference = {"name": who.peers_name, "key": _key(role, name), "optional": True}
            written.append({"name": name, "valueFrom": {"configMapKeyRef": reference}})
    return written


def _address_field(intranet: Intranet) -> str:
    return "status.hostIP" if intranet == Intranet.HOST else "status.podIP"


class _Names(dict[Slot, str]):
    """Stands in for addresses where only the names of the variables matter."""

    def __init__(self, who: Identity) -> None:
        super().__init__()
        self._who = who

    def __missing__(self, slot: Slot) -> str:
        return self._who.pod_name(*slot)
