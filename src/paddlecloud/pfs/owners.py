"""Whose files: the caller as the store sees it, and which tree a path of theirs lies in.

`Places.tree` is the one gate between a parsed path and the disk. It decides by the path alone,
before anything is looked up: a home that is not the caller's is refused with the same words and the
same work whether it exists or not.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.core.errors import InvalidInput, NotAllowed, Unavailable
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.wire.pfspath import PUBLIC, PfsPath


@dataclass(frozen=True, slots=True)
class Owner:
    """A caller. The id decides ownership; `uid` is None where we are not root."""

    name: str
    account_id: int
    uid: int | None = None
    limit_bytes: int | None = None
    limit_files: int | None = None
    is_admin: bool = False
    link: str = ""  # set for whoever reads through a published link of this owner


class Places:
    """The folders of one root, and who may go where."""

    def __init__(self, root: Path, datacenters: Collection[str] | None) -> None:
        self.root = root
        self.homes = root / "home"
        self.public = root / "public"
        self.hidden = root / ".paddlefs"
        self.datacenters = None if datacenters is None else frozenset(datacenters)

    def make(self) -> None:
        self.root.mkdir(mode=0o755, parents=True, exist_ok=True)
        # Others may pass through to their own home, but not look around.
        self.homes.mkdir(mode=0o711, exist_ok=True)
        self.public.mkdir(mode=0o755, exist_ok=True)
        for folder in ("", "parts", "blobs", "snapshots"):
            (self.hidden / folder).mkdir(mode=0o700, exist_ok=True)

    def check_device(self) -> None:
        """A file gets its name by a rename, which cannot cross from one mount to another."""
        if os.stat(self.homes).st_dev == os.stat(self.hidden).st_dev:
            nothing = "nothing-has-this-name"
            try:
                os.rename(self.hidden / nothing, self.homes / nothing)
            except OSError as error:
                if error.errno != errno.EXDEV:  # else two mounts of one filesystem
                    return
        raise Unavailable(
            f"{self.homes} and {self.hidden} lie on different filesystems: no file could get its "
            "name",
            hint=f"mount the storage at {self.root} as a whole, so that both are folders of it",
        )

    def check(self, owner: Owner, path: PfsPath, *, to_write: bool = False) -> None:
        """Whether the caller may go there; looks at nothing but its arguments."""
        if self.datacenters is not None and path.datacenter not in self.datacenters:
            raise InvalidInput(f"no datacenter {path.datacenter}", field="path")
        if path.area == PUBLIC:
            if to_write:
                raise NotAllowed(
                    "public data is read-only",
                    field="path",
                    hint=f"write below {PfsPath.home(path.datacenter, owner.name)}",
                )
        elif path.user != owner.name:
            raise NotAllowed(f"not a valid user: {path.user}", field="path")

    def tree(self, owner: Owner, path: PfsPath, *, to_write: bool = False) -> Tree:
        """The tree `path.parts` lie in. A home is made when its owner first comes."""
        self.check(owner, path, to_write=to_write)
        return Tree(self.public) if path.area == PUBLIC else self.home(owner)

    def home(self, owner: Owner) -> Tree:
        home = self.homes / owner.name
        try:
            os.mkdir(home, 0o700)
            is_ours = True
        except FileExistsError:
            # Ours still: whoever made it was killed before it could give it away.
            is_ours = owner.uid is not None and _is_our_directory(home)
        if is_ours and owner.uid is not None:
            os.chown(home, owner.uid, owner.uid, follow_symlinks=False)
        return Tree(home, owner.uid)

    def parts_of(self, account_id: int) -> Path:
        """Unfinished things of an account, on the filesystem of its home so that rename works."""
        return _folder(self.hidden / "parts" / str(account_id))

    def blobs_of(self, account_id: int) -> Path:
        return _folder(self.hidden / "blobs" / str(account_id))

    def snapshots_of(self, account_id: int) -> Path:
        return _folder(self.hidden / "snapshots" / str(account_id))


def lies_in(path: PfsPath, other: PfsPath) -> bool:
    """Whether it is `other` or lies anywhere under it; all datacenters of a root are one tree."""
    return path._replace(datacenter=other.datacenter).is_below(other)


def _is_our_directory(path: Path) -> bool:
    facts = os.lstat(path)
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()


def account_folders(parent: Path) -> list[Path]:
    """The folders of `parts`, `blobs` or `snapshots`: one for each account, called by its id."""
    return [entry for entry in parent.iterdir() if entry.name.isdecimal() and entry.is_dir()]


def _folder(path: Path) -> Path:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    return path
