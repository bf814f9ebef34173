"""Taking one file out of a multipart/form-data body, as it arrives.

Only what the old interfaces send: parts with a Content-Disposition, of which one is wanted. Memory
stays at one piece plus a boundary, whatever the file's size. Refuses what it does not understand;
never guesses.
"""

from __future__ import annotations

from email.message import Message

from paddlecloud.core.errors import InvalidInput

_MAX_HEAD_BYTES = 16 * 1024
_HEAD_END = b"\r\n\r\n"


def boundary_of(content_type: str, wanted: str = "file") -> bytes:
    message = Message()
    message["content-type"] = content_type
    boundary = message.get_boundary()
    if message.get_content_type() != "multipart/form-data" or not boundary or len(boundary) > 200:
        raise _bad("the body is not multipart/form-data with a boundary", wanted)
    return boundary.encode("latin-1")


def _bad(problem: str, wanted: str) -> InvalidInput:
    hint = f"send multipart/form-data with a part `{wanted}`"
    return InvalidInput(problem, field=wanted, hint=hint)


class FilePart:
    """Feed pieces of the body; get back pieces of the wanted part."""

    def __init__(self, boundary: bytes, wanted: str = "file") -> None:
        self._wanted = wanted
        self._mark = b"\r\n--" + boundary
        # The first boundary has no line before it; as if it had, all are found alike.
        self._data = b"\r\n"
        self._in_head = False
        self._is_wanted = False
        self.is_over = False
        self.was_found = False
        self.file_name = ""  # of the wanted part, once it was found

    def feed(self, piece: bytes | memoryview) -> bytes:
        self._data += piece
        wanted = b""
        is_moving = True
        while is_moving and not self.is_over:
            if self._in_head:
                is_moving = self._read_head()
            else:
                is_wanted = self._is_wanted
                content, is_moving = self._read_content()
                if is_wanted:
                    wanted += content
        if self.is_over:
            self._data = b""  # what follows the end means nothing
        return wanted

    def finish(self) -> None:
        """The body has ended: was it whole, and was there a file?"""
        if not self.is_over:
            raise self._bad("the body ends in the middle")
        if not self.was_found:
            raise self._bad(f"there is no part called `{self._wanted}`")

    def _bad(self, problem: str) -> InvalidInput:
        return _bad(problem, self._wanted)

    def _read_content(self) -> tuple[bytes, bool]:
        """(what surely belongs to the part, whether a boundary was passed)."""
        at = self._data.find(self._mark)
        after = at + len(self._mark)
        if at < 0 or len(self._data) < after + 2:
            # A boundary may be cut in two: hold back what could be its beginning.
            keep = len(self._mark) - 1 if at < 0 else len(self._data) - at
            content = self._data[: max(0, len(self._data) - keep)]
            self._data = self._data[len(content) :]
            return content, False
        content, ending = self._data[:at], self._data[after : after + 2]
        self._data = self._data[after + 2 :]
        self._is_wanted = False
        if ending == b"--":
            self.is_over = True
        elif ending == b"\r\n":
            self._in_head = True
        else:
            raise self._bad("a boundary is followed by something else")
        return content, True

    def _read_head(self) -> bool:
        at = self._data.find(_HEAD_END)
        if at < 0:
            if len(self._data) > _MAX_HEAD_BYTES:
                raise self._bad("the headers of a part are too long")
            return False
        name, file_name = _disposition(self._data[:at])
        is_wanted = name == self._wanted
        if is_wanted and self.was_found:
            raise self._bad(f"there are two parts called `{self._wanted}`")
        if is_wanted:
            self.was_found, self.file_name = True, file_name
        self._in_head, self._is_wanted = False, is_wanted
        self._data = self._data[at + len(_HEAD_END) :]
        return True


def _disposition(head: bytes) -> tuple[str, str]:
    """(name, file name) of a part."""
    for line in head.decode("utf-8", "replace").split("\r\n"):
        key, _, value = line.partition(":")
        if key.strip().lower() == "content-disposition":
            message = Message()
            message["content-disposition"] = value.strip()
            named = message.get_param("name", "", "content-disposition")
            return str(named or ""), message.get_filename("") or ""
    return "", ""
