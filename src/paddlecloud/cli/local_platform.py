"""The embedded platform of this machine, seen from outside: its state directory and its server.

It promises: a server counts as running only while it holds the lock of its state directory, so a
left-over file or a recycled pid is never mistaken for one. Called by `up`, `down` and
`runtime install`. It starts and ends processes; it never writes into the state directory except
the server's log.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

from paddlecloud.core.errors import Conflict, InvalidInput, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen

    from paddlecloud.sdk.config import Profile

POLL_S = 0.005
START_TIMEOUT_S = 60.0
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


def lock_holder(state: str) -> int:
    """The pid of the server that holds this state directory; 0 when there is none."""
    import fcntl

    try:
        with open(os.path.join(state, "run", "server.lock"), "r+", encoding="ascii") as lock:
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
    facts = _run_file(state)
    if facts.get("pid") != pid:
        return None
    return Running(
        state,
        pid,
        str(facts.get("endpoint", "")),
        str(facts.get("version", "")),
        str(facts.get("engine", "")),
    )


def _run_file(state: str) -> dict[str, object]:
    try:
        with open(os.path.join(state, "run", "server.json"), encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def settled(state: str) -> Running | None:
    """As `running`, but waits for a server that is just starting."""
    deadline_s = time.monotonic() + SETTLE_S
    while lock_holder(state):
        found = running(state)
        if found is not None:
            return found
        if time.monotonic() > deadline_s:
            raise Unavailable(
                f"a server (pid {lock_holder(state)}) holds {state} but does not answer",
                hint=f"see {log_path(state)}",
            )
        time.sleep(POLL_S)
    return None


# --- starting --------------------------------------------------------------------------------


def server_command(*, state: str, host: str, port: int | None, account: str) -> list[str]:
    command = [sys.executable, "-m", "paddlecloud.server", "--state", state]
    if host:
        command += ["--host", host]
    if port is not None:
        command += ["--port", str(port)]
    if account:
        command += ["--bootstrap-account", account]
    return command


def start(
    command: list[str],
    state: str,
    *,
    is_tls: bool,
    is_detached: bool,
    on_wait: Callable[[float], None] = lambda seconds: None,
) -> tuple[Running, Popen[bytes]]:
    """Start a server and return once it answers; what it said is in the error if it does not."""
    import subprocess

    os.makedirs(os.path.join(state, "run"), mode=0o700, exist_ok=True)
    env = dict(os.environ)
    if is_tls:
        env["PADDLECLOUD_TLS"] = "1"
    with open(log_path(state), "ab") as log:
        began_at = log.tell()
        output = log if is_detached else None
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/" if is_detached else None,
            env=env,
            start_new_session=is_detached,
        )
    began_s = time.monotonic()
    while True:
        found = running(state)
        if found is not None and found.pid == child.pid:
            return found, child
        if child.poll() is not None:
            raise _failed(state, began_at)
        waited_s = time.monotonic() - began_s
        if waited_s > START_TIMEOUT_S:
            child.terminate()
            raise Unavailable(
                f"the server did not answer within {START_TIMEOUT_S:.0f} s",
                hint=f"see {log_path(state)}",
            )
        on_wait(waited_s)
        time.sleep(POLL_S)


def _failed(state: str, began_at: int) -> Exception:
    """The server's own words, from its log."""
    with open(log_path(state), "rb") as log:
        log.seek(began_at)
        lines = log.read().decode("utf-8", "replace").splitlines()
    said = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    hints = [line.removeprefix("hint:").strip() for line in lines if line.startswith("hint:")]
    if said:
        return Conflict(said[-1], hint=hints[-1] if hints else "")
    last = lines[-1] if lines else "it said nothing"
    return Unavailable(f"the server ended at once: {last}", hint=f"see {log_path(state)}")


# --- stopping --------------------------------------------------------------------------------


def stop(found: Running, *, timeout_s: float, on_wait: Callable[[float], None]) -> None:
    """TERM, and wait until the lock is free. The pid is the lock's, so it is the server's."""
    import signal

    try:
        os.kill(found.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise InvalidInput(
            f"the server (pid {found.pid}) belongs to another user", field="--state"
        ) from None
    began_s = time.monotonic()
    while lock_holder(found.state) == found.pid:
        waited_s = time.monotonic() - began_s
        if waited_s > timeout_s:
            raise Unavailable(
                f"the server (pid {found.pid}) has not ended after {timeout_s:.0f} s",
                hint=f"see {log_path(found.state)}; running jobs go on even after kill -9",
            )
        on_wait(waited_s)
        time.sleep(POLL_S)


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
