"""One row per row of the behaviour reference: which variable, on which replica, says what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core import contract
from paddlecloud.core.contract import (
    VARIABLES,
    JobFacts,
    Peer,
    ReplicaFacts,
    environment,
    files,
    termination_message,
)
from paddlecloud.core.jobspec import Mode, Role

# Addresses out of order on purpose: a rank is an index, never a place in a sorted list.
TRAINERS = (Peer("10.1.9.3", 36000), Peer("10.1.32.9", 36020), Peer("10.1.18.7", 36040))
SERVERS = (Peer("10.2.0.2", 37000), Peer("10.2.0.1", 37020))
HETERS = (Peer("10.3.0.1", 38000),)


def job(mode: str, **changes: object) -> JobFacts:
    facts = JobFacts(
        job_id="job-4f1c09d2a7b35e60",
        name="wide-deep",
        mode=mode,
        datacenter="dc1",
        user="user1@gmail.com",
        trainers=TRAINERS[:1] if mode == "single" else TRAINERS,
        pservers=SERVERS if mode in ("ps", "heter") else (),
        heters=HETERS if mode == "heter" else (),
        namespace="user1-gmail-com",
        entry="python train.py",
        topology="conf.py",
        package="/pfs/dc1/home/u/jobs/wide-deep",
        output="/pfs/dc1/home/u/jobs/wide-deep/output",
        passes=3,
        cpu_milli=1500,
    )
    return facts._replace(**changes)


JOBS = {
    "single": job("single"),
    "collective": job("collective"),
    "ps": job("ps"),
    "heter": job("heter"),
    "gpu": job("collective", gpus=2),
    "gpu1": job("collective", gpus=1),
    "gloo": job("ps", with_gloo=2),
    "gloo without servers": job("collective", with_gloo=1),
    "fault tolerant": job("ps", fault_tolerant=True, master=Peer("10.9.0.1", 8080)),
    "elastic": job("collective", elastic_server="10.9.0.2:2379"),
    "heter gpu": job("heter", gpus=1),
}
ENDPOINTS = "10.1.9.3:36000,10.1.32.9:36020,10.1.18.7:36040"
UNSET = None

ROWS = [
    # 1.1 generation A, by the server
    ("PADDLE_JOB_NAME", "ps", "trainer-0", "wide-deep"),
    ("TRAINERS", "ps", "pserver-0", "3"),
    ("PSERVERS", "ps", "trainer-0", "2"),
    ("PSERVERS", "collective", "trainer-0", "0"),
    ("ENTRY", "ps", "pserver-1", "python train.py"),
    ("TOPOLOGY", "ps", "trainer-0", "conf.py"),
    ("TRAINER_PACKAGE", "ps", "trainer-0", "/pfs/dc1/home/u/jobs/wide-deep"),
    ("PADDLE_INIT_PORT", "ps", "trainer-0", "7164"),
    ("PADDLE_INIT_PORTS_NUM", "ps", "trainer-0", "1"),
    ("PADDLE_INIT_PORTS_NUM_FOR_SPARSE", "ps", "trainer-0", "1"),
    ("PADDLE_INIT_TRAINER_COUNT", "ps", "trainer-0", "2"),  # 1.5 cores
    ("PADDLE_INIT_TRAINER_COUNT", "gpu1", "trainer-0", "1"),
    ("PADDLE_INIT_NUM_GRADIENT_SERVERS", "ps", "pserver-0", "3"),
    ("PADDLE_INIT_NUM_PASSES", "ps", "trainer-0", "3"),
    ("PADDLE_INIT_USE_GPU", "ps", "trainer-0", "0"),
    ("PADDLE_INIT_USE_GPU", "gpu", "trainer-0", "1"),
    ("LD_LIBRARY_PATH", "gpu", "trainer-0", "/usr/local/nvidia/lib64"),
    ("LD_LIBRARY_PATH", "ps", "trainer-0", UNSET),
    ("NAMESPACE", "ps", "trainer-0", "user1-gmail-com"),
    ("POD_IP", "ps", "trainer-1", "10.1.32.9"),
    ("PADDLE_CLOUD_CURRENT_DATACENTER", "ps", "trainer-0", "dc1"),
    ("PADDLE_CLOUD_USERNAME", "ps", "trainer-0", "user1@gmail.com"),
    # 1.2 generation A, by the start script
    ("PADDLE_INIT_PSERVERS", "ps", "trainer-0", "10.2.0.2,10.2.0.1"),
    ("PADDLE_INIT_PSERVERS", "collective", "trainer-0", UNSET),
    ("PADDLE_INIT_TRAINER_ID", "ps", "trainer-2", "2"),
    ("MASTER_IP", "fault tolerant", "trainer-0", "10.9.0.1"),
    ("ETCD_IP", "fault tolerant", "pserver-0", "10.9.0.1"),
    ("MASTER_IP", "ps", "trainer-0", UNSET),
    ("ETCD_IP", "ps", "trainer-0", UNSET),
    ("PADDLE_PSERVER_IPS", "ps", "trainer-0", "10.2.0.2,10.2.0.1"),
    ("PADDLE_TRAINER_IPS", "ps", "trainer-0", "10.1.9.3,10.1.32.9,10.1.18.7"),
    ("PADDLE_TRAINER_ID", "ps", "pserver-1", "1"),  # on servers the index among servers
    ("PADDLE_TRAINING_ROLE", "ps", "trainer-0", "TRAINER"),
    ("PADDLE_TRAINING_ROLE", "ps", "pserver-0", "PSERVER"),
    ("PYTHONPATH", "ps", "trainer-0", "/pfs/dc1/home/u/jobs/wide-deep"),
    # 1.3 generation B
    ("TRAINING_ROLE", "ps", "trainer-0", "TRAINER"),
    ("TRAINING_ROLE", "ps", "pserver-0", "PSERVER"),
    ("PADDLE_TRAINER_ID", "collective", "trainer-2", "2"),
    ("PADDLE_TRAINERS_NUM", "collective", "trainer-0", "3"),
    ("PADDLE_TRAINERS", "collective", "trainer-0", "10.1.9.3,10.1.32.9,10.1.18.7"),
    ("PADDLE_TRAINER_ENDPOINTS", "collective", "trainer-0", ENDPOINTS),
    ("PADDLE_TRAINER_ENDPOINTS", "ps", "pserver-0", ENDPOINTS),
    ("PADDLE_CURRENT_ENDPOINT", "collective", "trainer-1", "10.1.32.9:36020"),
    ("PADDLE_CURRENT_ENDPOINT", "ps", "pserver-1", "10.2.0.1:37020"),
    ("PADDLE_PSERVERS", "ps", "trainer-0", "10.2.0.2,10.2.0.1"),
    ("PADDLE_PSERVERS_IP_PORT_LIST", "ps", "trainer-0", "10.2.0.2:37000,10.2.0.1:37020"),
    ("PADDLE_PSERVERS_IP_PORT_LIST", "single", "trainer-0", UNSET),  # fleet.init stays local
    ("PADDLE_PORT", "ps", "pserver-1", "37020"),
    ("TRAINER_PORTS_NUM", "collective", "trainer-0", "20"),
    ("PADDLE_USE_GPU", "gpu", "trainer-0", "1"),
    ("PADDLE_USE_CUDA", "gpu", "trainer-0", "1"),
    ("PADDLE_USE_CUDA", "ps", "trainer-0", "0"),
    ("PADDLE_IS_LOCAL", "single", "trainer-0", "1"),
    ("PADDLE_IS_LOCAL", "collective", "trainer-0", "0"),
    ("PADDLE_IS_LOCAL", "ps", "trainer-0", "0"),
    ("DISTRIBUTE_JOB_TYPE", "ps", "trainer-0", "PSERVER"),
    ("DISTRIBUTE_JOB_TYPE", "collective", "trainer-0", "NCCL2"),
    ("DISTRIBUTE_JOB_TYPE", "single", "trainer-0", UNSET),
    # 1.4 generation C
    ("JOB_ID", "single", "trainer-0", "job-4f1c09d2a7b35e60"),
    ("OUTPUT_PATH", "single", "trainer-0", "/pfs/dc1/home/u/jobs/wide-deep/output"),
    ("LOCAL_LOG_PATH", "single", "trainer-0", "/pfs/dc1/home/u/jobs/wide-deep/output"),
    ("LOCAL_MOUNT_PATH", "single", "trainer-0", "/pfs/dc1/home/u/jobs/wide-deep"),
    # 1.5 generation O
    ("PADDLE_HETER_ENDPOINTS", "heter", "trainer-0", "10.3.0.1:38000"),
    ("PADDLE_HETER_ENDPOINTS", "ps", "trainer-0", UNSET),
    ("PADDLE_WITH_GLOO", "gloo", "trainer-0", "2"),
    ("PADDLE_GLOO_RENDEZVOUS", "gloo", "trainer-0", "3"),
    ("PADDLE_GLOO_HTTP_ENDPOINT", "gloo", "pserver-1", "10.2.0.2:37018"),
    ("PADDLE_WITH_GLOO", "ps", "trainer-0", UNSET),
    ("PADDLE_GLOO_RENDEZVOUS", "ps", "trainer-0", UNSET),
    ("PADDLE_GLOO_HTTP_ENDPOINT", "ps", "trainer-0", UNSET),
    ("PADDLE_WITH_GLOO", "gloo without servers", "trainer-0", UNSET),
    ("PADDLE_ELASTIC_JOB_ID", "elastic", "trainer-0", "user1-gmail-com-wide-deep"),
    ("PADDLE_ELASTIC_NP", "elastic", "trainer-0", "3"),
    ("PADDLE_ELASTIC_TIMEOUT", "elastic", "trainer-0", "60"),
    ("PADDLE_ELASTIC_SERVER", "elastic", "trainer-0", "10.9.0.2:2379"),
    ("PADDLE_ELASTIC_JOB_ID", "collective", "trainer-0", UNSET),
    ("PADDLE_ELASTIC_NP", "collective", "trainer-0", UNSET),
    ("PADDLE_ELASTIC_TIMEOUT", "collective", "trainer-0", UNSET),
    ("PADDLE_ELASTIC_SERVER", "collective", "trainer-0", UNSET),
    # 1.6 what Paddle requires
    ("TRAINING_ROLE", "heter", "heter-0", "HETER_TRAINER"),
    ("PADDLE_DISTRI_BACKEND", "collective", "trainer-0", "gloo"),
    ("PADDLE_DISTRI_BACKEND", "gpu", "trainer-0", UNSET),
    ("PADDLE_DISTRI_BACKEND", "ps", "trainer-0", UNSET),
    ("FLAGS_selected_gpus", "gpu1", "trainer-1", "0"),
    ("FLAGS_selected_gpus", "gpu", "trainer-0", UNSET),
    ("FLAGS_selected_gpus", "collective", "trainer-0", UNSET),
    ("PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST", "heter", "pserver-0", "10.3.0.1:38000"),
    ("PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST", "heter", "trainer-0", "10.3.0.1:38000"),
    ("PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST", "heter", "heter-0", ""),
    ("PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST", "heter", "heter-0", ENDPOINTS),
    ("PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST", "heter", "trainer-0", ""),
    ("STAGE_ID", "heter", "trainer-1", "1"),
    ("STAGE_ID", "heter", "heter-0", "2"),
    ("STAGE_NUM", "heter", "heter-0", "2"),
    ("STAGE_NUM", "ps", "trainer-0", UNSET),
    ("PADDLE_STAGE_TRAINERS_NUM", "heter", "trainer-0", "[3, 1]"),
    ("HETER_DEVICE_TYPE", "heter", "heter-0", "cpu"),
    ("HETER_DEVICE_TYPE", "heter gpu", "heter-0", "gpu"),
    # torch and JAX
    ("MASTER_ADDR", "collective", "trainer-2", "10.1.9.3"),
    ("MASTER_PORT", "collective", "trainer-2", "36019"),
    ("RANK", "collective", "trainer-2", "2"),
    ("WORLD_SIZE", "collective", "trainer-2", "3"),
    ("LOCAL_RANK", "collective", "trainer-2", "0"),
    ("LOCAL_WORLD_SIZE", "collective", "trainer-2", "1"),
    ("JAX_COORDINATOR_ADDRESS", "collective", "trainer-2", "10.1.9.3:36017"),
    ("JAX_NUM_PROCESSES", "collective", "trainer-2", "3"),
    ("JAX_PROCESS_ID", "collective", "trainer-2", "2"),
    ("WORLD_SIZE", "single", "trainer-0", "1"),
    ("LOCAL_RANK", "single", "trainer-0", UNSET),
    ("RANK", "ps", "pserver-0", UNSET),  # a server is no rank
    ("WORLD_SIZE", "ps", "pserver-0", UNSET),
    ("MASTER_ADDR", "ps", "pserver-0", UNSET),
    ("MASTER_PORT", "ps", "pserver-0", UNSET),
    ("JAX_COORDINATOR_ADDRESS", "ps", "pserver-0", UNSET),
    ("JAX_PROCESS_ID", "ps", "pserver-0", UNSET),
]


def replica(short: str) -> ReplicaFacts:
    role, _, index = short.partition("-")
    return ReplicaFacts(role, int(index))


@pytest.mark.parametrize(("name", "of", "who", "value"), ROWS)
def test_says(name: str, of: str, who: str, value: str | None) -> None:
    assert environment(JOBS[of], replica(who)).get(name) == value


def test_has_a_tested_row_for_every_variable() -> None:
    tested = {name for name, _, _, value in ROWS if value is not None}
    tested.add("DISTRIBUTED_TRAINER_ENDPOINTS")  # below
    assert tested == {row.name for row in VARIABLES}


@pytest.mark.parametrize("name", ["PADDLE_MASTER", "PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_RANK"])
def test_leaves_paddle_s_launcher_to_its_user(name: str) -> None:
    for facts in JOBS.values():
        assert name not in environment(facts, replica("trainer-0"))


def test_names_every_process_node_by_node() -> None:
    listed = environment(JOBS["gpu"], replica("trainer-0"))["DISTRIBUTED_TRAINER_ENDPOINTS"]
    entries = listed.split(",")
    assert len(entries) == 3 * 20  # Paddle checks nodes × TRAINER_PORTS_NUM
    assert entries[0] == "10.1.9.3:36000"
    assert entries[19:21] == ["10.1.9.3:36019", "10.1.32.9:36020"]


def test_leaves_out_a_list_no_program_could_be_started_with() -> None:
    many = tuple(Peer(f"10.{i // 250}.{i % 250}.1", 36000) for i in range(2000))
    found = environment(job("collective", trainers=many), replica("trainer-0"))
    assert "DISTRIBUTED_TRAINER_ENDPOINTS" not in found
    assert all(len(name) + len(value) < 128 * 1024 - 2 for name, value in found.items())


def test_leaves_out_a_list_paddle_would_count_wrongly() -> None:
    uneven = (Peer("10.0.0.1", 36000, 20), Peer("10.0.0.2", 36000, 10))
    found = environment(job("collective", trainers=uneven), replica("trainer-0"))
    assert "DISTRIBUTED_TRAINER_ENDPOINTS" not in found


# --- paths that extend what is there -----------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "inherited", "expected"),
    [
        (1, "", "/usr/local/nvidia/lib64"),
        (1, "/opt/cuda/lib:/x", "/opt/cuda/lib:/x:/usr/local/nvidia/lib64"),
        (1, "/usr/local/nvidia/lib64:/x", "/usr/local/nvidia/lib64:/x"),
        (0, "/opt/lib", "/opt/lib"),
        (0, "", None),
    ],
)
def test_appends_the_driver_libraries(gpus: int, inherited: str, expected: str | None) -> None:
    facts = job("collective", gpus=gpus)
    found = environment(facts, replica("trainer-0"), {"LD_LIBRARY_PATH": inherited})
    assert found.get("LD_LIBRARY_PATH") == expected


@pytest.mark.parametrize(
    ("package", "inherited", "expected"),
    [
        ("/pfs/p", "", "/pfs/p"),
        ("/pfs/p", "/lib:/more", "/pfs/p:/lib:/more"),
        ("/pfs/p", "/lib:/pfs/p", "/pfs/p:/lib"),
        ("", "/lib", "/lib"),
        ("", "", None),
    ],
)
def test_puts_the_package_first(package: str, inherited: str, expected: str | None) -> None:
    found = environment(
        job("single", package=package), replica("trainer-0"), {"PYTHONPATH": inherited}
    )
    assert found.get("PYTHONPATH") == expected


def test_copies_nothing_else_of_what_is_inherited() -> None:
    found = environment(JOBS["single"], replica("trainer-0"), {"SECRET": "x", "RANK": "9"})
    assert "SECRET" not in found
    assert found["RANK"] == "0"


# --- for any job -------------------------------------------------------------------------------

peers = st.builds(
    Peer,
    st.ip_addresses(v=4).map(str),
    st.integers(1024, 60000),
    st.integers(1, 40),
)


@st.composite
def jobs(draw: st.DrawFn) -> JobFacts:
    mode = draw(st.sampled_from([mode.value for mode in Mode]))
    count = 1 if mode == "single" else 5
    return job(
        mode,
        trainers=draw(st.lists(peers, min_size=1, max_size=count, unique_by=lambda p: p.address)),
        pservers=draw(st.lists(peers, min_size=1, max_size=3, unique_by=lambda p: p.endpoint))
        if mode in ("ps", "heter")
        else (),
        heters=draw(st.lists(peers, min_size=1, max_size=3)) if mode == "heter" else (),
        gpus=draw(st.integers(0, 8)),
        with_gloo=draw(st.integers(0, 2)),
    )


def everyone(facts: JobFacts) -> list[ReplicaFacts]:
    groups = (("trainer", facts.trainers), ("pserver", facts.pservers), ("heter", facts.heters))
    return [ReplicaFacts(role, i) for role, group in groups for i in range(len(group))]


@given(jobs())
def test_lets_every_server_find_itself(facts: JobFacts) -> None:
    for who in everyone(facts):
        found = environment(facts, who)
        assert found["PADDLE_CURRENT_ENDPOINT"] == f"{found['POD_IP']}:{found['PADDLE_PORT']}"
        if who.role == "pserver":
            servers = found["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")
            assert servers.index(found["PADDLE_CURRENT_ENDPOINT"]) == who.index
        if who.role == "trainer":
            trainers = found["PADDLE_TRAINER_ENDPOINTS"].split(",")
            assert trainers[int(found["PADDLE_TRAINER_ID"])] == found["PADDLE_CURRENT_ENDPOINT"]


@given(jobs())
def test_gives_all_replicas_one_view_of_the_job(facts: JobFacts) -> None:
    shared = ("PADDLE_TRAINER_ENDPOINTS", "PADDLE_PSERVERS_IP_PORT_LIST", "TRAINERS", "JOB_ID")
    seen = {tuple(environment(facts, who).get(name) for name in shared) for who in everyone(facts)}
    assert len(seen) == 1


@given(jobs())
def test_gives_services_of_rank_zero_ports_of_their_own(facts: JobFacts) -> None:
    first = facts.trainers[0]
    found = environment(facts, ReplicaFacts("trainer", 0))
    ports = {
        first.port,
        int(found["MASTER_PORT"]),
        int(found["JAX_COORDINATOR_ADDRESS"].rpartition(":")[2]),
    }
    assert ports <= set(range(first.port, first.port + first.ports_num))
    assert len(ports) == 3 or first.ports_num < 4


@given(jobs())
def test_says_only_texts_a_program_can_be_started_with(facts: JobFacts) -> None:
    for who in everyone(facts):
        for name, value in environment(facts, who).items():
            assert isinstance(value, str)
            assert "\0" not in value
            assert "=" not in name


def test_writes_an_ipv6_endpoint_in_brackets() -> None:
    assert Peer("fd00::1", 80).endpoint == "[fd00::1]:80"


def test_refuses_a_master_where_there_is_none() -> None:
    with pytest.raises(ValueError):
        environment(JOBS["ps"], ReplicaFacts("master", 0))


def test_knows_a_master_s_own_address() -> None:
    found = environment(JOBS["fault tolerant"], ReplicaFacts("master", 0))
    assert (found["POD_IP"], found["PADDLE_PORT"]) == ("10.9.0.1", "8080")


def test_uses_the_words_of_the_spec() -> None:
    assert set(contract.ROLE_WORDS) == {role.value for role in Role}


# --- files and messages ------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["trainer-2", "trainer-0", "pserver-1"])
def test_writes_the_files_of_generation_a(who: str) -> None:
    found = files(JOBS["ps"], replica(who))
    # As the programs of the manual read them: the line without its last character.
    assert int(found["/trainer_id"].splitlines(keepends=True)[0][:-1]) == replica(who).index
    assert int(found["/trainer_count"].splitlines(keepends=True)[0][:-1]) == 3
    assert set(found) == {"/trainer_id", "/trainer_count"}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (0, ""),
        (1, "General Error"),
        (2, ""),
        (134, "Program Abort"),
        (136, "Error Arithmetic Operation(Floating Point Exception)"),
        (137, ""),
        (139, "Segmentation Fault"),
        (143, ""),
    ],
)
def test_explains_exit_codes(code: int, message: str) -> None:
    assert termination_message(code) == message


# --- old images --------------------------------------------------------------------------------

SOURCE = Path(contract.__file__)


def test_is_one_file_an_image_can_copy() -> None:
    """It runs alone, without the package it lives in."""
    code = f"import runpy; print(len(runpy.run_path({str(SOURCE)!r})['VARIABLES']))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == str(len(VARIABLES)), done.stderr
