"""The JSON that travels between server and clients, as types.

The server's route table names these classes and its OpenAPI file is generated from them; the SDK
reads answers by them. They are types only: nothing here checks a value or converts one. Times are
RFC 3339 in UTC (`2026-11-15T07:52:45.120Z`).
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class FaultShape(TypedDict):
    """One thing wrong with an input, in the words the user wrote."""

    field: str
    problem: str
    value: str


class ErrorShape(TypedDict):
    """Every refusal. `code` is stable, `message` is for people, `hint` says what to do."""

    code: str
    message: str
    hint: str
    field: str
    faults: NotRequired[list[FaultShape]]


class LoginBody(TypedDict):
    username: str
    password: str


class TokenShape(TypedDict):
    token: str


class AmountShape(TypedDict):
    """Quantities as users write them: cpu `500m`, memory `10Gi`, gpu whole cards."""

    cpu: str
    memory: str
    gpu: int


class CapacityShape(TypedDict):
    cpu: str
    memory: str
    gpu: int
    cores: int
    free: AmountShape


class JobTotalsShape(TypedDict):
    live: int
    queued: int
    running: int


class RestartShape(TypedDict):
    """When the server was last found ended, and how it had ended."""

    at: str
    reason: str


class FileServiceShape(TypedDict):
    """Where files go fastest: `url`, or this host at `port`; the same routes on this server are
    relayed there. `state` is starting, running, restarting, stopping, off or outside (runs
    elsewhere). `promises` says what the storage beneath it does, where that is known."""

    port: int
    url: str
    state: str
    promises: str


class StatusShape(TypedDict):
    """The platform at a glance. `capacity` is null when the engine does not answer in time,
    `supervisor_pid` when nobody would start the server again."""

    version: str
    pid: int
    supervisor_pid: int | None
    restarts: int
    last_restart: RestartShape | None
    endpoint: str
    engine: str
    cluster: str
    account: str
    capacity: CapacityShape | None
    notes: list[str]
    jobs: JobTotalsShape
    pfs: FileServiceShape


class StorageShape(TypedDict):
    """What an account may store; null = no limit."""

    bytes: int | None
    files: int | None


class WhoamiShape(TypedDict):
    """`uid` is what its files belong to where the platform runs as root. `job_id` is for file
    servers and always empty: a job's own token reaches its job and no files."""

    name: str
    id: int
    admin: bool
    uid: int | None
    clusters: list[str]
    storage: StorageShape
    job_id: str


class PackageShape(TypedDict):
    digest: str
    files: int
    bytes: int


class RoleCountShape(TypedDict):
    wanted: int
    running: int
    succeeded: int
    failed: int


class ExitShape(TypedDict):
    cause: Literal["exited", "signaled", "out_of_memory", "start_failed"]
    code: int
    signal: int
    message: str


class FailureShape(TypedDict):
    """The first thing that went wrong in a run."""

    replica: str
    cause: Literal["exited", "signaled", "out_of_memory", "start_failed"]
    code: int
    signal: int
    message: str
    at: str | None


class JobShape(TypedDict):
    """A job as lists show it. `cpu`, `memory`, `gpu` are of the whole job; `group` is whose quota
    it counts against, empty if that group is gone. `kill` is null unless the job has been asked to
    end and lives: then `asked`, and `stopping` once its replicas have been told. Which place a
    waiting job has in the queue is told by explain, which asks the planner."""

    id: str
    name: str
    run: int
    phase: str
    reason: str
    account: str
    group: str
    cluster: str
    mode: str
    priority: str
    submitted_at: str
    started_at: str | None
    ended_at: str | None
    revision: int
    roles: dict[str, RoleCountShape]
    granted: int
    cpu: str
    memory: str
    gpu: int
    restarts: int
    max_restarts: int
    package: str
    output: str
    kill: Literal["asked", "stopping"] | None
    failure: FailureShape | None


class JobWithSpecShape(JobShape):
    spec: dict[str, Any]


class JobListShape(TypedDict):
    """Newest first. `next` is the cursor of the following page; `revision` goes to /changes."""

    items: list[JobShape]
    next: str | None
    revision: int


class EffectiveShape(TypedDict):
    trainers: int
    pservers: int
    mode: str
    gpu_total: int
    wall_time_s: int
    priority: str


class DryRunShape(TypedDict):
    spec: dict[str, Any]
    effective: EffectiveShape
    starts: Literal["now", "later"]
    reason: str


class RunShape(TypedDict):
    run: int
    phase: str
    reason: str
    package: str
    submitted_at: str
    started_at: str | None
    ended_at: str | None
    restarts: int
    failure: FailureShape | None


class RunListShape(TypedDict):
    items: list[RunShape]


class ReplicaShape(TypedDict):
    name: str
    role: str
    index: int
    run: int
    attempt: int
    state: str
    address: str
    node: str
    started_at: str | None
    ended_at: str | None
    exit: ExitShape | None
    stop_asked: bool  # the platform stopped it, so its exit is no failure


class ReplicaListShape(TypedDict):
    items: list[ReplicaShape]


class EventShape(TypedDict):
    seq: int
    at: str
    run: int
    reason: str
    message: str
    severity: str
    replica: str


class EventListShape(TypedDict):
    items: list[EventShape]
    next: int | None


class HolderShape(TypedDict):
    job: str
    account: str
    amount: str


class BlockerShape(TypedDict):
    resource: str
    needed: str
    free: str
    holders: list[HolderShape]


class RemedyShape(TypedDict):
    change: str
    effect: str


class ExplainShape(TypedDict):
    """Why a job waits. When `waiting` is false only the first six keys are there. `group_stands`
    says what its group holds, is guaranteed and may hold; `rule` which rule makes it wait."""

    name: str
    id: str
    phase: str
    since: str
    waiting: bool
    reason: NotRequired[str]
    position: NotRequired[int]
    queue_length: NotRequired[int]
    needs: NotRequired[str]
    blockers: NotRequired[list[BlockerShape]]
    ahead: NotRequired[list[str]]
    start_earliest_s: NotRequired[float | None]
    start_latest_s: NotRequired[float | None]
    start_basis: NotRequired[str]
    remedies: NotRequired[list[RemedyShape]]
    group: NotRequired[str]
    group_stands: NotRequired[str]
    rule: NotRequired[str]


class CancelBody(TypedDict):
    reason: NotRequired[str]


class MoveShape(TypedDict):
    """`replica` is trainer-1 or <job>-trainer-1, `host` where it is now (its address or node)."""

    replica: str
    host: str


class ScaleBody(TypedDict):
    trainers: int  # between the least and the most the job was given


class MoveBody(TypedDict):
    replicas: list[MoveShape]


class ChangesShape(TypedDict):
    revision: int


class LimitsShape(TypedDict):
    """null = no limit."""

    cpu: str | None
    memory: str | None
    gpu: int | None
    replicas: int | None
    storage: str | None
    files: int | None


class UsedShape(TypedDict):
    cpu: str
    memory: str
    gpu: int
    replicas: int


class QuotaShape(TypedDict):
    limits: LimitsShape
    used: UsedShape


class LimitsBody(TypedDict):
    """What is left out or null is unlimited; storage and files left out stay as they are."""

    cpu: NotRequired[str | int | float | None]
    memory: NotRequired[str | int | None]
    gpu: NotRequired[int | None]
    replicas: NotRequired[int | None]
    storage: NotRequired[str | int | None]
    files: NotRequired[int | None]


class AccountShape(TypedDict):
    name: str
    id: int
    admin: bool
    enabled: bool
    created_at: str
    limits: LimitsShape


class AccountListShape(TypedDict):
    items: list[AccountShape]


class AccountBody(TypedDict):
    """Without a password the account can only be used through tokens and certificates."""

    name: str
    password: NotRequired[str]
    admin: NotRequired[bool]


class TokenBody(TypedDict):
    """`expires_in_s` left out: the token lives until it is revoked."""

    expires_in_s: NotRequired[int]


class RuntimeShape(TypedDict):
    name: str
    python: str
    default: bool
    has_paddle_train: bool


class RuntimeListShape(TypedDict):
    items: list[RuntimeShape]


class RuntimeBody(TypedDict):
    name: str
    python: str
    default: NotRequired[bool]
