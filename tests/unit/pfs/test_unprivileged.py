"""A store that does not run as root: directories a job closed are copied, refused and removed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.core.errors import NotAllowed
from paddlecloud.pfs.owners import Owner
from tests.storing import Bench, at

NOBODY = 65_534
ANN = Owner("ann", 1, None)


def _as_nobody(work: Callable[[Path], None]) -> None:
    """Run in a fork that is nobody; fails as the work fails."""
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, NOBODY, NOBODY)
    child = os.fork()
    if child == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work(folder / "pfs")
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    shutil.rmtree(folder)
    assert status == 0


def _close(folder: Path, mode: int) -> None:
    (folder / "sub").chmod(mode)
    folder.chmod(mode)


def _copy_and_remove(root: Path) -> None:
    bench = Bench(root, who=ANN)
    bench.batch({"d/sub/f": b"1", "d/g": b"2"})
    _close(bench.home / "d", 0o500)
    assert bench.store.copy(ANN, at("d"), at("copy"), recursive=True).files == 2
    (removed,) = bench.store.remove(ANN, [at("d")], recursive=True)
    assert (removed.files, bench.leftovers()) == (2, [])
    assert bench.get("copy/sub/f") == b"1"


def _refuse(root: Path) -> None:
    bench = Bench(root, who=ANN)
    bench.put("d/sub/f", b"1")
    _close(bench.home / "d", 0o000)
    assert bench.names() == ["d"]
    with pytest.raises(NotAllowed):
        bench.put("d/g", b"2")
    result = bench.batch({"d/g": b"2", "h": b"3"})
    assert [index for index, _ in result.refused] == [0]
    (removed,) = bench.store.remove(ANN, [at("d")], recursive=True)
    assert (removed.files, bench.leftovers()) == (1, [])


@pytest.mark.root
@pytest.mark.parametrize("work", [_copy_and_remove, _refuse])
def test_a_closed_directory(work: Callable[[Path], None]):
    _as_nobody(work)
