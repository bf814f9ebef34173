"""Who a job is on a cluster, and the fixed names and labels of everything made for it.

Names are a function of job, role and index, never drawn: creating something twice is a refusal,
not a second one. The owner's uid tells a job from an earlier one of the same name.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

from paddlecloud.core.contract import DEFAULT_PORTS_NUM
from paddlecloud.core.jobspec import Role
from paddlecloud.core.topology import role_from_word
from paddlecloud.forms.custom_resources import ClusterJob, Intranet
from paddlecloud.kube.kinds import PADDLE_JOB, Kind, kind_named
from paddlecloud.kube.words import (
    ACCOUNT_ANNOTATION,
    ARCHIVE_ANNOTATION,
    ATTEMPT_LABEL,
    INDEX_LABEL,
    JOB_ID_LABEL,
    JOB_LABEL,
    JOB_NAME_ANNOTATION,
    KIND_LABEL,
    POD_LABEL,
    ROLE_LABEL,
    RUNTIME_ANNOTATION,
)

Json = dict[str, Any]

BASE_PORT = 36000
# On the host network jobs share the ports of a node: a block of its own for each, where possible.
FIRST_HOST_PORT, HOST_BLOCKS = 35000, 1500


@dataclass(frozen=True, slots=True)
class Identity:
    """A job's place in the cluster."""

    namespace: str
    name: str
    uid: str
    kind: Kind = PADDLE_JOB
    # What the server that made the object calls it; the object's own where a person did.
    known_as: str = ""
    platform_id: str = ""
    user: str = ""
    is_archived: bool = False  # its pods wait until their logs are stored
    runtime_wish: str = ""  # "true" and "false" are understood; see `in_front`

    @property
    def job_id(self) -> str:
        return "job-" + self.uid.replace("-", "")[:16]

    @property
    def owner(self) -> Json:
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.name,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    @property
    def labels(self) -> dict[str, str]:
        return {JOB_LABEL: self.name, KIND_LABEL: self.kind.name}

    def metadata(self, name: str) -> Json:
        """What the objects made for this job have in common."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {**self.labels, POD_LABEL: name},
            "ownerReferences": [self.owner],
        }

    def pod_name(self, role: Role, index: int) -> str:
        return f"{self.name}-{self.kind.role_word(role)}-{index}"

    @property
    def peers_name(self) -> str:
        """Of the ConfigMap with the peers."""
        return f"{self.name}{self.kind.suffix}"

    @property
    def group_name(self) -> str:
        """Of Volcano's pod group; for a PaddleJob the name that people give one made by hand."""
        return f"{self.name}{self.kind.suffix}"

    @property
    def gate_name(self) -> str:
        """Of the ConfigMap that workers wait for until the servers listen.

        The dot keeps it from being the name of another job's own.
        """
        return f"{self.peers_name}.servers"

    @property
    def runtime_name(self) -> str:
        """Of the ConfigMap with our runtime, where it is used."""
        return f"{self.peers_name}.runtime"

    def base_port(self, job: ClusterJob) -> int:
        if job.intranet != Intranet.HOST:
            return job.port or BASE_PORT
        block = zlib.crc32(self.uid.encode()) % HOST_BLOCKS
        return FIRST_HOST_PORT + block * DEFAULT_PORTS_NUM


def identity_of(body: Json, kind: Kind = PADDLE_JOB) -> Identity:
    metadata = body["metadata"]
    labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return Identity(
        metadata.get("namespace", ""),
        metadata["name"],
        metadata["uid"],
        kind,
        known_as=notes.get(JOB_NAME_ANNOTATION, ""),
        platform_id=labels.get(JOB_ID_LABEL, ""),
        user=notes.get(ACCOUNT_ANNOTATION, ""),
        is_archived=notes.get(ARCHIVE_ANNOTATION) == "true",
        runtime_wish=notes.get(RUNTIME_ANNOTATION, ""),
    )


def kind_of_job(child: Json) -> Kind:
    """The kind of the job that this was made for."""
    labels = child["metadata"].get("labels") or {}
    return kind_named(labels.get(KIND_LABEL, "")) or PADDLE_JOB


def is_owned_by(body: Json, uid: str) -> bool:
    owners = body["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid for owner in owners)


def slot_of(pod: Json) -> tuple[Role, int, int] | None:
    """Role, index and attempt of a pod of ours, by its labels; None if they are not ours."""
    labels = pod["metadata"].get("labels") or {}
    role = role_from_word(labels.get(ROLE_LABEL, ""))
    index, attempt = labels.get(INDEX_LABEL, ""), labels.get(ATTEMPT_LABEL, "")
    if role is None or not index.isdecimal() or not attempt.isdecimal():
        return None
    return role, int(index), int(attempt)
