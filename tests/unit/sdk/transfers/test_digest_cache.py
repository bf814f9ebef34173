"""What is remembered of local files, and when it counts."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from paddlecloud.sdk.transfers import digest_cache
from paddlecloud.sdk.transfers.digest_cache import DigestCache
from paddlecloud.sdk.transfers.walking import Found, found


def found_at(path: Path) -> Found:
    return found(path.name, str(path), path.stat())


def test_an_unchanged_file_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "d" / "f"
    path.parent.mkdir()
    path.write_bytes(b"abc")
    file = found_at(path)
    cache = DigestCache(str(tmp_path / "cache" / "digests.db"))
    cache.learn(file, b"l" * 32)
    cache.close()
    again = DigestCache(str(tmp_path / "cache" / "digests.db"))
    assert again.look_up([file], [str(tmp_path / "d")]) == [b"l" * 32]
    assert again.look_up([file], [str(path)]) == [b"l" * 32]
    again.close()


def test_what_a_server_told_counts_with_that_server_only(tmp_path: Path) -> None:
    path = tmp_path / "d" / "f"
    path.parent.mkdir()
    path.write_bytes(b"abc")
    file, place, leaves = found_at(path), str(tmp_path / "digests.db"), b"l" * 64
    told = DigestCache(place, "http://one")
    told.learn(file, leaves, told=True)
    told.learn_folder(str(path.parent), b"state", b"f" * 32)
    told.close()
    for server, is_believed in (("http://one", True), ("http://other", False), ("", False)):
        cache = DigestCache(place, server)
        known = cache.below([str(path.parent)])
        assert known.leaves_of(file) == (leaves if is_believed else None)
        folder = known.folder_digest(str(path.parent), b"state")
        assert folder == (b"f" * 32 if is_believed else None)
        cache.close()
    own = DigestCache(place, "http://other")
    own.learn(file, leaves)
    own.close()
    assert DigestCache(place, "http://one").look_up([file], [str(path.parent)]) == [leaves]


@pytest.mark.parametrize("field", ["size_bytes", "mtime_ns", "ctime_ns", "inode"])
def test_any_sign_of_change_forgets_the_digest(tmp_path: Path, field: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    file = found_at(path)
    cache = DigestCache(str(tmp_path / "digests.db"))
    cache.learn(file, b"l" * 32)
    cache.flush()
    other = file._replace(**{field: getattr(file, field) + 1})
    assert cache.look_up([file, other], [str(tmp_path)]) == [b"l" * 32, None]
    cache.close()


def test_a_same_second_rewrite_with_the_old_times_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    os.utime(path, ns=(1, 1))
    file = found_at(path)
    cache = DigestCache(str(tmp_path / "digests.db"))
    cache.learn(file, b"l" * 32)
    cache.flush()
    time.sleep(0.02)  # a tick of the file system's clock
    path.write_bytes(b"xyz")
    os.utime(path, ns=(1, 1))
    assert cache.look_up([found_at(path)], [str(tmp_path)]) == [None]
    cache.close()


@pytest.mark.parametrize("damage", [b"", b"not a database" * 1000])
def test_a_damaged_cache_is_thrown_away(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    place = tmp_path / "digests.db"
    place.write_bytes(damage)
    cache = DigestCache(str(place))
    cache.look_up([found_at(path)], [str(tmp_path)])
    cache.learn(found_at(path), b"l" * 32)
    cache.close()
    again = DigestCache(str(place))
    again.learn(found_at(path), b"l" * 32)
    again.flush()
    assert again.look_up([found_at(path)], [str(tmp_path)]) == [b"l" * 32]
    again.close()


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = DigestCache(str(tmp_path / "file" / "digests.db"))
    file = found_at(tmp_path / "file")
    cache.learn(file, b"l" * 32)
    cache.flush()
    assert cache.look_up([file], [str(tmp_path)]) == [None]
    cache.close()


def test_huge_inodes_fit(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    file = found_at(tmp_path / "f")._replace(inode=2**64 - 3)
    cache = DigestCache(str(tmp_path / "digests.db"))
    cache.learn(file, b"l" * 32)
    cache.flush()
    assert cache.look_up([file], [str(tmp_path)]) == [b"l" * 32]
    cache.close()


@pytest.mark.needs("linux")
def test_a_path_that_is_no_text_is_remembered_too(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(folder)
    path = Path(folder) / "f"
    path.write_bytes(b"abc")
    cache = DigestCache(str(tmp_path / "digests.db"))
    assert cache.look_up([found_at(path)], [folder]) == [None]
    cache.learn(found_at(path), b"l" * 32)
    cache.learn_folder(folder, b"s" * 32, b"d" * 32)
    cache.flush()
    assert cache.look_up([found_at(path)], [folder]) == [b"l" * 32]
    assert cache.below([folder]).folder_digest(folder, b"s" * 32) == b"d" * 32
    cache.close()


def test_what_an_older_version_believed_is_not_believed(tmp_path: Path) -> None:
    import sqlite3

    place = str(tmp_path / "digests.db")
    with sqlite3.connect(place) as old:
        old.execute("CREATE TABLE digests_2 (path TEXT PRIMARY KEY, known BLOB) WITHOUT ROWID")
    cache = DigestCache(place)
    cache.look_up([found_at(Path(place))], [str(tmp_path)])
    cache.close()
    with sqlite3.connect(place) as new:
        names = {name for (name,) in new.execute("SELECT name FROM sqlite_master")}
    assert "digests_2" not in names
    assert names


def test_the_cache_is_where_the_user_keeps_such_things(tmp_path: Path) -> None:
    place = digest_cache.cache_directory({"XDG_CACHE_HOME": str(tmp_path)})
    assert place == str(tmp_path / "paddlecloud")
