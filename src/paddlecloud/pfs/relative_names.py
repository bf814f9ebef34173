"""Relative names as clients send them and as directories hold them: which are allowed.

The rules are those of `wire.pfspath`; this is their fast way for thousands of names. A name that
is not in NFC is refused rather than changed: the client would never find it again under its own.
"""

from __future__ import annotations

import unicodedata

from paddlecloud.wire.pfspath import MAX_PART_BYTES, MAX_PATH_BYTES, BadPath, check_part


def is_plain(name: str) -> bool:
    """Whether a name found in a directory may be shown: valid UTF-8, NFC, nothing to hide in."""
    if name.isascii():
        return name.isprintable()
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    if unicodedata.normalize("NFC", name) != name:
        return False
    return not any(unicodedata.category(char) == "Cc" for char in name)


def split(name: str) -> tuple[str, ...]:
    """The parts of a relative path, or BadPath."""
    if len(name.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        raise BadPath(f"a path can have {MAX_PATH_BYTES} bytes")
    parts = tuple(name.split("/"))
    for part in parts:
        check_name(part)
    return parts


def check_name(part: str) -> None:
    if part.isascii() and part.isprintable():
        if 0 < len(part) <= MAX_PART_BYTES and part not in (".", "..") and "/" not in part:
            return
    elif unicodedata.normalize("NFC", part) != part:
        raise BadPath(f"{part[:100]!r} is not in Unicode NFC form")
    check_part(part)
