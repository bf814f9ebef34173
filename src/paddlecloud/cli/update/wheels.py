"""One wheel file: is it ours, is it whole, and its content on the disk.

It promises: nothing is unpacked unless the file's own digest and the digest of every file in it are
right; no entry lands outside the target. Called by `verb` and `environments`.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser

from paddlecloud.core.errors import Conflict, InvalidInput

PACKAGE = "paddlecloud"
_NAME = re.compile(r"(?P<package>[\w.]+)-(?P<version>[^-]+)(?:-\d[^-]*)?-py3-none-any\.whl")
_BLOCK_BYTES = 1 << 20


class Damaged(Conflict):
    """The file is not what it should be; nothing was installed."""

    code = "damaged"
    exit_code = 1


@dataclass(frozen=True, slots=True)
class Wheel:
    path: str
    version: str
    requires_python: str
    requires: tuple[str, ...]  # without those of extras


def version_in(file_name: str) -> str:
    """The version in the name of a wheel of ours, or nothing."""
    match = _NAME.fullmatch(file_name)
    return match["version"] if match and match["package"].lower() == PACKAGE else ""


def digest_of(path: str) -> str:
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK_BYTES):
                found.update(block)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}", field=path) from error
    return found.hexdigest()


def opened(path: str, sha256: str) -> Wheel:
    """What the wheel says of itself, once everything in it was checked."""
    if digest_of(path) != sha256:
        raise Damaged(
            f"{path} does not have the checksum {sha256[:16]}…; nothing was installed",
            hint="fetch it again, and ask where it came from if it happens twice",
        )
    try:
        with zipfile.ZipFile(path) as archive:
            _check_record(archive)
            return _described(path, archive)
    except (zipfile.BadZipFile, KeyError, ValueError, UnicodeDecodeError) as error:
        raise Damaged(f"{path} is no wheel that can be installed: {error}") from error


def _info_folder(archive: zipfile.ZipFile) -> str:
    folders = {name.split("/")[0] for name in archive.namelist()}
    found = [name for name in folders if name.endswith(".dist-info")]
    if len(found) != 1 or any(name.endswith(".data") for name in folders):
        raise ValueError("it has no single .dist-info folder, or a .data folder")
    return found[0]


def _described(path: str, archive: zipfile.ZipFile) -> Wheel:
    text = archive.read(f"{_info_folder(archive)}/METADATA").decode("utf-8")
    head = HeaderParser().parsestr(text)
    version = str(head["Version"])
    if str(head["Name"]).lower() != PACKAGE or version != version_in(os.path.basename(path)):
        raise ValueError(f"it calls itself {head['Name']} {version}")
    requires = [str(each) for each in head.get_all("Requires-Dist", [])]
    own = tuple(each for each in requires if not re.search(r";.*\bextra\b", each))
    return Wheel(path, version, str(head["Requires-Python"] or ""), own)


def _check_record(archive: zipfile.ZipFile) -> None:
    record = f"{_info_folder(archive)}/RECORD"
    listed = {}
    for row in csv.reader(io.StringIO(archive.read(record).decode("utf-8"))):
        if len(row) == 3:
            listed[row[0]] = row[1]
    for name in archive.namelist():
        if name.endswith("/") or name == record:
            continue
        if name.startswith("/") or "\\" in name or ".." in name.split("/"):
            raise ValueError(f"{name} would land outside")
        wanted = listed.get(name, "")
        digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest())
        if wanted != f"sha256={digest.rstrip(b'=').decode()}":
            raise ValueError(f"{name} is not what its list of content says")


def unpack(wheel: Wheel, folder: str) -> None:
    """The content of a wheel that `opened` has checked."""
    with zipfile.ZipFile(wheel.path) as archive:
        archive.extractall(folder)
