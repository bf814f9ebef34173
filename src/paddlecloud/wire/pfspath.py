"""`PfsPath`: a parsed and safe path of the user-visible file tree.

    /pfs/<datacenter>/home/<user>/...     a user's own files
    /pfs/<datacenter>/public/...          data for everyone, read-only

`parse` is the only way from text to a path; a store accepts nothing else. The text must already
be decoded: `%2e` here is three ordinary characters, never decoded again. What a `PfsPath` holds
has no `..`, no empty part, no control character, and is in Unicode NFC, so that one visible name
is one path. Whether the caller may use the path is decided elsewhere.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from paddlecloud.core.errors import InvalidInput

MAX_PATH_BYTES = 4096
MAX_PART_BYTES = 255

HOME = "home"
PUBLIC = "public"


class BadPath(InvalidInput):
    """The text is not a path of /pfs. The message says why in the words of the first server."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint, field="path")


def check_part(part: str) -> None:
    """Refuse what cannot be one name in a directory."""
    if part in ("", ".", ".."):
        raise BadPath(f"a path cannot have the part {part!r}")
    if "/" in part:
        raise BadPath("a name cannot contain '/'")
    if any(unicodedata.category(char) == "Cc" for char in part):
        raise BadPath("a path cannot contain control characters")
    try:
        size_bytes = len(part.encode())
    except UnicodeEncodeError:
        raise BadPath("a path must be valid Unicode") from None
    if size_bytes > MAX_PART_BYTES:
        raise BadPath(f"a name in a path can have {MAX_PART_BYTES} bytes, not {size_bytes}")


def _split(text: str) -> list[str]:
    if len(text) > MAX_PATH_BYTES:  # before any work that grows with it
        raise BadPath(f"a path can have {MAX_PATH_BYTES} bytes")
    parts = [part for part in unicodedata.normalize("NFC", text).split("/") if part]
    if ".." in parts:
        raise BadPath("a path cannot contain '..'", hint="write the whole path from /pfs on")
    parts = [part for part in parts if part != "."]
    for part in parts:
        check_part(part)
    return parts


class PfsPath(NamedTuple):
    datacenter: str
    area: str  # "home" or "public"
    user: str  # whose home; empty in "public"
    parts: tuple[str, ...] = ()  # below the home or the public directory
    is_directory: bool = False  # written with a slash at the end

    @classmethod
    def parse(cls, text: str) -> PfsPath:
        """Repeated slashes and `.` are dropped, `..` is refused; see the module."""
        if text != "/pfs" and not text.startswith("/pfs/"):
            raise BadPath("path must start with /pfs", hint="such as /pfs/<datacenter>/home/<user>")
        parts = _split(text)[1:]
        fixed = 2 if parts[1:2] == [PUBLIC] else 3
        if len(parts) < fixed or parts[1] not in (HOME, PUBLIC):
            raise BadPath("path must like /pfs/[dc]/home/[user]")
        path = cls(
            datacenter=parts[0],
            area=parts[1],
            user=parts[2] if fixed == 3 else "",
            parts=tuple(parts[fixed:]),
            is_directory=text.rpartition("/")[2] in ("", "."),
        )
        if len(str(path).encode()) > MAX_PATH_BYTES:
            raise BadPath(f"a path can have {MAX_PATH_BYTES} bytes")
        return path

    @classmethod
    def home(cls, datacenter: str, user: str) -> PfsPath:
        for part in (datacenter, user):
            check_part(part)
        return cls(datacenter, HOME, user, is_directory=True)

    def __str__(self) -> str:
        user = (self.user,) if self.area == HOME else ()
        text = "/".join(("/pfs", self.datacenter, self.area, *user, *self.parts))
        return f"{text}/" if self.is_directory else text

    @property
    def root(self) -> PfsPath:
        """The home, or the public directory, that it lies in."""
        return self._replace(parts=(), is_directory=True)

    @property
    def is_root(self) -> bool:
        return not self.parts

    @property
    def name(self) -> str:
        """The last part; empty for a root."""
        return self.parts[-1] if self.parts else ""

    @property
    def parent(self) -> PfsPath:
        """The directory it lies in; a root is its own parent."""
        return self._replace(parts=self.parts[:-1], is_directory=True)

    def child(self, name: str) -> PfsPath:
        """One level down. The name is checked like any part of a path."""
        name = unicodedata.normalize("NFC", name)
        check_part(name)
        path = self._replace(parts=(*self.parts, name), is_directory=False)
        if len(str(path).encode()) > MAX_PATH_BYTES:
            raise BadPath(f"a path can have {MAX_PATH_BYTES} bytes")
        return path

    def is_below(self, other: PfsPath) -> bool:
        """Whether it is `other` or lies anywhere under it."""
        return (
            (self.datacenter, self.area, self.user) == (other.datacenter, other.area, other.user)
        ) and self.parts[: len(other.parts)] == other.parts
