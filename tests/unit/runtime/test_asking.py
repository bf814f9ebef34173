"""What a program learns from the runtime about itself and its peers."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from paddlecloud.controller import pods
from paddlecloud.controller.identity import identity_of
from paddlecloud.controller.peers import Site, shared_data
from paddlecloud.core.contract import ROLE_WORDS
from paddlecloud.core.jobspec import Role
from paddlecloud.forms import paddlejob
from paddlecloud.runtime import paddlecloud_runtime as asked
from tests.unit.controller.pretended import Namespace, role


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the peers' ConfigMap, empty."""
    monkeypatch.setattr(asked, "PEERS_FOLDER", str(tmp_path))
    for name in ("PADDLE_TRAINER_ENDPOINTS", "PADDLE_PSERVERS_IP_PORT_LIST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_knows_every_role(monkeypatch):
    for name, word in ROLE_WORDS.items():
        monkeypatch.setenv("TRAINING_ROLE", word)
        assert asked.role() == name


def test_reads_what_the_operator_writes_whatever_the_mode(mounted):
    for spec in (
        {"worker": role(1)},
        {"worker": role(3)},
        {"worker": role(3), "ps": role(2)},
        {"worker": role(3), "ps": role(2), "heter": role(1)},
    ):
        body = Namespace(**spec).body
        job, _ = paddlejob.parse(body)
        who, size = identity_of(body), job.spec.trainers.replicas
        slots = [(one.role, i) for one in job.spec.roles for i in range(one.replicas)]
        addresses = {slot: f"10.0.{n}.{slot[1]}" for n, slot in enumerate(slots)}
        for name, value in shared_data(job, who, Site(), size, addresses).items():
            (mounted / name).write_text(value)
        assert asked.world_size() == size
        for one in job.spec.roles:
            wanted = [f"{addresses[one.role, i]}:36000" for i in range(one.replicas)]
            assert asked.peers(one.role.value) == wanted
    assert pods.PEERS_PATH == "/var/run/paddlecloud/peers"
    assert {role.value for role in Role} == set(asked._ROLES.values())


def test_looks_where_the_operator_mounts_the_peers():
    assert asked.PEERS_FOLDER == pods.PEERS_PATH


def test_follows_changes_and_begins_with_the_environment(mounted, monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:1")
    assert (asked.rank(), asked.world_size(), asked.peers()) == (1, 2, ["a:1", "b:1"])
    (mounted / "PADDLE_TRAINER_ENDPOINTS").write_text("a:1,b:1,c:1")
    assert (asked.rank(), asked.world_size(), asked.peers()) == (1, 3, ["a:1", "b:1", "c:1"])


def test_says_which_roles_there_are():
    with pytest.raises(ValueError, match="'worker' is none of heter, pserver, trainer"):
        asked.peers("worker")


def test_waits_until_every_server_listens(mounted, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        here, there = (f"127.0.0.1:{one.getsockname()[1]}" for one in (server, silent))
        names = mounted / "PADDLE_PSERVERS_IP_PORT_LIST"
        names.write_text(f"{here},{there}")
        with pytest.raises(OSError, match=f"no answer within 0 s from {there}$"):
            asked.wait_for_servers(0)
        monkeypatch.setattr(asked.time, "sleep", lambda s: names.write_text(here))
        assert asked.wait_for_servers(60) == [here]


def test_has_nobody_to_wait_for_without_servers(mounted):
    assert asked.wait_for_servers(0) == []


def test_takes_the_brackets_off_an_ipv6_address(mounted, monkeypatch):
    asked_for = []

    def connect(address, timeout_s):
        asked_for.append(address)
        return socket.socket()

    monkeypatch.setattr(asked.socket, "create_connection", connect)
    (mounted / "PADDLE_PSERVERS_IP_PORT_LIST").write_text("[fd00::1]:36000")
    assert asked.wait_for_servers(0) == ["[fd00::1]:36000"]
    assert asked_for == [("fd00::1", 36000)]
