"""The flags of `paddlecloud job train`: every spelling, what its text may be, what it means.

A table, read by `train_flags`. `OPTIONS` maps our name of a thing to its flag (all spellings of
all releases), to the reader of its text, and to the words a dry run explains it with. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.core import names
from paddlecloud.core.resources import MAX_GPUS
from paddlecloud.forms.durations import MAX_DURATION_S
from paddlecloud.forms.faults import BadValue, nearest
from paddlecloud.forms.fields import (
    MAX_REPLICAS,
    check_annotation,
    read_entry,
    read_memory,
    read_path,
    read_priority,
    read_word,
)
from paddlecloud.forms.go_flags import Flag, Kind
from paddlecloud.forms.scalars import whole_number

MAX_CORES = 1_000_000
DEFAULT_VERSION = "paddle-fluid-v0.13"
VERSIONS = (
    "paddle-v2-v0.10, paddle-fluid-v0.12, paddle-fluid-v0.13, paddle-fluid-v1.x.y, paddle-v2.x.y, "
    "pytorch-x, tensorflow-x, paddle-fluid-custom, custom-framework"
)
_VERSION = re.compile(r"(?:paddle|pytorch|tensorflow)-[\w.+-]+|[\w.+-]*custom[\w.+-]*|fluid")
_WALL_TIME = re.compile(r"([0-9]{1,12}):([0-5]?[0-9]):([0-5]?[0-9])")
_MEMORY = re.compile(r"[0-9]{1,18}(?:Ki|Mi|Gi)")
_GPU_TYPE = re.compile(r"baidu/gpu_[a-z0-9_]+")
_ALGO = re.compile(r"algo-[\w-]+")


# --- readers ---------------------------------------------------------------------------------


def _read_name(text: str) -> str:
    names.check_job_name(text, "B")
    return text


def _read_filled(read: Callable[[str], str]) -> Callable[[str], str]:
    def filled(text: str) -> str:
        if not text.strip():
            raise BadValue("is empty")
        return read(text)

    return filled


def _read_note(text: str) -> str:
    check_annotation("note", text)
    return text


def _count(high: int) -> Callable[[str], int]:
    """0 is read as "not given", as the first release did without saying so."""
    read_any = whole_number(0, high)

    def read(text: str) -> int:
        try:
            return read_any(text)
        except BadValue:
            raise BadValue(f"must be a whole number from 1 to {high}") from None

    return read


def _read_memory(text: str) -> int:
    if not _MEMORY.fullmatch(text):
        raise BadValue("must be digits with Ki, Mi or Gi, such as 512Mi or 10Gi")
    return read_memory(text)


def read_wall_time_s(text: str) -> int:
    """`H:M:S` with any number of hours; 0:0:0 is no limit."""
    match = _WALL_TIME.fullmatch(text)
    if match is None:
        raise BadValue("must be hours:minutes:seconds such as 24:00:00; 00:00:00 is no limit")
    hours, minutes, seconds = (int(part) for part in match.groups())
    total_s = hours * 3600 + minutes * 60 + seconds
    if total_s > MAX_DURATION_S:
        raise BadValue("is longer than 200 years; 00:00:00 is no limit")
    return total_s


def _read_flag01(text: str) -> bool:
    if text not in ("0", "1"):
        raise BadValue("must be 0 or 1")
    return text == "1"


def _choice(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            near = nearest(text.lower(), [word.lower() for word in allowed])
            advice = "".join(f"; did you mean {w}?" for w in allowed if w.lower() == near)
            raise BadValue(f"must be {' or '.join(allowed)}{advice}")
        return text

    return read


def _read_version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise BadValue(f"must be one of {VERSIONS}")
    return text


def _read_gpu_type(text: str) -> str:
    if not _GPU_TYPE.fullmatch(text):
        raise BadValue("must be baidu/gpu_k40, baidu/gpu_p40, baidu/gpu_v100 or the like")
    return text


def _read_algo(text: str) -> str:
    if not _ALGO.fullmatch(text):
        raise BadValue("must be an id such as algo-0123456789abcdef")
    return text


# --- the table -------------------------------------------------------------------------------

# What `job train -h` calls the value of a flag, and says about it beside what it means.
_HELP: Mapping[str, tuple[str, str]] = {
    "--job-name": ("NAME", "needed; any text"),
    "--job-conf": ("FILE", "config.ini"),
    "--start-cmd": ("COMMAND", "needed; run by a shell"),
    "--files": ("FILE ...", ""),
    "--file-dir": ("FOLDER", ""),
    "--code-uri": ("PATH", "folder or archive"),
    "--group-name": ("GROUP", "default your own"),
    "--cluster-name": ("NAME", ""),
    "--job-version": ("VERSION", f"default {DEFAULT_VERSION}"),
    "--image-addr": ("IMAGE", ""),
    "--permission": ("WORD", "private, group; default private"),
    "--wall-time": ("H:M:S", "default and 00:00:00: never"),
    "--is-standalone": ("0|1", "default by the others"),
    "--distribute-job-type": ("WORD", "PSERVER, NCCL2"),
    "--k8s-trainers": ("N", "default 1"),
    "--k8s-gpu-cards": ("N", "default 0"),
    "--k8s-gpu-type": ("WORD", "baidu/gpu_v100, ..."),
    "--k8s-cpu-cores": ("N", "default 1"),
    "--k8s-memory": ("SIZE", "512Mi, 10Gi; default 1Gi"),
    "--k8s-ps-num": ("N", "default 1"),
    "--k8s-ps-cores": ("N", "default 1"),
    "--k8s-ps-memory": ("SIZE", "default 1Gi"),
    "--k8s-priority": ("WORD", "low, normal, high, very_high; default normal"),
    "--mpi-nodes": ("N", "one trainer each"),
    "--mpi-priority": ("WORD", "as --k8s-priority"),
    "--mpi-memory": ("SIZE", "as --k8s-memory"),
    "--slurm-nodes": ("N", ""),
    "--slurm-gpu-pnode": ("N", "shared out over its tasks"),
    "--slurm-task-pnode": ("N", "one trainer each; default 1"),
    "--algo-id": ("ALGO_ID", "algo-..."),
    "--is-auto-over-sell": ("0|1", ""),
    "--use-native-api": ("N", "not used here"),
    "--dfs-agent-port": ("N", "not used here"),
}


@dataclass(frozen=True, slots=True)
class Option:
    flag: Flag
    read: Callable[[str], Any] | None  # None: a switch or a list, read by the grammar
    says: str  # how a dry run explains it; {} is the value as written


def _option(
    spellings: str, read: Callable[[str], Any] | None, says: str, kind: str = Kind.TEXT
) -> Option:
    names = tuple(spellings.split())
    value, more = _HELP.get(names[0], ("", ""))
    meaning = says.partition(":")[0] + (f" ({more})" if more else "")
    return Option(Flag(names, kind, meaning=meaning, value=value), read, says)


_path = _read_filled(read_path)
_word = _read_filled(read_word)

OPTIONS: Mapping[str, Option] = {
    "name": _option("--job-name", _read_name, "the job's name: {}"),
    "conf": _option("--job-conf", _path, "configuration file: {}"),
    "entry": _option(
        "--start-cmd", _read_filled(read_entry), "start command: run by a shell in every replica"
    ),
    "files": _option("--files", None, "sent by base name into the workspace: {}", Kind.LIST),
    "file_dir": _option("--file-dir", _path, "folder sent into the workspace: {}"),
    "code_uri": _option("--code-uri", _path, "code taken from /pfs at the start: {}"),
    "group": _option("--group-name", _word, "resource group: {}"),
    "cluster": _option("--cluster-name", _word, "cluster: {}"),
    "version": _option("--job-version", _read_version, "runtime: {}"),
    "image": _option("--image-addr --version-image-addr", _word, "image of a custom version: {}"),
    "permission": _option("--permission", _choice("private", "group"), "who may see the job: {}"),
    "wall_time_s": _option(
        "--wall-time --k8s-wall-time --k8s-walltime --mpi-wall-time",
        read_wall_time_s,
        "stopped after: {} (00:00:00 is never)",
    ),
    "standalone": _option(
        "--is-standalone --k8s-is-local", _read_flag01, "one node (1) or several (0): {}"
    ),
    "not_local": _option("--k8s-not-local", None, "several nodes", Kind.BOOL),
    "distribute": _option(
        "--distribute-job-type",
        _choice("PSERVER", "NCCL2"),
        "how trainers work together: {}",
    ),
    "trainers": _option("--k8s-trainers", _count(MAX_REPLICAS), "trainers: {}"),
    "gpu": _option("--k8s-gpu-cards", _count(MAX_GPUS), "cards per trainer: {}"),
    "gpu_type": _option("--k8s-gpu-type", _read_gpu_type, "kind of card: {}, kept as a note"),
    "cpu": _option("--k8s-cpu-cores", _count(MAX_CORES), "cores per trainer: {}"),
    "memory_bytes": _option("--k8s-memory", _read_memory, "memory per trainer: {}"),
    "ps_num": _option(
        "--k8s-ps-num --k8s-pservers-count", _count(MAX_REPLICAS), "parameter servers: {}"
    ),
    "ps_cpu": _option(
        "--k8s-ps-cores --k8s-pscpu-cores", _count(MAX_CORES), "cores per parameter server: {}"
    ),
    "ps_memory_bytes": _option(
        "--k8s-ps-memory --k8s-psmemory", _read_memory, "memory per parameter server: {}"
    ),
    "priority": _option("--k8s-priority", read_priority, "priority: {}"),
    "mpi_nodes": _option("--mpi-nodes", _count(MAX_REPLICAS), "MPI nodes: {}, one trainer each"),
    "mpi_priority": _option("--mpi-priority", read_priority, "priority: {}"),
    "mpi_memory_bytes": _option("--mpi-memory", _read_memory, "memory per trainer: {}"),
    "slurm_nodes": _option("--slurm-nodes", _count(MAX_REPLICAS), "Slurm nodes: {}"),
    "slurm_gpu": _option(
        "--slurm-gpu-pnode", _count(MAX_GPUS), "cards per node: {}, shared out over its tasks"
    ),
    "slurm_tasks": _option(
        "--slurm-task-pnode", _count(1000), "tasks per node: {}, one trainer each"
    ),
    "algo": _option("--algo-id", _read_algo, "experiment: {}"),
    "tags": _option("--job-tags", _read_note, "tags: {}"),
    "remark": _option("--job-remark", _read_note, "note: {}"),
    "may_borrow": _option(
        "--is-auto-over-sell",
        _read_flag01,
        "may run on what others leave idle, and is preempted first: {}",
    ),
    "skip_check": _option(
        "--skip-config-check", None, "the configuration file is sent unchecked", Kind.BOOL
    ),
    "native_api": _option("--use-native-api", _count(10**9), "native API: {}, not used here"),
    "agent_port": _option("--dfs-agent-port", _count(65535), "agent port: {}, not used here"),
    "json": _option("--json", None, "print the JSON answer only", Kind.BOOL),
    "dry_run": _option("--dry-run", None, "only show what would be submitted", Kind.BOOL),
}
FLAGS: tuple[Flag, ...] = tuple(option.flag for option in OPTIONS.values())

# Numbers of which 0 is "not given"; of cards it is a plain answer.
COUNTS = frozenset(
    "trainers cpu ps_num ps_cpu mpi_nodes slurm_nodes slurm_tasks native_api agent_port".split()
)
