"""The first server's interface: bodies and answers of `/api/v1`, word for word as its clients know
them. What is ours is in `shapes`; both are what the server describes in OpenAPI and is held to.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from paddlecloud.wire.shapes import QuotaShape


class DoneV1(TypedDict):
    """`msg` is "OK" without a slash at the end of the path, empty with it; of logs, the text."""

    code: int
    msg: str


class SubmitBodyV1(TypedDict):
    """Seed 004's body. Further keys of our own are described in docs/guides/api.md."""

    name: NotRequired[str]
    job_package: NotRequired[str]
    parallelism: NotRequired[int]
    cpu: NotRequired[int | str]
    gpu: NotRequired[int]
    memory: NotRequired[str]
    pservers: NotRequired[int]
    pscpu: NotRequired[int | str]
    psmemory: NotRequired[str]
    topology: NotRequired[str]
    entry: NotRequired[str]
    datacenter: NotRequired[str]


class KillBodyV1(TypedDict):
    jobname: str
    rm: NotRequired[bool]


class JobWishV1(TypedDict):
    name: str
    job_package: str
    parallelism: int
    cpu: int | str
    gpu: int
    memory: str
    pservers: int
    pscpu: int | str
    psmemory: str
    topology: str
    entry: str


class JobListV1(TypedDict):
    code: int
    msg: list[JobWishV1]


class ItemsInMsgV1(TypedDict):
    code: int
    msg: list[dict[str, Any]]


class QuotaV1(TypedDict):
    code: int
    msg: QuotaShape


class ObjectListV1(TypedDict):
    """Kubernetes objects in snake_case; `terminating` only with jobs."""

    api_version: str
    kind: str
    items: list[dict[str, Any]]
    terminating: NotRequired[list[str]]


class UserV1(TypedDict):
    code: int
    msg: str
    user: str


class FileListV1(TypedDict):
    code: int
    msg: str
    items: list[str]
