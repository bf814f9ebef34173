"""Which roles a mode has, which mode a set of roles makes, and what each form calls a role."""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.core.jobspec import Mode, Role

ROLES_BY_MODE: Mapping[Mode, tuple[Role, ...]] = {
    Mode.SINGLE: (Role.TRAINER,),
    Mode.COLLECTIVE: (Role.TRAINER,),
    Mode.PS: (Role.TRAINER, Role.PSERVER),
    Mode.HETER: (Role.TRAINER, Role.PSERVER, Role.HETER),
}

# What a `PaddleJob` calls them; generation A and B say trainer and pserver, as we do.
PADDLEJOB_WORDS: Mapping[Role, str] = {
    Role.TRAINER: "worker",
    Role.PSERVER: "ps",
    Role.HETER: "heter",
}


def mode_of(trainers: int, pservers: int = 0, heters: int = 0) -> Mode:
    """The mode these numbers amount to. `trainers` is the most there may be."""
    if heters > 0:
        return Mode.HETER
    if pservers > 0:
        return Mode.PS
    return Mode.COLLECTIVE if trainers > 1 else Mode.SINGLE


def role_from_word(word: str) -> Role | None:
    """The role a user means by `trainer`, `pserver`, `worker`, `ps`, `heter`, `master`."""
    for role in Role:
        if word in (role.value, PADDLEJOB_WORDS.get(role)):
            return role
    return None
