"""Files beneath one root, reached step by step so that no link is ever followed.

Callers give path parts, already parsed; each directory on the way is opened relative to the one
before with O_NOFOLLOW, so neither `..` nor a symbolic link planted by a running job leads out,
not even when it is swapped in between. What is created belongs to `owner_uid` if given (the
platform is root and the account has a uid of its own). Raises OSError; naming it for users is the
caller's business.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_DIR_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIR_MODE = 0o700
_FILE_MODE = 0o600
Parts = Sequence[str]


class Tree:
    """One root directory. Every method opens what it needs and closes it again."""

    def __init__(self, root: Path, owner_uid: int | None = None) -> None:
        self.root = root
        self.owner_uid = owner_uid

    @contextmanager
    def directory(self, parts: Parts, *, create: bool = False) -> Iterator[int]:
        """A descriptor of the directory, made on the way if asked."""
        fd = self.open_root()
        try:
            for part in parts:
                below, _ = self.step(fd, part, create)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    def open_root(self) -> int:
        return os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def step(self, fd: int, part: str, create: bool = False) -> tuple[int, bool]:
        """A descriptor of the directory `part` of `fd`, and whether it was made just now."""
        _check_part(part)
        try:
            below = os.open(part, _DIR_FLAGS, dir_fd=fd)
        except FileNotFoundError:
            if not create:
                raise
            return self._make(fd, part)
        if create and self.owner_uid is not None:
            self._give_if_forgotten(fd, below)
        return below, False

    def _make(self, fd: int, part: str) -> tuple[int, bool]:
        try:
            os.mkdir(part, _DIR_MODE, dir_fd=fd)
        except FileExistsError:  # made by someone else just now, who also gives it away
            return os.open(part, _DIR_FLAGS, dir_fd=fd), False
        below = os.open(part, _DIR_FLAGS, dir_fd=fd)
        self.give(below)
        return below, True

    def _give_if_forgotten(self, fd: int, below: int) -> None:
        """Ours still: whoever made it was killed before it could give it away. What is mounted
        there was not made here."""
        facts = os.fstat(below)
        if facts.st_uid == os.geteuid() and facts.st_dev == os.fstat(fd).st_dev:
            self.give(below)

    def give(self, fd: int) -> None:
        """Hand a new file or directory to the account."""
        if self.owner_uid is not None:
            os.fchown(fd, self.owner_uid, self.owner_uid)

    def make_directory(self, parts: Parts) -> None:
        with self.directory(parts, create=True):
            pass

    def is_directory(self, parts: Parts) -> bool:
        try:
            with self.directory(parts):
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            if error.errno == errno.ELOOP:
                return False
            raise

    def names(self, parts: Parts) -> list[str]:
        with self.directory(parts) as fd:
            return sorted(os.listdir(fd))

    def open_file(self, parts: Parts) -> tuple[int, os.stat_result]:
        """A descriptor of a regular file, and its facts; the caller closes it."""
        with self.directory(parts[:-1]) as parent:
            return self.open_file_in(parent, parts[-1])

    def open_file_in(self, parent: int, name: str) -> tuple[int, os.stat_result]:
        """The same, in a directory that is open already."""
        _check_part(name)
        # NONBLOCK: opening a pipe somebody left there must not hang us.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(name, flags, dir_fd=parent)
        try:
            facts = os.fstat(fd)
            if not self.serves(facts):
                # A link by another name: as if it were a link.
                kind = errno.EISDIR if stat.S_ISDIR(facts.st_mode) else errno.ELOOP
                raise OSError(kind, os.strerror(kind), name)
        except BaseException:
            os.close(fd)
            raise
        return fd, facts

    def serves(self, facts: os.stat_result) -> bool:
        """Whether it is a regular file that belongs here.

        A file of several names that is not the account's own was linked from somewhere else: the
        kernel forbids it to jobs (protected_hardlinks), but not everywhere.
        """
        return stat.S_ISREG(facts.st_mode) and (
            facts.st_nlink <= 1 or self.owner_uid is None or facts.st_uid == self.owner_uid
        )

    @contextmanager
    def new_file(
        self, parts: Parts, mode: int = _FILE_MODE, *, part: str = "", sync: bool = False
    ) -> Iterator[int]:
        """A descriptor to write; the file appears whole under its name, or not at all.

        `part` is its name until then. A writer who knows to be the only one in the directory
        gives a fixed one, so that what a crash left is taken away by the next attempt.
        """
        with self.directory(parts[:-1], create=True) as parent:
            name = parts[-1]
            _check_part(name)
            if part:
                _remove_file(part, parent)
            part = part or f".{secrets.token_hex(8)}.part"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(part, flags, mode, dir_fd=parent)
            try:
                self.give(fd)
                yield fd
                if sync:
                    os.fsync(fd)
                os.rename(part, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                os.unlink(part, dir_fd=parent)
                raise
            finally:
                os.close(fd)

    def move(self, source: Parts, target: Parts) -> None:
        """Rename within the tree; an existing target that is not an empty directory is refused."""
        with (
            self.directory(source[:-1]) as old,
            self.directory(target[:-1], create=True) as new,
        ):
            _check_part(source[-1])
            _check_part(target[-1])
            os.rename(source[-1], target[-1], src_dir_fd=old, dst_dir_fd=new)

    def remove(self, parts: Parts) -> None:
        """A file or a whole directory; nothing there is fine."""
        try:
            with self.directory(parts[:-1]) as parent:
                _check_part(parts[-1])
                facts = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
                if stat.S_ISDIR(facts.st_mode):
                    shutil.rmtree(parts[-1], dir_fd=parent)
                else:
                    os.unlink(parts[-1], dir_fd=parent)
        except FileNotFoundError:
            pass

    def free_bytes(self) -> int:
        facts = os.statvfs(self.root)
        return facts.f_bavail * facts.f_frsize


def _remove_file(name: str, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        pass


def _check_part(part: str) -> None:
    """A programming error, never user input: parts come from a parser."""
    if part in ("", ".", "..") or "/" in part or "\0" in part:
        raise ValueError(f"{part!r} is not a name of a directory entry")
