"""A file whose size nobody announced: it grows hidden, and takes its name when it is whole.

The old single-file interface sends such. Its room is reserved as it grows, in steps, so the limit
holds all the same. A link that stands at the path is replaced, as this interface always did,
never followed. One thread at a time.
"""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.core.errors import TooLarge
from paddlecloud.pfs.directories import Parts
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import name_error, named
from paddlecloud.pfs.owners import Owner
from paddlecloud.pfs.publishing import Draft, Services
from paddlecloud.pfs.shapes import Entry
from paddlecloud.wire.digests import LEAF_BYTES, combine, leaf_hash

_STEP_BYTES = 1 << 20


class StreamedFile:
    """`write`, then `commit` or `abandon`."""

    def __init__(
        self,
        owner: Owner,
        target: tuple[Tree, Parts],
        folder: Path,
        services: Services,
        most_bytes: int | None,
    ) -> None:
        self._owner = owner
        self._target = target
        self._services = services
        self._most_bytes = most_bytes
        self._size_bytes = 0
        self._held_bytes = 0
        self._leaves: list[bytes] = []
        self._hash = leaf_hash()
        self._held = services.usage.reserve(owner, 0, 1)
        self._shown = target[1][-1]
        try:
            self._draft = Draft(folder, services)
        except OSError as error:
            self._held.release()
            raise name_error(error, self._shown) from error

    def write(self, data: memoryview | bytes | bytearray) -> None:
        view = memoryview(data)
        if self._most_bytes is not None and self._size_bytes + len(view) > self._most_bytes:
            raise TooLarge(f"a file may have {self._most_bytes} bytes", field="file")
        self._hold(self._size_bytes + len(view))
        while view:
            piece = view[: LEAF_BYTES - self._size_bytes % LEAF_BYTES]
            self._hash.update(piece)
            self._put(piece)
            self._size_bytes += len(piece)
            if self._size_bytes % LEAF_BYTES == 0:
                self._end_leaf()
            view = view[len(piece) :]

    def _put(self, piece: memoryview) -> None:
        try:
            while piece:
                piece = piece[os.write(self._draft.fd, piece) :]
        except OSError as error:
            raise name_error(error, self._shown) from error

    def _end_leaf(self) -> None:
        self._leaves.append(bytes(self._hash.digest()))
        self._hash = leaf_hash()

    def _hold(self, size_bytes: int) -> None:
        """Reserve ahead by a step where it fits, else exactly what is needed."""
        if size_bytes <= self._held_bytes:
            return
        more = size_bytes - self._held_bytes
        self._held.absorb(self._services.usage.reserve_about(self._owner, more, _STEP_BYTES))
        self._held_bytes = self._held.size_bytes

    def commit(self) -> Entry:
        if self._size_bytes % LEAF_BYTES or not self._leaves:
            self._end_leaf()
        try:
            with named(self._shown):
                facts = self._draft.publish(
                    self._owner, self._target, self._held, leaves=self._leaves, over_links=True
                )
        except BaseException:
            self.abandon()
            raise
        self._draft.close()
        return Entry.of(self._shown, facts, combine(self._leaves))

    def abandon(self) -> None:
        """Nothing of it remains; after a commit, nothing happens."""
        if self._draft.fd >= 0:
            self._draft.discard()
            self._draft.close()
        self._held.release()
