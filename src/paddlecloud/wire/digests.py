"""The digest of a file, the same on both ends: BLAKE3 over leaves of 4 MiB.

    one leaf or none   the BLAKE3 of the content, as `b3sum` prints it
    more               the BLAKE3, in a key space of its own, of the leaves' 32-byte digests

So the parts of a large file are hashed, sent, checked and resumed independently of each other, and
their digests make the file's. Two files with one digest are the same file: the key space keeps a
list of digests that somebody stored as a file from passing for the file they describe.

A folder has a digest too, of the files directly in it: one question then stands for all of them.

A leaf that travels has a check besides, its XXH3 of 128 bits: whoever sends it finds by it what the
network did, at a tenth of the price. It names nothing and is not kept: who wants to can make two
contents with one check.

The SDK and the store call it. BLAKE3 and XXH3 are the only things here that are not the standard
library; they are imported when the first is wanted, so importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from blake3 import blake3
    from xxhash import xxh3_128

LEAF_BYTES = 4 << 20
DIGEST_BYTES = 32
_OF_LEAVES = "paddlecloud 2026-11-16 pfs digest of leaves"
_OF_FOLDER = "paddlecloud 2026-11-16 pfs digest of a folder's files"
_HEX = frozenset("0123456789abcdef")


def leaf_hash() -> blake3:
    """A hash of one leaf: `update(data)`, then `digest()`."""
    from blake3 import blake3

    return blake3()


def leaf_check() -> xxh3_128:
    """The check of one leaf: `update(data)`, then `digest()`."""
    from xxhash import xxh3_128

    return xxh3_128()


def leaf_count(size_bytes: int) -> int:
    """How many leaves a file has; an empty file has one, of no bytes."""
    return max(1, -(-size_bytes // LEAF_BYTES))


def leaf_bytes(index: int, size_bytes: int) -> int:
    """The length of one leaf of a file."""
    return max(0, min(LEAF_BYTES, size_bytes - index * LEAF_BYTES))


def combine(leaves: Sequence[bytes]) -> bytes:
    """The file's digest from those of all its leaves, in order."""
    if not leaves:
        raise ValueError("a file has at least one leaf")
    if len(leaves) == 1:
        return leaves[0]
    from blake3 import blake3

    whole = blake3(derive_key_context=_OF_LEAVES)
    whole.update(b"".join(leaves))
    return bytes(whole.digest())


def folder_digest(files: Iterable[tuple[str, bool, bytes]]) -> bytes:
    """Of the (name, is executable, digest) of the files in a folder, in any order."""
    from blake3 import blake3

    whole = blake3(derive_key_context=_OF_FOLDER)
    rows = [
        name.encode("utf-8", "surrogateescape") + (b"\0x" if executable else b"\0-") + digest
        for name, executable, digest in files
    ]
    rows.sort()
    whole.update(b"".join(rows))
    return bytes(whole.digest())


def is_digest(text: str) -> bool:
    """Whether it is a digest as written in JSON: 64 lower-case hex digits."""
    return len(text) == 2 * DIGEST_BYTES and _HEX.issuperset(text)
