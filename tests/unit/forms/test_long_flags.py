"""The grammar of the `job` client: argparse's rules, by a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.go_flags import Flag, Kind, Parsed
from paddlecloud.forms.long_flags import parse

FLAGS = (
    Flag(("--job-name",)),
    Flag(("--job-conf",)),
    Flag(("--k8s-gpu-cards",)),
    Flag(("--k8s-gpu-type",)),
    Flag(("--wall-time", "--k8s-wall-time", "--k8s-walltime")),
    Flag(("--files",), Kind.LIST),
    Flag(("--json",), Kind.BOOL),
    Flag(("--page",), Kind.INT, low=1, high=9),
    Flag(("--type",), choices=("normal", "group")),
)


def read(*words: str) -> Parsed:
    faults = FaultList()
    parsed = parse(words, FLAGS, faults)
    faults.raise_if_any()
    return parsed


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (["--job-name", "x"], "job-name", "x"),
        (["--job-name=x"], "job-name", "x"),
        (["--job_name", "x"], "job-name", "x"),
        (["--job-name=a=b"], "job-name", "a=b"),
        (["--job-name", "two words"], "job-name", "two words"),
        (["--job-name", "- dash"], "job-name", "- dash"),
        (["--job-name", "--x y"], "job-name", "--x y"),
        (["--job-name", "-1"], "job-name", "-1"),
        (["--job-name=-x"], "job-name", "-x"),
        (["--job-name="], "job-name", ""),
        (["--job-n", "x"], "job-name", "x"),
        (["--wall", "1:0:0"], "wall-time", "1:0:0"),
        (["--k8s_walltime", "1:0:0"], "wall-time", "1:0:0"),
        (["--k8s-w", "1:0:0"], "wall-time", "1:0:0"),  # two spellings of one flag
        (["--json"], "json", True),
        (["--json=false"], "json", False),
        (["--files", "a", "b", "--json"], "files", ("a", "b")),
        (["--files", "a", "--files=b"], "files", ("a", "b")),
        (["--type", "group"], "type", "group"),
        (["--page", "3"], "page", 3),
        (["--job-name", "x", "--job-name", "x"], "job-name", "x"),
    ],
)
def test_reads(words: list[str], key: str, value: object) -> None:
    assert read(*words).given[key].value == value


def test_keeps_positionals_in_order() -> None:
    parsed = read("a", "--job-name", "x", "b", "--json", "-5", "--", "--job-name", "c")
    assert parsed.positionals == ("a", "b", "-5", "--job-name", "c")


def test_stops_at_the_first_positional_if_told() -> None:
    words = ["--job-name", "x", "kill", "--json", "--nonsense"]
    parsed = parse(words, FLAGS, FaultList(), stops_at_positional=True)
    assert parsed.positionals == ("kill", "--json", "--nonsense")
    assert list(parsed.given) == ["job-name"]


@pytest.mark.parametrize(
    ("words", "field", "problem"),
    [
        (["--job-name"], "--job-name", "needs a value"),
        (["--job-name", "--json"], "--job-name", "needs a value"),
        (["--files", "--json"], "--files", "needs a value"),
        (["--job", "x"], "--job", "it could be --job-name or --job-conf"),
        (["--k8s-gpu", "1"], "--k8s-gpu", "could be --k8s-gpu-cards or --k8s-gpu-type"),
        (["--jobname", "x"], "--jobname", "unknown option; did you mean --job-name?"),
        (["-x"], "-x", "unknown option"),
        (["--zzzzzz=1"], "--zzzzzz", "unknown option"),
        (["--type", "grup"], "--type", "must be one of normal, group; did you mean group?"),
        (["--page", "0"], "--page", "must be a whole number from 1 to 9"),
        (["--json=maybe"], "--json", "must be true or false"),
        (["--job_name", "x", "--job-name=y"], "--job-name", "already given as --job_name x"),
    ],
)
def test_refuses(words: list[str], field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(*words)
    (fault,) = caught.value.faults
    assert fault.field == field
    assert problem in fault.problem


def test_the_value_of_an_unknown_option_is_no_positional() -> None:
    faults = FaultList()
    parsed = parse(["--nmae", "x", "y"], FLAGS, faults)
    assert (parsed.unknown, parsed.positionals, len(faults)) == (("--nmae",), ("y",), 1)


@given(st.lists(st.text(max_size=8) | st.sampled_from(["--", "-", "--j", "--files", "="])))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    parse(words, FLAGS, FaultList())
