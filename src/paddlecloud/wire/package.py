"""What a submitted folder may hold: every danger of a list of names, known in one place.

What passes `lone_directories` are relative NFC paths that can be created below any directory,
without leaving it and without two entries meeting, few and small enough to be taken.
`wire.snapshots` asks on both ends. Values in, values out: nothing here reads or writes a file.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from paddlecloud.core.errors import InvalidInput, TooLarge

MAX_PATH_BYTES = 1024  # leaves room below the longest home
MAX_PART_BYTES = 255
MAX_DEPTH = 64


class BadPackage(InvalidInput):
    """The list is not one of a folder, or a dangerous one."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="package")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a receiver is willing to take."""

    max_entries: int = 100_000
    max_total_bytes: int = 64 * 2**30


DEFAULT_LIMITS = Limits()


def lone_directories(
    files: Sequence[tuple[str, int]], dirs: Iterable[str], limits: Limits = DEFAULT_LIMITS
) -> tuple[str, ...]:
    """Those of `dirs` that nothing else implies, sorted; `files` are (path, size in bytes).

    What lies in a directory implies it, be it a file or another directory. Raises for what cannot
    or must not be made.
    """
    given = set(dirs)
    paths = sorted((path for path, _ in files), key=order)
    if len(paths) + len(given) > limits.max_entries:
        raise _too_many(len(paths) + len(given), limits)
    for path in (*paths, *given):
        check_path(path)
    _check_sizes(files, limits)
    for before, after in itertools.pairwise(paths):
        if before == after:
            raise BadPackage(f"{after!r} is in the package twice")
    implied = _parents((*paths, *given), at_most=limits.max_entries)
    if len(implied | given) > limits.max_entries:  # few paths can ask for many directories
        raise _too_many(len(implied | given), limits)
    for path in paths:
        if path in implied or path in given:
            raise BadPackage(f"{path!r} is both a file and a directory")
    return tuple(sorted(given - implied, key=order))


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


def _check_sizes(files: Sequence[tuple[str, int]], limits: Limits) -> None:
    for path, size_bytes in files:
        if size_bytes < 0:
            raise BadPackage(f"{path!r} has a negative size")
    total_bytes = sum(size_bytes for _, size_bytes in files)
    if total_bytes > limits.max_total_bytes:
        raise TooLarge(
            f"the package has {total_bytes} bytes; at most {limits.max_total_bytes} are taken",
            hint="put data sets into your home with `paddlecloud pfs cp`, not into the package",
            field="package",
        )


def _too_many(count: int, limits: Limits) -> TooLarge:
    return TooLarge(
        f"the package has {count} entries; at most {limits.max_entries} are taken",
        hint="leave data and environments out of the package",
        field="package",
    )


def order(path: str) -> bytes:
    """What both ends sort by: the same on every platform."""
    return path.encode("utf-8", "surrogatepass")


def _parents(paths: Collection[str], at_most: int) -> set[str]:
    """Every directory these lie in; stops soon after `at_most`."""
    found: set[str] = set()
    for path in paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
        if len(found) > at_most:
            break
    return found
