"""The store against a dictionary: whatever is done in whatever order, both hold the same files."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from paddlecloud.core.errors import Conflict, InvalidInput, NotFound, PaddleCloudError
from paddlecloud.pfs.shapes import UploadWish
from paddlecloud.wire.digests import LEAF_BYTES
from tests.storing import ANN, Bench, at, digest_of

NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a", "é ö", "d/e"])
SMALL = st.sampled_from([b"", b"1", b"2", b"x" * 5000])
CONTENTS = st.one_of(SMALL, SMALL, SMALL, st.just(b"y" * (LEAF_BYTES + 3)))


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.bench = Bench(self.folder / "pfs", sync=False)
        self.files: dict[str, bytes] = {}
        self.directories: set[str] = set()
        self.cut: dict[str, bytes] = {}

    def teardown(self) -> None:
        self.bench.store.close()
        shutil.rmtree(self.folder)

    # --- the model ---

    def _is_blocked(self, name: str) -> bool:
        """A directory is there, or a file where a directory must be."""
        return name in self.directories or any(above in self.files for above in _above(name))

    def _set(self, name: str, data: bytes) -> None:
        self.files[name] = data
        self.directories.update(_above(name))

    def _below(self, name: str) -> list[str]:
        return [one for one in (*self.files, *self.directories) if one.startswith(name + "/")]

    def _forget(self, name: str) -> None:
        for one in (name, *self._below(name)):
            self.files.pop(one, None)
            self.directories.discard(one)

    # --- what users do ---

    @rule(name=NAMES, data=CONTENTS)
    def put(self, name: str, data: bytes) -> None:
        if self._is_blocked(name):
            with pytest.raises((Conflict, NotFound)):
                self.bench.put(name, data)
            return
        self.bench.put(name, data)
        self._set(name, data)

    @rule(name=NAMES, data=CONTENTS)
    def put_and_cut(self, name: str, data: bytes) -> None:
        if self._is_blocked(name) or not data:
            return
        upload = self.bench.store.begin_upload(
            ANN, UploadWish(at(name), len(data), source=digest_of(data).hex())
        )
        receiver = upload.receive(0, len(data))
        receiver.write(data[: len(data) - 1])
        receiver.cut()
        self.cut[upload.id] = data

    @rule(names=st.lists(NAMES, max_size=4, unique=True), data=SMALL)
    def batch(self, names: list[str], data: bytes) -> None:
        small = data[:100]
        blocked = {name for name in names if self._is_blocked(name)}
        if any(set(_above(name)) & set(names) for name in names):
            return  # they would be in each other's way
        result = self.bench.batch({name: small for name in names})
        assert {index for index, _ in result.refused} == {names.index(name) for name in blocked}
        for name in set(names) - blocked:
            self._set(name, small)

    @rule(name=NAMES, data=SMALL)
    def cut_a_batch(self, name: str, data: bytes) -> None:
        self.bench.begin_batch({name: data[:100]}).abandon()

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if name in self.files or name in self.directories:
            self.bench.store.remove(ANN, [at(name)], recursive=True)
            self._forget(name)
        else:
            with pytest.raises(NotFound):
                self.bench.store.remove(ANN, [at(name)], recursive=True)

    @rule(source=NAMES, goal=NAMES, replace=st.booleans())
    def move(self, source: str, goal: str, replace: bool) -> None:
        is_there = source in self.files or source in self.directories
        taken = goal in self.directories or (
            goal in self.files and not (replace and source in self.files)
        )
        inside = goal.startswith(source + "/")
        parent_is_file = any(above in self.files for above in _above(goal))
        if source == goal or not is_there or taken or inside or parent_is_file:
            if source == goal and is_there:
                self.bench.store.move(ANN, at(source), at(goal), replace=replace)
                return
            with pytest.raises((NotFound, Conflict, InvalidInput)):
                self.bench.store.move(ANN, at(source), at(goal), replace=replace)
            if is_there and not inside and not parent_is_file:
                self.directories.update(_above(goal))
            return
        self.bench.store.move(ANN, at(source), at(goal), replace=replace)
        moved = [source, *self._below(source)]
        for one in moved:
            new = goal + one[len(source) :]
            if one in self.files:
                self._set(new, self.files[one])
            else:
                self.directories.update((new, *_above(new)))
        for one in moved:
            self.files.pop(one, None)
            self.directories.discard(one)

    @rule(name=NAMES, data=SMALL)
    def a_job_writes(self, name: str, data: bytes) -> None:
        if name in self.files:
            (self.bench.home / name).write_bytes(data)
            self.files[name] = data

    @rule()
    def reopen(self) -> None:
        self.bench.reopen()

    @precondition(lambda self: self.cut)
    @rule(back=st.integers(0, 3))
    def go_on(self, back: int) -> None:
        """With the bytes that are missing, and some that are not."""
        upload_id, data = self.cut.popitem()
        try:
            upload = self.bench.store.upload(ANN, upload_id)
        except NotFound:
            return  # it was finished
        if upload.is_committed:
            return
        last = (len(data) - 1) // LEAF_BYTES
        begun = dict(upload.to_json()["begun"])
        assert begun.keys() <= {last}
        offset = last * LEAF_BYTES + max(0, begun.get(last, 0) - back)
        receiver = upload.receive(offset, len(data) - offset)
        receiver.write(data[offset:])
        receiver.finish()
        assert upload.wish.path is not None
        name = "/".join(upload.wish.path.parts)
        if self._is_blocked(name):
            with pytest.raises((Conflict, NotFound)):
                upload.commit(digest_of(data))
            self.cut[upload_id] = data
            return
        upload.commit(digest_of(data))
        self._set(name, data)

    @precondition(lambda self: self.cut)
    @rule()
    def give_up(self) -> None:
        for upload_id in self.cut:
            try:
                self.bench.store.upload(ANN, upload_id).abandon()
            except PaddleCloudError:
                continue  # it was finished
        self.cut.clear()

    # --- what must hold ---

    @invariant()
    def holds_the_same_files(self) -> None:
        assert self.bench.names() == sorted(
            (*self.files, *self.directories), key=lambda name: name.split("/")
        )
        for name, data in self.files.items():
            with self.bench.store.open_content(ANN, at(name)) as content:
                assert content.size_bytes == len(data)
                assert os.pread(content.fd, 10_000, 0) == data[:10_000]

    @invariant()
    def compares_by_content(self) -> None:
        assert self.bench.compare(self.files) == {"missing": [], "different": [], "blocked": []}
        others = {
            name: bytes([(data[0] + 1) % 256]) + data[1:]
            for name, data in self.files.items()
            if data
        }
        assert len(self.bench.compare(others)["different"]) == len(others)

    @invariant()
    def never_takes_a_folder_for_another(self) -> None:
        """It may not know; it may not be wrong."""
        for folder in {name.rpartition("/")[0] for name in self.files}:
            start = len(folder) + 1 if folder else 0
            inside = {
                name[start:]: data
                for name, data in self.files.items()
                if name.rpartition("/")[0] == folder
            }
            self.bench.has_folder(folder, inside)
            for name, data in inside.items():
                assert not self.bench.has_folder(folder, {**inside, name: data + b"x"})

    @invariant()
    def keeps_nothing_hidden_but_what_was_cut(self) -> None:
        unfinished = {row.id for row in self.bench.store.uploads(ANN)}
        assert unfinished <= set(self.cut)
        hidden = {name.split(".")[0].removeprefix("up-") for name in self.bench.leftovers()}
        assert hidden == unfinished


def _above(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


TestStore = pytest.mark.slow(StoreMachine.TestCase)
TestStore.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
