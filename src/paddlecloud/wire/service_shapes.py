"""The job service of the second generation (`/v1`): bodies and answers, as its clients know them.

Every answer is `{"code": 0, "message": ..., "data": ...}`; `code` is not 0 when it is a refusal,
and the calls about clusters say `msg` instead of `message`.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class SentFileBody(TypedDict):
    """One file, before its job; `encoding` is text (the default) or base64."""

    version: NotRequired[int]
    fileName: str
    type: NotRequired[str]
    content: str
    encoding: NotRequired[str]


class ServiceJobBody(TypedDict):
    """`clusterConf` holds the numbers (`k8sTrainersCount`, ...); docs/guides/job-client.md."""

    jobName: str
    startCMD: str
    jobType: NotRequired[str]
    clusterName: NotRequired[str]
    groupName: NotRequired[str]
    jobAuth: NotRequired[str]
    jobVersion: NotRequired[str]
    versionImageAddr: NotRequired[str]
    jobConf: NotRequired[str]
    clusterConf: NotRequired[dict[str, Any]]
    algoId: NotRequired[str]
    jobTags: NotRequired[str]
    jobRemark: NotRequired[str]
    codeUri: NotRequired[str]
    isAutoOverSell: NotRequired[int | str]


class OrderBody(TypedDict):
    """`opType` is Kill or Rerun."""

    jobIds: list[str]
    opType: str


class DeleteBody(TypedDict):
    jobIds: list[str]


class ServiceAnswer(TypedDict):
    """`data` by the call: `{jobId groupName userId}`, `{jobs: [...]}`, one job, `{jobStatus}`,
    `{jobIds}`."""

    code: int
    message: str
    data: Any


class ClusterAnswer(TypedDict):
    code: int
    msg: str
    data: Any
