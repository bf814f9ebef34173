"""What a replica may use is held to, where the machine allows, and said where it does not."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from paddlecloud.core.observed import EndCause
from paddlecloud.core.resources import Resources
from paddlecloud.engines.local import cgroups, hierarchies
from paddlecloud.engines.local.cgroups import SHIM_BYTES, Cgroups, cpu_shares, cpu_weight
from tests.engines.local.bench import EVERY_WAY, HELD, Bench, a_mark, processes_with, until

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
    private = "mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000"  # MAP_NORESERVE
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


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_program_that_cannot_be_held_to_its_limits_is_not_started(
    make_bench, monkeypatch: pytest.MonkeyPatch, way: str
):
    monkeypatch.setattr(Cgroups, "entrances", lambda self, group: [Path("/dev/full")])
    end = (bench := make_bench(way)).exit_of(bench.start("echo ran"))
    assert end.cause == EndCause.START_FAILED
    assert end.message == "cannot enter its cgroups: No space left on device"


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


@pytest.mark.needs("cgroup")
def test_groups_left_by_a_killed_platform_are_swept(make_bench):
    bench: Bench = make_bench("plain")
    key = bench.start("echo ready; sleep 1000")
    bench.says(key, "ready")
    group = groups_of(bench, key)[0]
    stray = group.with_name(group.name.partition(".")[0] + ".stray")
    stray.mkdir()
    bench.reopen()
    assert not stray.exists()
    assert group.exists()


# --- version 2, on a tree of plain files ---------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory that looks like a version 2 group, enough to see what is written where."""
    base = tmp_path / "base"
    base.mkdir()
    return base


def test_version_2_gets_its_own_words_for_the_same_limits(tree: Path):
    made = Cgroups(dict.fromkeys(("memory", "cpu", "pids"), tree), 2, "ours", pids_limit=99)
    group = made.planned("x")
    assert group is not None
    assert group.dirs == (tree / "ours.x",)
    (tree / "ours.x").mkdir()
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.weight", "pids.max"):
        (tree / "ours.x" / name).touch()
    made.make(group, Resources(cpu_milli=1000, memory_bytes=64 * MIB))
    said = {path.name: path.read_text() for path in (tree / "ours.x").iterdir()}
    assert said == {
        "memory.max": str(64 * MIB + SHIM_BYTES),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.weight": "39",
        "pids.max": "99",
    }


def test_a_process_enters_by_itself_where_that_costs_the_kernel_nothing(tree: Path):
    parents = {"memory": tree / "memory", "cpu": tree / "cpu"}
    first, second = (Cgroups(parents, version, "ours", 99) for version in (1, 2))
    group = first.planned("x")
    assert group is not None
    for path in group.dirs:
        path.mkdir(parents=True)
        (path / "cgroup.procs").touch()
    assert first.entrances(group) == [tree / "memory/ours.x/tasks", tree / "cpu/ours.x/tasks"]
    first.put_in(group, 17)
    assert [(path / "cgroup.procs").read_text() for path in group.dirs] == ["", ""]
    assert second.entrances(group) == []
    second.put_in(group, 17)
    assert [(path / "cgroup.procs").read_text() for path in group.dirs] == ["17", "17"]


def test_version_2_counts_its_out_of_memory_kills(tree: Path):
    group = cgroups.Group((tree,))
    assert group.out_of_memory_kills() == 0
    (tree / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\n")
    assert group.out_of_memory_kills() == 1


def test_where_nothing_may_be_made_there_is_nothing_to_make():
    none = cgroups.no_cgroups()
    assert none.planned("x") is None
    assert not none.controls_memory
    assert not none.controls_cpu


@pytest.mark.needs("cgroup")
def test_what_the_machine_permits_is_found_by_trying(tmp_path: Path):
    found = cgroups.find_cgroups(tmp_path, 99)
    assert found.controls_memory or found.controls_cpu
    assert not any(list(p.glob(found._prefix + "*")) for p in found._parents.values())


def test_a_machine_without_cgroups_is_said_to_have_none(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(hierarchies, "mounts", list)
    assert cgroups.find_cgroups(tmp_path, 99).planned("x") is None


class FakeVersion2:
    """A tree of plain files that answers like the kernel: what a parent hands down, a child has."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, own: str) -> None:
        self.root = root
        self.enterable: set[Path] = set()
        monkeypatch.setattr(hierarchies, "mounts", lambda: [(str(root), "cgroup2", {"rw"})])
        monkeypatch.setattr(hierarchies, "own_groups", lambda: {"": own})
        monkeypatch.setattr(cgroups, "_can_enter", lambda p: p.parent.parent in self.enterable)

    def add(self, path: str, offered: str, handed_down: str, *, enterable: bool) -> Path:
        group = self.root / path
        group.mkdir(parents=True, exist_ok=True)
        (group / "cgroup.controllers").write_text(offered)
        (group / "cgroup.subtree_control").write_text(handed_down)
        if enterable:
            self.enterable.add(group)
        return group


def test_version_2_takes_the_nearest_group_that_hands_down_what_is_needed(tmp_path, monkeypatch):
    fake = FakeVersion2(tmp_path / "v2", monkeypatch, "/user/session")
    fake.add("", "memory cpu pids io", "memory cpu pids", enterable=True)
    good = fake.add("user", "memory cpu pids", "memory cpu pids", enterable=True)
    fake.add("user/session", "memory cpu pids", "", enterable=True)
    group = cgroups.find_cgroups(tmp_path, 99).planned("x")
    assert group is not None
    assert group.dirs[0].parent == good


def test_version_2_does_not_take_a_group_it_cannot_move_a_process_into(tmp_path, monkeypatch):
    """As below a systemd user manager: the directory may be made, but nobody may enter."""
    fake = FakeVersion2(tmp_path / "v2", monkeypatch, "/user")
    fake.add("", "memory cpu pids", "memory cpu pids", enterable=False)
    fake.add("user", "memory cpu pids", "memory cpu pids", enterable=False)
    assert cgroups.find_cgroups(tmp_path, 99).planned("x") is None
    assert not list((tmp_path / "v2").rglob("paddlecloud-*"))


def test_version_2_asks_the_root_to_hand_down_what_it_has(tmp_path, monkeypatch):
    fake = FakeVersion2(tmp_path / "v2", monkeypatch, "/")
    root = fake.add("", "memory cpu pids", "", enterable=True)
    cgroups.find_cgroups(tmp_path, 99)
    assert (root / "cgroup.subtree_control").read_text() == "+memory +cpu +pids"


# --- killing a group, in every hierarchy this machine has ----------------------------------------


@pytest.mark.needs("cgroup")
def test_a_group_is_killed_whole_in_every_hierarchy():
    places = [Path(where) for where, _, _ in hierarchies.mounts()]
    tried = 0
    for place in places:
        path = place / f"paddlecloud-test-{os.getpid()}"
        try:
            path.mkdir()
        except OSError:
            continue
        group, mark = cgroups.Group((path,)), a_mark()
        script = f'echo 0 > "$0"/cgroup.procs && for i in 1 2 3; do sleep {mark} & done; wait'
        shell = subprocess.Popen(["/bin/sh", "-c", script, str(path)], stderr=subprocess.DEVNULL)
        try:
            until(lambda: len(processes_with(mark)) == 4 or shell.poll() is not None)  # noqa: B023
            if shell.poll() is None:
                tried += 1
                assert group.pids() == set(processes_with(mark))
                group.kill()
                shell.wait()
                until(lambda: not group.pids(), "dying")  # noqa: B023
                assert processes_with(mark) == []
        finally:
            shell.kill()
            shell.wait()
            until(lambda: not group.pids(), "dying")  # noqa: B023
            group.remove()
        assert not path.exists()
    assert tried
