"""Which names are taken and shown, and what users read when the disk says no."""

from __future__ import annotations

import errno
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core import errors
from paddlecloud.pfs.faults import name_error
from paddlecloud.pfs.relative_names import check_name, is_plain, split
from paddlecloud.wire.pfspath import BadPath, PfsPath


@pytest.mark.parametrize(
    "name", ["a", "a b", "é", "日本", "x" * 255, "...", ".a", "a\\b", "\u2028"]
)
def test_takes_a_name(name: str):
    check_name(name)
    assert is_plain(name)
    assert split(f"d/{name}") == ("d", name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a\0", "a\n", "\x7f", "e\u0301", "x" * 256, "é" * 128, "\ud800"]
)
def test_refuses_a_name(name: str):
    with pytest.raises(BadPath):
        check_name(name)
    with pytest.raises(BadPath):
        split(f"d/{name}")


@pytest.mark.parametrize("name", ["/a", "a/", "a//b", "a/../b", "./a", "a/" * 3000 + "a"])
def test_refuses_a_relative_path(name: str):
    with pytest.raises(BadPath):
        split(name)


@given(st.text(min_size=1, max_size=20))
def test_takes_a_name_exactly_when_a_path_would_keep_it_as_it_is(name: str):
    try:
        kept = PfsPath.parse(f"/pfs/dc/home/u/{name}").parts == (name,)
    except BadPath:
        kept = False
    try:
        check_name(name)
        taken = "/" not in name
    except BadPath:
        taken = False
    assert taken == kept
    if taken:
        assert is_plain(name)
        assert unicodedata.is_normalized("NFC", name)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, errors.OutOfSpace),
        (errno.EDQUOT, errors.OutOfSpace),
        (errno.ENOENT, errors.NotFound),
        (errno.ENOTDIR, errors.NotFound),
        (errno.ELOOP, errors.NotFound),
        (errno.EISDIR, errors.InvalidInput),
        (errno.EEXIST, errors.Conflict),
        (errno.ENOTEMPTY, errors.Conflict),
        (errno.EACCES, errors.NotAllowed),
        (errno.ENAMETOOLONG, errors.InvalidInput),
        (errno.EMFILE, errors.Unavailable),
        (errno.EIO, errors.Unavailable),
        (errno.EROFS, errors.Unavailable),
        (errno.EXDEV, errors.Conflict),
        (errno.EDOM, errors.InternalError),
    ],
)
def test_names_an_error_of_the_disk(number: int, kind: type[errors.PaddleCloudError]):
    named = name_error(OSError(number, "x"), PfsPath.parse("/pfs/dc/home/u/f"))
    assert type(named) is kind


def test_a_full_disk_and_a_full_quota_are_told_apart():
    disk = name_error(OSError(errno.ENOSPC, "x"), "f").to_json()
    quota = errors.error_from_json({"code": "quota_exceeded", "message": "m"})
    assert disk["code"] == "out_of_space"
    assert isinstance(quota, errors.QuotaExceeded)
    assert isinstance(quota, errors.OutOfSpace)
    assert quota.http_status == 507
