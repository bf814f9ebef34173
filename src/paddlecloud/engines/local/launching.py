"""From a granted run to what is needed to make one of its replicas.

The environment is the contract of `core.contract`; this module only finds the facts it asks for:
who the peers are, where they listen, which cards they were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paddlecloud.core import contract, restart
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.names import dns_label
from paddlecloud.core.observed import ReplicaKey, ReplicaObserved
from paddlecloud.engines.local.addresses import (
    PORTS_PER_REPLICA,
    address,
    first_port,
    number_of,
)
from paddlecloud.engines.local.run_rows import Placed
from paddlecloud.engines.protocols import Launch
from paddlecloud.engines.reconcile import RunRecord

_ROLE_ORDER = (Role.PSERVER, Role.TRAINER, Role.HETER, Role.MASTER)


def replica_numbers(spec: JobSpec, network_base: int) -> dict[tuple[Role, int], int]:
    """The address number of every replica at the granted size; fixed for the whole run."""
    numbers: dict[tuple[Role, int], int] = {}
    number = network_base
    for role in _ROLE_ORDER:
        wanted = spec.role(role)
        if wanted is None:
            continue
        # Room for the largest size: a replica that joins later must not move the others.
        for index in range(wanted.max_replicas):
            numbers[(role, index)] = number
            number += 1
    return numbers


def job_facts(record: RunRecord, network_base: int) -> contract.JobFacts:
    job, spec = record.job, record.job.spec
    numbers = replica_numbers(spec, network_base)

    def peers(role: Role) -> tuple[contract.Peer, ...]:
        role_spec = spec.role(role)
        if role_spec is None:
            return ()
        count = record.grant.trainers if role == Role.TRAINER else role_spec.replicas
        return tuple(
            contract.Peer(address(n), first_port(n), PORTS_PER_REPLICA)
            for n in (numbers[(role, index)] for index in range(count))
        )

    masters = peers(Role.MASTER)
    trainer = spec.trainers.resources
    return contract.JobFacts(
        job_id=job.job_id,
        name=spec.name,
        mode=spec.mode.value,
        datacenter=spec.cluster,
        user=job.account,
        trainers=peers(Role.TRAINER),
        pservers=peers(Role.PSERVER),
        heters=peers(Role.HETER),
        master=masters[0] if masters else None,
        namespace=dns_label(job.account),
        entry=spec.entry,
        topology=spec.topology,
        package=spec.package,
        output=f"{spec.package}/output" if spec.package else "",
        passes=spec.passes,
        cpu_milli=trainer.cpu_milli,
        gpus=trainer.gpu,
        fault_tolerant=spec.fault_tolerant,
    )


def make_launch(
    record: RunRecord,
    key: ReplicaKey,
    seen: Sequence[ReplicaObserved],
    network_base: int,
    gpus: Mapping[str, list[int]],
) -> Launch:
    job, spec = record.job, record.job.spec
    facts = job_facts(record, network_base)
    replica = contract.ReplicaFacts(key.role.value, key.index)
    env = contract.environment(facts, replica, inherited=spec.env)
    # What the user set wins, save the two paths the contract extends.
    env.update({k: v for k, v in spec.env.items() if k not in ("PYTHONPATH", "LD_LIBRARY_PATH")})
    env.update(job.secret_env)
    env["PADDLECLOUD_RUN"] = str(job.run)
    env["PADDLECLOUD_ATTEMPT"] = str(key.attempt)
    if restart.joins_trained_servers(key, seen):
        env.setdefault("TEST_MODE", "1")
    role_spec = spec.role(key.role)
    assert role_spec is not None
    number = replica_numbers(spec, network_base)[(key.role, key.index)]
    return Launch(
        key=key,
        job_name=spec.name,
        account=job.account,
        account_id=job.account_id,
        uid=job.uid,
        cluster=spec.cluster,
        entry=spec.entry,
        workdir=spec.package,
        env=env,
        resources=role_spec.resources,
        address=address(number),
        gpus=tuple(gpus.get(key.short, ())),
        files=contract.files(facts, replica),
        runtime=spec.runtime,
    )


def placed_before(
    spec: JobSpec, intents: Iterable[tuple[ReplicaKey, Mapping[str, Any]]]
) -> Placed | None:
    """What a run had been given, from the intents of its attempts; None if it made none."""
    trainers, base = 0, 0
    gpus: dict[str, list[int]] = {}
    numbers = replica_numbers(spec, 0)
    for key, intent in intents:
        if (key.role, key.index) not in numbers:
            continue
        base = number_of(intent["address"]) - numbers[(key.role, key.index)]
        gpus[key.short] = list(intent["gpus"])
        if key.role == Role.TRAINER:
            trainers = max(trainers, key.index + 1)
    return Placed(trainers, base, gpus) if trainers else None


def assign_gpus(record: RunRecord, trainers: int, free: list[int]) -> dict[str, list[int]] | None:
    """Cards for each replica by number, `None` if there are too few; `free` is consumed."""
    given: dict[str, list[int]] = {}
    for spec in record.job.spec.roles:
        count = trainers if spec.role == Role.TRAINER else spec.replicas
        for index in range(count):
            need = spec.resources.gpu
            if need > len(free):
                return None
            given[f"{spec.role.value}-{index}"] = free[:need]
            del free[:need]
    return given
