"""Who may see a submitted job, and how a dry run says each flag was read."""

from __future__ import annotations

import shlex

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.submit_flags import parse, render
from paddlecloud.forms.understood import of_submit


def rows(line: str) -> list[tuple[str, str, str]]:
    return [tuple(row) for row in of_submit(parse(shlex.split(line)))]


def test_a_job_is_shared_with_its_group_by_a_flag_or_a_note() -> None:
    shared = {"permission": "group"}
    assert parse(["--permission", "group", "p"]).spec.annotations == shared
    both = ["--permission=group", "--annotation", "permission=group", "p"]
    assert parse(both).spec.annotations == shared
    assert parse(["--permission", "private", "p"]).spec.annotations == {}
    noted = parse(["--annotation", "permission=group", "p"]).spec
    assert "--permission=group" in render(noted)


@pytest.mark.parametrize(
    ("line", "value", "problem"),
    [
        ("--permission all ./p", "all", "must be one of private, group"),
        (
            "--permission private --annotation permission=group ./p",
            "private",
            "contradicts --annotation permission=group",
        ),
    ],
)
def test_refuses_a_permission_that_is_none(line: str, value: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(shlex.split(line))
    assert [tuple(fault) for fault in caught.value.faults] == [("--permission", problem, value)]


def test_has_a_row_for_every_flag_as_it_was_typed() -> None:
    found = rows("-p 2 --gpus=4 -faulttolerant -pservers 1 --env A=1 --env MY_TOKEN=hidden ./p")
    assert found == [
        ("-p", "2", "trainers: 2"),
        ("--gpus", "4", "cards per trainer: 4"),
        ("-pservers", "1", "parameter servers: 1"),
        ("-faulttolerant", "", "go on while at least one trainer lives"),
        ("--env", "A=1", "a variable of the job: A=1"),
        ("--env", "MY_TOKEN=******", "a variable of the job: MY_TOKEN=******"),
        ("<package path>", "./p", "the folder that is sent"),
        ("(mode)", "ps", "1 parameter server: -pservers"),
    ]


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("p", ("ps", "1 parameter server: as many as trainers, for -pservers is not given")),
        ("-pservers 0 p", ("single", "one trainer, -pservers 0")),
        ("-p 3 -pservers 0 p", ("collective", "3 trainers, -pservers 0")),
        ("--mode single p", ("single", "--mode single")),
    ],
)
def test_says_why_the_mode_is_what_it_is(line: str, row: tuple[str, str]) -> None:
    assert rows(line)[-1] == ("(mode)", *row)


def test_a_package_in_place_is_said_to_be_used_there() -> None:
    assert ("<package path>", "/pfs/c/home/a/x", "used where it is") in rows("/pfs/c/home/a/x")
