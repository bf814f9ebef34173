from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import Fault, InvalidInput
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
from paddlecloud.forms.rest_v1 import parse, render, render_listed
from tests.unit.strategies import written_specs

GI = 2**30
TRAINER = RoleSpec(Role.TRAINER, 1, Resources(1000, GI))
SERVER = RoleSpec(Role.PSERVER, 1, Resources(1000, GI))
SEED_BODY = {
    "name": "paddle-job",
    "job_package": "/pfs/datacenter1/home/user1/job_word_emb",
    "parallelism": 3,
    "cpu": 1,
    "gpu": 1,
    "memory": "1Gi",
    "pservers": 3,
    "pscpu": 1,
    "psmemory": "1Gi",
    "topology": "train.py",
}
# What the first client sends for `submit -jobname old -parallelism 4 -entry run ./pkg`.
CLIENT_BODY = {
    "name": "old",
    "jobPackage": "./pkg",
    "datacenter": "dc1",
    "parallelism": 4,
    "cpu": 1,
    "gpu": 0,
    "memory": "1Gi",
    "pservers": 4,
    "pscpu": 1,
    "psmemory": "1Gi",
    "entry": "run",
    "topology": "",
    "image": "",
    "registry": "",
    "passes": 1,
    "faulttolerant": False,
    "minInstance": 1,
    "maxInstance": 1,
}


def read(**changes: object) -> JobSpec:
    return parse({"entry": "run", **changes}, default_cluster="local")


def problems(body: object) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidInput) as caught:
        parse(body, default_cluster="local")
    return [(fault.field, fault.value, fault.problem) for fault in caught.value.faults]


# --- what clients send -----------------------------------------------------------------------


def test_reads_the_body_of_the_design_document() -> None:
    assert parse(SEED_BODY, default_cluster="local") == JobSpec(
        name="paddle-job",
        mode=Mode.PS,
        roles=(
            RoleSpec(Role.TRAINER, 3, Resources(1000, GI, 1)),
            RoleSpec(Role.PSERVER, 3, Resources(1000, GI)),
        ),
        topology="train.py",
        package="/pfs/datacenter1/home/user1/job_word_emb",
        cluster="datacenter1",
    )


def test_reads_the_body_of_the_first_client() -> None:
    found = parse(CLIENT_BODY, default_cluster="local")
    assert found.cluster == "dc1"
    assert found.package == ""  # a folder of the client's machine says nothing here
    assert (found.runtime, found.registry, found.topology) == ("", "", "")
    assert (found.trainers.min_replicas, found.trainers.max_replicas) == (4, 4)


def test_lists_a_job_as_the_design_document_does() -> None:
    listed = render_listed(parse(SEED_BODY, default_cluster="local"))
    assert listed == {**SEED_BODY, "entry": ""}


def test_fills_in_the_defaults() -> None:
    assert read() == JobSpec(
        name="paddle-cluster-job",
        mode=Mode.PS,
        roles=(
            RoleSpec(Role.TRAINER, 1, Resources(1000, GI)),
            RoleSpec(Role.PSERVER, 1, Resources(1000, GI)),
        ),
        entry="run",
        cluster="local",
    )


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ({"jobname": "x"}, "name", "x"),
        ({"name": None}, "name", "paddle-cluster-job"),
        ({"datacenter": "dc7"}, "cluster", "dc7"),
        ({"datacenter": ""}, "cluster", "local"),
        ({"jobPackage": "/pfs/a/home/u/x/"}, "package", "/pfs/a/home/u/x"),
        ({"job_package": "/pfs/a/home/u"}, "cluster", "a"),
        ({"job_package": "./here"}, "package", ""),
        ({"runtime": "paddle-3"}, "runtime", "paddle-3"),
        ({"image": "org/img:1"}, "runtime", "org/img:1"),
        ({"image": "x", "runtime": "x"}, "runtime", "x"),
        ({"passes": "7"}, "passes", 7),
        ({"faulttolerant": True}, "fault_tolerant", True),
        ({"faultTolerant": "true"}, "fault_tolerant", True),
        ({"priority": "high"}, "priority", Priority.HIGH),
        ({"wall_time": 3600}, "wall_time_s", 3600),
        ({"wallTime": "1:00:00"}, "wall_time_s", 3600),
        ({"max_restarts": 2}, "restart", RestartRule(2)),
        ({"restart_exit_codes": [1, "2"]}, "restart", RestartRule(0, frozenset({1, 2}))),
        ({"restart_exit_codes": "3,4"}, "restart", RestartRule(0, frozenset({3, 4}))),
        ({"restart_exit_codes": []}, "restart", RestartRule()),
        ({"grace_s": 2.5}, "grace_s", 2.5),
        ({"grace": "1m"}, "grace_s", 60.0),
        ({"clean_policy": "Always"}, "clean", CleanPolicy.ALWAYS),
        ({"package_digest": "ab" * 32}, "package_digest", "ab" * 32),
        ({"env": {"A": "x", "N": 1}}, "env", {"A": "x", "N": "1"}),
        ({"labels": {"team": "v"}}, "labels", {"team": "v"}),
        ({"mode": "single"}, "mode", Mode.SINGLE),
    ],
)
def test_reads_a_key(body: dict[str, object], field: str, value: object) -> None:
    assert getattr(read(**body), field) == value


@pytest.mark.parametrize(
    ("cpu", "milli"),
    [(2, 2000), (0.5, 500), ("500m", 500), ("2", 2000), (1.0, 1000), (1e-4, 1), ("1e0", 1000)],
)
def test_reads_cpu_as_number_or_quantity(cpu: object, milli: int) -> None:
    assert read(cpu=cpu).trainers.resources.cpu_milli == milli


@pytest.mark.parametrize("count", [3, "3", 3.0, " 3 "])
def test_reads_counts_as_number_or_text(count: object) -> None:
    assert read(parallelism=count).trainers.replicas == 3


@pytest.mark.parametrize("memory", [GI, "1Gi", str(GI), float(GI)])
def test_reads_memory_as_bytes_or_quantity(memory: object) -> None:
    assert read(memory=memory).trainers.resources.memory_bytes == GI


@pytest.mark.parametrize(
    ("body", "mode", "pservers"),
    [
        ({"parallelism": 4}, Mode.PS, 4),  # the old server would have taken 1
        ({"parallelism": 4, "pservers": 0}, Mode.COLLECTIVE, 0),
        ({"pservers": 0}, Mode.SINGLE, 0),
        ({"mode": "single"}, Mode.SINGLE, 0),
        ({"mode": "collective", "parallelism": 2}, Mode.COLLECTIVE, 0),
        ({"mode": "ps", "parallelism": 2}, Mode.PS, 2),
    ],
)
def test_decides_what_is_unset(body: dict[str, object], mode: Mode, pservers: int) -> None:
    found = read(**body)
    servers = found.role(Role.PSERVER)
    assert (found.mode, servers.replicas if servers else 0) == (mode, pservers)


@pytest.mark.parametrize(
    "keys", ["min_instance max_instance", "minInstance maxInstance", "min max"]
)
def test_reads_the_range_in_every_spelling(keys: str) -> None:
    low, high = keys.split()
    trainers = read(parallelism=4, **{low: 2, high: 8}).trainers
    assert (trainers.min_replicas, trainers.max_replicas) == (2, 8)


# --- faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"paralelism": 3}, "paralelism", "unknown key; did you mean parallelism?"),
        ({"zzz": 3}, "zzz", "unknown key"),
        ({"name": "a_b"}, "name", "jobname can not contain '.' or '_'"),
        ({"jobname": "a.b"}, "jobname", "jobname can not contain '.' or '_'"),
        ({"name": 5.5}, "name", "jobname can not contain"),
        ({"name": ["x"]}, "name", "must be a number or a text, not a list"),
        ({"parallelism": True}, "parallelism", "must not be true or false"),
        ({"parallelism": 1.5}, "parallelism", "whole number from 1 to 10000"),
        ({"parallelism": "two"}, "parallelism", "whole number from 1 to 10000"),
        ({"parallelism": 10**400}, "parallelism", "too large"),
        ({"parallelism": -1}, "parallelism", "whole number"),
        ({"parallelism": {}}, "parallelism", "not an object"),
        ({"cpu": False}, "cpu", "must not be true or false"),
        ({"cpu": float("nan")}, "cpu", "not a finite number"),
        ({"cpu": float("inf")}, "cpu", "not a finite number"),
        ({"cpu": 1e300}, "cpu", "exponent"),
        ({"cpu": 10**12}, "cpu", "is more than 1000000 cores"),
        ({"cpu": 0}, "cpu", "must be more than 0"),
        ({"gpu": 1.5}, "gpu", "whole number"),
        ({"memory": "10GB"}, "memory", "unknown suffix GB"),
        ({"memory": 10}, "memory", "at least 1Mi"),
        ({"psmemory": []}, "psmemory", "not a list"),
        ({"entry": "a\0b"}, "entry", "NUL"),
        ({"entry": "\ud800"}, "entry", "not valid Unicode"),
        ({"entry": "x" * 70000}, "entry", "longer than 64 KiB"),
        ({"faulttolerant": "perhaps"}, "faulttolerant", "must be true or false"),
        ({"mode": "heter"}, "mode", "single, collective, ps"),
        ({"mode": 3}, "mode", "single, collective, ps"),
        ({"mode": "single", "parallelism": 4}, "parallelism", "mode single runs one trainer"),
        ({"mode": "ps", "pservers": 0}, "pservers", "at least one"),
        ({"priority": "urgent"}, "priority", "low, normal, high"),
        ({"wall_time": -5}, "wall_time", "length of time"),
        ({"wall_time": True}, "wall_time", "must not be true or false"),
        ({"max_restarts": 10**6}, "max_restarts", "from 0 to 1000"),
        ({"restart_exit_codes": [0]}, "restart_exit_codes", "from 1 to 255"),
        ({"restart_exit_codes": [[1]]}, "restart_exit_codes", "not a list"),
        ({"grace_s": "x"}, "grace_s", "length of time"),
        ({"clean_policy": "x"}, "clean_policy", "Always, Never"),
        ({"package_digest": "ABC"}, "package_digest", "SHA-256"),
        ({"env": ["A=1"]}, "env", "must be an object"),
        ({"env": 5}, "env", "not a number"),
        ({"env": {"A": [1]}}, "env", "not a list"),
        ({"env": {"A": True}}, "env", "must not be true or false"),
        ({"env": {"1A": "x"}}, "env", "'1A' must be named"),
        ({"env": {"A": "\0"}}, "env", "'A' contains a NUL"),
        ({"env": {f"A{i}": "" for i in range(1001)}}, "env", "at most 1000"),
        ({"labels": {"a b": "x"}}, "labels", "must be named"),
        ({"labels": {"a": "x" * 64}}, "labels", "must have a value"),
        ({"job_package": "/pfs/a/home/u/../v"}, "job_package", "contains '..'"),
        ({"job_package": "/pfs/a"}, "job_package", "path must like"),
        ({"job_package": "/pfs/a/home/u/\n"}, "job_package", "control character"),
        ({"image": "x", "runtime": "y"}, "runtime", "contradicts image"),
        ({"min": 1, "minInstance": 2}, "minInstance", "contradicts min"),
        ({"parallelism": 2, "min": 3}, "min", "is more than parallelism 2"),
        ({"datacenter": "b", "job_package": "/pfs/a/home/u"}, "datacenter", "not the one of"),
        ({f"k{i}": 1 for i in range(200)}, "body", "at most 100"),
    ],
)
def test_says_what_is_wrong_with_a_key(body: dict[str, object], field: str, words: str) -> None:
    ((found_field, value, problem),) = problems({"entry": "run", **body})
    assert found_field == field
    assert words in problem
    assert len(value) <= 60


@pytest.mark.parametrize("body", [{}, {"entry": ""}, {"entry": None, "topology": ""}])
def test_asks_for_something_to_run(body: dict[str, object]) -> None:
    assert problems(body) == [("entry", "", "no topology or entry specified")]


@pytest.mark.parametrize("body", [None, [], "x", 3, True, [1, 2]])
def test_asks_for_an_object(body: object) -> None:
    assert problems(body)[0][0] == "body"


def test_reports_all_faults_at_once() -> None:
    found = problems({"parallelism": "two", "memory": "10GB", "zzz": 1, "mode": "x"})
    assert {field for field, _, _ in found} == {"parallelism", "memory", "zzz", "mode", "entry"}


# --- and back --------------------------------------------------------------------------------


@given(written_specs())
def test_reads_back_what_it_wrote(spec: JobSpec) -> None:
    sent = json.loads(json.dumps(render(spec)))
    assert parse(sent, default_cluster="elsewhere") == spec


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": Mode.HETER},
        {"restart": RestartRule(1, backoff_s=5.0)},
        {"roles": (RoleSpec(Role.TRAINER, 1, Resources(), template={"spec": {}}), SERVER)},
        {"roles": (TRAINER, SERVER, RoleSpec(Role.HETER, 1, Resources()))},
        {"roles": (TRAINER, RoleSpec(Role.PSERVER, 2, Resources(), 1, 3))},
        {"roles": (TRAINER,)},  # mode ps without servers
        {"mode": Mode.COLLECTIVE},  # with servers
    ],
)
def test_refuses_to_write_what_it_cannot_say(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="cannot be written"):
        render(dataclasses.replace(read(), **changes))  # type: ignore[arg-type]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*CLIENT_BODY, *render(read())]), json_values) | json_values)
def test_ends_with_a_spec_or_with_faults(body: object) -> None:
    try:
        found = parse(body, default_cluster="local")
    except InvalidInput as error:
        refused = error.faults
    else:
        refused = (Fault("-", "was read"),)
        assert parse(render(found), default_cluster="local") == found
    assert refused
    assert all(fault.field and fault.problem for fault in refused)
