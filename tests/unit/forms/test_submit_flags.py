from __future__ import annotations

import dataclasses
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.jobspec import (
    CleanPolicy,
    JobSpec,
    Mode,
    Priority,
    RestartRule,
    Role,
    RoleSpec,
)
from paddlecloud.core.resources import Resources
from paddlecloud.forms.go_flags import Flag, Kind
from paddlecloud.forms.submit_flags import FLAGS, Submission, command_line, parse, render
from tests.unit.strategies import written_specs

GI = 2**30


def submit(line: str, **options: str) -> Submission:
    return parse(shlex.split(line), **options)


def spec(line: str) -> JobSpec:
    """The spec of a line; the package is given if the line has none of its own."""
    return submit(f"{line} ./pkg").spec


def problems(line: str) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidInput) as caught:
        submit(line)
    assert "usage: paddlecloud submit" in caught.value.hint
    return [(fault.field, fault.value, fault.problem) for fault in caught.value.faults]


# --- the design document, word by word -------------------------------------------------------


def test_reads_the_example_of_the_design_document() -> None:
    found = submit("./job_word_emb -p 4 -c 2 -m 10Gi -t modules/train.py", cluster="datacenter1")
    assert found.package == "./job_word_emb"
    assert not found.is_in_place
    assert found.spec == JobSpec(
        name="paddle-cluster-job",
        mode=Mode.PS,
        roles=(
            RoleSpec(Role.TRAINER, 4, Resources(2000, 10 * GI)),
            RoleSpec(Role.PSERVER, 4, Resources(1000, GI)),
        ),
        topology="modules/train.py",
        cluster="datacenter1",
    )


def test_fills_in_the_documented_defaults() -> None:
    assert spec("") == JobSpec(
        name="paddle-cluster-job",
        mode=Mode.PS,
        roles=(
            RoleSpec(Role.TRAINER, 1, Resources(1000, GI)),
            RoleSpec(Role.PSERVER, 1, Resources(1000, GI)),
        ),
        entry="paddle train",
        passes=1,
        priority=Priority.NORMAL,
        restart=RestartRule(),
        clean=CleanPolicy.ON_COMPLETION,
        grace_s=10.0,
    )


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("-jobname x", "name", "x"),
        ("-name x", "name", "x"),
        ("--name=x", "name", "x"),
        ("--job-name x", "name", "x"),
        ("-entry 'python t.py --lr=1'", "entry", "python t.py --lr=1"),
        ("-topology c.py", "topology", "c.py"),
        ("-t c.py", "topology", "c.py"),
        ("-t c.py", "entry", ""),
        ("-passes 5", "passes", 5),
        ("-image org/img:1", "runtime", "org/img:1"),
        ("--runtime paddle-3", "runtime", "paddle-3"),
        ("-registry mine", "registry", "mine"),
        ("-faulttolerant", "fault_tolerant", True),
        ("--fault-tolerant=false", "fault_tolerant", False),
        ("--priority very_high", "priority", Priority.VERY_HIGH),
        ("--priority Very-High", "priority", Priority.VERY_HIGH),
        ("--priority low", "priority", Priority.LOW),
        ("--wall-time 1:30:00", "wall_time_s", 5400),
        ("--wall-time 90s", "wall_time_s", 90),
        ("--wall_time 2h", "wall_time_s", 7200),
        ("--wall-time 3600", "wall_time_s", 3600),
        ("--wall-time 00:00:00", "wall_time_s", 0),
        ("--max-restarts 3", "restart", RestartRule(3)),
        (
            "--max-restarts 3 --restart-exit-codes 1,137",
            "restart",
            RestartRule(3, frozenset({1, 137})),
        ),
        ("--grace 30s", "grace_s", 30.0),
        ("--grace 0", "grace_s", 0.0),
        ("--clean-policy never", "clean", CleanPolicy.NEVER),
        ("--clean-policy on-failure", "clean", CleanPolicy.ON_FAILURE),
        ("--env A=1 --env B=x=y --env C=", "env", {"A": "1", "B": "x=y", "C": ""}),
        ("--label team=vision -l a=b", "labels", {"team": "vision", "a": "b"}),
        (f"-l {'a' * 63}={'b' * 63}", "labels", {"a" * 63: "b" * 63}),
        ("-l example.com/team=x", "labels", {"example.com/team": "x"}),
        (f"--env {'A' * 512}={'x' * 65536}", "env", {"A" * 512: "x" * 65536}),
        (f"-image {'x' * 512}", "runtime", "x" * 512),
    ],
)
def test_reads_a_flag(line: str, field: str, value: object) -> None:
    assert getattr(spec(line), field) == value


@pytest.mark.parametrize(
    ("line", "role", "needs"),
    [
        ("-cpu 2", Role.TRAINER, Resources(2000, GI)),
        ("-c 500m", Role.TRAINER, Resources(500, GI)),
        ("-c 0.25", Role.TRAINER, Resources(250, GI)),
        ("-gpu 2", Role.TRAINER, Resources(1000, GI, 2)),
        ("-g 1", Role.TRAINER, Resources(1000, GI, 1)),
        ("-memory 512Mi", Role.TRAINER, Resources(1000, 512 * 2**20)),
        ("-m 1e9", Role.TRAINER, Resources(1000, 10**9)),
        ("-gpu 2", Role.PSERVER, Resources(1000, GI)),
        ("-pscpu 1500m", Role.PSERVER, Resources(1500, GI)),
        ("-psmemory 2Gi", Role.PSERVER, Resources(1000, 2 * GI)),
    ],
)
def test_reads_what_a_replica_needs(line: str, role: Role, needs: Resources) -> None:
    found = spec(line).role(role)
    assert found is not None
    assert found.resources == needs


# --- how many, and which mode ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "mode", "trainers", "pservers"),
    [
        ("", Mode.PS, 1, 1),
        ("-p 4", Mode.PS, 4, 4),
        ("-p 4 -pservers 2", Mode.PS, 4, 2),
        ("-pservers 0", Mode.SINGLE, 1, 0),
        ("-p 4 -pservers 0", Mode.COLLECTIVE, 4, 0),
        ("--max 4 -pservers 0 -p 1", Mode.COLLECTIVE, 1, 0),  # may become several
        ("--mode single", Mode.SINGLE, 1, 0),
        ("--mode single -p 1 -pservers 0", Mode.SINGLE, 1, 0),
        ("--mode collective", Mode.COLLECTIVE, 1, 0),
        ("--mode collective -p 4", Mode.COLLECTIVE, 4, 0),
        ("--mode ps", Mode.PS, 1, 1),
        ("--mode ps -p 3", Mode.PS, 3, 3),
        ("--mode PS -p 3 -pservers 1", Mode.PS, 3, 1),
    ],
)
def test_decides_what_is_unset(line: str, mode: Mode, trainers: int, pservers: int) -> None:
    found = spec(line)
    assert found.mode == mode
    assert found.trainers.replicas == trainers
    servers = found.role(Role.PSERVER)
    assert (servers.replicas if servers else 0) == pservers


@pytest.mark.parametrize(
    ("line", "wish", "low", "high"),
    [
        ("-p 4", 4, 4, 4),
        ("-p 4 --min 4 --max 4", 4, 4, 4),
        ("--min 3 --max 3", 3, 3, 3),
        ("-p 4 --min 2", 4, 2, 4),
        ("-p 4 --max 8", 4, 4, 8),
        ("-p 4 -min_instance 2 -max_instance 8", 4, 2, 8),
        ("-p 4 --min-instance 2 --max-instance 8", 4, 2, 8),
        ("--min 2 --max 8", 8, 2, 8),
        ("--max 8", 8, 1, 8),
        ("--min 2", 2, 2, 2),
    ],
)
def test_decides_the_range_of_trainers(line: str, wish: int, low: int, high: int) -> None:
    trainers = spec(f"--mode collective {line}").trainers
    assert (trainers.replicas, trainers.min_replicas, trainers.max_replicas) == (wish, low, high)


@pytest.mark.parametrize(
    ("line", "field", "value", "words"),
    [
        ("--mode single -parallelism 4", "-parallelism", "4", "--mode single runs one trainer"),
        ("--mode single -p 4", "-p", "4", "use --mode collective"),
        ("--mode=single --max 4", "--max", "4", "--mode single runs one trainer"),
        ("--mode single -pservers 2", "-pservers", "2", "has no parameter servers"),
        ("--mode collective -pservers 2", "-pservers", "2", "use --mode ps"),
        ("--mode ps -pservers 0", "-pservers", "0", "needs at least one parameter server"),
        ("-p 4 --min 5", "--min", "5", "is more than -p 4"),
        ("-p 4 --max 3", "--max", "3", "is less than -p 4"),
        ("--min 5 --max 3", "--min", "5", "is more than --max 3"),
        ("--restart-exit-codes 1,2", "--restart-exit-codes", "1,2", "add --max-restarts"),
    ],
)
def test_refuses_contradictions(line: str, field: str, value: str, words: str) -> None:
    ((found_field, found_value, problem),) = problems(f"{line} ./pkg")
    assert (found_field, found_value) == (field, value)
    assert words in problem


# --- faults ----------------------------------------------------------------------------------


def test_reports_the_example_of_the_manual() -> None:
    assert problems("-memory 10GB -parallelism two ./pkg") == [
        ("-memory", "10GB", "unknown suffix GB; write 10Gi (binary) or 10G (decimal)"),
        ("-parallelism", "two", "must be a whole number from 1 to 10000"),
    ]


@pytest.mark.parametrize(
    ("line", "field", "words"),
    [
        ("-jobname a.b", "-jobname", "jobname can not contain '.' or '_'"),
        ("-name a_b", "-name", "jobname can not contain '.' or '_'"),
        ("-jobname ''", "-jobname", "is empty"),
        ("-p 0", "-p", "from 1 to 10000"),
        ("-p 10001", "-p", "from 1 to 10000"),
        ("-p -1", "-p", "from 1 to 10000"),
        ("-p 1.5", "-p", "from 1 to 10000"),
        ("-pservers -1", "-pservers", "from 0 to 10000"),
        ("-cpu 0", "-cpu", "must be more than 0"),
        ("-cpu -1", "-cpu", "is negative"),
        ("-cpu many", "-cpu", "is not a quantity"),
        ("-memory 0", "-memory", "at least 1Mi"),
        ("-memory 10", "-memory", "did you mean 10Gi or 10Mi?"),
        ("-memory 2Ei", "-memory", "more than 1Ei"),
        ("-psmemory 1gb", "-psmemory", "unknown suffix gb"),
        ("-gpu 1.5", "-gpu", "whole number"),
        ("-gpu -1", "-gpu", "from 0"),
        ("-passes 0", "-passes", "from 1"),
        ("-entry ' '", "-entry", "is blank"),
        ("-image 'a b'", "-image", "blank"),
        ("--runtime 'a b'", "--runtime", "blank"),
        ("--mode heter", "--mode", "single, collective, ps"),
        ("--mode colective", "--mode", "did you mean collective?"),
        ("--priority urgent", "--priority", "low, normal, high, very_high"),
        ("--wall-time soon", "--wall-time", "1:30:00"),
        ("--max-restarts -1", "--max-restarts", "from 0 to 1000"),
        ("--max-restarts 1 --restart-exit-codes 0", "--restart-exit-codes", "from 1 to 255"),
        ("--max-restarts 1 --restart-exit-codes 1,x", "--restart-exit-codes", "separated"),
        ("--grace 2d", "--grace", "longer than a day"),
        ("--clean-policy sometimes", "--clean-policy", "Always, Never, OnFailure"),
        ("--env NAME", "--env", "must be NAME=value"),
        ("--env 1A=x", "--env", "not beginning with a digit"),
        ("--env =x", "--env", "must be named"),
        ("--env A=1 --env A=2", "--env", "was already given as A=1"),
        (f"-image {'x' * 513}", "-image", "at most 512"),
        (f"--env {'A' * 513}=x", "--env", "must be named"),
        (f"--env A={'x' * (64 * 1024 + 1)}", "--env", "longer than 64 KiB"),
        (f"--label {'a' * 64}=1", "--label", "must be named"),
        ("--label a_=1", "--label", "must be named"),
        ("--label a=-", "--label", "must have a value"),
        ("-p 4 --parallelism 5", "--parallelism", "was already given as -p 4"),
        ("--prioritty low", "--prioritty", "did you mean --priority?"),
        ("-p", "-p", "from 1 to 10000"),  # takes ./pkg for its value
    ],
)
def test_says_what_is_wrong_with_a_flag(line: str, field: str, words: str) -> None:
    found = problems(f"{line} ./pkg")
    assert found[0][0] == field
    assert words in found[0][2]
    assert len(found) == (2 if line == "-p" else 1)


def test_reports_all_faults_at_once() -> None:
    found = problems("-jobname a.b -p two -c x -m 10GB --mode heter --oops --env A -psmemory 5")
    fields = [field for field, _, _ in found]
    assert sorted(fields) == sorted(
        ["--oops", "-jobname", "-p", "-c", "-m", "--mode", "--env", "-psmemory", "<package path>"]
    )


@pytest.mark.parametrize(
    ("line", "value", "words"),
    [
        ("-p 4", "", "is missing"),
        ("''", "", "is empty"),
        ("a b", "b", "what else is this?"),
        ("-entry python train.py ./pkg", "./pkg", "quote a command"),
        ("/pfs/dc1", "/pfs/dc1", "path must like /pfs/[dc]/home/[user]"),
        ("/pfs/dc1/home/u/../v", "/pfs/dc1/home/u/../v", "contains '..'"),
    ],
)
def test_asks_for_one_package(line: str, value: str, words: str) -> None:
    ((field, found_value, problem),) = problems(line)
    assert (field, found_value) == ("<package path>", value)
    assert words in problem


def test_does_not_complain_about_the_value_of_an_unknown_flag() -> None:
    assert [field for field, _, _ in problems("--oops 7 ./pkg")] == ["--oops"]


# --- the package -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["./pkg -p 4 -name x", "-p 4 ./pkg -name x", "-p 4 -name x ./pkg", "-p=4 -name=x -- ./pkg"],
)
def test_takes_the_package_before_between_or_after_the_flags(line: str) -> None:
    found = submit(line)
    assert found.package == "./pkg"
    assert (found.spec.name, found.spec.trainers.replicas) == ("x", 4)


def test_uses_a_package_on_the_cluster_in_place() -> None:
    found = submit("/pfs/dc2/home/user1//jobs/./x/ -entry run", cluster="dc1")
    assert found.is_in_place
    assert found.spec.package == "/pfs/dc2/home/user1/jobs/x"
    assert found.spec.cluster == "dc2"


@pytest.mark.parametrize("path", ["/data/pkg", "C:\\jobs\\x", "pfs/x", "/pfsx/y", "..", "w\udcff"])
def test_leaves_a_local_path_alone(path: str) -> None:
    found = parse([path, "-entry", "run"], cluster="dc1")
    assert found.package == path
    assert (found.spec.package, found.spec.cluster) == ("", "dc1")


# --- the client's own flags ------------------------------------------------------------------

CLIENT = (
    Flag(("--follow", "-f"), Kind.BOOL),
    Flag(("--dry-run",), alone="client", choices=("client", "server")),
    Flag(("--output", "-o")),
)


def test_hands_the_client_its_own_flags() -> None:
    found = parse(["-f", "./pkg", "--dry-run=server", "-o", "json", "-p", "2"], client_flags=CLIENT)
    assert found.client.switch("follow")
    assert found.client.text("dry-run") == "server"
    assert found.client.text("output") == "json"
    assert "parallelism" not in found.client


def test_keeps_its_short_flags_apart_from_the_client_s() -> None:
    names = [
        name.lstrip("-").replace("_", "-") for flag in (*FLAGS, *CLIENT) for name in flag.names
    ]
    assert len(names) == len(set(names))
    assert not {"f", "o", "w", "a", "n", "h"} & {
        name.lstrip("-") for flag in FLAGS for name in flag.names
    }


# --- and back --------------------------------------------------------------------------------


@given(written_specs())
def test_reads_back_what_it_wrote(spec: JobSpec) -> None:
    # No flag names a digest: the client finds it when it packs the folder.
    spec = dataclasses.replace(spec, package_digest="")
    assert parse(render(spec, "./pkg"), cluster=spec.cluster).spec == spec
    assert parse(shlex.split(command_line(spec, "./p"))[2:], cluster=spec.cluster).spec == spec


@given(st.lists(st.text(max_size=8) | st.sampled_from(["-p", "-m", "--env", "--", "-o"])))
def test_ends_with_a_spec_or_with_faults(argv: list[str]) -> None:
    try:
        found = parse(argv)
    except InvalidInput as error:
        faults = error.faults
    else:
        faults = ()
        assert found.spec.trainers.replicas >= 1
    assert all(fault.field and fault.problem for fault in faults)
