"""`python dying.py POINT …`: the server, dying by SIGKILL at a named point of a submit.

The rest of the arguments are the server's. Used by test_crashes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from paddlecloud.server import __main__ as server


def _die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _after(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call(*args, **kwargs)
        return _die()

    return wrapped


def arm(point: str) -> None:
    """Patch the place. Called once the server's modules may be imported."""
    from paddlecloud.pfs import snapshots
    from paddlecloud.server.services import job_rows, submitting, workspaces
    from paddlecloud.testing.engines import FakeEngine

    if point == "before the commit":
        submitting._commit = _after(submitting._commit)  # still inside the transaction
    elif point == "after the commit":
        workspaces.prepare = _die
    elif point == "while filling":
        snapshots._copy = _after(snapshots._copy)
    elif point == "before it is marked":
        workspaces._fill = _after(workspaces._fill)
    elif point == "before the engine knows":
        FakeEngine.put = _die
    elif point == "before the answer":
        job_rows.read = _die
    else:
        raise ValueError(point)


POINTS = (
    "before the commit",
    "after the commit",
    "while filling",
    "before it is marked",
    "before the engine knows",
    "before the answer",
)


def main() -> int:
    """Arm as soon as Django is set up: before, its models cannot be imported."""
    point = sys.argv.pop(1)
    from paddlecloud.server import starting

    set_up = starting.set_up_django

    def set_up_and_arm(configuration: Any) -> None:
        set_up(configuration)
        arm(point)

    starting.set_up_django = set_up_and_arm
    return server.main()


if __name__ == "__main__":
    os._exit(main())
