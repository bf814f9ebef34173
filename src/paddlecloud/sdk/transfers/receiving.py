"""From the server to this machine: what is here, what is the same, what has to come.

It promises: nothing is asked per file unless it is large; a local file is read only if its size is
right and nobody knows its digest; names are checked before the first byte moves. Called by
`copying`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from paddlecloud.core.errors import Conflict, PaddleCloudError
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.digest_cache import DigestCache, digest_of
from paddlecloud.sdk.transfers.downloading import LargeDownload
from paddlecloud.sdk.transfers.fetching import Fetcher
from paddlecloud.sdk.transfers.hashing import hash_all
from paddlecloud.sdk.transfers.large_uploads import SPLIT_BYTES, Runner, each_on
from paddlecloud.sdk.transfers.local_files import Changed, LocalFault, cannot
from paddlecloud.sdk.transfers.local_targets import LocalTarget, Part, key_here, mode_of, refusal
from paddlecloud.sdk.transfers.planning import Wanted, batches, doubles, is_small, leaves_at_once
from paddlecloud.sdk.transfers.sessions import Session, Task
from paddlecloud.sdk.transfers.walking import Found, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.sdk.pfs import Replace
    from paddlecloud.sdk.transfers.events import Action


class Receiving:
    """One download of listed files into a local directory."""

    def __init__(
        self,
        session: Session,
        wanted: list[Wanted],
        folders: list[str],
        target: LocalTarget,
        cache: DigestCache,
        *,
        replace: Replace,
        preserve_times: bool,
        chunk_bytes: int | None,
    ) -> None:
        self._session = session
        self._target = target
        self._cache = cache
        self._replace = replace
        self._preserve_times = preserve_times
        self._most_leaves = leaves_at_once(chunk_bytes)
        self._folders = folders
        self._given = wanted
        self._wanted: list[Wanted] = []
        self._folders_here: set[str] = set()
        self._dress: list[tuple[Wanted, Found]] = []

    def run(self) -> None:
        session = self._session
        self._wanted = self._acceptable(self._given)
        fetch, same, skipped = self._decide()
        session.planned(
            len(self._given),
            sum(file.size_bytes for file in self._given),
            len(same),
            sum(self._wanted[i].size_bytes for i in same),
        )
        if session.is_telling_same():
            self._tell(same, "same")
        self._tell(skipped, "skipped")
        if session.dry_run:
            session.summary.sent_bytes += sum(self._wanted[i].size_bytes for i in fetch)
            self._tell(fetch, "would send")
            return
        self._make_folders()
        self._dress_same()
        self._fetch(fetch)

    def _dress_same(self) -> None:
        """Files with the same bytes still get the executable bit, and the time if it counts."""
        for wanted, found in self._dress:
            try:
                if wanted.executable != found.executable and os.name != "nt":
                    mode = stat.S_IMODE(os.lstat(found.path).st_mode)
                    os.chmod(found.path, mode_of(mode, executable=wanted.executable))
                if self._preserve_times and wanted.mtime_ns != found.mtime_ns:
                    os.utime(found.path, ns=(wanted.mtime_ns, wanted.mtime_ns))
            except OSError as error:
                self._session.fail(wanted.source, cannot("change", found.path, error).error)

    def _tell(self, indices: Sequence[int], action: Action) -> None:
        for index in indices:
            file = self._wanted[index]
            path = self._target.path(file.name)
            self._session.done(file.source, path, file.size_bytes, 0, action)

    # --- names -----------------------------------------------------------------------------

    def _acceptable(self, files: list[Wanted]) -> list[Wanted]:
        twice = doubles(key_here(file.name) for file in files)
        kept = []
        for file in sorted(files):
            error = refusal(file.name)
            if error is None and key_here(file.name) in twice:
                error = Conflict(
                    f"{file.source} and another file would both become {file.name} here",
                    hint="fetch them into different directories",
                    field=file.source,
                )
            if error is None:
                kept.append(file)
            else:
                self._session.fail(file.source, error)
        return kept

    # --- deciding --------------------------------------------------------------------------

    def _decide(self) -> tuple[list[int], list[int], list[int]]:
        """Positions of files to fetch, the same here, and left alone."""
        here = self._local_files()
        fetch: list[int] = []
        skipped: list[int] = []
        doubtful: list[tuple[int, Found]] = []
        for index, file in enumerate(self._wanted):
            found = here.get(file.name)
            if found is None:
                if self._is_blocked(file):
                    continue
                fetch.append(index)
            elif self._replace == "never":
                skipped.append(index)
            elif self._replace == "always" or found.size_bytes != file.size_bytes:
                fetch.append(index)
            else:
                doubtful.append((index, found))
        same = self._same(doubtful)
        self._dress = [(self._wanted[i], found) for i, found in doubtful if i in same]
        fetch += [index for index, _ in doubtful if index not in same]
        return sorted(fetch), sorted(same), skipped

    def _local_files(self) -> dict[str, Found]:
        """What is here under the names that are wanted."""
        if not os.path.isdir(self._target.root):
            return {}
        walk = Walk()
        for top, path in self._target.tops(file.name.partition("/")[0] for file in self._wanted):
            if os.path.islink(path):
                continue
            if os.path.isdir(path):
                walk.add_folder(path, top)
            elif os.path.isfile(path):
                walk.add_file(path, top)
        self._folders_here = set(walk.folders)
        for file in walk.files:
            self._target.spell(file.name, file.path)
        return {file.name: file for file in walk.files}

    def _is_blocked(self, file: Wanted) -> bool:
        if file.name not in self._folders_here:
            return False
        path = self._target.path(file.name)
        error = Conflict(f"{path} is a directory", hint="remove it first", field=path)
        self._session.fail(file.source, error)
        return True

    def _same(self, doubtful: Sequence[tuple[int, Found]]) -> set[int]:
        """Those whose bytes are the server's; digests neither side knows are computed."""
        files = [found for _, found in doubtful]
        known = self._cache.look_up(files, [self._target.root])
        unknown = [number for number, leaves in enumerate(known) if leaves is None]
        hashed = hash_all(self._session, self._cache, [files[number] for number in unknown])
        for number, leaves in zip(unknown, hashed, strict=True):
            known[number] = leaves
        digests = {
            index: digest_of(leaves).hex()
            for (index, _), leaves in zip(doubtful, known, strict=True)
            if leaves is not None
        }
        same = {index for index, digest in digests.items() if digest == self._wanted[index].digest}
        ask: dict[str, list[int]] = {}
        for index in digests:
            if self._wanted[index].digest is None:
                ask.setdefault(self._wanted[index].base, []).append(index)
        for base, indices in ask.items():
            rows = [
                (self._wanted[i].below, self._wanted[i].size_bytes, digests[i]) for i in indices
            ]
            same |= self._session.remote.compare(base, rows).same(indices)
        return same

    # --- fetching --------------------------------------------------------------------------

    def _make_folders(self) -> None:
        for name in sorted(self._folders):
            error = refusal(name) if name else None
            if error is not None:
                self._session.fail(name, error)
                continue
            try:
                self._target.make_folder(name)
            except LocalFault as fault:
                self._session.fail(self._target.path(name), fault.error)

    def _fetch(self, indices: Sequence[int]) -> None:
        sizes = [file.size_bytes for file in self._wanted]
        huge = [i for i in indices if sizes[i] >= SPLIT_BYTES]
        if len(huge) < len(indices):
            self._session.run(self._side_by_side(sizes, indices))
        for index in huge:
            self._fetch_large(self._session.lane, self._wanted[index], self._session.run)

    def _side_by_side(self, sizes: list[int], indices: Sequence[int]) -> Iterator[Task]:
        by_base: dict[str, list[int]] = {}
        for index in indices:
            if is_small(sizes[index]):
                by_base.setdefault(self._wanted[index].base, []).append(index)
        for base, small in by_base.items():
            fetcher = Fetcher(
                self._session, base, self._target, preserve_times=self._preserve_times
            )
            for group in batches(sizes, small):
                yield self._batch_task(fetcher, group)
        for index in indices:
            if not is_small(sizes[index]) and sizes[index] < SPLIT_BYTES:
                yield self._large_task(index)

    def _batch_task(self, fetcher: Fetcher, group: list[int]) -> Task:
        files = [(self._wanted[i].below, self._wanted[i].name) for i in group]
        return lambda lane: fetcher.fetch_batch(lane, files)

    def _large_task(self, index: int) -> Task:
        return lambda lane: self._fetch_large(lane, self._wanted[index], each_on(lane))

    def _fetch_large(self, lane: Lane, file: Wanted, run: Runner) -> None:
        session = self._session
        try:
            path = self._target.prepare(file.name)
            if os.path.isdir(path) and not os.path.islink(path):
                raise LocalFault(Conflict(f"{path} is a directory", field=path))
            for _ in range(2):
                part = Part(path, executable=file.executable)
                download = LargeDownload(
                    session, file.source, part, reuse=self._replace != "always"
                )
                try:
                    download.fetch(lane, run, self._most_leaves)
                    times = download.mtime_ns if self._preserve_times else None
                    part.finish(download.size_bytes, times)
                except Changed:
                    session.lost(download.progress_bytes)
                    continue
                finally:
                    part.close()
                session.done(file.source, path, download.size_bytes, download.sent_bytes, "sent")
                return
            raise Conflict(
                f"{file.source} was replaced while it was fetched, twice",
                hint="fetch it again when it is still",
                field=file.source,
            )
        except LocalFault as fault:
            session.fail(file.source, fault.error)
        except PaddleCloudError as error:
            session.fail(file.source, error)
