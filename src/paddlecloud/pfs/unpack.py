"""Writes a package stream into a directory of a store: regular files and directories only.

The manifest was checked by `wire.package` before a byte is written, every entry is created
beneath the target without following a link, and a stream that is too short or too long is an
error. Doing it twice gives the same files, so an interrupted unpacking is simply done again.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from paddlecloud.pfs.diskstore import Parts, Tree
from paddlecloud.wire import package

_COPY_BYTES = 1 << 20
_PART = ".paddlecloud-unpacking.part"


def read_manifest(stream: BinaryIO, limits: package.Limits) -> package.Manifest:
    """The manifest at the start of a stream, which is left at the first file's bytes."""
    prefix = stream.read(package.PREFIX_BYTES)
    raw = stream.read(package.manifest_bytes(prefix, limits))
    return package.parse_manifest(raw, limits)


def unpack(stream: BinaryIO, tree: Tree, target: Parts, limits: package.Limits) -> None:
    """Create every entry of the package below `target`; files of the same name are replaced."""
    manifest = read_manifest(stream, limits)
    tree.make_directory(target)
    for path in manifest.all_dirs:
        tree.make_directory([*target, *path.split("/")])
    for entry in manifest.files:
        mode = 0o700 if entry.executable else 0o600
        with tree.new_file([*target, *entry.path.split("/")], mode, part=_PART) as fd:
            _copy(stream, fd, entry)
    if stream.read(1):
        raise package.BadPackage("the package has bytes after its last file")


def _copy(stream: BinaryIO, fd: int, entry: package.File) -> None:
    left = entry.size_bytes
    while left:
        data = stream.read(min(_COPY_BYTES, left))
        if not data:
            raise package.BadPackage(f"the package ends within {entry.path}")
        left -= len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
