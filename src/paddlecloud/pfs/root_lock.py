"""One process per root: who opens a store holds this lock until it closes it, or dies.

The file of the lock says which of the two it was. One that died may have named files whose
directories it had not synced yet. Who looks now finds them and takes them for stored, so they are
synced before anybody can look.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from paddlecloud.core.errors import Unavailable
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.owners import Places

_CLOSED = b"closed"


class RootLock:
    def __init__(self, places: Places, *, sync: bool) -> None:
        self._places = places
        self._sync = sync
        self._fd = -1

    def take(self) -> None:
        path = self._places.hidden / "lock"
        is_new = not path.exists()
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
        if self._sync and not is_new and os.pread(self._fd, len(_CLOSED), 0) != _CLOSED:
            syscalls.syncfs(self._fd)
        os.ftruncate(self._fd, 0)  # a word that says the contrary would need room on the disk

    def close(self) -> None:
        """Nothing is left half done."""
        with suppress(OSError):  # no room for the word: as if it had died
            os.pwrite(self._fd, _CLOSED, 0)
        self.drop()

    def drop(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
