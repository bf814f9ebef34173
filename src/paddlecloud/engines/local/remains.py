"""Finds and kills what an attempt may have left running.

With a PID namespace there is nothing to find: the kernel ends it with its process 1. Without
one, processes are told by their cgroup, by the cookie in their environment, by their session,
and by descent from the shim, which adopts every orphan. Each call is one round; callers come
back until nothing is found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

_PATIENCE_S = 5.0  # a process stuck in the kernel is left to it
_PAUSE_S = 0.002


def _processes() -> Iterator[int]:
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != own:
            yield int(name)


def carries(pid: int, cookie: str) -> bool:
    """Whether this process was started with the cookie in its environment."""
    word = f"PADDLECLOUD_COOKIE={cookie}".encode()
    return word in _environment(pid).split(b"\0")


def _environment(pid: int) -> bytes:
    """Empty when the process is gone or not ours to read. A thread that has ended has none, and
    to read that is forbidden to all but root."""
    try:
        for thread in _threads(pid):
            with contextlib.suppress(OSError):
                if found := Path(f"/proc/{pid}/task/{thread}/environ").read_bytes():
                    return found
    except OSError:
        pass
    return b""


def _threads(pid: int) -> list[str]:
    return os.listdir(f"/proc/{pid}/task")


def carriers(cookie: str) -> set[int]:
    return {pid for pid in _processes() if carries(pid, cookie)}


def _parent_and_session(pid: int) -> tuple[int, int] | None:
    """None when it has ended. One whose first thread has ended shows as a zombie, though
    the others go on."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X") and len(_threads(pid)) < 2:
            return None
    except OSError:
        return None
    return int(fields[1]), int(fields[3])


def relatives(leader: int) -> set[int]:
    """Everything in the sessions of the leader's descendants, and those descendants."""
    parents, sessions = {}, {}
    for pid in _processes():
        found_now = _parent_and_session(pid)
        if found_now is not None:
            parents[pid], sessions[pid] = found_now
    found = {pid for pid, session in sessions.items() if session == leader}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found or parent == leader}
        if more <= found:
            return found - {leader}
        found |= more


def is_running(pid: int) -> bool:
    return _parent_and_session(pid) is not None


def kill_all(pids: Iterable[int]) -> set[int]:
    """KILL each; returns those that were still running."""
    found = {pid for pid in pids if is_running(pid)}
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    return found


def end_family(cookie: str) -> None:
    """KILL all that carry the cookie and see them gone, and with them their lock.

    For an attempt whose program was not started. They are held still first: bubblewrap killed
    between making its sandbox's first process and releasing it leaves that one waiting for ever.
    """
    deadline_s = time.monotonic() + _PATIENCE_S
    while (found := carriers(cookie)) and time.monotonic() < deadline_s:
        for pid in found:
            try:
                os.kill(pid, signal.SIGSTOP)
            except OSError:
                continue
        kill_all(found | carriers(cookie))
        time.sleep(_PAUSE_S)
