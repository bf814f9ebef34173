"""From this machine to the server: what is there, what is the same, what has to go.

It promises: a file whose digest is known from an earlier run is not read; one that is not there
yet is read once, while it is sent; nothing is asked per file. Called by `copying`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from paddlecloud.core.errors import Conflict
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.digest_cache import DigestCache, digest_of
from paddlecloud.sdk.transfers.downloading import each_on
from paddlecloud.sdk.transfers.local_files import Changed, LocalFault, hash_file
from paddlecloud.sdk.transfers.planning import batches, doubles, is_small, under
from paddlecloud.sdk.transfers.remote import NO_DIGEST, NO_SIZE
from paddlecloud.sdk.transfers.sessions import Session, Task
from paddlecloud.sdk.transfers.uploading import SPLIT_BYTES, Uploader
from paddlecloud.sdk.transfers.walking import Found, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.sdk.pfs import Replace


class Sending:
    """One upload of a walked list of files into a directory of the server."""

    def __init__(
        self,
        session: Session,
        walk: Walk,
        base: str,
        cache: DigestCache,
        *,
        roots: Sequence[str],
        replace: Replace,
        preserve_times: bool,
        chunk_bytes: int | None,
    ) -> None:
        self._session = session
        self._walk = walk
        self._base = base
        self._cache = cache
        self._replace = replace
        self._uploader = Uploader(
            session,
            base,
            cache,
            preserve_times=preserve_times,
            chunk_bytes=chunk_bytes,
            reuse=replace != "always",
        )
        self._files = self._without_doubles(walk.files)
        self._known = cache.look_up(self._files, roots)

    def _without_doubles(self, files: list[Found]) -> list[Found]:
        twice = doubles(file.name for file in files)
        for file in files:
            if file.name in twice:
                error = Conflict(
                    f"{file.path} and another source would both become {file.name}",
                    hint="send them to different directories",
                    field=file.path,
                )
                self._session.fail(file.path, error)
        return sorted(file for file in files if file.name not in twice)

    def run(self) -> None:
        session, files = self._session, self._files
        for path, error in self._walk.failures:
            session.fail(path, error)
        for text in self._walk.notes:
            session.note(text)
        send, same, skipped = self._decide()
        session.planned(
            len(files) + len(session.summary.failures),
            sum(file.size_bytes for file in files),
            len(same),
            sum(files[i].size_bytes for i in same),
        )
        if session.is_telling_same():
            self._tell(same, "same")
        self._tell(skipped, "skipped")
        if session.dry_run:
            for index in send:
                session.summary.sent_bytes += files[index].size_bytes
            self._tell(send, "would send")
            return
        self._send(send)
        self._make_folders()

    def _tell(self, indices: Sequence[int], action: str) -> None:
        for index in indices:
            file = self._files[index]
            target = under(self._base, file.name)
            self._session.done(file.path, target, file.size_bytes, 0, action)  # type: ignore[arg-type]

    # --- deciding --------------------------------------------------------------------------

    def _decide(self) -> tuple[list[int], list[int], list[int]]:
        """Positions of files to send, the same there, and left alone."""
        everything = range(len(self._files))
        if not everything:
            return [], [], []
        if self._replace == "always":
            return list(everything), [], []
        if self._replace == "never":
            rows = [(file.name, NO_SIZE, NO_DIGEST) for file in self._files]
            compared = self._session.remote.compare(self._base, rows)
            send = [i for i in everything if i in compared.missing]
            return send, [], [i for i in everything if i not in compared.missing]
        return self._decide_by_digest()

    def _decide_by_digest(self) -> tuple[list[int], list[int], list[int]]:
        """Files whose digest is not known are hashed only if something is there already."""
        files, remote = self._files, self._session.remote
        rows = [
            (file.name, file.size_bytes, NO_DIGEST if known is None else digest_of(known).hex())
            for file, known in zip(files, self._known, strict=True)
        ]
        first = remote.compare(self._base, rows)
        self._refuse(first.blocked)
        unsure = [i for i in sorted(first.different) if self._known[i] is None]
        self._hash(unsure)
        again = [i for i in unsure if self._known[i] is not None]
        second = (
            remote.compare(
                self._base,
                [
                    (files[i].name, files[i].size_bytes, digest_of(self._known[i] or b"").hex())
                    for i in again
                ],
            )
            if again
            else None
        )
        send: list[int] = []
        same: list[int] = []
        sure = {
            i
            for n, i in enumerate(again)
            if second is not None and n not in second.missing and n not in second.different
        }
        for i in range(len(files)):
            if i in first.blocked:
                continue
            if i in sure or (i not in first.missing and i not in first.different):
                same.append(i)
            else:
                send.append(i)
        return send, same, []

    def _refuse(self, blocked: set[int]) -> None:
        for index in sorted(blocked):
            file = self._files[index]
            error = Conflict(
                f"{under(self._base, file.name)} cannot be written: a directory is in its place, "
                "or a file is where a directory must be",
                hint="remove or move that first: paddlecloud pfs rm, pfs mv",
                field=file.path,
            )
            self._session.fail(file.path, error)

    def _hash(self, indices: Sequence[int]) -> None:
        """Fill in digests, on all lanes; a file that cannot be read fails when it is sent."""

        def task(index: int) -> Task:
            def hash_one(lane: Lane) -> None:
                hashed_at_ns = time.time_ns()
                try:
                    leaves = hash_file(self._files[index], lane.view)
                except (Changed, LocalFault):
                    return
                self._known[index] = leaves
                self._cache.learn(self._files[index], leaves, hashed_at_ns)

            return hash_one

        if indices:
            self._session.run(task(index) for index in indices)

    # --- sending ---------------------------------------------------------------------------

    def _send(self, indices: Sequence[int]) -> None:
        sizes = [file.size_bytes for file in self._files]
        small = [i for i in indices if is_small(sizes[i])]
        medium = [i for i in indices if not is_small(sizes[i]) and sizes[i] < SPLIT_BYTES]
        huge = [i for i in indices if sizes[i] >= SPLIT_BYTES]
        if small or medium:
            self._session.run(self._side_by_side(sizes, small, medium))
        for index in huge:
            self._uploader.send_large(
                self._session.lane, self._files[index], self._known[index], self._session.run
            )

    def _side_by_side(
        self, sizes: list[int], small: list[int], medium: list[int]
    ) -> Iterator[Task]:
        for group in batches(sizes, small):
            files = [self._files[i] for i in group]
            yield lambda lane, files=files: self._uploader.send_batch(lane, files)  # type: ignore[misc]
        for index in medium:
            yield self._large_task(index)

    def _large_task(self, index: int) -> Task:
        file, known = self._files[index], self._known[index]
        return lambda lane: self._uploader.send_large(lane, file, known, each_on(lane))

    def _make_folders(self) -> None:
        if not self._walk.empty_folders:
            return
        paths = [under(self._base, name) for name in sorted(self._walk.empty_folders)]
        self._session.remote.make_directories(paths)
