"""Packages: the snapshot a job was submitted with, kept as long as the job is.

A package is named by the digest of its snapshot in the caller's own store (`pfs.snapshots`, filled
by the file server); this reads it, has it written into a job's folder, and forgets it when no job
names it any more. Accounts never share one, so that nobody can learn what others have by asking for
a digest.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecloud import clock
from paddlecloud.core.errors import InvalidInput, NotFound, TooLarge
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.server.database import forget_broken_connection
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.process import here
from paddlecloud.wire.digests import is_digest

if TYPE_CHECKING:
    from paddlecloud.pfs.snapshots import Snapshots

log = logging.getLogger(__name__)

LARGE_BYTES, LARGE_FILES = 64 << 20, 2_000  # a tenth of a second or two
_KEEP_S = 3600.0  # between an upload and the submit that names it
_TIDY_EVERY_S = 3600.0
_SETTLE_S = 1.0
_lock = threading.Lock()  # what is asked for is not forgotten at that moment


def _snapshots() -> Snapshots:
    from paddlecloud.pfs.owners import Places
    from paddlecloud.pfs.snapshots import Snapshots

    return Snapshots(Places(_root(), None))


def _root() -> Path:
    return here().state_dir / "pfs"


def _snapshot_path(account_id: int, digest: str) -> Path:
    return _root() / ".paddlefs" / "snapshots" / str(account_id) / digest


def _check_digest(digest: str) -> None:
    if not is_digest(digest):
        raise InvalidInput("must be 64 lower-case hex digits", field="digest")


def find(account_id: int, digest: str) -> dict[str, Any] | None:
    """What is known of a package, if it is all there."""
    _check_digest(digest)
    try:
        snapshot = _snapshots().get(account_id, digest)
    except NotFound:
        return None
    return {"digest": digest, "files": len(snapshot.files), "bytes": snapshot.total_bytes}


def exists(account_id: int, digest: str) -> bool:
    """Whether a job may (still) be run from it. Asking keeps it for another hour."""
    _check_digest(digest)
    with _lock:
        try:
            os.utime(_snapshot_path(account_id, digest))
        except FileNotFoundError:
            return False
    return True


def check(account_id: int, digest: str) -> None:
    """Refuse at submit what is not there or larger than a package may be."""
    if not exists(account_id, digest) or (found := find(account_id, digest)) is None:
        raise InvalidInput(
            "no package with this digest was uploaded",
            field="package_digest",
            hint="POST /api/v2/pfs/snapshots first, or submit with the command line or the SDK",
        )
    limits = here().configuration.limits
    if found["bytes"] > limits.package_bytes or found["files"] > limits.package_files:
        raise TooLarge(
            f"the package has {found['files']} files of {found['bytes']} bytes; at most"
            f" {limits.package_files} of {limits.package_bytes} are taken",
            field="package_digest",
            hint="put data sets into your home with `paddlecloud pfs cp`",
        )


@lru_cache(maxsize=1024)  # what a digest names never changes
def _size(account_id: int, digest: str) -> tuple[int, int]:
    snapshot = _snapshots().get(account_id, digest)
    return len(snapshot.files), snapshot.total_bytes


def is_large(account_id: int, digest: str) -> bool:
    """Whether writing its files takes longer than somebody should wait for an answer."""
    if not digest:
        return False
    try:
        files, size_bytes = _size(account_id, digest)
    except NotFound:
        return False  # who tries to use it hears of that
    return files > LARGE_FILES or size_bytes > LARGE_BYTES


def size_in_words(account_id: int, digest: str) -> str:
    files, size_bytes = _size(account_id, digest)
    return f"{files:,} files, {size_bytes / 1e6:,.0f} MB"


def fill(
    account_id: int,
    digest: str,
    tree: Tree,
    parts: tuple[str, ...],
    is_wanted: Callable[[], bool],
) -> None:
    """Write its files below `parts`; every byte is compared with its digest on the way."""
    if not _snapshot_path(account_id, digest).exists():
        raise NotFound("its package is no longer kept", hint="submit it again")
    _snapshots().materialise(account_id, digest, tree, parts, is_wanted=is_wanted)


# --- forgetting ------------------------------------------------------------------------------


def forget_if_unused(account_id: int, digest: str) -> None:
    """A job is gone: its package too, unless another job or a submit about to come needs it."""
    if not digest or Job.objects.filter(account_id=account_id, package_digest=digest).exists():
        return
    _forget(account_id, digest, clock.now() - _KEEP_S)


def forget_unused() -> int:
    """Every package that no job names and none came to name in time; how many went."""
    forgotten = 0
    before = clock.now() - _KEEP_S
    for folder in (_root() / ".paddlefs" / "snapshots").glob("[0-9]*"):
        account_id = int(folder.name)
        jobs = Job.objects.filter(account_id=account_id).exclude(package_digest="")
        named = set(jobs.values_list("package_digest", flat=True).distinct())
        for digest in filter(is_digest, os.listdir(folder)):
            forgotten += digest not in named and _forget(account_id, digest, before)
    return forgotten


def _forget(account_id: int, digest: str, before: float) -> bool:
    """The blobs go when the file server sweeps, unless another snapshot names them."""
    with _lock:
        try:
            if _snapshot_path(account_id, digest).stat().st_mtime >= before:
                return False
        except FileNotFoundError:
            return False
        _snapshots().forget(account_id, digest)
    return True


def keep_tidy() -> None:
    """Forget what nobody names, now and then, for as long as the process lives."""

    def work() -> None:
        time.sleep(_SETTLE_S)
        _snapshots()  # imports what the first submit needs, which the start could do without
        while True:
            time.sleep(_TIDY_EVERY_S)
            try:
                forget_unused()
            except Exception:
                log.exception("packages nobody names could not be forgotten")
                forget_broken_connection()

    threading.Thread(target=work, name="packages", daemon=True).start()
