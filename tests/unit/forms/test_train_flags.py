"""`job train`: the table of the reference, row by row; the mode; every fault at once."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import pytest
from hypothesis import given

from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import JobSpec, Mode, Priority, Role, RoleSpec
from paddlecloud.core.resources import Resources
from paddlecloud.forms.effective import effective
from paddlecloud.forms.train_flags import Training, parse, render
from paddlecloud.forms.train_options import OPTIONS
from tests.unit.strategies import train_specs

GI = 2**30
BASE = "--job-name j --start-cmd 'python t.py'"


def train(line: str, conf: str = "") -> Training:
    return parse(shlex.split(f"{BASE} {line}"), conf)


def spec(line: str = "") -> JobSpec:
    return train(line).spec


def problems(line: str, base: str = BASE) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        parse(shlex.split(f"{base} {line}"))
    assert "usage: paddlecloud job train" in caught.value.hint
    return [(fault.field, fault.problem) for fault in caught.value.faults]


def test_fills_in_the_defaults_of_the_reference() -> None:
    trainer = RoleSpec(Role.TRAINER, 1, Resources(1000, GI))
    assert spec() == JobSpec("j", Mode.SINGLE, (trainer,), entry="python t.py")


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("--group-name g", "group", "g"),
        ("--cluster-name c", "cluster", "c"),
        ("--cluster_name c", "cluster", "c"),
        ("--job-version paddle-v2.4.1", "runtime", "paddle-v2.4.1"),
        ("--job_version fluid", "runtime", "fluid"),
        ("--job-version pytorch-1.10", "runtime", "pytorch-1.10"),
        ("--job-version custom-framework --image-addr reg/i:1", "runtime", "reg/i:1"),
        ("--job-version custom-fluid --version_image_addr reg/i:1", "runtime", "reg/i:1"),
        ("--image-addr reg/i:1", "runtime", ""),
        ("--permission group", "annotations", {"permission": "group"}),
        ("--permission private", "annotations", {}),
        ("--wall-time 24:00:00", "wall_time_s", 86400),
        ("--k8s-wall-time 1:2:3", "wall_time_s", 3723),
        ("--k8s_walltime 1200:00:00", "wall_time_s", 1200 * 3600),
        ("--mpi-wall-time 00:10:00", "wall_time_s", 600),
        ("--wall-time 00:00:00", "wall_time_s", 0),
        ("--wall-time 999999:00:00", "wall_time_s", 999999 * 3600),
        ("--k8s-priority high", "priority", Priority.HIGH),
        ("--k8s_priority low", "priority", Priority.LOW),
        ("--k8s-priority very_high", "priority", Priority.VERY_HIGH),
        ("--mpi-priority veryhigh", "priority", Priority.VERY_HIGH),
        ("--algo-id algo-0123456789abcdef", "annotations", {"algo-id": "algo-0123456789abcdef"}),
        ("--job-tags 'a,b c'", "annotations", {"tags": "a,b c"}),
        ("--job-tags '' --job-remark ''", "annotations", {}),
        ("--job-remark '你好 = note'", "annotations", {"remark": "你好 = note"}),
        ("--k8s-gpu-type baidu/gpu_v100", "annotations", {"gpu-type": "baidu/gpu_v100"}),
        ("--is-auto-over-sell 1", "may_borrow", True),
        ("--is-auto-over-sell 0", "may_borrow", False),
        ("--use-native-api 1 --dfs-agent-port 3333", "annotations", {}),
        (
            "--code-uri /pfs/c/home/a/x.tar.gz",
            "annotations",
            {"code-uri": "/pfs/c/home/a/x.tar.gz"},
        ),
    ],
)
def test_reads_a_flag(line: str, name: str, value: Any) -> None:
    found = getattr(spec(line), name)
    if name == "annotations":
        found = {key: text for key, text in found.items() if key != "launcher"}
    assert found == value


@pytest.mark.parametrize(
    ("line", "trainer", "server"),
    [
        ("--k8s-cpu-cores 4", Resources(4000, GI), None),
        ("--k8s-memory 10Gi", Resources(1000, 10 * GI), None),
        ("--k8s_memory 2048Ki", Resources(1000, 2 * 2**20), None),
        ("--mpi-memory 2Gi", Resources(1000, 2 * GI), None),
        ("--k8s-gpu-cards 8", Resources(1000, GI, 8), None),
        ("--k8s_gpu_cards 0", Resources(1000, GI), None),
        ("--k8s-cpu-cores 0 --k8s-trainers 0", Resources(1000, GI), None),
        (
            "--distribute-job-type PSERVER --k8s-ps-cores 3 --k8s-ps-memory 5Gi",
            Resources(1000, GI),
            Resources(3000, 5 * GI),
        ),
        (
            "--k8s-not-local --k8s_pservers_count 2 --k8s_pscpu_cores 3 --k8s_psmemory 5Gi",
            Resources(1000, GI),
            Resources(3000, 5 * GI),
        ),
    ],
)
def test_reads_what_each_needs(line: str, trainer: Resources, server: Resources | None) -> None:
    found = spec(line)
    servers = found.role(Role.PSERVER)
    assert found.trainers.resources == trainer
    assert (servers.resources if servers else None) == server


MODES = [
    # line, mode, trainers, gpu_total, standalone, ps_num
    ("", "single", 1, 0, True, 0),
    ("--k8s-gpu-cards 8", "single", 1, 8, True, 0),
    ("--is-standalone 1", "single", 1, 0, True, 0),
    ("--is-standalone 1 --k8s-trainers 1", "single", 1, 0, True, 0),
    ("--k8s_is_local 1", "single", 1, 0, True, 0),
    ("--is-standalone 1 --distribute-job-type NCCL2", "single", 1, 0, True, 0),
    ("--k8s-ps-memory 5Gi --k8s-ps-cores 2", "single", 1, 0, True, 0),
    ("--k8s-trainers 4 --k8s-gpu-cards 8", "collective", 4, 32, False, 0),
    ("--is-standalone 0 --k8s-trainers 2", "collective", 2, 0, False, 0),
    ("--is-standalone 0", "collective", 1, 0, False, 0),
    ("--distribute-job-type NCCL2", "collective", 1, 0, False, 0),
    ("--distribute-job-type NCCL2 --k8s-trainers 2", "collective", 2, 0, False, 0),
    ("--distribute-job-type NCCL2 --k8s-trainers 2 --k8s-ps-num 2", "collective", 2, 0, False, 0),
    ("--k8s-not-local --distribute-job-type NCCL2 --k8s-trainers 2", "collective", 2, 0, False, 0),
    ("--distribute-job-type PSERVER", "ps", 1, 0, False, 1),
    ("--distribute-job-type PSERVER --k8s-trainers 3", "ps", 3, 0, False, 1),
    ("--distribute-job-type PSERVER --k8s-trainers 3 --k8s-ps-num 2", "ps", 3, 0, False, 2),
    ("--k8s-not-local --k8s-trainers 2 --k8s-ps-num 2", "ps", 2, 0, False, 2),
    ("--k8s_is_local 0 --k8s_trainers 2 --k8s_pservers_count 2", "ps", 2, 0, False, 2),
    ("--k8s-trainers 2 --k8s-ps-num 3", "ps", 2, 0, False, 3),
    ("--mpi-nodes 4", "mpi", 4, 0, False, 0),
    ("--mpi-nodes 1", "mpi", 1, 0, True, 0),
    ("--mpi-priority high", "mpi", 1, 0, True, 0),
    ("--k8s-not-local --mpi-nodes 2", "mpi", 2, 0, False, 0),
    ("--mpi-nodes 2 --distribute-job-type PSERVER --k8s-ps-num 2", "mpi", 2, 0, False, 2),
    ("--slurm-nodes 2 --slurm-gpu-pnode 8", "slurm", 2, 16, False, 0),
    ("--slurm-nodes 2 --slurm-gpu-pnode 8 --slurm-task-pnode 8", "slurm", 16, 16, False, 0),
    ("--slurm-gpu-pnode 8", "slurm", 1, 8, True, 0),
    ("--slurm-nodes 2 --k8s-gpu-cards 1", "slurm", 2, 2, False, 0),
]


@pytest.mark.parametrize(("line", "mode", "trainers", "gpus", "alone", "servers"), MODES)
def test_decides_the_mode(
    line: str, mode: str, trainers: int, gpus: int, alone: bool, servers: int
) -> None:
    assert effective(spec(line)) == {
        "trainers": trainers,
        "gpu_total": gpus,
        "standalone": alone,
        "mode": mode,
        "ps_num": servers,
        "wall_time_seconds": None,
        "unlimited": True,
        "priority": "high" if "priority" in line else "normal",
    }


def test_sums_up_a_limit() -> None:
    found = effective(spec("--wall-time 10:00:00 --k8s-priority low"))
    assert (found["wall_time_seconds"], found["unlimited"], found["priority"]) == (
        36000,
        False,
        "low",
    )


@pytest.mark.parametrize("name", ["a_b:c", "训练 (1)", "x.y", "-", "'; rm -rf /", "a" * 200])
def test_a_job_may_have_any_name(name: str) -> None:
    found = parse([f"--job-name={name}", "--start-cmd", "x"])
    assert found.spec.name == name


def test_reads_the_words_of_the_first_release() -> None:
    found = parse(["job_1", "a.py", "b.py", "conf.py", "--start-cmd", "x", "--k8s_trainers", "2"])
    assert (found.spec.name, found.files, found.conf) == ("job_1", ("a.py", "b.py"), "conf.py")


def test_keeps_the_paths_as_typed() -> None:
    found = train("--files a.py ./b/*.sh --file-dir . --job-conf config.ini --json --dry-run")
    assert found.files == ("a.py", "./b/*.sh")
    assert (found.file_dir, found.conf) == (".", "config.ini")
    assert (found.wants_json, found.is_dry_run) == (True, True)


def test_the_configuration_file_becomes_the_environment() -> None:
    found = train("--job-conf c.ini", 'FLAGS_x = "1"\nfs_ugi="u,hunter2"\n')
    assert found.spec.env == {"FLAGS_x": "1"}
    assert "hunter2" not in repr(found)


# --- faults ----------------------------------------------------------------------------------

_NUMBER = "must be a whole number from 1 to "
_MEMORY = "must be digits with Ki, Mi or Gi"


@pytest.mark.parametrize(
    ("line", "field", "problem"),
    [
        ("--k8s-trainers two", "--k8s-trainers", _NUMBER + "10000"),
        ("--k8s_trainers -1", "--k8s_trainers", _NUMBER + "10000"),
        ("--k8s-tr 1.5", "--k8s-tr", _NUMBER + "10000"),
        ("--k8s-trainers ''", "--k8s-trainers", _NUMBER + "10000"),
        (f"--k8s-trainers {'9' * 400}", "--k8s-trainers", _NUMBER + "10000"),
        (
            "--k8s-trainers 1 --k8s_trainers 2",
            "--k8s_trainers",
            "already given as --k8s-trainers 1",
        ),
        ("--k8s-gpu-cards -1", "--k8s-gpu-cards", _NUMBER + "100000"),
        ("--k8s-gpu-cards x", "--k8s-gpu-cards", _NUMBER + "100000"),
        ("--k8s-cpu-cores 1.5", "--k8s-cpu-cores", _NUMBER + "1000000"),
        ("--k8s-ps-num x", "--k8s-ps-num", _NUMBER + "10000"),
        ("--k8s-ps-cores x", "--k8s-ps-cores", _NUMBER + "1000000"),
        ("--mpi-nodes x", "--mpi-nodes", _NUMBER + "10000"),
        ("--slurm-nodes x", "--slurm-nodes", _NUMBER + "10000"),
        ("--slurm-gpu-pnode x", "--slurm-gpu-pnode", _NUMBER + "100000"),
        ("--slurm-task-pnode x", "--slurm-task-pnode", _NUMBER + "1000"),
        ("--use-native-api x", "--use-native-api", _NUMBER + "1000000000"),
        ("--dfs-agent-port 70000", "--dfs-agent-port", _NUMBER + "65535"),
        ("--k8s-memory 10G", "--k8s-memory", _MEMORY),
        ("--k8s-memory 10", "--k8s-memory", _MEMORY),
        ("--k8s-memory 10gi", "--k8s-memory", _MEMORY),
        ("--k8s-memory 1.5Gi", "--k8s-memory", _MEMORY),
        ("--k8s-memory 1Ki", "--k8s-memory", "at least 1Mi is needed"),
        ("--k8s-memory 99999999999999Gi", "--k8s-memory", "is more than 1Ei"),
        ("--k8s_psmemory x", "--k8s_psmemory", _MEMORY),
        ("--mpi-memory x", "--mpi-memory", _MEMORY),
        ("--wall-time 24", "--wall-time", "must be hours:minutes:seconds"),
        ("--wall-time 1:60:00", "--wall-time", "must be hours:minutes:seconds"),
        ("--wall-time 1:00:60", "--wall-time", "must be hours:minutes:seconds"),
        ("--k8s_walltime -1:00:00", "--k8s_walltime", "must be hours:minutes:seconds"),
        ("--wall-time 999999999999:00:00", "--wall-time", "is longer than 200 years"),
        (
            "--wall-time 1:0:0 --mpi-wall-time 2:0:0",
            "--mpi-wall-time",
            "given as --wall-time 1:0:0",
        ),
        ("--is-standalone yes", "--is-standalone", "must be 0 or 1"),
        ("--is-auto-over-sell 2", "--is-auto-over-sell", "must be 0 or 1"),
        ("--distribute-job-type nccl2", "--distribute-job-type", "did you mean NCCL2?"),
        ("--distribute-job-type MPI", "--distribute-job-type", "must be PSERVER or NCCL2"),
        ("--k8s-priority urgent", "--k8s-priority", "must be one of low, normal, high"),
        ("--mpi-priority x", "--mpi-priority", "must be one of low, normal, high"),
        ("--permission all", "--permission", "must be private or group"),
        ("--job-version windows", "--job-version", "must be one of paddle-v2-v0.10"),
        ("--job-version ''", "--job-version", "must be one of paddle-v2-v0.10"),
        ("--job-version custom-framework", "--job-version", "needs --image-addr"),
        ("--job_version paddle-fluid-custom", "--job_version", "needs --image-addr"),
        ("--k8s-gpu-type v100", "--k8s-gpu-type", "must be baidu/gpu_k40"),
        ("--algo-id 5", "--algo-id", "must be an id such as algo-"),
        ("--group-name ''", "--group-name", "is empty"),
        ("--cluster-name 'a b'", "--cluster-name", "contains a blank"),
        ("--image-addr ''", "--image-addr", "is empty"),
        ("--job-conf ''", "--job-conf", "is empty"),
        ("--file-dir ''", "--file-dir", "is empty"),
        ("--code-uri hdfs://x/y.tar.gz", "--code-uri", "under /pfs/"),
        ("--code-uri /pfs/c/home/a/x --file-dir .", "--file-dir", "cannot stand beside --code-uri"),
        (f"--job-remark {'x' * 5000}", "--job-remark", "is longer than 4096 bytes"),
        ("--job-tags '\udcff'", "--job-tags", "is not valid Unicode"),
        ("--group-name '\udcff'", "--group-name", "contains a blank or a control character"),
        ("--is-standalone 1 --k8s-trainers 4", "--k8s-trainers", "contradicts --is-standalone 1"),
        ("--k8s_is_local 1 --k8s-not-local", "--k8s-not-local", "contradicts --k8s_is_local 1"),
        ("--is-standalone 1 --mpi-nodes 4", "--mpi-nodes", "contradicts --is-standalone 1"),
        ("--mpi-nodes 2 --k8s-trainers 2", "--k8s-trainers", "cannot stand beside --mpi-nodes"),
        ("--mpi-nodes 2 --slurm-nodes 2", "--slurm-nodes", "cannot stand beside --mpi-nodes"),
        ("--slurm-gpu-pnode 3 --slurm-task-pnode 2", "--slurm-gpu-pnode", "shared out evenly"),
        ("--slurm-gpu-pnode 8 --k8s-gpu-cards 4", "--k8s-gpu-cards", "contradicts --slurm-gpu"),
        ("--k8s-priority low --mpi-priority high", "--mpi-priority", "contradicts --k8s-priority"),
        ("--k8s-memory 1Gi --mpi-memory 2Gi", "--mpi-memory", "contradicts --k8s-memory"),
        ("--k8s-trainer-count 2", "--k8s-trainer-count", "unknown option; did you mean"),
        ("stray", "stray", "Every value needs its flag"),
    ],
)
def test_names_the_flag_as_typed_and_what_is_allowed(line: str, field: str, problem: str) -> None:
    ((found, said),) = problems(line)
    assert found == field
    assert problem in said


@pytest.mark.parametrize(
    ("base", "field", "problem"),
    [
        ("--start-cmd x", "--job-name", "is missing"),
        ("--job-name x", "--start-cmd", "is missing"),
        ("--job-name '' --start-cmd x", "--job-name", "is empty"),
        ("--job-name x --start-cmd ' '", "--start-cmd", "is empty"),
        (f"--job-name {'x' * 201} --start-cmd x", "--job-name", "at most 200"),
        ("--job-name 'a\nb' --start-cmd x", "--job-name", "line break"),
    ],
)
def test_needs_a_name_and_a_command(base: str, field: str, problem: str) -> None:
    ((found, said),) = problems("", base)
    assert found == field
    assert problem in said


def test_reports_all_faults_together() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(shlex.split("--k8s-memory 10G --k8s-trainers x --nonsense 1"), "a b\n")
    fields = [fault.field for fault in caught.value.faults]
    assert fields == [
        "--nonsense",
        "--k8s-memory",
        "--k8s-trainers",
        "--job-name",
        "--start-cmd",
        "--job-conf",
    ]


# --- explaining, and back --------------------------------------------------------------------


def test_explains_every_flag_it_was_given() -> None:
    found = train(
        "--k8s_trainers 4 --distribute-job-type NCCL2 --k8s-ps-num 2 --k8s-cpu-cores 0"
        " --image-addr i"
    )
    said = {each.flag: each.meaning for each in found.understood}
    assert said["--k8s_trainers"] == "trainers: 4"
    assert said["--k8s-ps-num"] == "not used: a collective job has no parameter servers"
    assert said["--k8s-cpu-cores"] == "0 is as if it were not given"
    assert "not a custom one" in said["--image-addr"]
    assert said["(mode)"] == "--distribute-job-type; --distribute-job-type NCCL2"


def test_says_how_other_families_are_read() -> None:
    said = {each.flag: each.meaning for each in train("--mpi-nodes 2").understood}
    assert "without mpirun" in said["(launcher)"]


def test_every_option_has_a_meaning() -> None:
    assert all(option.says and option.flag.meaning for option in OPTIONS.values())


@given(train_specs())
def test_reads_back_what_it_wrote(spec: JobSpec) -> None:
    assert parse(*render(spec)).spec == spec


@pytest.mark.parametrize(
    "change",
    [
        {"topology": "a.py"},
        {"package": "/pfs/c/home/a/x"},
        {"labels": {"a": "b"}},
        {"grace_s": 3.0},
        {"annotations": {"other": "x"}},
        {"roles": (RoleSpec(Role.TRAINER, 1, Resources(500, GI)),)},
        {"roles": (RoleSpec(Role.TRAINER, 2, Resources(1000, GI), 1, 2),)},
    ],
)
def test_does_not_write_what_it_cannot_express(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        render(dataclasses.replace(spec(), **change))
