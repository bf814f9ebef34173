"""Every flag of `job train`, in every spelling: wrong, out of range, empty, huge, given twice.

One row a flag. `good` are two values that are allowed and differ; `bad` are wrong or out of range;
what is empty or huge is a fault of that flag alone unless the row says that it is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Kind
from paddlecloud.forms.train_flags import Training, parse
from paddlecloud.forms.train_options import OPTIONS

HUGE = "9" * 100_000
LONG = "x" * 1_000_000


@dataclass(frozen=True)
class Row:
    good: tuple[str, str]
    bad: tuple[str, ...]
    may_be_empty: bool = False
    huge: str = LONG
    beside: tuple[str, ...] = ()  # what it needs to stand with


def count(*bad: str, good: tuple[str, str] = ("1", "2")) -> Row:
    return Row(good, ("two", "-1", "1.5", "1e3", "0x10", "1 2", "٣", *bad), huge=HUGE)


def memory() -> Row:
    bad = ("10G", "10GB", "10", "Gi", "-1Gi", "1.5Gi", "1Gi ", "10gi", "1Ki", "0Gi", "9999999999Gi")
    return Row(("1Gi", "2Gi"), bad, huge=HUGE + "Gi")


def wall_time() -> Row:
    bad = ("24", "1:60:00", "1:00:60", "-1:00:00", "1:00", "a:b:c", "999999999999:00:00", "1h")
    return Row(("1:00:00", "1200:00:00"), bad, huge=HUGE + ":00:00")


def zero_one() -> Row:
    return Row(("1", "0"), ("2", "-1", "yes", "true", "01", " 1"), huge=HUGE)


def priority() -> Row:
    return Row(("low", "high"), ("urgent", "1", "nromal", "low high"))


PATH = Row(("a", "b"), ("a\0b",))
WORD = Row(("a", "b"), ("a b", "a\nb"))
NOTE = Row(("a", "b"), ("\udcff",), may_be_empty=True)

ROWS: dict[str, Row] = {
    "name": Row(("a", "b"), ("a\nb", "\udcff")),
    "conf": PATH,
    "entry": Row(("a", "b"), ("a\0b",)),
    "file_dir": PATH,
    "code_uri": Row(
        ("/pfs/c/home/a/x", "/pfs/c/home/a/y"), ("hdfs://x/y.tar.gz", "x.tar.gz", "/etc/x")
    ),
    "group": WORD,
    "cluster": WORD,
    "version": Row(("paddle-v2.4.1", "paddle-v2.4.2"), ("windows", "paddle", "2.4.1")),
    "image": Row(("a", "b"), ("a b",), beside=("--job-version", "custom-framework")),
    "permission": Row(("private", "group"), ("all", "Private", "privat")),
    "wall_time_s": wall_time(),
    "standalone": zero_one(),
    "distribute": Row(("PSERVER", "NCCL2"), ("MPI", "nccl2", "PSERVER,NCCL2")),
    "trainers": count("10001"),
    "gpu": count("100001"),
    "gpu_type": Row(("baidu/gpu_k40", "baidu/gpu_v100"), ("v100", "baidu/", "nvidia/gpu_v100")),
    "cpu": count("1000001"),
    "memory_bytes": memory(),
    "ps_num": count("10001"),
    "ps_cpu": count("1000001"),
    "ps_memory_bytes": memory(),
    "priority": priority(),
    "mpi_nodes": count("10001"),
    "mpi_priority": priority(),
    "mpi_memory_bytes": memory(),
    "slurm_nodes": count("10001"),
    "slurm_gpu": count("100001"),
    "slurm_tasks": count("1001"),
    "algo": Row(("algo-0123456789abcdef", "algo-1f"), ("5", "algo", "algo-", "algo-a b")),
    "tags": NOTE,
    "remark": NOTE,
    "may_borrow": zero_one(),
    "native_api": count("1000000001"),
    "agent_port": count("65536"),
}
SWITCHES = [name for name, option in OPTIONS.items() if option.flag.kind == Kind.BOOL]
LISTS = ["files"]


def spellings(name: str) -> list[str]:
    """As every release wrote it: hyphens, underscores, and all other names."""
    found = OPTIONS[name].flag.names
    return [*found, *(f"--{each[2:].replace('-', '_')}" for each in found)]


def read(name: str, *words: str) -> Training:
    base = {"name": ["--job-name=x"], "entry": ["--start-cmd=x"]}
    needed = [word for key, given in base.items() if key != name for word in given]
    return parse([*needed, *(ROWS[name].beside if name in ROWS else ()), *words])


def fields(name: str, *words: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read(name, *words)
    assert all(fault.problem for fault in caught.value.faults)
    # A fault shows a line of what was written, not a megabyte.
    assert all(len(fault.value) <= 60 for fault in caught.value.faults)
    return [fault.field for fault in caught.value.faults]


def test_every_flag_has_a_row() -> None:
    assert {*ROWS, *SWITCHES, *LISTS} == set(OPTIONS)


EACH = [(name, spelling) for name in ROWS for spelling in spellings(name)]


@pytest.mark.parametrize(("name", "flag"), EACH)
def test_takes_what_is_allowed_in_either_form(name: str, flag: str) -> None:
    for value in ROWS[name].good:
        assert read(name, f"{flag}={value}").spec == read(name, flag, value).spec


@pytest.mark.parametrize(("name", "flag"), EACH)
def test_names_the_flag_of_a_bad_value_as_it_was_typed(name: str, flag: str) -> None:
    for value in ROWS[name].bad:
        assert fields(name, f"{flag}={value}") == [flag], value


@pytest.mark.parametrize(("name", "flag"), EACH)
def test_an_empty_value_is_a_fault_unless_it_may_be_empty(name: str, flag: str) -> None:
    if ROWS[name].may_be_empty:
        assert read(name, f"{flag}=").spec == read(name).spec
    else:
        assert fields(name, f"{flag}=") == [flag]
        assert fields(name, flag, "") == [flag]


@pytest.mark.parametrize(("name", "flag"), EACH)
def test_a_huge_value_is_a_fault_and_not_repeated(name: str, flag: str) -> None:
    assert fields(name, f"{flag}={ROWS[name].huge}") == [flag]


@pytest.mark.parametrize(("name", "flag"), EACH)
def test_needs_a_value(name: str, flag: str) -> None:
    # One that is missing for that, too, has been named once.
    assert fields(name, flag)[0] == flag
    assert fields(name, flag, "--json")[0] == flag


@pytest.mark.parametrize(("name", "flag"), EACH)
def test_given_twice_it_must_say_the_same(name: str, flag: str) -> None:
    one, other = ROWS[name].good
    first = OPTIONS[name].flag.names[0]
    assert read(name, f"{first}={one}", f"{flag}={one}").spec == read(name, f"{flag}={one}").spec
    assert fields(name, f"{first}={one}", f"{flag}={other}") == [flag]


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_is_on_or_off(name: str) -> None:
    for flag in spellings(name):
        read(name, flag)
        read(name, flag, flag)
        read(name, f"{flag}=0")
        for bad in ("maybe", "2", ""):
            assert fields(name, f"{flag}={bad}") == [flag]


def test_all_of_them_wrong_at_once_are_all_told() -> None:
    words = [f"{OPTIONS[name].flag.names[0]}={row.bad[0]}" for name, row in ROWS.items()]
    with pytest.raises(InvalidInput) as caught:
        parse([*words, "--nonsense", "--json=maybe"])
    told = [fault.field for fault in caught.value.faults]
    wanted = {OPTIONS[name].flag.names[0] for name in ROWS} | {"--nonsense", "--json"}
    assert set(told) == wanted
    assert len(told) == len(wanted)
