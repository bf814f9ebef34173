"""Parameter servers listen before their workers start."""

from __future__ import annotations

import pytest

from paddlecloud.controller.observing import PROBE_PATIENCE_S
from tests.unit.controller.pretended import Namespace, role, running

GATE = ("configmaps", "job.servers")


def listen(world: Namespace, name: str, is_ready: bool) -> None:
    world.stored["pods", name]["status"]["containerStatuses"][0]["ready"] = is_ready


def started(**spec) -> Namespace:
    """All pods have an address and run, but the server does not listen."""
    world = Namespace(worker=role(2), ps=role(1), **spec)
    world.settle()
    world.run()
    listen(world, "job-ps-0", False)
    world.step()
    return world


def test_holds_workers_back_until_the_servers_listen():
    world = started()
    assert world.data is not None
    assert GATE not in world.stored
    with pytest.raises(AssertionError, match="held back"):
        world.environment("job-worker-0")
    assert world.environment("job-ps-0")["TRAINING_ROLE"] == "PSERVER"
    listen(world, "job-ps-0", True)
    world.settle()
    assert world.environment("job-worker-0")["TRAINING_ROLE"] == "TRAINER"
    assert world.status["phase"] == "Running"


def test_has_the_kubelet_look_for_the_port_of_the_list():
    world = started()
    container = world.pods()["job-ps-0"]["spec"]["containers"][0]
    assert container["readinessProbe"]["tcpSocket"]["port"] == 36000
    assert "readinessProbe" not in world.pods()["job-worker-0"]["spec"]["containers"][0]


def test_leaves_a_users_own_probe_alone():
    servers = role(1)
    probe = {"exec": {"command": ["true"]}}
    servers["template"]["spec"]["containers"][0]["readinessProbe"] = probe
    world = Namespace(worker=role(1), ps=servers)
    world.settle()
    assert world.pods()["job-ps-0"]["spec"]["containers"][0]["readinessProbe"] == probe


def test_believes_a_server_that_listens_elsewhere_after_a_while():
    world = started()
    decided = world.look()
    assert decided.wake_after_s == PROBE_PATIENCE_S
    world.now += PROBE_PATIENCE_S
    world.settle()
    assert GATE in world.stored
    assert world.status["phase"] == "Running"


def test_does_not_wait_where_servers_wait_for_workers():
    world = running(worker=role(1), ps=role(1), withGloo=2)
    assert GATE not in world.stored
    assert world.environment("job-worker-0")["PADDLE_WITH_GLOO"] == "2"


def test_holds_workers_back_again_when_everybody_restarts():
    world = running(worker=role(2), ps=role(1), backoffLimit=1)
    world.end("job-ps-0", 1)
    for _ in range(30):
        world.leave()
        if not world.pods():
            break
        world.step()
    world.settle()
    assert sorted(world.pods()) == ["job-ps-0", "job-worker-0", "job-worker-1"]
    assert GATE not in world.stored
    world.run()
    world.settle()
    assert world.status["phase"] == "Running"
    assert GATE in world.stored


def test_keeps_workers_running_when_a_server_is_unready_for_a_moment():
    world = running(worker=role(1), ps=role(1))
    listen(world, "job-ps-0", False)
    world.step()
    assert GATE in world.stored
