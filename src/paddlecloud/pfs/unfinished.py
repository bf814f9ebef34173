"""The uploads of all accounts: begin one, find it again, list them, sweep the forgotten.

The id is a function of who sends which file where, so the same command finds its upload again, and
nobody can name another account's. Called by the store; what an upload does is in `uploads`.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

from paddlecloud.core.errors import (
    InvalidInput,
    NotFound,
    OutOfSpace,
    PaddleCloudError,
    RateLimited,
)
from paddlecloud.pfs.boots import boot_id
from paddlecloud.pfs.directories import Directories, Parts
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import named
from paddlecloud.pfs.owners import Owner, Places, account_folders
from paddlecloud.pfs.publishing import Services, standing
from paddlecloud.pfs.shapes import UploadRow, UploadWish
from paddlecloud.pfs.uploads import Upload
from paddlecloud.pfs.usage import Reservation
from paddlecloud.wire.digests import is_digest, leaf_hash
from paddlecloud.wire.pfspath import PfsPath

FORGOTTEN_S = 7 * 24 * 3600
MOST_UNFINISHED = 256  # of one account; who sends more at a time has lost track of them
_REMEMBER_DONE = 4096
_MOST_SOURCE_BYTES = 4096
_MOST_BYTES = 1 << 62
_Key = tuple[int, str]


class Uploads:
    def __init__(self, places: Places, services: Services) -> None:
        self._places = places
        self._services = services
        self._lock = threading.RLock()
        self._live: dict[_Key, Upload] = {}
        self._done: OrderedDict[_Key, Upload] = OrderedDict()

    def begin(self, owner: Owner, wish: UploadWish) -> Upload:
        target = self._target(owner, wish)
        key = (owner.account_id, _id_of(owner, wish))
        while True:
            # Not under the lock all accounts share: one of them may be in the sync of its commit.
            with self._lock:
                upload = self._live.get(key)
            if upload is None:
                upload = self._begin(key, owner, wish, target)
                if upload is not None:
                    return upload
            elif upload.renew(owner, wish, target[0]):
                upload.wait_for_bytes_on_the_way()
                return upload

    def _begin(
        self, key: _Key, owner: Owner, wish: UploadWish, target: tuple[Tree, Parts]
    ) -> Upload | None:
        """A new one; None when another connection was faster."""
        self._check_room(owner, wish, target[0].free_bytes())
        # May walk a home, so not under the lock that all accounts share.
        reservation = self._services.usage.reserve(owner, wish.size_bytes, 1)
        with self._lock:
            if key in self._live:
                reservation.release()
                return None
            upload = self._make(key, owner, wish, target, reservation)
            try:
                upload.create()
            except PaddleCloudError:
                upload.abandon()
                raise
            self._done.pop(key, None)
            self._live[key] = upload
            return upload

    def _check_room(self, owner: Owner, wish: UploadWish, free_bytes: int) -> None:
        """What is announced is only a promise, but nobody may promise more than could be kept."""
        with self._lock:
            others = [up for key, up in self._live.items() if key[0] == owner.account_id]
        if len(others) >= MOST_UNFINISHED:
            raise RateLimited(
                f"an account may have {MOST_UNFINISHED} unfinished uploads",
                hint="finish some of them, or give them up: GET /uploads, DELETE /uploads/<id>",
            )
        missing_bytes = sum(up.missing_bytes for up in others)
        if wish.size_bytes + missing_bytes > free_bytes:
            promised = f" and {missing_bytes} of uploads under way" if missing_bytes else ""
            raise OutOfSpace(
                f"{wish.size_bytes} bytes{promised} do not fit: {free_bytes} are free on the disk"
                " of the file store",
                field="size",
            )

    def _make(
        self,
        key: _Key,
        owner: Owner,
        wish: UploadWish,
        target: tuple[Tree, Parts],
        reservation: Reservation,
    ) -> Upload:
        folder = self._places.parts_of(owner.account_id)
        return Upload(key[1], owner, wish, folder, target, self._services, reservation, self._ended)

    def _target(self, owner: Owner, wish: UploadWish) -> tuple[Tree, Parts]:
        if not 0 <= wish.size_bytes <= _MOST_BYTES:
            raise InvalidInput("must be a number of bytes", field="size")
        if len(wish.source) > _MOST_SOURCE_BYTES:
            raise InvalidInput(f"may have {_MOST_SOURCE_BYTES} characters", field="source")
        if wish.blob is not None:
            if not is_digest(wish.blob):
                raise InvalidInput("must be 64 hex digits", field="blob")
            return Tree(self._places.blobs_of(owner.account_id)), (wish.blob[:2], wish.blob)
        path = wish.path
        if path is None:
            raise InvalidInput("must be given", field="path")
        if path.is_root or path.is_directory:
            raise InvalidInput("must name a file, not a directory", field="path")
        tree = self._places.tree(owner, path, to_write=True)
        # A directory that is not there yet will be made.
        with named(path), Directories(tree) as dirs, suppress(FileNotFoundError):
            standing(dirs.open(path.parts[:-1]), path.name)
        return tree, path.parts

    def get(self, owner: Owner, upload_id: str) -> Upload:
        key = (owner.account_id, upload_id)
        with self._lock:
            upload = self._live.get(key) or self._done.get(key)
        if upload is None:
            raise NotFound(
                "no such upload", field="id", hint="it is finished or was swept; begin it again"
            )
        return upload

    def _ended(self, upload: Upload) -> None:
        """It was committed or abandoned; the answer to a commit can be given again."""
        key = (upload.owner.account_id, upload.id)
        with self._lock:
            if self._live.get(key) is not upload:
                return
            del self._live[key]
            if not upload.is_committed:
                return
            self._done[key] = upload
            if len(self._done) > _REMEMBER_DONE:
                self._done.popitem(last=False)

    def rows(self, owner: Owner) -> list[UploadRow]:
        with self._lock:
            mine = [up for key, up in self._live.items() if key[0] == owner.account_id]
        return sorted((upload.to_row() for upload in mine), key=lambda row: (row.path, row.id))

    # --- across restarts ---

    def take_up(self) -> None:
        """Find what an earlier process left; the rest of its parts is deleted by the sweep."""
        boot = boot_id()
        for folder in account_folders(self._places.hidden / "parts"):
            for note in folder.glob("up-*.json"):
                with suppress(OSError, ValueError, KeyError, TypeError, PaddleCloudError):
                    self._take_up(int(folder.name), note, boot)

    def _take_up(self, account_id: int, note: Path, boot: str) -> None:
        body: dict[str, Any] = json.loads(note.read_text())
        owner = Owner(body["owner"], account_id, body["uid"])
        wish = UploadWish(
            path=None if body["path"] is None else PfsPath.parse(body["path"]),
            size_bytes=body["size"],
            mtime_ns=body["mtime_ns"],
            executable=body["executable"],
            source=body["source"],
            blob=body["blob"],
        )
        key = (account_id, note.name.removeprefix("up-").removesuffix(".json"))
        if key[1] != _id_of(owner, wish):
            return
        target = self._target(owner, wish)
        held = self._services.usage.readopt(account_id, wish.size_bytes, 1)
        upload = self._make(key, owner, wish, target, held)
        try:
            upload.take_up(is_doubtful=body["boot"] != boot)
        except PaddleCloudError:
            upload.abandon()
            return
        self._live[key] = upload

    def sweep(self, forgotten_s: float = FORGOTTEN_S) -> int:
        """Abandon what nobody came back for; how many."""
        with self._lock:
            idle = [up for up in self._live.values() if up.is_idle]
        forgotten = [
            upload
            for upload in idle
            if upload.age_s() > forgotten_s and time.monotonic() - upload.used_at_s > forgotten_s
        ]
        for upload in forgotten:
            upload.abandon()
        return len(forgotten)

    def names_in_use(self, account_id: int) -> set[str]:
        with self._lock:
            return {f"up-{key[1]}" for key in self._live if key[0] == account_id}


def _id_of(owner: Owner, wish: UploadWish) -> str:
    where = ["path", str(wish.path)] if wish.blob is None else ["blob", wish.blob]
    text = json.dumps([owner.account_id, *where, wish.size_bytes, wish.source])
    whole = leaf_hash()
    whole.update(text.encode())
    return whole.hexdigest()[:32]
