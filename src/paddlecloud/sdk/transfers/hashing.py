"""The digests of many local files, taken on all lanes at once.

It promises: what could be hashed is remembered by the cache where that is safe; a file that cannot
be read, or changes meanwhile, has no digest here and fails by name when it is moved. Called by
`sending` and `receiving`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.digest_cache import DigestCache
from paddlecloud.sdk.transfers.local_files import Changed, LocalFault
from paddlecloud.sdk.transfers.sessions import Session, Task
from paddlecloud.sdk.transfers.walking import Found


def hash_all(session: Session, cache: DigestCache, files: Sequence[Found]) -> list[bytes | None]:
    """The leaves of each."""
    leaves: list[bytes | None] = [None] * len(files)

    def task(number: int) -> Task:
        def hash_one(lane: Lane) -> None:
            try:
                leaves[number] = cache.hash(files[number], lane.view)
            except (Changed, LocalFault):
                pass

        return hash_one

    if files:
        session.run(task(number) for number in range(len(files)))
    return leaves
