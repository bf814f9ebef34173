"""What a plan is made of: what exists of a job, the changes to make, and the whole answer.

`planning` makes them, `acting` carries them out, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paddlecloud.controller.identity import Json
from paddlecloud.core.actions import Event

PODS, SERVICES, CONFIG_MAPS = "pods", "services", "configmaps"


@dataclass(frozen=True, slots=True)
class Create:
    plural: str
    body: Json


@dataclass(frozen=True, slots=True)
class Replace:
    plural: str
    body: Json  # with the version it was made from


@dataclass(frozen=True, slots=True)
class Delete:
    plural: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class End:
    """Stop a pod but keep it: its deadline is set to now, and its log can still be read."""

    name: str
    uid: str
    reason: str


@dataclass(frozen=True, slots=True)
class Nudge:
    """Have the kubelet look at a pod again at once."""

    name: str
    uid: str


Action = Create | Replace | Delete | End | Nudge


@dataclass(frozen=True, slots=True)
class Children:
    """What exists under the job's names in its namespace, whoever owns it."""

    pods: Sequence[Json] = ()
    services: Sequence[Json] = ()
    config_map: Json | None = None  # the peers
    gate: Json | None = None  # what workers wait for until the servers listen
    pod_group: Json | None = None  # of the job's name, for Volcano
    runtime: Json | None = None  # what is put in front of commands


@dataclass(frozen=True, slots=True)
class Plan:
    actions: tuple[Action, ...] = ()
    status: Json | None = None  # None: leave it as it is
    events: tuple[Event, ...] = ()
    wake_after_s: float | None = None
