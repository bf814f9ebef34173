"""What both custom resources decode to, and how values written by hand in YAML are read.

`PaddleJob` and `TrainingJob` objects in the wild were accepted by schemas without enums, so a
reader here prefers understanding to refusing: a value whose intent is clear is taken and noted as
a warning, which the operator shows as a condition and an event. Only what can never work is a
fault. Called by the two forms; pure, and it knows nothing of pods that already exist.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.resources import BadQuantity, Resources, parse_cpu, parse_gpus, parse_memory
from paddlecloud.forms.faults import FaultList, nearest, shorten

GPU_NAMES = ("nvidia.com/gpu", "amd.com/gpu", "baidu.com/gpu", "alpha.kubernetes.io/nvidia-gpu")


class Intranet(StrEnum):
    """By what the replicas of a job reach each other."""

    POD_IP = "PodIP"
    SERVICE = "Service"
    HOST = "Host"


@dataclass(frozen=True, slots=True)
class GangPolicy:
    """`schedulingPolicy`: what a Volcano pod group is made from."""

    min_available: int = 0  # 0: every replica
    queue: str = ""
    priority_class: str = ""
    min_resources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SampleSet:
    """`sampleSetRef`: a claim of this name, mounted into the training container."""

    claim: str
    mount_path: str


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job as a custom resource says it: the spec every engine knows, and what only pods have."""

    spec: JobSpec
    intranet: Intranet = Intranet.POD_IP
    with_gloo: int = 0  # 0 off, 1 trainers, 2 trainers and servers
    elastic: bool = False  # Paddle's own elastic launcher
    suspend: bool = False
    gang: GangPolicy | None = None
    samples: SampleSet | None = None
    port: int = 0  # the first of every replica; 0: the operator's own choice
    v2_ports: tuple[int, int] = (1, 1)  # of servers of the v1 and v2 API: for dense, for sparse


@dataclass(frozen=True, slots=True)
class Warned:
    """Something understood but not written as it should be."""

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


class Reading:
    """The faults and warnings found so far while one object is read."""

    def __init__(self) -> None:
        self.faults = FaultList()
        self.warnings: list[Warned] = []

    def warn(self, where: str, problem: str) -> None:
        self.warnings.append(Warned(where, problem))

    # --- values ------------------------------------------------------------------------------

    def mapping(self, where: str, value: object) -> Mapping[str, Any]:
        """The object written there; an empty one and a fault if it is something else."""
        if value is None:
            return {}
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return value
        self.faults.add(where, "must be an object", _shown(value))
        return {}

    def whole(self, where: str, value: object, default: int, low: int, high: int) -> int:
        """A whole number; one in quotes is understood, anything else is a fault."""
        if value is None:
            return default
        number = _as_whole(value)
        if number is None or not low <= number <= high:
            problem = f"must be a whole number from {low} to {high}"
            self.faults.add(where, problem, _shown(value))
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            self.warn(where, f"is written as {_shown(value)}; read as {number}")
        return number

    def choice(self, where: str, value: object, allowed: Mapping[str, Any], default: str) -> Any:
        """One of the words; a misspelt one is understood if it is close to exactly one."""
        if value is None or value == "":
            return allowed[default]
        text = value if isinstance(value, str) else _shown(value)
        if text in allowed:
            return allowed[text]
        squeezed = {_squeeze(word): word for word in allowed}
        # Stricter than advice would be: here the guess is acted upon.
        close = difflib.get_close_matches(_squeeze(text)[:100], list(squeezed), 2, cutoff=0.75)
        meant = squeezed.get(_squeeze(text)) or (squeezed[close[0]] if len(close) == 1 else None)
        words = ", ".join(word for word in allowed if word)
        if meant is None:
            self.warn(where, f"{shorten(text)} is none of {words}; {default} is used")
            return allowed[default]
        self.warn(where, f"{shorten(text)} is read as {meant}; the words are {words}")
        return allowed[meant]

    def flag(self, where: str, value: object) -> bool:
        if value is None:
            return False
        if isinstance(value, bool):
            return value
        word = _shown(value).strip().lower()
        if word in ("true", "yes", "on", "1", "false", "no", "off", "0", ""):
            meant = word in ("true", "yes", "on", "1")
            self.warn(where, f"is written as {_shown(value)}; read as {str(meant).lower()}")
            return meant
        self.faults.add(where, "must be true or false", _shown(value))
        return False

    def text(self, where: str, value: object) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        self.faults.add(where, "must be a text", _shown(value))
        return ""

    def unknown_keys(self, where: str, body: Mapping[str, Any], known: Iterable[str]) -> None:
        names = list(known)
        for key in body:
            if key not in names:
                near = nearest(key, names)
                advice = f"; did you mean {near}?" if near else ""
                self.warn(f"{where}.{shorten(key)}", f"is not known and is ignored{advice}")

    # --- pod templates -----------------------------------------------------------------------

    def template(self, where: str, value: object) -> Mapping[str, Any]:
        """A pod template with at least one container, whose parts that are added to can be added
        to; the rest is the API server's to judge."""
        template = self.mapping(where, value)
        metadata = self.mapping(f"{where}.metadata", template.get("metadata"))
        for key in ("labels", "annotations"):
            self.mapping(f"{where}.metadata.{key}", metadata.get(key))
        pod = self.mapping(f"{where}.spec", template.get("spec"))
        for key in ("volumes", "initContainers"):
            self.objects(f"{where}.spec.{key}", pod.get(key))
        if not pod.get("containers"):
            self.faults.add(f"{where}.spec.containers", "needs at least one container")
        containers = self.objects(f"{where}.spec.containers", pod.get("containers"))
        for number, container in enumerate(containers):
            for key in ("env", "envFrom", "ports", "volumeMounts"):
                place = f"{where}.spec.containers[{number}].{key}"
                for index, one in enumerate(self.objects(place, container.get(key))):
                    if key == "env":
                        self.text(f"{place}[{index}].name", one.get("name"))
        return template

    def objects(self, where: str, value: object) -> list[Mapping[str, Any]]:
        """The objects of a list; none and a fault if it is something else."""
        if value is None:
            return []
        if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
            return value
        self.faults.add(where, "must be a list of objects", _shown(value))
        return []

    def needs(self, where: str, template: Mapping[str, Any]) -> Resources:
        """What one pod of this template asks for: its requests, or its limits where there are
        none, as the scheduler counts them."""
        total = Resources()
        pod = template.get("spec")
        containers = pod.get("containers") if isinstance(pod, Mapping) else None
        for number, container in enumerate(containers if isinstance(containers, list) else ()):
            if isinstance(container, Mapping):
                place = f"{where}.spec.containers[{number}].resources"
                total += self.container_needs(place, container.get("resources"))
        return total

    def container_needs(self, where: str, value: object) -> Resources:
        asked = self.mapping(where, value)
        limits = self.mapping(f"{where}.limits", asked.get("limits"))
        requests = {**limits, **self.mapping(f"{where}.requests", asked.get("requests"))}

        def amount(name: str, read: Any) -> int:
            if name not in requests:
                return 0
            try:
                return int(read(_shown(requests[name])))
            except BadQuantity as error:
                self.faults.add(f"{where}.{name}", str(error), _shown(requests[name]))
                return 0

        return Resources(
            amount("cpu", parse_cpu),
            amount("memory", parse_memory),
            sum(amount(name, parse_gpus) for name in GPU_NAMES),
        )


def _as_whole(value: object) -> int | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**15:
        return int(value)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
        return int(value)
    return None


def _squeeze(word: str) -> str:
    return "".join(char for char in word.lower() if char.isalnum())


def _shown(value: object) -> str:
    """A value in a message; never the whole inside of something large."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return shorten(str(value)) if not isinstance(value, int) or abs(value) < 10**18 else "huge"
    if value is None:
        return "nothing"
    return "a list" if isinstance(value, list) else "an object"
