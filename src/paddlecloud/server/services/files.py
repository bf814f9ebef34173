"""Single files of a home, for the old file interface: put, get, list.

Paths come in as text and are parsed first; what is not the caller's is refused in the words of the
first server. Errors of the disk become errors with a code.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from paddlecloud.core.errors import InvalidInput, NotFound, OutOfSpace, TooLarge
from paddlecloud.server.authentication import Principal
from paddlecloud.server.multipart import FilePart
from paddlecloud.server.process import here
from paddlecloud.server.services import locating
from paddlecloud.wire.pfspath import PfsPath


@contextmanager
def _named(path: PfsPath, missing: str) -> Iterator[None]:
    """Foreign errors get our names here."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound(missing, field="path") from None
    except NotADirectoryError:
        raise NotFound(missing, field="path", hint="a part of the path is a file") from None
    except IsADirectoryError:
        raise InvalidInput(f"{locating.text(path)} is a directory", field="path") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutOfSpace("the platform's disk is full", field="path") from None
        if error.errno in (errno.ELOOP, errno.EINVAL, errno.ENXIO):
            raise NotFound(missing, field="path", hint="links and devices are not served") from None
        raise


def names(caller: Principal, path_text: str, datacenter: str) -> list[str]:
    """The entries of a directory, sorted; directories look like files, as they always did."""
    path = PfsPath.parse(path_text)
    if datacenter and datacenter != path.datacenter:
        raise InvalidInput(f"no datacenter {datacenter}", field="dc")
    tree = locating.tree_of(caller.account_id, caller.name, path)
    with _named(path, "dir not exist"):
        return tree.names(path.parts)


def open_to_read(caller: Principal, path_text: str) -> tuple[int, int, str]:
    """(descriptor, size, name); the descriptor is the caller's to close."""
    path = PfsPath.parse(path_text)
    if path.is_root:
        raise InvalidInput(f"{locating.text(path)} is a directory", field="path")
    tree = locating.tree_of(caller.account_id, caller.name, path)
    with _named(path, "file not exist"):
        fd, facts = tree.open_file(path.parts)
    return fd, facts.st_size, path.name


class FileReceiver:
    """Takes one uploaded file, piece by piece, on a thread. It appears whole or not at all."""

    def __init__(self, caller: Principal, path_text: str, content_type: str) -> None:
        path = PfsPath.parse(path_text)
        if path.is_root or path.is_directory:
            raise InvalidInput("must name a file, not a directory", field="path")
        tree = locating.tree_of(caller.account_id, caller.name, path, to_write=True)
        self._path = path
        self._part = FilePart(content_type)
        self._limit_bytes = here().configuration.limits.file_bytes
        self._size_bytes = 0
        self._stack = ExitStack()
        with _named(path, "file not exist"):
            self._fd = self._stack.enter_context(tree.new_file(path.parts, sync=True))

    def write(self, data: bytes) -> None:
        content = memoryview(self._part.feed(data))
        self._size_bytes += len(content)
        if self._size_bytes > self._limit_bytes:
            raise TooLarge(f"a file may have {self._limit_bytes} bytes", field="file")
        with _named(self._path, "file not exist"):
            while content:
                content = content[os.write(self._fd, content) :]

    def finish(self) -> None:
        try:
            self._part.finish()
        except BaseException as error:
            self.abandon(error)
            raise
        with _named(self._path, "file not exist"):
            self._stack.close()

    def abandon(self, error: BaseException) -> None:
        """Leave `new_file` by the way of errors, so that it removes its part."""
        try:
            self._stack.__exit__(type(error), error, error.__traceback__)
        except BaseException as raised:
            if raised is not error:
                raise
