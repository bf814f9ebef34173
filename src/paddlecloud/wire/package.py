"""The package stream: a folder of programs as one sequence of bytes with one digest.

    8 bytes   magic, `PCPKG\\0\\0\\1`
    8 bytes   length of the manifest, big-endian
    manifest  JSON {"files": [{"path", "size", "exec"}, ...], "dirs": [...]}
    data      the bytes of every file, in the manifest's order

The digest of a package is the SHA-256 of the whole stream in hex. The same folder always gives
the same stream: entries are sorted by the UTF-8 bytes of their paths, `dirs` names only the
directories nothing else implies, the JSON has one spelling. Packages were sent and kept like this
before there were snapshots (`wire.snapshots`, which takes its rules of names from here); what is
kept is still read, so that old jobs can be run again. This module is bytes in, values out, and
trusts nothing it is given: a manifest that passes `parse_manifest` holds only relative NFC paths
that can be created below any directory without leaving it and without two entries meeting.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from paddlecloud.core.errors import InvalidInput, TooLarge

MAGIC = b"PCPKG\0\0\1"
PREFIX_BYTES = len(MAGIC) + 8
MAX_PATH_BYTES = 1024  # leaves room below the longest home
MAX_PART_BYTES = 255
MAX_DEPTH = 64

_DIGEST = re.compile(r"[0-9a-f]{64}")


class BadPackage(InvalidInput):
    """The bytes are not a package, or a dangerous one."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="package")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a receiver is willing to take."""

    max_manifest_bytes: int = 32 * 2**20
    max_entries: int = 100_000
    max_total_bytes: int = 64 * 2**30


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class File:
    path: str  # relative, "a/b.py"
    size_bytes: int
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    files: tuple[File, ...] = ()
    dirs: tuple[str, ...] = ()  # those no file lies in

    @property
    def total_bytes(self) -> int:
        """The size of all files together: what follows the manifest."""
        return sum(file.size_bytes for file in self.files)

    @property
    def all_dirs(self) -> tuple[str, ...]:
        """Every directory to create, parents first."""
        return tuple(sorted(_directories(self), key=_order))


# --- writing ---------------------------------------------------------------------------------


def make_manifest(files: Iterable[File], dirs: Iterable[str] = ()) -> Manifest:
    """The one manifest of these entries, in whatever order they come. Checks everything."""
    files = tuple(sorted(files, key=lambda file: _order(file.path)))
    given = set(dirs)
    # What lies in a directory implies it, be it a file or another directory.
    implied = _directories(Manifest((*files, *(File(path, 0) for path in given))))
    manifest = Manifest(files, tuple(sorted(given - implied, key=_order)))
    _check_manifest(manifest, DEFAULT_LIMITS)
    return manifest


def encode_header(manifest: Manifest) -> bytes:
    """Magic, length and manifest: all of the stream before the files' own bytes."""
    body = {
        "files": [
            {"path": file.path, "size": file.size_bytes, "exec": file.executable}
            for file in manifest.files
        ],
        "dirs": list(manifest.dirs),
    }
    raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return MAGIC + len(raw).to_bytes(8, "big") + raw


# --- reading ---------------------------------------------------------------------------------


def manifest_bytes(prefix: bytes, limits: Limits = DEFAULT_LIMITS) -> int:
    """How long the manifest is, from the first `PREFIX_BYTES` bytes: ask before reading it."""
    if len(prefix) < PREFIX_BYTES:
        raise BadPackage("the package ends within its first bytes")
    if prefix[: len(MAGIC)] != MAGIC:
        raise BadPackage("this is not a package stream (wrong first bytes)")
    size_bytes = int.from_bytes(prefix[len(MAGIC) : PREFIX_BYTES], "big")
    if size_bytes > limits.max_manifest_bytes:
        raise TooLarge(
            f"the package's list of files has {size_bytes} bytes; "
            f"at most {limits.max_manifest_bytes} are read",
            field="package",
        )
    return size_bytes


def parse_manifest(raw: bytes, limits: Limits = DEFAULT_LIMITS) -> Manifest:
    """The manifest in these bytes, safe to act on."""
    try:
        body = json.loads(raw.decode())
    except (ValueError, RecursionError):
        raise BadPackage("the package's list of files is not JSON") from None
    if not isinstance(body, dict) or set(body) != {"files", "dirs"}:
        raise BadPackage("the package's list of files must have 'files' and 'dirs'")
    files, dirs = body["files"], body["dirs"]
    if not isinstance(files, list) or not isinstance(dirs, list):
        raise BadPackage("'files' and 'dirs' of a package must be lists")
    if not all(isinstance(path, str) for path in dirs):
        raise BadPackage("'dirs' of a package must be texts")
    manifest = Manifest(tuple(_parse_file(row) for row in files), tuple(dirs))
    _check_manifest(manifest, limits)
    return manifest


def parse_header(data: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[Manifest, int]:
    """The manifest at the start of `data`, and where the files' own bytes begin."""
    end = PREFIX_BYTES + manifest_bytes(data[:PREFIX_BYTES], limits)
    if len(data) < end:
        raise BadPackage("the package ends within its list of files")
    return parse_manifest(data[PREFIX_BYTES:end], limits), end


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def _parse_file(row: Any) -> File:
    if not isinstance(row, dict) or set(row) != {"path", "size", "exec"}:
        raise BadPackage("a file of a package must have 'path', 'size' and 'exec'")
    path, size_bytes, executable = row["path"], row["size"], row["exec"]
    if (
        not isinstance(path, str)
        or not isinstance(size_bytes, int)
        or isinstance(size_bytes, bool)
        or not isinstance(executable, bool)
    ):
        raise BadPackage("a file of a package has a 'path', 'size' or 'exec' of the wrong type")
    return File(path, size_bytes, executable)


# --- every danger ----------------------------------------------------------------------------


def _check_manifest(manifest: Manifest, limits: Limits) -> None:
    paths = [file.path for file in manifest.files]
    if len(paths) + len(manifest.dirs) > limits.max_entries:
        raise _too_many(len(paths) + len(manifest.dirs), limits)
    for path in (*paths, *manifest.dirs):
        check_path(path)
    _check_sizes(manifest, limits)
    _check_order(paths)
    _check_order(list(manifest.dirs))
    _check_directories(manifest, limits)


def check_path(path: str) -> None:
    """A relative path that cannot leave the directory it is put in."""
    shown = path[:100]
    if not path or path.startswith("/") or path.endswith("/"):
        raise BadPackage(f"{shown!r} is not a relative path")
    if any(unicodedata.category(char) == "Cc" for char in path):
        raise BadPackage(f"{shown!r} contains a control character")
    if unicodedata.normalize("NFC", path) != path:
        raise BadPackage(f"{shown!r} is not in Unicode NFC form")
    try:
        size_bytes = len(path.encode())
    except UnicodeEncodeError:
        raise BadPackage(f"{shown!r} is not valid Unicode") from None
    if size_bytes > MAX_PATH_BYTES:
        raise BadPackage(f"{shown!r}… has {size_bytes} bytes; at most {MAX_PATH_BYTES} are allowed")
    parts = path.split("/")
    if len(parts) > MAX_DEPTH:
        raise BadPackage(f"{shown!r}… is {len(parts)} levels deep; at most {MAX_DEPTH} are allowed")
    for part in parts:
        if part in ("", ".", ".."):
            raise BadPackage(f"{shown!r} has the part {part!r}")
        if len(part.encode()) > MAX_PART_BYTES:
            raise BadPackage(f"{shown!r}… has a name of more than {MAX_PART_BYTES} bytes")


def _check_sizes(manifest: Manifest, limits: Limits) -> None:
    for file in manifest.files:
        if file.size_bytes < 0:
            raise BadPackage(f"{file.path!r} has a negative size")
    if manifest.total_bytes > limits.max_total_bytes:
        raise TooLarge(
            f"the package has {manifest.total_bytes} bytes; "
            f"at most {limits.max_total_bytes} are taken",
            hint="put data sets into your home with `paddlecloud pfs cp`, not into the package",
            field="package",
        )


def _check_order(paths: list[str]) -> None:
    for before, after in itertools.pairwise(paths):
        if before == after:
            raise BadPackage(f"{after!r} is in the package twice")
        if _order(before) > _order(after):
            raise BadPackage("the package's list of files is not sorted")


def _check_directories(manifest: Manifest, limits: Limits) -> None:
    """No file where a directory must be, and few paths cannot ask for millions of directories."""
    directories = _directories(manifest, at_most=limits.max_entries)
    if len(directories) > limits.max_entries:
        raise _too_many(len(directories), limits)
    for file in manifest.files:
        if file.path in directories:
            raise BadPackage(f"{file.path!r} is both a file and a directory")


def _too_many(count: int, limits: Limits) -> TooLarge:
    return TooLarge(
        f"the package has {count} entries; at most {limits.max_entries} are taken",
        hint="leave data and environments out of the package",
        field="package",
    )


def _order(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def _directories(manifest: Manifest, at_most: int | None = None) -> set[str]:
    """Every directory the entries need, their parents included; stops soon after `at_most`."""
    found = set(manifest.dirs)
    for path in (*manifest.dirs, *(file.path for file in manifest.files)):
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
        if at_most is not None and len(found) > at_most:
            break
    return found
