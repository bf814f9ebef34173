from __future__ import annotations

import pytest

from paddlecloud.controller.identity import Identity
from paddlecloud.controller.peers import (
    OWN,
    OWN_ADDRESS,
    THE_IMAGES_OWN,
    Site,
    _facts,
    pod_environment,
    shared_data,
)
from paddlecloud.core import contract
from paddlecloud.core.contract import ReplicaFacts
from paddlecloud.core.jobspec import Role
from paddlecloud.forms import paddlejob
from tests.unit.controller.pretended import role

WHO = Identity("ns", "job", "0123456789ab-cdef-01")
SHAPES = [
    {"worker": role(1)},
    {"worker": role(3)},
    {"worker": role(3), "ps": role(2)},
    {"worker": role(3), "ps": role(2), "heter": role(2)},
]


def job(**spec):
    return paddlejob.parse({"metadata": {"name": "job"}, "spec": spec})[0]


class Addresses(dict):
    def __missing__(self, slot):
        return f"10.0.{list(Role).index(slot[0])}.{slot[1]}"


@pytest.mark.parametrize("spec", SHAPES)
def test_replicas_of_one_role_differ_in_their_own_variables_only(spec):
    one = job(**spec, withGloo=1)
    facts = _facts(one, WHO, Site(), one.spec.trainers.replicas, Addresses())
    for found in one.spec.roles:
        seen = [
            contract.environment(facts, ReplicaFacts(found.role.value, index))
            for index in range(found.replicas)
        ]
        for name in set().union(*seen) - OWN - OWN_ADDRESS:
            assert len({env.get(name) for env in seen}) == 1, name


@pytest.mark.parametrize("spec", SHAPES)
def test_a_pod_sees_the_whole_contract(spec):
    one = job(**spec, withGloo=1)
    size, addresses = one.spec.trainers.replicas, Addresses()
    data = shared_data(one, WHO, Site(), size, addresses)
    facts = _facts(one, WHO, Site(), size, addresses)
    for found in one.spec.roles:
        for index in range(found.replicas):
            written = pod_environment(one, WHO, Site(), size, found.role, index)
            seen = {name: value for name, value in data.items() if "__" not in name}
            for entry in written:
                source = entry.get("valueFrom", {})
                if "configMapKeyRef" in source:
                    seen[entry["name"]] = data[source["configMapKeyRef"]["key"]]
                elif "fieldRef" in source:
                    seen[entry["name"]] = addresses[found.role, index]
                else:
                    seen[entry["name"]] = entry["value"].replace(
                        "$(POD_IP)", seen.get("POD_IP", "")
                    )
            wanted = contract.environment(facts, ReplicaFacts(found.role.value, index))
            assert seen == {
                name: value for name, value in wanted.items() if name not in THE_IMAGES_OWN
            }


def test_puts_an_ipv6_address_into_brackets():
    one = job(worker=role(2))
    data = shared_data(
        one, WHO, Site(), 2, {(Role.TRAINER, 0): "fd00::1", (Role.TRAINER, 1): "fd00::2"}
    )
    assert data["PADDLE_TRAINER_ENDPOINTS"] == "[fd00::1]:36000,[fd00::2]:36000"
    own = {e["name"]: e for e in pod_environment(one, WHO, Site(is_ipv6=True), 2, Role.TRAINER, 0)}
    assert own["PADDLE_CURRENT_ENDPOINT"]["value"] == "[$(POD_IP)]:36000"


def test_tells_paddles_elastic_launcher_where_etcd_is():
    site = Site(elastic_server="etcd:2379")
    assert "PADDLE_ELASTIC_SERVER" in shared_data(
        job(worker=role(1), elastic=0), WHO, site, 1, Addresses()
    )
    assert "PADDLE_ELASTIC_SERVER" not in shared_data(
        job(worker=role(1)), WHO, site, 1, Addresses()
    )
