"""From this machine to the server: what is there, what is the same, what has to go.

It promises: a file whose digest is known from an earlier run is not read; one that is not there
yet is read once, while it is sent; nothing is asked per file, and for a folder whose files are all
known only one question about all of them. Called by `copying`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from paddlecloud.core.errors import Conflict, NotFound
from paddlecloud.sdk.transfers.digest_cache import DigestCache, digest_of, folder_state
from paddlecloud.sdk.transfers.hashing import hash_all
from paddlecloud.sdk.transfers.large_uploads import SPLIT_BYTES, each_on
from paddlecloud.sdk.transfers.planning import batches, common_folder, doubles, is_small, under
from paddlecloud.sdk.transfers.probing import Probing, Question, Row
from paddlecloud.sdk.transfers.remote import NO_DIGEST, NO_SIZE, Compared
from paddlecloud.sdk.transfers.sessions import Session, Task
from paddlecloud.sdk.transfers.uploading import Uploader
from paddlecloud.sdk.transfers.walking import FoundFolder, Walk
from paddlecloud.wire.digests import folder_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.sdk.pfs import Replace
    from paddlecloud.sdk.transfers.events import Action

FEW = 16  # so many are asked for one by one; more, by listing the directory
# About so many are asked for at once while more are found: few first, so that the server, which
# has more to do than the walk, begins early.
ASK_FIRST_FILES = 500
ASK_FILES = 2_000
FOLDER_FILES = 8  # from so many on a folder is asked about as one


class Sending:
    """One upload into a directory of the server: `add` sources, then `run`."""

    def __init__(
        self,
        session: Session,
        base: str,
        cache: DigestCache,
        *,
        roots: Sequence[str],
        replace: Replace,
        preserve_times: bool,
        chunk_bytes: int | None,
    ) -> None:
        self._session = session
        self._base = base
        self._cache = cache
        self._replace = replace
        self._preserve_times = preserve_times
        self._uploader = Uploader(
            session,
            base,
            cache,
            preserve_times=preserve_times,
            chunk_bytes=chunk_bytes,
            reuse=replace != "always",
        )
        self.walk = Walk(self._found_folder)
        self._files = self.walk.files
        self._recalled = cache.below(roots)
        self._known: dict[int, bytes | None] = {}  # leaves of the files asked about one by one
        self._probing = Probing(session, base)
        self._seen = 0  # files up to here are in a question, or will be in the next
        self._next_files: list[int] = []
        self._next_folders: list[tuple[FoundFolder, bytes]] = []
        self._folders: list[FoundFolder] = []  # asked about
        self._asked_files = 0
        self._sources = len(roots)

    def run(self) -> None:
        session, files = self._session, self._files
        for path, error in self.walk.failures:
            session.fail(path, error)
        for text in self.walk.notes:
            session.note(text)
        self._see(len(files))
        self._ask()
        send, same, skipped = self._decide()
        session.planned(
            len(files) + len(self.walk.failures),
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

    def _tell(self, indices: Iterable[int], action: Action) -> None:
        for index in indices:
            file = self._files[index]
            target = under(self._base, file.name)
            self._session.done(file.path, target, file.size_bytes, 0, action)

    # --- asking, while the walk goes on ------------------------------------------------------

    def _found_folder(self, folder: FoundFolder) -> None:
        self._see(folder.start)  # files that were named one by one
        digest = self._folder_digest(folder)
        if digest is not None:
            self._next_folders.append((folder, digest))
            self._seen = folder.end
        else:
            self._see(folder.end)
        enough = ASK_FILES if self._asked_files else ASK_FIRST_FILES
        if self._seen - self._asked_files >= enough:
            self._ask()

    def _see(self, end: int) -> None:
        self._next_files += range(self._seen, end)
        self._seen = end

    def _folder_digest(self, folder: FoundFolder) -> bytes | None:
        """None when its files have to be asked about one by one."""
        name, start, end = folder.name, folder.start, folder.end
        if self._replace != "changed" or self._preserve_times or end - start < FOLDER_FILES:
            return None
        files = self._files[start:end]
        state = folder_state(files, name)
        digest = self._recalled.folder_digest(folder.path, state)
        if digest is None:
            leaves = [self._recalled.leaves_of(file) for file in files]
            skipped = len(name) + 1 if name else 0
            rows = [
                (file.name[skipped:], file.executable, digest_of(each))
                for file, each in zip(files, leaves, strict=True)
                if each is not None
            ]
            if len(rows) < len(files):
                return None
            digest = folder_digest(rows)
            self._cache.learn_folder(folder.path, state, digest)
        return digest

    def _ask(self) -> None:
        """Ask about what was found since the last time."""
        files, self._next_files = self._next_files, []
        folders, self._next_folders = self._next_folders, []
        self._asked_files = self._seen
        if self._replace == "always" or not (files or folders):
            return
        rows = [
            (folder.name, folder.end - folder.start, digest.hex()) for folder, digest in folders
        ]
        self._probing.ask(Question(files, self._rows(files), rows, len(self._folders)))
        self._folders += [folder for folder, _ in folders]

    def _rows(self, positions: Sequence[int]) -> list[Row]:
        files = [self._files[i] for i in positions]
        if self._replace == "never":
            return [(file.name, NO_SIZE, NO_DIGEST) for file in files]
        leaves = [self._recalled.leaves_of(file) for file in files]
        self._known.update(zip(positions, leaves, strict=True))
        return [
            (file.name, file.size_bytes, NO_DIGEST if known is None else digest_of(known).hex())
            for file, known in zip(files, leaves, strict=True)
        ]

    def _told(self) -> tuple[Compared, set[int]]:
        """All answers, and the positions of the files that are the same by their folder."""
        told = self._probing.finish()
        again = [i for n in sorted(told.folders) for i in _positions(self._folders[n])]
        if again:
            told.add(self._session.remote.compare(self._base, self._rows(again)), again)
        same = (folder for n, folder in enumerate(self._folders) if n not in told.folders)
        return told, {i for folder in same for i in _positions(folder)}

    # --- deciding --------------------------------------------------------------------------

    def _decide(self) -> tuple[list[int], list[int], list[int]]:
        """Positions of files to send, the same there, and left alone."""
        told, same_by_folder = self._told()
        refused = self._refuse_doubles() | told.blocked
        self._refuse_blocked(told.blocked)
        everything = [i for i in range(len(self._files)) if i not in refused]
        if self._replace == "always":
            return everything, [], []
        missing = told.missing
        if self._replace == "never":
            send = [i for i in everything if i in missing]
            return send, [], [i for i in everything if i not in missing]
        hashed = self._same_after_all(
            [i for i in sorted(told.different - refused) if self._known.get(i) is None]
        )
        changed = missing | (told.different - hashed)
        unsure = [i for i in everything if i not in changed and i not in same_by_folder]
        changed |= self._otherwise_different(unsure, hashed | self._unexplained(told, changed))
        send = [i for i in everything if i in changed]
        return send, [i for i in everything if i not in changed], []

    def _unexplained(self, told: Compared, changed: set[int]) -> set[int]:
        """Files of folders that are told to be different, but have all the same bytes."""
        folders = (_positions(self._folders[n]) for n in told.folders)
        return {i for positions in folders if changed.isdisjoint(positions) for i in positions}

    def _otherwise_different(self, same: Sequence[int], doubtful: set[int]) -> set[int]:
        """Files with the same bytes whose time, if it counts, or executable bit is another.

        They are sent again; of large ones no byte travels. To spare the question for every tree,
        the bit is looked at only where it is set here, or something else about the file was new:
        who changes it changes a time, and with it what was remembered.
        """
        asked = list(same)
        if not self._preserve_times:
            asked = [i for i in same if i in doubtful or self._files[i].executable]
        there = self._entries_of(asked)
        different = set()
        for i in asked:
            file, entry = self._files[i], there.get(self._files[i].name)
            if entry is None:
                continue
            if bool(entry["executable"]) != file.executable and os.name != "nt":
                different.add(i)
            if self._preserve_times and int(entry["mtime_ns"]) != file.mtime_ns:
                different.add(i)
        return different

    def _entries_of(self, indices: Sequence[int]) -> dict[str, dict[str, Any]]:
        """By name, perhaps others too: of the files, or of their folders, or of all below one.

        What somebody removed just now is not there.
        """
        remote = self._session.remote
        names = [self._files[i].name for i in indices]
        found: dict[str, dict[str, Any]] = {}
        if len(names) <= FEW:
            for name in names:
                with suppress(NotFound):
                    found[name] = remote.entry(under(self._base, name))
            return found
        folders = sorted({name.rpartition("/")[0] for name in names})
        is_deep = len(folders) > FEW
        for folder in [common_folder(folders)] if is_deep else folders:
            with suppress(NotFound):
                for entry in remote.entries(under(self._base, folder), recursive=is_deep):
                    found[under(folder, str(entry["name"]))] = entry
        return found

    def _same_after_all(self, unsure: Sequence[int]) -> set[int]:
        """Files that are there, of which nobody knew the digest here: now they are hashed."""
        files = [self._files[i] for i in unsure]
        self._known.update(zip(unsure, hash_all(self._session, self._cache, files), strict=True))
        asked = [i for i in unsure if self._known.get(i) is not None]
        if not asked:
            return set()
        rows = [
            (file.name, file.size_bytes, digest_of(self._known.get(i) or b"").hex())
            for i, file in ((i, self._files[i]) for i in asked)
        ]
        return self._session.remote.compare(self._base, rows).same(asked)

    def _refuse_doubles(self) -> set[int]:
        if self._sources < 2:
            return set()
        twice = doubles(file.name for file in self._files)
        refused = {i for i, file in enumerate(self._files) if file.name in twice}
        for index in sorted(refused):
            file = self._files[index]
            error = Conflict(
                f"{file.path} and another source would both become {file.name}",
                hint="send them to different directories",
                field=file.path,
            )
            self._session.fail(file.path, error)
        return refused

    def _refuse_blocked(self, blocked: set[int]) -> None:
        for index in sorted(blocked):
            file = self._files[index]
            error = Conflict(
                f"{under(self._base, file.name)} cannot be written: a directory is in its place, "
                "or a file is where a directory must be",
                hint="remove or move that first: paddlecloud pfs rm, pfs mv",
                field=file.path,
            )
            self._session.fail(file.path, error)

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
                self._session.lane, self._files[index], self._known.get(index), self._session.run
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
        file, known = self._files[index], self._known.get(index)
        return lambda lane: self._uploader.send_large(lane, file, known, each_on(lane))

    def _make_folders(self) -> None:
        if not self.walk.empty_folders:
            return
        paths = [under(self._base, name) for name in sorted(self.walk.empty_folders)]
        self._session.remote.make_directories(paths)


def _positions(folder: FoundFolder) -> range:
    return range(folder.start, folder.end)
