"""What a replica may use is held to, where the machine allows, and said where it does not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from paddlecloud.core.observed import EndCause
from paddlecloud.core.resources import Resources
from paddlecloud.engines.local import cgroups
from paddlecloud.engines.local.cgroups import SHIM_BYTES, Cgroups, cpu_shares, cpu_weight
from tests.engines.local.bench import HELD, Bench, a_mark, processes_with

MIB = 2**20
HOG = "block = bytearray(400 * 2**20)\nprint('got it', flush=True)\n"
WITHOUT_CGROUPS = [
    pytest.param("sandbox-without-cgroups", marks=pytest.mark.needs("bubblewrap")),
    "plain-without-cgroups",
]


def groups_of(bench: Bench, key) -> list[Path]:
    launch = json.loads((bench.attempt_dir(key) / "launch.json").read_text())
    return [Path(path) for path in launch["cgroup_dirs"]]


# --- memory ------------------------------------------------------------------------------------


@pytest.mark.needs("cgroup")
@pytest.mark.parametrize("way", HELD)
def test_a_program_over_its_memory_is_killed_and_the_reason_is_told(make_bench, way: str):
    bench: Bench = make_bench(way)
    end = bench.exit_of(bench.python(HOG, resources=Resources(memory_bytes=100 * MIB)))
    assert (end.cause, end.code, end.signal) == (EndCause.OUT_OF_MEMORY, 137, 9)
    assert "memory limit of 100Mi" in end.message


@pytest.mark.needs("cgroup")
@pytest.mark.parametrize("way", HELD)
def test_a_worker_killed_for_memory_is_the_reason_its_program_failed(make_bench, way: str):
    """The kernel kills the largest process, not the one we wait for."""
    bench: Bench = make_bench(way)
    bench.put("worker.py", HOG)
    key = bench.start("python worker.py || exit 3", resources=Resources(memory_bytes=100 * MIB))
    end = bench.exit_of(key)
    assert (end.cause, end.code) == (EndCause.OUT_OF_MEMORY, 3)


@pytest.mark.needs("cgroup")
@pytest.mark.parametrize("way", HELD)
def test_a_program_that_lives_with_a_killed_worker_ends_well(make_bench, way: str):
    bench: Bench = make_bench(way)
    bench.put("worker.py", HOG)
    key = bench.start("python worker.py; exit 0", resources=Resources(memory_bytes=100 * MIB))
    assert bench.exit_of(key).ok


@pytest.mark.needs("cgroup")
@pytest.mark.parametrize("way", HELD)
def test_memory_within_the_limit_is_the_programs_in_full(make_bench, way: str):
    bench: Bench = make_bench(way)
    key = bench.python(HOG, resources=Resources(memory_bytes=450 * MIB))
    assert bench.exit_of(key).ok
    assert bench.log(key) == "got it\n"


@pytest.mark.parametrize("way", WITHOUT_CGROUPS)
def test_without_cgroups_a_process_cannot_get_the_memory(make_bench, way: str):
    bench: Bench = make_bench(way)
    key = bench.python(HOG, resources=Resources(memory_bytes=100 * MIB))
    end = bench.exit_of(key)
    assert (end.cause, end.code) == (EndCause.EXITED, 1)
    assert "MemoryError" in bench.log(key)
    assert any("RLIMIT_DATA" in note for note in bench.processes.notes())


@pytest.mark.parametrize("way", WITHOUT_CGROUPS)
def test_without_cgroups_address_space_may_still_be_reserved(make_bench, way: str):
    """JAX, Go and CUDA reserve far more than they use; RLIMIT_AS would refuse them."""
    bench: Bench = make_bench(way)
    private = "mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_NORESERVE"
    reserve = f"import mmap; mmap.mmap(-1, 2**36, flags={private}, prot=0)"  # PROT_NONE
    key = bench.start(f"python -c '{reserve}'", resources=Resources(memory_bytes=200 * MIB))
    assert bench.exit_of(key).ok, bench.log(key)


@pytest.mark.parametrize("way", WITHOUT_CGROUPS)
def test_no_memory_asked_for_is_no_limit(make_bench, way: str):
    bench: Bench = make_bench(way)
    assert bench.exit_of(bench.python(HOG, resources=Resources(cpu_milli=100))).ok


# --- processes and CPU --------------------------------------------------------------------------


@pytest.mark.needs("cgroup")
@pytest.mark.parametrize("way", HELD)
def test_processes_are_counted_and_bounded(make_bench, way: str):
    bench: Bench = make_bench(way, pids_limit=20)
    mark = a_mark()
    key = bench.python(
        "import os, sys, time\n"
        "made = 0\n"
        "try:\n"
        "    for _ in range(100):\n"
        f"        os.fork() or os.execvp('sleep', ['sleep', '{mark}'])\n"
        "        made += 1\n"
        "except OSError as error:\n"
        "    print(error.strerror, made)\n"
    )
    assert bench.exit_of(key).ok
    assert "Resource temporarily unavailable" in bench.log(key)
    assert int(bench.log(key).split()[-1]) < 20
    assert processes_with(mark) == []


@pytest.mark.needs("cgroup")
@pytest.mark.parametrize("way", HELD)
def test_cpu_is_shared_by_what_was_asked_for(make_bench, way: str):
    bench: Bench = make_bench(way)
    key = bench.start("echo ready; sleep 1000", resources=Resources(cpu_milli=2500))
    bench.says(key, "ready")
    values = [
        (path / name).read_text().strip()
        for path in groups_of(bench, key)
        for name in ("cpu.shares", "cpu.weight")
        if (path / name).exists()
    ]
    assert values in (["2560"], [str(cpu_weight(2500))])


@pytest.mark.parametrize(
    ("cpu_milli", "shares", "weight"),
    [(1, 2, 1), (100, 102, 4), (1000, 1024, 39), (2000, 2048, 79), (10**9, 1024 * 10**6, 10000)],
)
def test_cpu_becomes_the_kernels_weights(cpu_milli: int, shares: int, weight: int):
    assert (cpu_shares(cpu_milli), cpu_weight(cpu_milli)) == (shares, weight)


# --- groups are made, found again and removed ----------------------------------------------------


@pytest.mark.needs("cgroup")
@pytest.mark.parametrize("way", HELD)
def test_the_program_and_its_children_are_in_the_group(make_bench, way: str):
    bench, mark = make_bench(way), a_mark()
    key = bench.start(f"setsid sleep {mark} & echo ready; exec sleep {mark}")
    bench.says(key, "ready")
    for path in groups_of(bench, key):
        inside = set(map(int, (path / "cgroup.procs").read_text().split()))
        assert set(processes_with(mark)) <= inside
        assert len(inside) >= 2


@pytest.mark.needs("cgroup")
@pytest.mark.parametrize("way", HELD)
def test_groups_are_gone_when_the_attempt_is(make_bench, way: str):
    bench: Bench = make_bench(way)
    key = bench.start("echo ready; sleep 1000")
    bench.says(key, "ready")
    groups = groups_of(bench, key)
    assert groups
    assert all(path.is_dir() for path in groups)
    bench.processes.stop(key, 0)
    bench.ended(key)
    assert not any(path.exists() for path in groups)
    bench.processes.close()
    assert not any(path.parent.exists() for path in groups)
    bench.open()


@pytest.mark.needs("cgroup")
def test_groups_left_by_a_killed_platform_are_swept(make_bench):
    bench: Bench = make_bench("plain")
    key = bench.start("echo ready; sleep 1000")
    bench.says(key, "ready")
    (base,) = {groups_of(bench, key)[0].parent}
    stray = base / "stray"
    stray.mkdir()
    bench.reopen()
    assert not stray.exists()
    assert groups_of(bench, key)[0].exists()


# --- version 2, on a tree of plain files ---------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory that looks like a version 2 group, enough to see what is written where."""
    base = tmp_path / "base"
    base.mkdir()
    return base


def test_version_2_gets_its_own_words_for_the_same_limits(tree: Path):
    made = Cgroups(dict.fromkeys(("memory", "cpu", "pids"), tree), 2, pids_limit=99)
    group = made.planned("x")
    assert group is not None
    assert group.dirs == (tree / "x",)
    (tree / "x").mkdir()
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.weight", "pids.max"):
        (tree / "x" / name).touch()
    made.make(group, Resources(cpu_milli=1000, memory_bytes=64 * MIB))
    said = {path.name: path.read_text() for path in (tree / "x").iterdir()}
    assert said == {
        "memory.max": str(64 * MIB + SHIM_BYTES),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.weight": "39",
        "pids.max": "99",
    }


def test_version_2_counts_its_out_of_memory_kills(tree: Path):
    group = cgroups.Group((tree,))
    assert group.out_of_memory_kills() == 0
    (tree / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\n")
    assert group.out_of_memory_kills() == 1


def test_where_nothing_may_be_made_there_is_nothing_to_make():
    none = Cgroups({}, 0, pids_limit=99)
    assert none.planned("x") is None
    assert not none.controls_memory
    assert not none.controls_cpu


@pytest.mark.needs("cgroup")
def test_what_the_machine_permits_is_found_by_trying(tmp_path: Path):
    found = cgroups.find_cgroups(tmp_path, 99)
    try:
        assert found.controls_memory or found.controls_cpu
    finally:
        found.close()
    name = found._bases and next(iter(found._bases.values())).name
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{name}"))


def test_a_machine_without_cgroups_is_said_to_have_none(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(cgroups, "_mounts", list)
    assert cgroups.find_cgroups(tmp_path, 99).planned("x") is None


def test_a_read_only_hierarchy_is_not_used(tmp_path: Path, monkeypatch):
    locked = tmp_path / "locked"
    locked.mkdir()
    (locked / "cgroup.controllers").write_text("memory cpu pids\n")
    monkeypatch.setattr(cgroups, "_mounts", lambda: [(str(locked), "cgroup2", {"ro"})])
    monkeypatch.setattr(cgroups, "_own_groups", lambda: {"": "/"})
    if os.geteuid() == 0:
        monkeypatch.setattr(cgroups, "_can_enter", lambda _: False)
    assert cgroups.find_cgroups(tmp_path, 99).planned("x") is None
    assert list(locked.iterdir()) == [locked / "cgroup.controllers"]
