"""The embedded platform of this machine, seen from outside: its state directory and its server.

It promises: a server or supervisor counts as running only while it holds its lock in the state
directory, so a left-over file or a recycled pid is never mistaken for one. Called by `up`, `down`,
`status` and `platform_life`, which starts and stops it. It never writes into the state directory.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from paddlecloud.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.sdk.config import Profile

POLL_S = 0.005
# A server that holds the lock but has written no address yet is starting, or hangs.
SETTLE_S = 20.0


class Running:
    """A live server: who it is and where it answers."""

    def __init__(self, state: str, pid: int, endpoint: str, version: str, engine: str) -> None:
        self.state = state
        self.pid = pid
        self.endpoint = endpoint
        self.version = version
        self.engine = engine


def state_directory(given: str = "") -> str:
    path = given or os.environ.get("PADDLECLOUD_HOME") or os.path.join("~", ".paddlecloud")
    return os.path.abspath(os.path.expanduser(path))


def require_linux() -> None:
    if sys.platform != "linux":
        raise Unavailable(
            "the embedded platform runs on Linux only",
            hint="the other commands work here: set `endpoint:` in ~/.paddle/config",
        )


def log_path(state: str) -> str:
    return os.path.join(state, "run", "server.log")


def lock_holder(state: str, role: str = "server") -> int:
    """The pid of the server (or `supervisor`) of this state directory; 0 when there is none."""
    import fcntl

    try:
        with open(os.path.join(state, "run", f"{role}.lock"), "r+", encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = lock.read().strip()
                return int(text) if text.isdigit() else -1
    except (FileNotFoundError, PermissionError):
        return 0
    return 0


def running(state: str) -> Running | None:
    """The server of this state directory, if one runs and has said where."""
    if sys.platform != "linux":
        return None
    pid = lock_holder(state)
    if not pid:
        return None
    facts = _record(state, "server")
    if facts.get("pid") != pid:
        return None
    parent = facts.get("supervisor_pid")
    if parent and lock_holder(state, "supervisor") != parent:
        return None  # it dies with its supervisor, at any moment now
    return Running(
        state,
        pid,
        str(facts.get("endpoint", "")),
        str(facts.get("version", "")),
        str(facts.get("engine", "")),
    )


def _record(state: str, role: str) -> dict[str, Any]:
    try:
        with open(os.path.join(state, "run", f"{role}.json"), encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def supervision(state: str) -> dict[str, Any] | None:
    """What the supervisor of this state directory wrote down last; None when none runs."""
    if sys.platform != "linux":
        return None
    pid = lock_holder(state, "supervisor")
    facts = _record(state, "supervisor")
    return facts if pid and facts.get("pid") == pid else None


def settled(state: str) -> Running | None:
    """As `running`, but waits for a server that is just starting, and has one that waits for its
    next start tried at once."""
    deadline_s = time.monotonic() + SETTLE_S
    was_told = False
    while lock_holder(state) or lock_holder(state, "supervisor"):
        found = running(state)
        if found is not None:
            return found
        if not was_told and (facts := supervision(state)) and not lock_holder(state):
            os.kill(facts["pid"], signal.SIGUSR1)
            was_told = True
        if time.monotonic() > deadline_s:
            raise not_there(state)
        time.sleep(POLL_S)
    return None


def not_there(state: str) -> Unavailable:
    """The platform runs, its server does not answer: what is known of that."""
    hint = f"see {log_path(state)}"
    facts = supervision(state)
    if pid := lock_holder(state):
        return Unavailable(f"a server (pid {pid}) holds {state} but does not answer", hint=hint)
    ended = facts["parts"]["server"]["last_end"] if facts else ""
    return Unavailable(
        f"the server of {state} ended ({ended or 'unknown how'}) and is being tried again",
        hint=hint,
    )


# --- logging in ------------------------------------------------------------------------------


def bootstrap_token(state: str) -> str:
    """The token the server left for its first administrator; empty when there is none."""
    try:
        with open(os.path.join(state, "secrets", "bootstrap-token"), encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def renew_token(state: str, account: str) -> None:
    """Have the platform leave a new token for its administrator; only the state's owner can."""
    import subprocess

    command = [sys.executable, "-m", "paddlecloud.server.bootstrap"]
    done = subprocess.run(
        [*command, "--state", state, "--account", account],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise Unavailable(f"no new token could be made: {lines[-1].removeprefix('error: ')}")


def ca_path(state: str) -> str:
    """The platform's own CA, there once it has served TLS."""
    path = os.path.join(state, "secrets", "ca.pem")
    return path if os.path.exists(path) else ""


def profile_at(found: Running, name: str, account: str) -> Profile:
    from paddlecloud.sdk.config import Profile

    return Profile(
        name,
        found.endpoint,
        username=account,
        token=bootstrap_token(found.state),
        cacert=ca_path(found.state) if found.endpoint.startswith("https") else "",
    )
