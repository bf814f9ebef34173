"""Starting and stopping the platform of this machine: its programs, and the parent of them all.

It promises: `start` returns when every part is ready, or raises what the part that was not said;
`stop` returns when nothing of it runs. Called by `up`, `down` and `serve`. What keeps the parts
alive in between is `supervisor`, a process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable

from paddlecloud.cli.local_platform import (
    POLL_S,
    Running,
    lock_holder,
    log_path,
    running,
    settled,
    supervision,
)
from paddlecloud.core.errors import Conflict, InvalidInput, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen
    from typing import TypedDict

    class Part(TypedDict):
        """As `supervisor.Part` takes it: a name, what to run, how it says that it is ready, and
        where its output goes (empty: where the supervisor's goes)."""

        name: str
        command: list[str]
        run_file: str
        log: str


START_TIMEOUT_S = 60.0


def parts(state: str, server: list[str]) -> list[Part]:
    """All programs of the platform; one more is one more entry."""
    run = os.path.join(state, "run")
    return [
        {
            "name": "server",
            "command": server,
            "run_file": os.path.join(run, "server.json"),
            "log": "",
        },
    ]


def server_command(*, state: str, host: str, port: int | None, account: str) -> list[str]:
    command = [sys.executable, "-m", "paddlecloud.server", "--state", state]
    if host:
        command += ["--host", host]
    if port is not None:
        command += ["--port", str(port)]
    if account:
        command += ["--bootstrap-account", account]
    return command


def can_listen(host: str, port: int) -> bool:
    """Whether a server could now; one that tries later may still find it taken."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


# --- starting --------------------------------------------------------------------------------


def start(
    command: list[str],
    state: str,
    *,
    is_tls: bool,
    is_detached: bool,
    on_wait: Callable[[float], None] = lambda seconds: None,
) -> tuple[Running, Popen[bytes]]:
    """Start all parts under a supervisor; in the foreground their output is the terminal's."""
    os.makedirs(os.path.join(state, "run"), mode=0o700, exist_ok=True)
    began_at = _size(log_path(state))
    child = _supervisor(state, parts(state, command), is_tls=is_tls, is_detached=is_detached)
    began_s = time.monotonic()
    while True:
        if child.poll() is not None:
            other = settled(state)
            if other is not None:  # somebody else's `up` was quicker
                return other, child
            raise _failed(state, began_at)
        facts = supervision(state)
        if facts is not None and facts["pid"] == child.pid and facts["is_ready"]:
            found = running(state)
            if found is not None:
                return found, child
        waited_s = time.monotonic() - began_s
        if waited_s > START_TIMEOUT_S:
            child.terminate()
            raise Unavailable(
                f"the server did not answer within {START_TIMEOUT_S:.0f} s",
                hint=f"see {log_path(state)}",
            )
        on_wait(waited_s)
        time.sleep(POLL_S)


def _supervisor(
    state: str, made_of: list[Part], *, is_tls: bool, is_detached: bool
) -> Popen[bytes]:
    import subprocess

    env = dict(os.environ)
    if is_tls:
        env["PADDLECLOUD_TLS"] = "1"
    # By its path, isolated and without site: it needs the standard library only, and stays small.
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "supervisor.py")
    with open(log_path(state), "ab") as log:
        output = log if is_detached else None
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", program, state],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd="/" if is_detached else None,
            env=env,
            start_new_session=is_detached,
        )
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(made_of).encode())
        child.stdin.close()
    except BrokenPipeError:
        pass  # it ended at once, which whoever waits for it will see
    return child


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


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


def stop(state: str, *, timeout_s: float, on_wait: Callable[[float], None]) -> None:
    """TERM to the supervisor, or to a server without one, until both locks are free.

    The pids are those of the locks, so they are the platform's. A supervisor ends its parts itself.
    """
    told: set[int] = set()
    began_s = time.monotonic()
    while pid := lock_holder(state, "supervisor") or lock_holder(state):
        if pid > 0 and pid not in told:
            _terminate(pid)
            told.add(pid)
        waited_s = time.monotonic() - began_s
        if waited_s > timeout_s:
            raise Unavailable(
                f"the platform (pid {pid}) has not ended after {timeout_s:.0f} s",
                hint=f"see {log_path(state)}; running jobs go on even after kill -9",
            )
        on_wait(waited_s)
        time.sleep(POLL_S)


def _terminate(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise InvalidInput(
            f"the platform (pid {pid}) belongs to another user", field="--state"
        ) from None
