"""A file store under test: short words for putting and getting, and a little disk of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.pfs.batches import Batch
from paddlecloud.pfs.owners import Owner
from paddlecloud.pfs.shapes import BatchResult, Entry, UploadWish
from paddlecloud.pfs.store import Store
from paddlecloud.wire.digests import LEAF_BYTES, combine, folder_digest, leaf_hash
from paddlecloud.wire.pfspath import PfsPath
from paddlecloud.wire.records import Head, Kind

DATACENTER = "local"
IS_ROOT = os.geteuid() == 0


def owner(name: str = "ann", account_id: int = 1, **limits: int | None) -> Owner:
    return Owner(name, account_id, 210_000 + account_id if IS_ROOT else None, **limits)


ANN = owner()
BOB = owner("bob", 2)


def at(relative: str = "", user: str = "ann") -> PfsPath:
    return PfsPath.parse(f"/pfs/{DATACENTER}/home/{user}/{relative}".rstrip("/"))


def leaves_of(data: bytes) -> list[bytes]:
    pieces = [data[n : n + LEAF_BYTES] for n in range(0, len(data), LEAF_BYTES)] or [b""]
    leaves = []
    for piece in pieces:
        whole = leaf_hash()
        whole.update(piece)
        leaves.append(whole.digest())
    return leaves


def digest_of(data: bytes) -> bytes:
    return combine(leaves_of(data))


class Bench:
    """A store and its caller."""

    def __init__(self, root: Path, *, sync: bool = True, who: Owner = ANN) -> None:
        self.root = root
        self.who = who
        self.sync = sync
        self.store = Store(root, [DATACENTER], sync=sync).open()

    @property
    def home(self) -> Path:
        return self.root / "home" / self.who.name

    @property
    def parts(self) -> Path:
        return self.root / ".paddlefs" / "parts" / str(self.who.account_id)

    def reopen(self) -> None:
        self.store.close()
        self.store = Store(self.root, [DATACENTER], sync=self.sync).open()

    def put(self, relative: str, data: bytes, **wish: object) -> Entry:
        """Through an upload, in one body."""
        path = at(relative, self.who.name)
        upload = self.store.begin_upload(
            self.who,
            UploadWish(path, len(data), source=digest_of(data).hex(), **wish),  # type: ignore[arg-type]
        )
        receiver = upload.receive(0, len(data))
        receiver.write(data)
        receiver.finish()
        return upload.commit(digest_of(data))

    def get(self, relative: str) -> bytes:
        with self.store.open_content(self.who, at(relative, self.who.name)) as content:
            data = os.pread(content.fd, content.size_bytes + 1, 0)
        assert len(data) == content.size_bytes
        return data

    def batch(self, files: dict[str, bytes], base: str = "") -> BatchResult:
        batch = self.begin_batch(files, base)
        return batch.commit()

    def begin_batch(self, files: dict[str, bytes], base: str = "", directories: int = 0) -> Batch:
        size_bytes, records = sum(map(len, files.values())), len(files) + directories
        batch = self.store.begin_batch(self.who, at(base, self.who.name), records, size_bytes)
        for name, data in files.items():
            send(batch, name, data)
        return batch

    def names(self, relative: str = "", *, recursive: bool = True) -> list[str]:
        page = self.store.entries(
            self.who, at(relative, self.who.name), recursive=recursive, limit=10_000
        )
        assert page.next is None
        return [entry.name for entry in page.entries]

    def compare(self, files: dict[str, bytes], base: str = "") -> dict[str, list[int]]:
        rows = [(name, len(data), digest_of(data).hex()) for name, data in files.items()]
        told = self.store.compare(self.who, at(base, self.who.name), rows).to_json()
        assert told.pop("folders") == []
        return told

    def has_folder(self, name: str, files: dict[str, bytes], executable: bool = False) -> bool:
        """Whether the store says that it holds exactly these files, asked as one."""
        rows = [(each, executable, digest_of(data)) for each, data in files.items()]
        wanted = (name, len(files), folder_digest(rows).hex())
        return not self.store.compare(self.who, at("", self.who.name), [], [wanted]).folders

    def leftovers(self) -> list[str]:
        return sorted(os.listdir(self.parts)) if self.parts.exists() else []

    def used(self) -> tuple[int, int]:
        """(bytes, files) that count against the limits."""
        answer = self.store.usage(self.who, at("", self.who.name))
        return answer.used_bytes, answer.used_files


def send(
    batch: Batch,
    name: str,
    data: bytes,
    *,
    digest: bytes | None = None,
    kind: Kind = Kind.FILE,
    mtime_ns: int | None = None,
) -> None:
    batch.begin_file(Head(kind, len(data), mtime_ns, len(name.encode())), name)
    if data:
        batch.write(data)
    batch.end_file(digest_of(data) if digest is None else digest)


@contextmanager
def little_disk(folder: Path, size_bytes: int) -> Iterator[Path]:
    """An ext4 of its own, mounted; needs "loop-mount"."""
    image, point = folder / "image", folder / "disk"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(size_bytes)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)


@contextmanager
def unmounted(point: Path, image: Path) -> Iterator[None]:
    """For as long as it takes: nobody may have a file of it open."""
    subprocess.run(["umount", str(point)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=True)


def fill(path: Path) -> None:
    """As a job does: until nothing fits."""
    with path.open("wb", buffering=0) as file:
        for piece in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * piece)
            except OSError:
                continue
