"""`Replicas` by real processes on this machine.

The engine's reconcile loop calls create, stop, observe and remove; the log calls serve users.
Truth is on disk (`attempts`): this class holds only what it must to be told of changes, and a
new one made over the same state directory knows as much after `adopt()`. It never decides
whether a replica should run, and nothing it does waits for a replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from paddlecloud.clock import SteadyClock
from paddlecloud.core.errors import Unavailable
from paddlecloud.core.observed import ReplicaKey, ReplicaObserved
from paddlecloud.engines.local import inventory, linux
from paddlecloud.engines.local.attempts import attempt_path, attempts_of_run
from paddlecloud.engines.local.cgroups import find_cgroups, no_cgroups
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.keeping import Keeper
from paddlecloud.engines.local.logs import LogFile
from paddlecloud.engines.local.removal import Remover
from paddlecloud.engines.local.sandbox import Sandbox
from paddlecloud.engines.local.spawning import Spawner, compile_shim, place_library
from paddlecloud.engines.protocols import Launch, LogSlice


class Processes:
    """Implements `protocols.Replicas`. Thread safe."""

    def __init__(self, config: LocalConfig, on_change: Callable[[str], None]) -> None:
        """`on_change(job_id)` is called, from a thread of ours, after an attempt changed."""
        self._config = config
        self._jobs_dir = config.state_dir / "jobs"
        for folder in (self._jobs_dir, *(config.state_dir / name for name in ("live", "sandbox"))):
            # Sandboxes are shown what is theirs; nobody else has business here: who could write in
            # `live` would have us adopt what they like, and who could write in `sandbox` would run
            # in every job. Also for folders of an earlier release.
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
        live = config.state_dir / "live"
        self.clock = SteadyClock(
            config.state_dir / "clock.json",
            linux.boot_id(),
            is_needed=lambda: live.is_dir() and any(live.iterdir()),
        )
        shim_file = compile_shim(config.state_dir)
        library = place_library(config.state_dir)
        self._sandbox = sandbox = Sandbox(config, shim_file, library)
        self._why_plain = "switched off" if config.sandbox == "none" else sandbox.probe()
        if self._why_plain and config.sandbox == "bwrap":
            raise Unavailable(
                f"a sandbox is required and cannot be made: {self._why_plain}",
                hint='install bubblewrap, or set the sandbox to "auto"',
            )
        self._is_sandboxed = not self._why_plain
        self._cgroups = (
            find_cgroups(config.state_dir, config.pids_limit)
            if config.use_cgroups
            else no_cgroups()
        )
        self._remover = Remover(config.state_dir)
        self._keeper = Keeper(
            config,
            Spawner(
                config, shim_file, library, sandbox if self._is_sandboxed else None, self.clock
            ),
            self._cgroups,
            self._remover,
            self.clock,
            is_sandboxed=self._is_sandboxed,
            has_gpus=inventory.count_gpus(config) > 0,
            on_change=on_change,
        )

    # --- Replicas -----------------------------------------------------------------------------

    def create(self, launch: Launch) -> None:
        self._keeper.create(launch)

    def stop(self, key: ReplicaKey, grace_s: float) -> None:
        self._keeper.stop(key, grace_s)

    def observe(self, job_id: str, run: int) -> Sequence[ReplicaObserved]:
        return [kept.observed() for kept in self._keeper.known.of_run(job_id, run)]

    def remove(self, key: ReplicaKey) -> None:
        kept = self._keeper.known.find(key)
        if kept is None or kept.result is None:
            return
        for path in (kept.dir.tmp, kept.dir.files):
            self._remover.remove(path)

    # --- beyond the protocol ------------------------------------------------------------------

    @property
    def sandboxed(self) -> bool:
        """Whether one account's replicas are kept away from another's files."""
        return self._is_sandboxed

    def intents(self, job_id: str, run: int) -> Iterator[tuple[ReplicaKey, dict[str, Any]]]:
        """What each attempt of the run was begun with, from disk."""
        for key, directory in attempts_of_run(self._jobs_dir, job_id, run):
            intent = directory.read_launch()
            if intent is not None:
                yield key, intent

    def adopt(self) -> None:
        """Take over what an earlier platform on this state directory left. Call once, first."""
        self._keeper.adopt()

    def discard_job(self, job_id: str) -> None:
        """Delete everything of a job whose attempts are all over; else raise `Conflict`."""
        self._keeper.discard_job(job_id)

    def close(self) -> None:
        """Stop watching. Replicas live on."""
        self._keeper.close()
        self._remover.close()

    def notes(self) -> tuple[str, ...]:
        """What this machine cannot do, in words for people."""
        notes = []
        if not self._is_sandboxed:
            notes.append(
                f"no sandbox ({self._why_plain}): programs see this machine's files, "
                "/trainer_id and /pfs only by variables, and all jobs must be of one user"
            )
            if not self._cgroups.controls_processes:
                notes.append(
                    "neither sandbox nor pids cgroup: a program that never stops forking can "
                    "outrun the platform when it is stopped"
                )
        elif self._sandbox.filter is None:
            notes.append("sandboxes without a system call filter: not known for this machine")
        if self._is_sandboxed and not linux.can_scope_abstract_sockets():
            notes.append(
                "programs reach this machine's abstract sockets (a desktop's X server has one): "
                "a kernel before 6.12, or without Landlock"
            )
        if not self._cgroups.controls_memory:
            notes.append(
                "memory limits by RLIMIT_DATA of each process only: no writable memory cgroup"
            )
        if not self._cgroups.controls_cpu:
            notes.append("CPU requests are not enforced: no writable cpu cgroup")
        if self._keeper.bounder.holes_fail:
            notes.append(
                f"the file system of {self._config.state_dir} cannot punch holes: a log over its "
                "cap loses all but its head and what is written afterwards"
            )
        return tuple(notes)

    # --- logs ---------------------------------------------------------------------------------

    def log_path(self, key: ReplicaKey) -> Path:
        return attempt_path(self._jobs_dir, key) / "log"

    def _log(self, key: ReplicaKey) -> LogFile:
        path = attempt_path(self._jobs_dir, key)
        return LogFile(path / "log", path / "dropped")

    def _has_ended(self, key: ReplicaKey) -> bool:
        kept = self._keeper.known.find(key)
        return kept is None or kept.result is not None

    def read_log(self, key: ReplicaKey, start: int, limit: int) -> LogSlice:
        ended = self._has_ended(key)  # before reading: what follows is then complete
        return self._log(key).read(start, limit, ended=ended)

    def wait_log(self, key: ReplicaKey, size: int, timeout_s: float) -> None:
        """Return when the log is longer than `size`, has ended, or the time is up."""
        log = self._log(key)

        def is_enough() -> bool:
            return log.size() > size or self._has_ended(key)

        self._keeper.tail.wait(self.log_path(key), is_enough, timeout_s)
