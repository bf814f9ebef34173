"""Which mode a `job train` means, how many trainers, and with how many cards each.

The rule of the second client: `--is-standalone` decides if it is there; else `--k8s-not-local`, a
`--distribute-job-type` or more than one trainer means several nodes; else it is one. Several nodes
are a parameter-server job with PSERVER, or with `--k8s-ps-num` and no type; otherwise collective.
`--mpi-*` and `--slurm-*` count the same trainers in other words. Used by `train_flags`; pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.core.jobspec import Mode, Priority
from paddlecloud.forms.draft import Word
from paddlecloud.forms.faults import FaultList

_MPI = ("mpi_nodes", "mpi_priority", "mpi_memory_bytes")
_SLURM = ("slurm_nodes", "slurm_gpu", "slurm_tasks")
_SERVERS = ("ps_num", "ps_cpu", "ps_memory_bytes")


@dataclass(slots=True)
class Size:
    """What was decided. `unused` says of given options why they change nothing."""

    mode: Mode
    why: str
    trainers: int
    gpu: int
    pservers: int
    launcher: str = ""
    unused: dict[str, str] = field(default_factory=dict)


def decide(values: Mapping[str, Any], faults: FaultList, word: Word) -> Size:
    """`values` are the options given, read, without those that could not be."""
    launcher = _launcher(values, faults, word)
    trainers, gpu = _counts(values, launcher, faults, word)
    mode, why = _mode(values, trainers, word)
    size = Size(mode, why, trainers, gpu, 0, launcher)
    if mode == Mode.SINGLE:
        _refuse_several(values, trainers, faults, word)
        size.trainers = 1
    if mode == Mode.PS:
        size.pservers = values.get("ps_num") or 1
    else:
        for name in _SERVERS:
            if name in values:
                size.unused[name] = f"not used: a {mode.value} job has no parameter servers"
    if mode == Mode.SINGLE and "distribute" in values:
        size.unused["distribute"] = f"not used: {word('standalone')} 1 decides"
    return size


def _launcher(values: Mapping[str, Any], faults: FaultList, word: Word) -> str:
    mpi = [name for name in _MPI if name in values]
    slurm = [name for name in _SLURM if name in values]
    if mpi and slurm:
        faults.add(word(slurm[0]), f"cannot stand beside {word(mpi[0])}; choose one of the two")
    launcher = "slurm" if slurm else "mpi" if mpi else ""
    if launcher and "trainers" in values:
        first = word((slurm or mpi)[0])
        faults.add(word("trainers"), f"cannot stand beside {first}; choose one", values["trainers"])
    return launcher


def _counts(
    values: Mapping[str, Any], launcher: str, faults: FaultList, word: Word
) -> tuple[int, int]:
    """(trainers, cards of each)."""
    gpu = int(values.get("gpu") or 0)
    if launcher == "mpi":
        return int(values.get("mpi_nodes") or 1), gpu
    if launcher != "slurm":
        return int(values.get("trainers") or 1), gpu
    tasks = int(values.get("slurm_tasks") or 1)
    per_node = values.get("slurm_gpu")
    if per_node is None:
        per_node = gpu * tasks
    elif "gpu" in values and gpu * tasks != per_node:
        faults.add(word("gpu"), f"contradicts {word('slurm_gpu')} {per_node}", gpu)
    if per_node % tasks:
        problem = f"cannot be shared out evenly over {word('slurm_tasks')} {tasks}"
        faults.add(word("slurm_gpu"), problem, per_node)
    return int(values.get("slurm_nodes") or 1) * tasks, int(per_node) // tasks


def _mode(values: Mapping[str, Any], trainers: int, word: Word) -> tuple[Mode, str]:
    kind = values.get("distribute")
    is_single, why = _is_single(values, trainers, word)
    if is_single:
        return Mode.SINGLE, why
    if kind == "PSERVER":
        return Mode.PS, f"{why}; {word('distribute')} PSERVER"
    if kind == "NCCL2":
        return Mode.COLLECTIVE, f"{why}; {word('distribute')} NCCL2"
    if values.get("ps_num"):
        return Mode.PS, f"{why}; {word('ps_num')} {values['ps_num']}"
    return Mode.COLLECTIVE, f"{why}; neither {word('distribute')} nor {word('ps_num')} is given"


def _is_single(values: Mapping[str, Any], trainers: int, word: Word) -> tuple[bool, str]:
    if "standalone" in values:
        return values["standalone"], f"{word('standalone')} {int(values['standalone'])}"
    if values.get("not_local"):
        return False, word("not_local")
    if "distribute" in values:
        return False, word("distribute")
    if trainers > 1:
        return False, f"{trainers} trainers"
    return True, "one trainer"


def _refuse_several(
    values: Mapping[str, Any], trainers: int, faults: FaultList, word: Word
) -> None:
    alone = f"{word('standalone')} 1"
    if values.get("not_local"):
        faults.add(word("not_local"), f"contradicts {alone}")
    if trainers > 1:
        names = ("slurm_nodes", "slurm_tasks", "mpi_nodes", "trainers")
        name = next(name for name in names if (values.get(name) or 0) > 1)
        faults.add(
            word(name),
            f"contradicts {alone}, which runs one trainer; "
            f"leave it out or write {word('standalone')} 0",
            values[name],
        )


def settle_twice(
    values: Mapping[str, Any], names: tuple[str, str], faults: FaultList, word: Word
) -> Any:
    """One thing two families have a flag for: either, or both if they agree."""
    found = [(name, values[name]) for name in names if name in values]
    if len(found) == 2 and found[0][1] != found[1][1]:
        value = found[1][1]
        shown = value.word if isinstance(value, Priority) else value
        faults.add(word(found[1][0]), f"contradicts {word(found[0][0])}", shown)
    return found[0][1] if found else None
