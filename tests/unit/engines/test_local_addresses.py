"""Addresses of replicas, and how many of them a program can be told."""

from __future__ import annotations

import subprocess

import pytest

from paddlecloud.core import contract
from paddlecloud.core.jobspec import JobSpec, Mode, Role, RoleSpec
from paddlecloud.core.resources import Resources
from paddlecloud.engines.local.addresses import (
    MOST_PEERS,
    PORTS_PER_REPLICA,
    address,
    first_port,
    number_of,
    too_many,
)
from paddlecloud.engines.local.store import FIRST_NETWORK, LAST_NETWORK

ONE = Resources(1, 1)


def a_spec(trainers: RoleSpec, *others: RoleSpec) -> JobSpec:
    return JobSpec(name="j", mode=Mode.PS, roles=(trainers, *others), entry="true")


@pytest.mark.parametrize("number", [FIRST_NETWORK, 255, 256, 65_535, 65_536, LAST_NETWORK - 1])
def test_an_address_tells_its_number(number: int) -> None:
    assert number_of(address(number)) == number


def endpoints_of(count: int) -> dict[str, str]:
    """The environment of a job whose addresses are as long as they get."""
    numbers = [n for n in range(LAST_NETWORK - 1, 0, -1) if len(address(n)) == 14][:count]
    peers = [contract.Peer(address(n), first_port(n), PORTS_PER_REPLICA) for n in numbers]
    facts = contract.JobFacts("job-1", "j", "ps", "local", "alice", peers, peers)
    return contract.environment(facts, contract.ReplicaFacts("trainer", 0))


@pytest.mark.needs("linux")
@pytest.mark.slow
def test_a_program_starts_with_the_largest_list_and_with_none_larger() -> None:
    subprocess.run(["/bin/true"], env=endpoints_of(MOST_PEERS), check=True)
    with pytest.raises(OSError, match="too long"):
        subprocess.run(["/bin/true"], env=endpoints_of(MOST_PEERS + 1))


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        (a_spec(RoleSpec(Role.TRAINER, MOST_PEERS + 1, ONE)), "parallelism", MOST_PEERS + 1),
        (a_spec(RoleSpec(Role.TRAINER, 2, ONE, 1, 9000)), "max_instance", 9000),
        (
            a_spec(RoleSpec(Role.TRAINER, 1, ONE), RoleSpec(Role.PSERVER, 9000, ONE)),
            "pservers",
            9000,
        ),
    ],
)
def test_refuses_more_than_a_variable_holds(spec: JobSpec, field: str, value: int) -> None:
    (fault,) = too_many(spec)
    assert (fault.field, fault.value) == (field, str(value))
    assert str(MOST_PEERS) in fault.problem


def test_takes_as_many_as_a_variable_holds() -> None:
    assert too_many(a_spec(RoleSpec(Role.TRAINER, MOST_PEERS, ONE))) == []
