"""One process per root: who opens a store holds this lock until it closes it, or dies."""

from __future__ import annotations

import fcntl
import os

from paddlecloud.core.errors import Unavailable
from paddlecloud.pfs.owners import Places


class RootLock:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._fd = -1

    def take(self) -> None:
        path = self._places.hidden / "lock"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.drop()
            raise Unavailable(
                f"another file server already serves {self._places.root}",
                hint="stop it first, or give this one another root",
            ) from None
        except OSError:
            pass  # storage without locks: that there is one server only is up to the operator

    def drop(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
