"""What the machine is said to have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.engines.local import hierarchies, inventory
from paddlecloud.engines.local.config import LocalConfig
from tests.engines.local.bench import EVERY_WAY, Bench

GIB = 2**30


def config(tmp_path: Path, **settings: object) -> LocalConfig:
    return LocalConfig(tmp_path / "state", tmp_path / "pfs", **settings)  # type: ignore[arg-type]


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts this process two groups deep into a fake hierarchy."""

    def put_into(kind: str, outer: dict[str, str], inner: dict[str, str]) -> None:
        top = tmp_path / "cgroup"
        options = {"rw", "cpu", "memory"}
        for path, files in ((top / "a", outer), (top / "a" / "b", inner)):
            path.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (path / name).write_text(text)
        monkeypatch.setattr(hierarchies, "mounts", lambda: [(str(top), kind, options)])
        own = {"": "/a/b", "cpu": "/a/b", "memory": "/a/b"}
        monkeypatch.setattr(hierarchies, "own_groups", lambda: own)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))

    return put_into


def test_cores_are_those_we_may_run_on(monkeypatch):
    monkeypatch.setattr(hierarchies, "mounts", list)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5})
    assert inventory.count_cores() == 3


@pytest.mark.parametrize(
    ("kind", "outer", "inner", "cores"),
    [
        ("cgroup2", {"cpu.max": "max 100000\n"}, {"cpu.max": "max 100000\n"}, 64),
        ("cgroup2", {"cpu.max": "400000 100000\n"}, {"cpu.max": "max 100000\n"}, 4),
        ("cgroup2", {"cpu.max": "400000 100000\n"}, {"cpu.max": "150000 100000\n"}, 2),
        ("cgroup2", {}, {"cpu.max": "50000 100000\n"}, 1),
        ("cgroup", {}, {"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, 64),
        ("cgroup", {}, {"cpu.cfs_quota_us": "250000\n", "cpu.cfs_period_us": "100000\n"}, 3),
    ],
)
def test_a_containers_cpu_quota_counts(limits, kind: str, outer, inner, cores: int):
    limits(kind, outer, inner)
    assert inventory.count_cores() == cores


@pytest.mark.parametrize(
    ("kind", "outer", "inner", "limit"),
    [
        ("cgroup2", {"memory.max": f"{2 * GIB}\n"}, {"memory.max": "max\n"}, 2 * GIB),
        ("cgroup2", {"memory.max": "max\n"}, {"memory.max": f"{GIB}\n"}, GIB),
        ("cgroup", {"memory.limit_in_bytes": f"{GIB}\n"}, {}, GIB),
        ("cgroup", {}, {"memory.limit_in_bytes": "9223372036854771712\n"}, None),
    ],
)
def test_a_containers_memory_limit_counts(limits, tmp_path, kind, outer, inner, limit):
    limits(kind, outer, inner)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    reserve = GIB // 4
    expected = (total if limit is None else limit) - reserve
    assert inventory.memory_bytes(config(tmp_path, memory_reserve_bytes=reserve)) == expected


def test_a_machine_smaller_than_the_reserve_has_nothing_to_give(tmp_path):
    assert inventory.memory_bytes(config(tmp_path, memory_reserve_bytes=2**60)) == 0


def test_cpu_is_over_committed_and_nothing_else(tmp_path):
    plain = inventory.machine(config(tmp_path, cpu_overcommit=1, gpus=2))
    over = inventory.machine(config(tmp_path, cpu_overcommit=4, gpus=2))
    assert plain.cpu_milli == inventory.count_cores() * 1000
    assert over.cpu_milli == 4 * plain.cpu_milli
    assert (over.memory_bytes, over.gpu) == (plain.memory_bytes, 2)


def test_gpus_are_counted_from_the_configuration_then_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PADDLECLOUD_FAKE_GPUS", "3")
    assert inventory.count_gpus(config(tmp_path)) == 3
    assert inventory.count_gpus(config(tmp_path, gpus=0)) == 0
    monkeypatch.setenv("PADDLECLOUD_FAKE_GPUS", "many")
    assert inventory.count_gpus(config(tmp_path)) == inventory.count_devices(Path("/"))


def test_gpus_are_those_the_driver_knows_else_the_devices(tmp_path):
    assert inventory.count_devices(tmp_path) == 0
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / "dev" / name).touch()
    assert inventory.count_devices(tmp_path) == 2
    for number in range(4):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:0{number}:00.0").mkdir(parents=True)
    assert inventory.count_devices(tmp_path) == 4


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize(("gpus", "value"), [((), ""), ((1,), "1"), ((0, 3), "0,3")])
def test_a_replica_sees_the_cards_it_was_given(make_bench, way: str, gpus, value: str):
    bench: Bench = make_bench(way, gpus=4)
    wish = {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}  # what the user says does not matter
    text = bench.output_of('echo "[$CUDA_VISIBLE_DEVICES]"', gpus=gpus, env=wish)
    assert text == f"[{value}]\n"


def test_on_a_machine_without_gpus_the_variable_is_left_alone(make_bench):
    bench: Bench = make_bench("plain-without-cgroups", gpus=0)
    assert bench.output_of('echo "[${CUDA_VISIBLE_DEVICES-unset}]"') == "[unset]\n"
