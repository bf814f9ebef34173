"""How each flag of a command line was read: the block `understood` of every dry run.

`train_flags` makes the rows of a `job train` while it reads; `of_submit` makes those of a `submit`
from what was given. A value of a secret is in none of them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paddlecloud.core.jobspec import Mode, Role
from paddlecloud.forms import config_ini
from paddlecloud.forms.go_flags import Flag, Given

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.forms.submit_flags import Submission


class Understood(NamedTuple):
    """How one flag was read."""

    flag: str
    value: str
    meaning: str


def of_submit(submission: Submission) -> list[Understood]:
    from paddlecloud.forms.submit_flags import FLAGS, PACKAGE

    rows = [row for flag in FLAGS for row in _rows(flag, submission.given.get(flag.key))]
    sent = "used where it is" if submission.is_in_place else "the folder that is sent"
    rows.append(Understood(PACKAGE, submission.package, sent))
    rows.append(Understood("(mode)", submission.spec.mode.value, _why_mode(submission)))
    return rows


def _rows(flag: Flag, given: Given | None) -> Iterator[Understood]:
    if given is None:
        return
    # `trainers (default 1)`, `cpu per trainer: 1, 0.5, 500m`: what it is, without examples.
    says = flag.meaning.partition(" (")[0].partition(":")[0].partition(";")[0]
    if isinstance(given.value, bool):
        yield Understood(given.written, "", says if given.value else f"not given: {says}")
        return
    texts = given.value if isinstance(given.value, tuple) else (given.text,)
    for text in texts:
        shown = _without_secret(text) if flag.key == "env" else text
        yield Understood(given.written, shown, f"{says}: {shown}")


def _without_secret(pair: str) -> str:
    name, equals, value = pair.partition("=")
    return f"{name}{equals}{config_ini.shown({name: value})[name]}"


def _why_mode(submission: Submission) -> str:
    spec, written = submission.spec, submission.written
    if "mode" in written:
        return f"{written['mode']} {spec.mode.value}"
    servers = spec.role(Role.PSERVER)
    if servers is not None:
        given = written.get("pservers", "as many as trainers, for -pservers is not given")
        plural = "s" if servers.replicas > 1 else ""
        return f"{servers.replicas} parameter server{plural}: {given}"
    trainers = "one trainer" if spec.mode == Mode.SINGLE else f"{spec.trainers.replicas} trainers"
    return f"{trainers}, {written.get('pservers', '-pservers')} 0"
