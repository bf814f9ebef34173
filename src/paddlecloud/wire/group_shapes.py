"""The JSON about groups, as types; the rest is in `wire.shapes`.

The same rules: types only, times in RFC 3339, quantities as users write them.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class GroupAmountsShape(TypedDict):
    """null: nothing guaranteed, no limit, or not known."""

    cpu: str | None
    memory: str | None
    gpu: int | None
    replicas: int | None


class GroupShape(TypedDict):
    """`own`: it is an account's own. `role` is the caller's, empty for an administrator who is not
    in it. `beyond` is what it holds of what nobody or somebody else is guaranteed."""

    name: str
    own: bool
    role: str
    weight: int
    clusters: list[str]
    guarantee: GroupAmountsShape
    limit: GroupAmountsShape
    used: GroupAmountsShape
    beyond: GroupAmountsShape
    created_at: str


class GroupListShape(TypedDict):
    items: list[GroupShape]


class MemberShape(TypedDict):
    account: str
    role: Literal["owner", "member", "viewer"]


class GroupJobsShape(TypedDict):
    running: int
    waiting: int


class GroupInfoShape(GroupShape):
    """`idleQuota` is what the group could still start on: the rest of its limit, as far as it is
    free. `notes` says when more is guaranteed than there is."""

    idleQuota: GroupAmountsShape
    members: list[MemberShape]
    jobs: GroupJobsShape
    notes: list[str]


class GroupAmountsBody(TypedDict):
    """What is left out stays as it is, null removes it."""

    cpu: NotRequired[str | int | float | None]
    memory: NotRequired[str | int | None]
    gpu: NotRequired[int | None]
    replicas: NotRequired[int | None]


class GroupQuotaBody(TypedDict):
    """`clusters` empty: every one."""

    guarantee: NotRequired[GroupAmountsBody]
    limit: NotRequired[GroupAmountsBody]
    weight: NotRequired[int]
    clusters: NotRequired[list[str]]


class GroupBody(GroupQuotaBody):
    """`owner` is the name of an account."""

    name: str
    owner: NotRequired[str]


class MemberBody(TypedDict):
    account: str
    role: NotRequired[Literal["owner", "member", "viewer"]]


class LeavingBody(TypedDict):
    account: str
