"""`sync --delete`: at the end, what the source does not have goes.

It promises: only after everything was moved without a failure, only below what was synced, and
never a name the source has but could not be sent (a link, an unreadable folder). The server counts
links but does not name them: where the source is there, a folder with any of them keeps all that is
in it here. Called by `copying`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

from paddlecloud.core.errors import NotFound
from paddlecloud.sdk.transfers.local_files import cannot
from paddlecloud.sdk.transfers.local_targets import LocalTarget, key_here
from paddlecloud.sdk.transfers.planning import path_groups, surplus, under
from paddlecloud.sdk.transfers.sessions import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.sdk.transfers.events import Action

REMOVED_AT_ONCE = 1_000


class Removing:
    def __init__(
        self,
        session: Session,
        kept: Iterable[str],
        *,
        protected: Iterable[str] = (),
        unclear: Iterable[str] = (),
    ) -> None:
        """`protected`: names that could not be sent. `unclear`: folders with such names in them."""
        self._session = session
        self._kept = list(kept)
        self._protected = list(protected)
        self._unclear = list(unclear)

    def _may_begin(self) -> bool:
        if not self._session.summary.failures:
            return True
        self._session.note("nothing was removed, because not everything could be moved")
        return False

    def remote(self, base: str, tops: Sequence[str]) -> None:
        if not self._may_begin():
            return
        there: dict[str, bool] = {}
        sizes: dict[str, int] = {}
        for top in tops:
            try:
                for entry in self._session.remote.entries(under(base, top), recursive=True):
                    name = under(top, str(entry["name"]))
                    there[name] = entry["type"] == "directory"
                    sizes[name] = int(entry["size"])
            except NotFound:  # a dry run into a directory that is not there yet
                continue
        protected = [*self._protected, *self._shielded(there, self._kept, self._unclear)]
        names = surplus(self._kept, there.items(), protected)
        if self._session.dry_run:
            for name in names:
                self._tell(under(base, name), sizes[name], _below(name, there))
            return
        by_path = {under(base, name): name for name in names}
        for paths in path_groups(list(by_path), REMOVED_AT_ONCE):
            gone = self._session.remote.remove(paths, recursive=True, missing_ok=True)
            rows = {str(row["path"]): (int(row["bytes"]), int(row["files"])) for row in gone}
            for path in paths:
                # Where the answer was lost, the next one no longer names it.
                name = by_path[path]
                size_bytes, files = rows.get(path) or (sizes[name], _below(name, there))
                self._tell(path, size_bytes, files)

    def local(self, target: LocalTarget, tops: Sequence[str]) -> None:
        """Names are compared as the other side, or this file system, would: spelled in NFC."""
        if not self._may_begin():
            return
        there: dict[str, bool] = {}
        paths: dict[str, list[str]] = {}
        for top in tops:
            for name, path, is_folder in _everything(target.path(top), top):
                key = key_here(name)
                there[key] = is_folder or there.get(key, False)
                paths.setdefault(key, []).append(path)
        kept = [key_here(name) for name in self._kept]
        protected = self._shielded(there, kept, [key_here(name) for name in self._unclear])
        for key in surplus(kept, there.items(), protected):
            for path in paths[key]:
                files, size_bytes = _remove_tree(path, is_real=not self._session.dry_run)
                self._tell(path, size_bytes, files)

    def _shielded(
        self, there: Iterable[str], kept: Iterable[str], unclear: Sequence[str]
    ) -> list[str]:
        """What lies directly in an unclear folder: any of it may be what could not be sent."""
        folders, wanted = set(unclear), set(kept)
        names = [
            name
            for name in (there if folders else ())
            if name.rpartition("/")[0] in folders and name not in wanted
        ]
        for folder in sorted({name.rpartition("/")[0] for name in names}):
            self._session.note(
                f"nothing was removed from {folder or 'the folder itself'}: the source has links "
                "or special files there, which are not copied"
            )
        return names

    def _tell(self, path: str, size_bytes: int, files: int) -> None:
        self._session.summary.removed_files += files
        action: Action = "would remove" if self._session.dry_run else "removed"
        self._session.done("", path, size_bytes, 0, action)


def _below(name: str, there: Mapping[str, bool]) -> int:
    """How many files a name stands for."""
    start = name + "/"
    return sum(
        not is_directory and (other == name or other.startswith(start))
        for other, is_directory in there.items()
    )


def _everything(path: str, prefix: str) -> Iterator[tuple[str, str, bool]]:
    """(name, path, is a directory) of all that is below a local directory, links as files."""
    pending = [(path, prefix)]
    while pending:
        folder, above = pending.pop()
        try:
            with os.scandir(folder) as scan:
                for entry in scan:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    yield under(above, entry.name), entry.path, is_folder
                    if is_folder:
                        pending.append((entry.path, under(above, entry.name)))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise cannot("read", folder, error).error from error


def _remove_tree(path: str, *, is_real: bool) -> tuple[int, int]:
    """Files and bytes of what was removed, or would be. Links are removed, never followed."""
    try:
        info = os.lstat(path)
        if not stat.S_ISDIR(info.st_mode):
            if is_real:
                os.unlink(path)
            return 1, info.st_size
        files = size_bytes = 0
        for name in os.listdir(path):
            some, some_bytes = _remove_tree(os.path.join(path, name), is_real=is_real)
            files, size_bytes = files + some, size_bytes + some_bytes
        if is_real:
            os.rmdir(path)
        return files, size_bytes
    except FileNotFoundError:
        return 0, 0
    except OSError as error:
        raise cannot("remove", path, error).error from error
