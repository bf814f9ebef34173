"""Finding the row of a path costs no more for a path of many parts."""

from __future__ import annotations

import tracemalloc

import pytest

from paddlecloud.core.errors import NotFound
from paddlecloud.pfs.serving import table
from paddlecloud.pfs.serving.handlers import HANDLERS
from paddlecloud.pfs.serving.heads import Head
from paddlecloud.pfs.serving.service import Finder


class Tuples(dict):  # type: ignore[type-arg]
    """Counts what it is asked."""

    asked = 0

    def get(self, key: object, default: object = None) -> object:
        self.asked += 1
        return super().get(key, default)


def _head(path: str, method: str = "GET") -> Head:
    return Head(method, path, {}, {}, 0, keeps_alive=False, expects_continue=False)


def test_looks_only_where_a_row_has_a_segment() -> None:
    find = Finder(table.ROWS, HANDLERS)
    find._open = Tuples(find._open)
    tracemalloc.start()
    try:
        with pytest.raises(NotFound):
            find(_head("/" * 60_000))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert find._open.asked <= len(table.ROWS)


def test_finds_every_row_there_is() -> None:
    find = Finder(table.ROWS, HANDLERS)
    for row in table.ROWS:
        path = "/".join("x" if part.startswith("{") else part for part in row.path.split("/"))
        assert find(_head(path, row.method))[0] is row
