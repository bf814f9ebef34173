"""A job as written, before what is unset was decided; `settle` decides it.

Flags and REST bodies fill a `Draft` and call `settle`, so that defaults and contradictions are
the same in every form. What was not written is None; what `settle` returns has nothing open.

Which mode, when `mode` is not written: as many parameter servers as trainers (seed 004) unless
`pservers` says otherwise; any servers make it `ps`, none make it `single` (one trainer) or
`collective` (more).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

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
from paddlecloud.core.topology import mode_of
from paddlecloud.forms.faults import FaultList

DEFAULT_NAME = "paddle-cluster-job"
DEFAULT_CPU_MILLI = 1000
DEFAULT_MEMORY_BYTES = 2**30
DEFAULT_GRACE_S = 10.0


@dataclass(slots=True)
class Draft:
    """Every field a form may write. None = not written."""

    name: str | None = None
    mode: Mode | None = None
    parallelism: int | None = None
    min_instance: int | None = None
    max_instance: int | None = None
    cpu_milli: int | None = None
    memory_bytes: int | None = None
    gpu: int | None = None
    pservers: int | None = None
    pscpu_milli: int | None = None
    psmemory_bytes: int | None = None
    entry: str | None = None
    topology: str | None = None
    package: str | None = None  # only if it is a /pfs/... path
    package_digest: str | None = None
    cluster: str | None = None
    runtime: str | None = None
    registry: str | None = None
    passes: int | None = None
    fault_tolerant: bool | None = None
    priority: Priority | None = None
    wall_time_s: int | None = None
    max_restarts: int | None = None
    restart_exit_codes: frozenset[int] | None = None
    grace_s: float | None = None
    clean: CleanPolicy | None = None
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    may_borrow: bool | None = None
    group: str | None = None


# Names a field of Draft as the user wrote it, or as the form spells it if they did not.
Word = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Size:
    mode: Mode
    trainers: int
    low: int
    high: int
    pservers: int


def settle(draft: Draft, faults: FaultList, word: Word) -> JobSpec:
    """The spec the draft means. Contradictions are added to `faults`; then the spec is unusable.

    A field that could not be read is None here as well, so it brings no second complaint.
    """
    size = _settle_size(draft, faults, word)
    return JobSpec(
        name=DEFAULT_NAME if draft.name is None else draft.name,
        mode=size.mode,
        roles=_roles(draft, size),
        entry=draft.entry or "",
        topology=draft.topology or "",
        package=draft.package or "",
        package_digest=draft.package_digest or "",
        cluster=draft.cluster or "",
        runtime=draft.runtime or "",
        registry=draft.registry or "",
        env=draft.env,
        passes=1 if draft.passes is None else draft.passes,
        priority=Priority.NORMAL if draft.priority is None else draft.priority,
        wall_time_s=draft.wall_time_s or 0,
        restart=RestartRule(
            max_restarts=draft.max_restarts or 0,
            exit_codes=draft.restart_exit_codes or frozenset(),
        ),
        clean=CleanPolicy.ON_COMPLETION if draft.clean is None else draft.clean,
        fault_tolerant=bool(draft.fault_tolerant),
        grace_s=DEFAULT_GRACE_S if draft.grace_s is None else draft.grace_s,
        labels=draft.labels,
        annotations=draft.annotations,
        may_borrow=bool(draft.may_borrow),
        group=draft.group or "",
    )


def _roles(draft: Draft, size: _Size) -> tuple[RoleSpec, ...]:
    trainer = RoleSpec(
        Role.TRAINER,
        size.trainers,
        Resources(
            draft.cpu_milli or DEFAULT_CPU_MILLI,
            draft.memory_bytes or DEFAULT_MEMORY_BYTES,
            draft.gpu or 0,
        ),
        min_replicas=size.low,
        max_replicas=size.high,
    )
    if size.pservers == 0:
        return (trainer,)
    needs = Resources(
        draft.pscpu_milli or DEFAULT_CPU_MILLI, draft.psmemory_bytes or DEFAULT_MEMORY_BYTES
    )
    return (trainer, RoleSpec(Role.PSERVER, size.pservers, needs))


# --- how many, and which mode ----------------------------------------------------------------


def _settle_size(draft: Draft, faults: FaultList, word: Word) -> _Size:
    trainers, low, high = _settle_range(draft, faults, word)
    pservers = draft.pservers
    if draft.mode is None:
        pservers = trainers if pservers is None else pservers
        return _Size(mode_of(high, pservers), trainers, low, high, pservers)
    if draft.mode == Mode.PS:
        if pservers == 0:
            faults.add(
                word("pservers"),
                f"{word('mode')} ps needs at least one parameter server; "
                f"leave it out to have as many as trainers",
                0,
            )
        return _Size(draft.mode, trainers, low, high, trainers if pservers is None else pservers)
    if pservers:
        faults.add(
            word("pservers"),
            f"{word('mode')} {draft.mode} has no parameter servers; "
            f"leave it out or use {word('mode')} ps",
            pservers,
        )
    if draft.mode == Mode.SINGLE:
        _refuse_more_than_one(draft, faults, word)
    return _Size(draft.mode, trainers, low, high, 0)


def _settle_range(draft: Draft, faults: FaultList, word: Word) -> tuple[int, int, int]:
    """(wish, min, max). One bound alone opens the range on its side only.

    Without a wish it is the most there may be: a job starts at the largest size that fits.
    """
    wish, low, high = draft.parallelism, draft.min_instance, draft.max_instance
    if low is not None and high is not None and low > high:
        faults.add(word("min_instance"), f"is more than {word('max_instance')} {high}", low)
        return high, high, high
    if wish is None:
        wish = high or low or 1
        return wish, low or 1, high or wish
    if low is not None and low > wish:
        faults.add(word("min_instance"), f"is more than {word('parallelism')} {wish}", low)
    if high is not None and high < wish:
        faults.add(word("max_instance"), f"is less than {word('parallelism')} {wish}", high)
    return wish, wish if low is None else low, wish if high is None else high


def _refuse_more_than_one(draft: Draft, faults: FaultList, word: Word) -> None:
    for name in ("parallelism", "min_instance", "max_instance"):
        count = getattr(draft, name)
        if count is not None and count != 1:
            faults.add(
                word(name),
                f"{word('mode')} single runs one trainer; "
                f"leave it out or use {word('mode')} collective",
                count,
            )
