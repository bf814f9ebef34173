"""What goes where, and what need not go: values in, values out.

It promises: the same rules for both directions; nothing here reads a disk, a clock or a network.
The transfers call it. Names are `/`-separated and relative to a base directory on either side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.wire.digests import LEAF_BYTES

BATCH_FILES = 1_000
BATCH_BYTES = 32 << 20
COMPARE_FILES = 20_000  # at once, where they are all known
COMPARE_BYTES = 32 << 30  # the server may have to read as much before it answers
COMPARE_BODY_BYTES = 31 << 20  # a request that lists files may have 32 MiB
PATHS_BODY_BYTES = 1_000_000  # a request of another kind one, with what else is in it
_ROW_BYTES = 100  # a digest and a size
_PLAIN_ENDS = ("", ".", "..")


# --- where things go -----------------------------------------------------------------------


def is_remote(text: str) -> bool:
    return text == "/pfs" or text.startswith("/pfs/")


class Source(NamedTuple):
    """One source as written: `data` is the folder, `data/` and `.` are what is in it."""

    text: str
    name: str  # the last part; what it is called in the target
    is_contents: bool


def source_of(text: str, separators: str = "/") -> Source:
    trimmed = text.rstrip(separators)
    name = trimmed
    for separator in separators:
        name = name.rpartition(separator)[2]
    return Source(text, name, trimmed != text or name in _PLAIN_ENDS)


class Placed(NamedTuple):
    """`base`: the directory on the other side; `names`: what each source is called there.

    An empty name is a folder whose contents go into the base itself.
    """

    base: str
    names: tuple[str, ...]


def place(
    sources: Sequence[Source],
    are_folders: Sequence[bool],
    target: str,
    target_is: str,
    separators: str = "/",
) -> Placed:
    """Where sources go. `target_is`: "directory", "file" or "" (nothing there)."""
    into = target_is == "directory" or target.endswith(tuple(separators)) or len(sources) > 1
    into = into or any(are_folders) or source_of(target, separators).name in _PLAIN_ENDS
    if into and target_is == "file":
        raise Conflict(
            f"{target} is a file",
            hint="several files, or a folder, need a directory to go to",
            field=target,
        )
    if not into or _is_itself(sources, are_folders, target, separators):
        trimmed = target.rstrip(separators)
        name = source_of(target, separators).name
        base = trimmed[: len(trimmed) - len(name)]
        return Placed(base.rstrip(separators) or base[:1], (name,))
    names = []
    for source, is_folder in zip(sources, are_folders, strict=True):
        if source.is_contents and not is_folder:
            raise InvalidInput(f"{source.text} is no folder", field=source.text)
        names.append("" if source.is_contents else source.name)
    return Placed(target.rstrip(separators) or target[:1], tuple(names))


def _is_itself(
    sources: Sequence[Source], are_folders: Sequence[bool], target: str, separators: str
) -> bool:
    """`output` to `./output`: nobody means `./output/output`, whether it exists or not."""
    source, goal = sources[0], source_of(target, separators)
    is_one_folder = len(sources) == 1 and are_folders[0] and not source.is_contents
    return is_one_folder and not goal.is_contents and goal.name == source.name


def under(prefix: str, name: str) -> str:
    return f"{prefix}/{name}" if prefix and name else prefix or name


def common_folder(folders: Sequence[str]) -> str:
    """The deepest one that all of them are, or lie in."""
    parts = [folder.split("/") for folder in folders]
    first, last = min(parts), max(parts)
    n_same = 0
    while n_same < min(len(first), len(last)) and first[n_same] == last[n_same]:
        n_same += 1
    return "/".join(first[:n_same])


class Wanted(NamedTuple):
    """A file on the server and what it will be called here."""

    name: str  # below the target
    base: str  # the directory on the server it was found below
    below: str  # its name there
    size_bytes: int
    digest: str | None
    executable: bool
    mtime_ns: int

    @property
    def source(self) -> str:
        return under(self.base, self.below)


def doubles(names: Iterable[str]) -> set[str]:
    """Names that more than one source claims."""
    seen: set[str] = set()
    twice: set[str] = set()
    for name in names:
        if name in seen:
            twice.add(name)
        seen.add(name)
    return twice


# --- in which pieces -----------------------------------------------------------------------


def batches(
    sizes: Sequence[int],
    indices: Iterable[int],
    most_files: int = BATCH_FILES,
    most_bytes: int = BATCH_BYTES,
) -> Iterator[list[int]]:
    """The indices in order, in groups of few files and few bytes; none is empty."""
    group: list[int] = []
    size_bytes = 0
    for index in indices:
        if group and (len(group) >= most_files or size_bytes + sizes[index] > most_bytes):
            yield group
            group, size_bytes = [], 0
        group.append(index)
        size_bytes += sizes[index]
    if group:
        yield group


def path_groups(paths: Sequence[str], most_paths: int) -> Iterator[list[str]]:
    """As many paths at once as one request may carry, in order."""
    sizes = [_text_bytes(path) for path in paths]
    for group in batches(sizes, range(len(paths)), most_paths, PATHS_BODY_BYTES):
        yield [paths[i] for i in group]


def comparable(rows: Sequence[tuple[str, int, str]], sizes: Sequence[int]) -> Iterator[range]:
    """Rows of (name, size, digest) in runs: few files, few bytes to read, and a body that fits."""
    texts = [_text_bytes(row[0]) + _ROW_BYTES for row in rows]
    for group in batches(sizes, range(len(rows)), COMPARE_FILES, COMPARE_BYTES):
        for run in batches(texts, group, COMPARE_FILES, COMPARE_BODY_BYTES):
            yield range(run[0], run[-1] + 1)


def _text_bytes(text: str) -> int:
    """At most so much as JSON, where one sign may become two escapes."""
    return len(text) * (6 if text.isascii() else 12) + 3


def is_small(size_bytes: int) -> bool:
    """Whether a file travels with others in a batch."""
    return size_bytes <= LEAF_BYTES


def leaves_at_once(chunk_bytes: int | None) -> int | None:
    """The most leaves one request carries of a large file; None when nobody asked for a limit."""
    return max(1, -(-chunk_bytes // LEAF_BYTES)) if chunk_bytes else None


def runs(leaves: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted leaf numbers as half-open ranges."""
    found: list[tuple[int, int]] = []
    for leaf in leaves:
        if found and found[-1][1] == leaf:
            found[-1] = (found[-1][0], leaf + 1)
        else:
            found.append((leaf, leaf + 1))
    return found


def shares(
    leaves: Sequence[int], ways: int, most_leaves: int | None = None
) -> list[list[tuple[int, int]]]:
    """The leaves as one contiguous share per connection, each a list of ranges in order.

    No range is longer than `most_leaves`. Fewer shares than `ways` when there is little to do.
    """
    ways = max(1, min(ways, len(leaves)))
    length = -(-len(leaves) // ways) if leaves else 0
    found: list[list[tuple[int, int]]] = []
    for start in range(0, len(leaves), length or 1):
        share: list[tuple[int, int]] = []
        for first, end in runs(leaves[start : start + length]):
            step = most_leaves or (end - first)
            share += [(at, min(at + step, end)) for at in range(first, end, step)]
        found.append(share)
    return found


# --- what is too much ----------------------------------------------------------------------


def surplus(
    kept: Iterable[str], there: Iterable[tuple[str, bool]], protected: Iterable[str] = ()
) -> list[str]:
    """What to remove so that only `kept` (files and directories) stays: the topmost names.

    `there` is (name, is_directory) of everything in the target. What lies below a name that is
    `protected` (it exists in the source but could not be sent) stays, and so do its parents.
    """
    wanted = set(kept)
    shielded = set(protected)
    for name in (*wanted, *shielded):
        parent = name.rpartition("/")[0]
        while parent and parent not in wanted:
            wanted.add(parent)
            parent = parent.rpartition("/")[0]
    removed: set[str] = set()
    topmost: list[str] = []
    for name, is_directory in sorted(there, key=lambda row: row[0].split("/")):
        if name in wanted or name in shielded or _is_below(name, shielded):
            continue
        if _is_below(name, removed):
            continue
        if is_directory:
            removed.add(name)
        topmost.append(name)
    return topmost


def _is_below(name: str, parents: set[str]) -> bool:
    if not parents:
        return False
    parent = name.rpartition("/")[0]
    while parent:
        if parent in parents:
            return True
        parent = parent.rpartition("/")[0]
    return False
