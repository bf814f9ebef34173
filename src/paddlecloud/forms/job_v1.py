"""The job body of the job service v1 (`POST /v1/job`) ↔ `JobSpec`.

`parse(body)` reads a decoded JSON value; keys are those of the 1.x client and, beside them, what
the 2.x flags say and that body had no key for. A key means what its flag means (`train_options`),
so flags and body cannot drift apart; faults name the key as sent (`clusterConf.k8sMemory`).
`render(spec)` writes the body, and `parse(render(spec)) == spec`. Pure.

`jobConf` is the text of the configuration file. As in the client, secrets in it go no further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.core.jobspec import JobSpec, Mode, Role
from paddlecloud.forms import config_ini
from paddlecloud.forms.durations import format_duration
from paddlecloud.forms.effective import LAUNCHER
from paddlecloud.forms.faults import FaultList, nearest, shorten
from paddlecloud.forms.train_flags import (
    CUSTOM_VERSION,
    NOTES,
    check_expressible,
    format_memory,
    settle_values,
)
from paddlecloud.forms.train_options import COUNTS, OPTIONS

JOB_TYPE = "paddle"
_CONF = "clusterConf"
_MAX_KEYS = 100

# Key -> option. The first block is the 1.x client's.
_KEYS: Mapping[str, str] = {
    "jobName": "name",
    "startCMD": "entry",
    "clusterName": "cluster",
    "jobAuth": "permission",
    "jobVersion": "version",
    "versionImageAddr": "image",
    "groupName": "group",
    "algoId": "algo",
    "jobTags": "tags",
    "jobRemark": "remark",
    "codeUri": "code_uri",
    "isAutoOverSell": "may_borrow",
}
_CONF_KEYS: Mapping[str, str] = {
    "clusterName": "cluster",
    "k8sTrainersCount": "trainers",
    "k8sCpuCores": "cpu",
    "k8sMemory": "memory_bytes",
    "k8sGpuCards": "gpu",
    "k8sGpuType": "gpu_type",
    "k8sPserversCount": "ps_num",
    "k8sPscpuCores": "ps_cpu",
    "k8sPsmemory": "ps_memory_bytes",
    "k8sPriority": "priority",
    "k8sWalltime": "wall_time_s",
    "k8sIsLocal": "standalone",
    "mpiPriority": "mpi_priority",
    "mpiWalltime": "wall_time_s",
    "mpiNodes": "mpi_nodes",
    "mpiMemory": "mpi_memory_bytes",
    "slurmNodes": "slurm_nodes",
    "slurmGpuPnode": "slurm_gpu",
    "slurmTaskPnode": "slurm_tasks",
    "distributeJobType": "distribute",
}
_OTHER_KEYS = ("jobType", "jobConf", _CONF)


def parse(body: object) -> JobSpec:
    """The spec a decoded body means; raises InvalidInput with every fault there is."""
    if not isinstance(body, Mapping) or len(body) > _MAX_KEYS:
        problem = f"must be a JSON object of at most {_MAX_KEYS} keys"
        raise InvalidInput(faults=[Fault("body", problem)])
    faults = FaultList()
    reading = _Reading(faults)
    reading.take(body, _KEYS, "", known=_OTHER_KEYS)
    conf = body.get(_CONF) or {}
    if isinstance(conf, Mapping) and len(conf) <= _MAX_KEYS:
        reading.take(conf, _CONF_KEYS, f"{_CONF}.")
    else:
        faults.add(_CONF, "must be an object of at most 100 keys")
    if body.get("jobType", JOB_TYPE) != JOB_TYPE:
        faults.add("jobType", f"must be {JOB_TYPE}", body["jobType"])
    for name, key in (("name", "jobName"), ("entry", "startCMD")):
        if name not in reading.written:
            faults.add(key, "is missing")
    spec, _ = settle_values(reading.values, faults, reading.word)
    text = body.get("jobConf") or ""
    if not isinstance(text, str):
        faults.add("jobConf", "must be the text of the configuration file")
        text = ""
    spec = replace(spec, env=dict(config_ini.parse(text, faults, field="jobConf").env))
    faults.raise_if_any()
    return spec


class _Reading:
    """The state of one `parse`: what was written under which key, and what it says."""

    def __init__(self, faults: FaultList) -> None:
        self.faults = faults
        self.written: dict[str, str] = {}
        self.values: dict[str, Any] = {}

    def word(self, name: str) -> str:
        if name in self.written:
            return self.written[name]
        keys = {option: f"{_CONF}.{key}" for key, option in _CONF_KEYS.items()}
        keys |= {option: key for key, option in _KEYS.items()}
        return keys.get(name, name)

    def take(
        self,
        body: Mapping[Any, Any],
        keys: Mapping[str, str],
        where: str,
        known: tuple[str, ...] = (),
    ) -> None:
        for key, value in body.items():
            if key in known or value is None:
                continue
            shown = where + shorten(str(key))
            if key not in keys:
                near = nearest(str(key), keys)
                advice = f"; did you mean {near}?" if near else ""
                self.faults.add(shown, f"unknown key{advice}")
            else:
                self._take_one(keys[key], shown, value)

    def _take_one(self, name: str, shown: str, value: object) -> None:
        read = OPTIONS[name].read
        assert read is not None, name
        if isinstance(value, bool) or not isinstance(value, str | int):
            self.written.setdefault(name, shown)
            self.faults.add(shown, "must be a text or a whole number")
            return
        text = str(value) if isinstance(value, str) or abs(value) < 10**18 else "a huge number"
        found = self.faults.read(shown, text, read)
        if name in self.values and found is not None and self.values[name] != found:
            self.faults.add(shown, f"contradicts {self.written[name]}", text)
        self.written.setdefault(name, shown)
        if found is not None and not (found == 0 and name in COUNTS):
            self.values[name] = found


# --- and back --------------------------------------------------------------------------------


def render(spec: JobSpec) -> dict[str, Any]:
    """The body that means this spec. Raises ValueError for what this form cannot express."""
    check_expressible(spec)
    key_of = {option: key for key, option in _KEYS.items()}
    body: dict[str, Any] = {
        "jobName": spec.name,
        "jobType": JOB_TYPE,
        "startCMD": spec.entry,
        "clusterName": spec.cluster,
        "groupName": spec.group,
        "jobAuth": spec.annotations.get("permission", "private"),
        "jobConf": config_ini.render(spec.env),
        _CONF: _render_conf(spec),
    }
    for name, note in NOTES.items():
        if name in key_of and note in spec.annotations:
            body[key_of[name]] = spec.annotations[note]
    version = spec.annotations.get(CUSTOM_VERSION, "")
    body["jobVersion"] = version or spec.runtime
    body["versionImageAddr"] = spec.runtime if version else ""
    if spec.may_borrow:
        body["isAutoOverSell"] = 1
    return {key: value for key, value in body.items() if value != ""}


def _render_conf(spec: JobSpec) -> dict[str, Any]:
    trainer, servers = spec.trainers, spec.role(Role.PSERVER)
    launcher = spec.annotations.get(LAUNCHER, "")
    count = {"mpi": "mpiNodes", "slurm": "slurmNodes"}.get(launcher, "k8sTrainersCount")
    conf: dict[str, Any] = {
        "clusterName": spec.cluster,
        count: trainer.replicas,
        "k8sCpuCores": trainer.resources.cpu_milli // 1000,
        "k8sMemory": format_memory(trainer.resources.memory_bytes),
        "k8sGpuCards": trainer.resources.gpu,
        "k8sGpuType": spec.annotations.get("gpu-type", ""),
        "k8sPriority": spec.priority.word,
        "k8sIsLocal": int(spec.mode == Mode.SINGLE),
    }
    if spec.mode != Mode.SINGLE:
        conf["distributeJobType"] = "PSERVER" if servers else "NCCL2"
    if servers:
        conf["k8sPserversCount"] = servers.replicas
        conf["k8sPscpuCores"] = servers.resources.cpu_milli // 1000
        conf["k8sPsmemory"] = format_memory(servers.resources.memory_bytes)
    if spec.wall_time_s:
        conf["k8sWalltime"] = format_duration(spec.wall_time_s)
    return {key: value for key, value in conf.items() if value != ""}
