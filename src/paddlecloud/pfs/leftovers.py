"""What a killed server left among the hidden parts: found at the start, removed by and by.

Only at the start is everything that no upload and no note knows of a leftover; later it may be
somebody's work in progress. Trees that were being removed may be large, so they wait for the first
sweep.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from paddlecloud.localfs.trees import empty_and_remove
from paddlecloud.pfs import legacy_notes
from paddlecloud.pfs.owners import account_folders
from paddlecloud.pfs.unfinished import Uploads


class Leftovers:
    def __init__(self, parts: Path) -> None:
        self._parts = parts
        self._paths: list[Path] = []

    def __bool__(self) -> bool:
        return bool(self._paths)

    def find(self, uploads: Uploads) -> None:
        """Note all of them, and remove those that are small."""
        for folder in account_folders(self._parts):
            in_use = uploads.names_in_use(int(folder.name))
            in_use |= {name for name, _ in legacy_notes.find(folder)}
            names = os.listdir(folder)
            self._paths += [folder / one for one in names if one.split(".")[0] not in in_use]
        self._remove(lambda path: not path.name.startswith("gone-"))

    def remove(self) -> None:
        self._remove(lambda path: True)

    def _remove(self, is_wanted: Callable[[Path], bool]) -> None:
        wanted = [path for path in self._paths if is_wanted(path)]
        self._paths = [path for path in self._paths if not is_wanted(path)]
        for path in wanted:
            try:
                empty_and_remove(path)
            except OSError:
                continue  # tried again at the next start
