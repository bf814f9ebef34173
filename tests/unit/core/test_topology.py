from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.jobspec import Mode, Role
from paddlecloud.core.topology import ROLES_BY_MODE, mode_of, role_from_word


@pytest.mark.parametrize(
    ("trainers", "pservers", "heters", "mode"),
    [
        (1, 0, 0, Mode.SINGLE),
        (2, 0, 0, Mode.COLLECTIVE),
        (1, 1, 0, Mode.PS),
        (4, 2, 0, Mode.PS),
        (2, 1, 2, Mode.HETER),
    ],
)
def test_tells_the_mode_by_the_numbers(
    trainers: int, pservers: int, heters: int, mode: Mode
) -> None:
    assert mode_of(trainers, pservers, heters) == mode


@given(st.integers(1, 9), st.integers(0, 9))
def test_gives_servers_only_to_modes_that_have_them(trainers: int, pservers: int) -> None:
    has_servers = Role.PSERVER in ROLES_BY_MODE[mode_of(trainers, pservers)]
    assert has_servers == (pservers > 0)


def test_knows_the_roles_of_every_mode() -> None:
    assert set(ROLES_BY_MODE) == set(Mode)
    assert all(Role.TRAINER in roles for roles in ROLES_BY_MODE.values())


@pytest.mark.parametrize(
    ("word", "role"),
    [
        ("trainer", Role.TRAINER),
        ("worker", Role.TRAINER),
        ("pserver", Role.PSERVER),
        ("ps", Role.PSERVER),
        ("heter", Role.HETER),
        ("master", Role.MASTER),
        ("Trainer", None),
        ("", None),
    ],
)
def test_understands_what_users_call_a_role(word: str, role: Role | None) -> None:
    assert role_from_word(word) == role
