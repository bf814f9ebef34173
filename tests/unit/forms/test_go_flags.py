from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.go_flags import Flag, Kind, Parsed, help_lines, parse

FLAGS = (
    Flag(("-parallelism", "-p"), Kind.INT, "trainers", "N", low=1, high=100),
    Flag(("-jobname", "-name"), meaning="the name"),
    Flag(("-min_instance", "--min"), Kind.INT),
    Flag(("-rm",), Kind.BOOL, "remove it from history"),
    Flag(("--env", "-e"), Kind.LIST),
    Flag(("--dry-run",), alone="client", choices=("client", "server")),
    Flag(("--output", "-o"), choices=("json", "yaml", "wide", "name")),
    Flag(("-n",), Kind.INT, "lines"),
)


def read(line: str, *, last_wins: bool = True) -> Parsed:
    faults = FaultList()
    parsed = parse(shlex.split(line), FLAGS, faults, last_wins=last_wins)
    faults.raise_if_any()
    return parsed


def problems(line: str, *, last_wins: bool = True) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidInput) as caught:
        read(line, last_wins=last_wins)
    return [(fault.field, fault.value, fault.problem) for fault in caught.value.faults]


@pytest.mark.parametrize(
    "line",
    ["-p 4", "-p=4", "--p 4", "--p=4", "-parallelism 4", "--parallelism=4", "-p4", "-p +4"],
)
def test_reads_every_spelling_of_a_flag(line: str) -> None:
    assert read(line).number("parallelism") == 4


@pytest.mark.parametrize(
    "line", ["-min_instance 2", "--min-instance=2", "--min_instance 2", "-min 2", "--min=2"]
)
def test_takes_dashes_and_underscores_for_one(line: str) -> None:
    assert read(line).number("min-instance") == 2


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("-rm", True),
        ("--rm", True),
        ("-rm=true", True),
        ("-rm=1", True),
        ("-rm=T", True),
        ("-rm=false", False),
        ("-rm=0", False),
        ("", False),
    ],
)
def test_reads_switches(line: str, value: bool) -> None:
    assert read(line).switch("rm") is value


def test_never_gives_a_switch_the_next_word() -> None:
    parsed = read("-rm true")
    assert parsed.switch("rm")
    assert parsed.positionals == ("true",)


@pytest.mark.parametrize(
    "line",
    ["./pkg -p 4 -name x", "-p 4 ./pkg -name x", "-p 4 -name x ./pkg", "-p 4 -name=x -- ./pkg"],
)
def test_finds_positionals_anywhere(line: str) -> None:
    parsed = read(line)
    assert parsed.positionals == ("./pkg",)
    assert (parsed.number("parallelism"), parsed.text("jobname")) == (4, "x")


def test_ends_flags_at_two_dashes() -> None:
    assert read("-p 4 -- -name x --").positionals == ("-name", "x", "--")


def test_takes_a_lone_dash_for_a_positional() -> None:
    assert read("- -p 1").positionals == ("-",)


def test_collects_repeated_texts() -> None:
    assert read("--env A=1 -e B=x=y --env=C=").texts("env") == ("A=1", "B=x=y", "C=")
    assert read("").texts("env") == ()


@pytest.mark.parametrize(
    ("line", "value"),
    [("--dry-run", "client"), ("--dry-run=server", "server"), ("--dry-run server", "client")],
)
def test_lets_a_flag_stand_alone(line: str, value: str) -> None:
    assert read(line).text("dry-run") == value


def test_remembers_how_a_flag_was_written() -> None:
    given = read("--p=7").given["parallelism"]
    assert (given.written, given.text, given.value) == ("--p", "7", 7)


def test_takes_a_negative_number_for_a_value() -> None:
    assert read("-min -3").number("min-instance") == -3
    assert problems("-p -1") == [("-p", "-1", "must be a whole number from 1 to 100")]


def test_knows_what_was_not_given() -> None:
    parsed = read("")
    assert "jobname" not in parsed
    assert parsed.text("jobname", "other") == "other"
    assert parsed.number("n", 10) == 10


@pytest.mark.parametrize(
    ("line", "field", "value", "problem"),
    [
        ("-p two", "-p", "two", "must be a whole number from 1 to 100"),
        ("-p 1.5", "-p", "1.5", "must be a whole number from 1 to 100"),
        ("-p 0", "-p", "0", "must be a whole number from 1 to 100"),
        ("--p=101", "--p", "101", "must be a whole number from 1 to 100"),
        ("-p=", "-p", "", "must be a whole number from 1 to 100"),
        ("-p", "-p", "", "needs a value"),
        ("-rm=maybe", "-rm", "maybe", "must be true or false"),
        ("-rm=", "-rm", "", "must be true or false"),
        ("--dry-run=x", "--dry-run", "x", "must be one of client, server"),
        ("-o yml", "-o", "yml", "must be one of json, yaml, wide, name; did you mean yaml?"),
        ("-paralelism 3", "-paralelism", "", "unknown flag; did you mean -parallelism?"),
        ("--Jobname=x", "--Jobname", "", "unknown flag; did you mean -jobname?"),
        ("--dryrun", "--dryrun", "", "unknown flag; did you mean --dry-run?"),
        ("--qqq", "--qqq", "", "unknown flag"),
        ("---p", "---p", "", "unknown flag; did you mean -p?"),
    ],
)
def test_says_what_is_wrong_in_the_user_s_words(
    line: str, field: str, value: str, problem: str
) -> None:
    assert problems(line) == [(field, value, problem)]


def test_reports_every_fault_at_once() -> None:
    found = problems("-p two --nmae x ./pkg -o xml -rm=maybe")
    assert [field for field, _, _ in found] == ["-p", "--nmae", "-o", "-rm"]


def test_does_not_swallow_a_flag_as_a_value() -> None:
    found = problems("-name -p 4")
    assert found == [("-name", "", "needs a value; if -p is meant, write -name=-p")]


def test_takes_the_value_of_a_mistyped_flag_with_it() -> None:
    faults = FaultList()
    parsed = parse(["-paralelism", "3", "./pkg"], FLAGS, faults)
    assert parsed.positionals == ("./pkg",)
    assert parsed.unknown == ("-paralelism",)
    assert len(faults) == 1


def test_lets_the_last_one_win_or_refuses() -> None:
    assert read("-p 4 -p 8").number("parallelism") == 8
    assert read("-p 4 --parallelism=4", last_wins=False).number("parallelism") == 4
    assert problems("-p 4 --parallelism=8", last_wins=False) == [
        ("--parallelism", "8", "was already given as -p 4")
    ]


words = st.text("-=pnrmxe 4", max_size=6) | st.sampled_from(
    ["-p", "4", "--", "-", "-rm", "--env", "A=1", "-o", "json", "-p=", "--dry-run"]
)


@given(st.lists(words, max_size=8))
def test_loses_no_word_and_never_fails_otherwise(argv: list[str]) -> None:
    faults = FaultList()
    parsed = parse(argv, FLAGS, faults)
    assert set(parsed.positionals) <= set(argv)
    if not faults and "--" not in argv:
        # Everything that is no flag and no flag's value came out again.
        plain = [word for word in argv if not word.startswith("-") or word == "-"]
        values = [str(given.text) for given in parsed.given.values()]
        for word in plain:
            assert word in parsed.positionals or word in values or parsed.texts("env")


@given(
    st.integers(1, 100),
    st.text(min_size=1, max_size=10).filter(lambda text: not text.startswith("-")),
    st.booleans(),
    st.permutations(range(4)),
)
def test_reads_flags_in_any_order(
    count: int, name: str, remove: bool, order: tuple[int, ...]
) -> None:
    pieces = [[f"-p={count}"], ["--name", name], [f"-rm={remove}"], ["./pkg"]]
    argv = [word for i in order for word in pieces[i]]
    faults = FaultList()
    parsed = parse(argv, FLAGS, faults)
    assert not faults
    assert parsed.number("parallelism") == count
    assert parsed.text("jobname") == name
    assert parsed.switch("rm") is remove
    assert parsed.positionals == ("./pkg",)


def test_writes_help_by_the_same_table() -> None:
    lines = help_lines(FLAGS)
    assert lines[0].split() == ["-parallelism,", "-p", "N", "trainers"]
    assert any("--dry-run[=TEXT]" in line for line in lines)
    assert any(line.split() == ["-rm", "remove", "it", "from", "history"] for line in lines)


def test_goes_on_in_the_next_line_where_help_is_long() -> None:
    flag = Flag(("--way",), value="WAY", meaning="which way it goes, and also why it goes there")
    assert help_lines([flag], width=40) == [
        "  --way WAY  which way it goes, and also",
        "             why it goes there",
    ]


SWITCHES = (
    Flag(("-r",), Kind.BOOL),
    Flag(("-f",), Kind.BOOL),
    Flag(("-v",), Kind.BOOL),
    Flag(("-rv",), Kind.BOOL),
    Flag(("-n",), Kind.INT),
)


@pytest.mark.parametrize(
    ("word", "given"),
    [("-rf", ["r", "f"]), ("-vfr", ["v", "f", "r"]), ("-rv", ["rv"]), ("-r", ["r"])],
)
def test_reads_joined_switches_unless_a_flag_has_that_name(word: str, given: list[str]) -> None:
    faults = FaultList()
    parsed = parse([word], SWITCHES, faults)
    assert (list(parsed.given), len(faults)) == (given, 0)


@pytest.mark.parametrize("word", ["--rf", "-rr", "-rn", "-rx", "-rf=true"])
def test_refuses_what_only_looks_like_joined_switches(word: str) -> None:
    faults = FaultList()
    assert (list(parse([word], SWITCHES, faults).given), len(faults)) == ([], 1)
