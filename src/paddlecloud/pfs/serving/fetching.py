"""Many small files as one answer: read beneath one directory, sent as a stream of records.

Files are gathered into pieces of 64 KiB, with the directories on the way kept open while one piece
is made and closed before it is sent: a reader that is slow holds one piece and no directory. What
cannot be read becomes a FAILED record, the others are sent all the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from paddlecloud.core.errors import InvalidInput, PaddleCloudError, TooLarge
from paddlecloud.pfs.directories import Directories
from paddlecloud.pfs.faults import name_error
from paddlecloud.pfs.relative_names import split
from paddlecloud.pfs.serving import table
from paddlecloud.pfs.serving.exchanges import Exchange, Waiting, encode_json
from paddlecloud.pfs.serving.links import Cut
from paddlecloud.pfs.serving.workers import AGAIN
from paddlecloud.wire import pfs_shapes, records
from paddlecloud.wire.digests import LEAF_BYTES, leaf_hash
from paddlecloud.wire.pfspath import PfsPath

if TYPE_CHECKING:
    from paddlecloud.pfs.diskstore import Tree
    from paddlecloud.pfs.serving.service import Service

_MOST_FETCHED = 10_000
_PIECE_BYTES = 64 << 10  # what a slow reader holds
_OWNER_MAY_RUN = 0o100


def fetch(service: Service, exchange: Exchange) -> Waiting:
    body = yield from exchange.read_json(pfs_shapes.PfsFetchBody, table.MANY_BODY_BYTES)
    base = PfsPath.parse(body["path"])
    names = body["files"]
    if len(names) > _MOST_FETCHED:
        raise InvalidInput(f"at most {_MOST_FETCHED} files in one call", field="files")
    tree = service.store.places.tree(exchange.owner, base)  # refused before the first byte
    gathering = Gathering(tree, base, names)
    try:
        yield from exchange.begin(200, [("Content-Type", records.CONTENT_TYPE)], None)
        while not gathering.is_over:
            yield from exchange.send_part(gathering.piece())
            if exchange.task.has_had_its_share:
                yield AGAIN
        yield from exchange.end_parts()
    finally:
        gathering.close()


class Gathering:
    """The stream of some files, piece by piece."""

    def __init__(self, tree: Tree, base: PfsPath, names: list[str]) -> None:
        self._tree = tree
        self._base = base
        self._names = names
        self._position = 0
        self._out = bytearray(records.MAGIC)
        self._fd = -1  # of a file that fills more than a piece
        self._at = self._size_bytes = 0
        self._hash = leaf_hash()
        self.is_over = False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def piece(self) -> bytes:
        """The next bytes; after the last of them `is_over`."""
        with Directories(self._tree) as dirs:
            while len(self._out) < _PIECE_BYTES:
                if self._fd >= 0:
                    self._go_on()
                elif self._position < len(self._names):
                    self._begin(dirs, self._names[self._position])
                    self._position += 1
                else:
                    self._out += records.END
                    self.is_over = True
                    break
        piece = bytes(self._out)
        self._out.clear()
        return piece

    def _begin(self, dirs: Directories, name: str) -> None:
        try:
            parts = split(name)
            folder = dirs.open(self._base.parts + parts[:-1])
            fd, facts = self._tree.open_file_in(folder, parts[-1])
        except OSError as error:
            self._fail(name, name_error(error, f"{self._base}/{name}"))
            return
        except PaddleCloudError as error:
            self._fail(name, error)
            return
        if facts.st_size > LEAF_BYTES:
            os.close(fd)
            hint = "read its content"
            self._fail(name, TooLarge(f"{name} has more than {LEAF_BYTES} bytes", hint=hint))
            return
        self._fd, self._at, self._size_bytes = fd, 0, facts.st_size
        is_executable = facts.st_mode & _OWNER_MAY_RUN
        kind = records.Kind.EXECUTABLE if is_executable else records.Kind.FILE
        self._out += records.encode_head(kind, name, facts.st_size, facts.st_mtime_ns)
        self._hash = leaf_hash()
        self._go_on()

    def _go_on(self) -> None:
        """Some more of the file that was begun; its digest at its end."""
        if self._at < self._size_bytes:
            wanted = min(_PIECE_BYTES, self._size_bytes - self._at)
            data = os.pread(self._fd, wanted, self._at)
            if not data:
                # Its size has been said: there is no honest way on.
                raise Cut("a file became shorter while it was sent")
            self._hash.update(data)
            self._out += data
            self._at += len(data)
        if self._at == self._size_bytes:
            self._out += self._hash.digest()
            self.close()

    def _fail(self, name: str, error: PaddleCloudError) -> None:
        text = encode_json(error.to_json())
        shown = name.encode("utf-8", "replace")[: records.MAX_NAME_BYTES].decode("utf-8", "ignore")
        self._out += records.encode_head(records.Kind.FAILED, shown or "?", len(text)) + text
