"""Stops an attempt: TERM to its program's group, grace, KILL, and whatever is left of it.

`Keeper` calls `begin` when asked to stop and again after adopting an attempt that was being
stopped. All further steps are timers; each looks anew, so none is wrong if it comes too late.
That an attempt is over is never decided here: `Keeper` hears it from the kernel.
"""

from __future__ import annotations

import os
import signal

from paddlecloud.engines.local import remains
from paddlecloud.engines.local.kept import Kept
from paddlecloud.engines.local.watching import Watcher

_KILL_AGAIN_S = 0.2


def signal_shim(kept: Kept, number: signal.Signals) -> bool:
    """Signal the shim and surely nobody else; False if there is none."""
    if kept.shim is None:
        return False
    try:
        pidfd = os.pidfd_open(kept.shim.pid)
    except OSError:
        return False
    try:
        # Asked after it was opened: from here on the descriptor names the process.
        if not kept.shim.is_there():
            return False
        signal.pidfd_send_signal(pidfd, number)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True


class Stopper:
    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def begin(self, kept: Kept, grace_s: float) -> None:
        self._watcher.after(0, lambda: self.terminate(kept))
        self._watcher.after(max(0.0, grace_s), lambda: self._kill(kept, 0))

    def terminate(self, kept: Kept) -> None:
        """Before its program runs nobody would hear it: called again when it has started."""
        if kept.result is None and kept.started_at is not None:
            signal_shim(kept, signal.SIGTERM)

    def _kill(self, kept: Kept, rounds: int) -> None:
        """Comes back until it is over."""
        if kept.result is not None:
            return
        if kept.shim is None:
            remains.end_family(kept.cookie)  # it was still being made
        elif kept.is_sandboxed:
            signal_shim(kept, signal.SIGKILL)  # process 1 takes its whole namespace with it
        elif rounds == 0:
            signal_shim(kept, signal.SIGUSR1)  # it kills all that descends from it
        else:
            # Found first: once it is gone its family cannot be told from others any more.
            family = remains.relatives(kept.shim.pid) | remains.carriers(kept.cookie)
            signal_shim(kept, signal.SIGKILL)
            remains.kill_all(family)
        if kept.group is not None:
            kept.group.kill()
        self._watcher.after(_KILL_AGAIN_S, lambda: self._kill(kept, rounds + 1))
