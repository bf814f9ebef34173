"""`Kept`: one attempt as this process knows it. All of it can be read again from its directory."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlecloud.core.observed import ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.engines.local.attempts import AttemptDir, Process, Result
from paddlecloud.engines.local.cgroups import Group
from paddlecloud.engines.local.logs import LogFile


@dataclass(slots=True, eq=False)
class Kept:
    key: ReplicaKey
    dir: AttemptDir
    cookie: str = ""
    address: str = ""
    memory_bytes: int = 0
    is_sandboxed: bool = False
    group: Group | None = None
    started_at: float | None = None
    result: Result | None = None  # set once; nothing changes after it
    stopping: bool = False
    is_adopted: bool = False  # begun by a predecessor
    process: Process | None = None  # the one we are told about: bubblewrap's, or the shim itself
    shim: Process | None = None
    pidfd: int = -1  # of `process`
    shim_fd: int = -1
    info_fd: int = -1
    info: bytes = b""  # what bubblewrap said so far on `info_fd`
    rounds: int = 0  # of looking whether it is really over
    beginning: threading.Lock = field(default_factory=threading.Lock)  # held while it is begun

    @classmethod
    def from_disk(cls, key: ReplicaKey, directory: AttemptDir, launch: dict[str, Any]) -> Kept:
        dirs = tuple(Path(path) for path in launch["cgroup_dirs"])
        return cls(
            key,
            directory,
            cookie=launch["cookie"],
            address=launch["address"],
            memory_bytes=launch["memory_bytes"],
            is_sandboxed=launch["is_sandboxed"],
            group=Group(dirs) if dirs else None,
            result=directory.read_result(),
            stopping=directory.read_stop() is not None,
        )

    @property
    def log(self) -> LogFile:
        return LogFile(self.dir.log, self.dir.dropped)

    def observed(self) -> ReplicaObserved:
        result = self.result
        state = ReplicaState.PENDING if self.started_at is None else ReplicaState.RUNNING
        return ReplicaObserved(
            key=self.key,
            state=state if result is None else result.state,
            started_at=self.started_at if result is None else result.started_at,
            ended_at=None if result is None else result.ended_at,
            exit=None if result is None else result.exit,
            stopping=self.stopping,
            address=self.address,
        )
