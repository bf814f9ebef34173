"""Taking one file out of a multipart/form-data body, as it arrives.

Only what the old file interface sends: parts with a Content-Disposition, of which the one called
`file` is wanted. Memory stays at one piece plus a boundary, whatever the file's size. Refuses what
it does not understand; never guesses.
"""

from __future__ import annotations

from email.message import Message

from paddlecloud.core.errors import InvalidInput

_MAX_HEAD_BYTES = 16 * 1024
_HEAD_END = b"\r\n\r\n"


def _bad(problem: str) -> InvalidInput:
    return InvalidInput(problem, field="file", hint="send multipart/form-data with a part `file`")


def boundary_of(content_type: str) -> bytes:
    message = Message()
    message["content-type"] = content_type
    boundary = message.get_boundary()
    if message.get_content_type() != "multipart/form-data" or not boundary or len(boundary) > 200:
        raise _bad("the body is not multipart/form-data with a boundary")
    return boundary.encode("latin-1")


def _part_name(head: bytes) -> str:
    for line in head.decode("utf-8", "replace").split("\r\n"):
        key, _, value = line.partition(":")
        if key.strip().lower() == "content-disposition":
            message = Message()
            message["content-disposition"] = value.strip()
            return str(message.get_param("name", "", "content-disposition") or "")
    return ""


class FilePart:
    """Feed pieces of the body; get back pieces of the file."""

    def __init__(self, content_type: str) -> None:
        self._mark = b"\r\n--" + boundary_of(content_type)
        # The first boundary has no line before it; as if it had, all are found alike.
        self._data = b"\r\n"
        self._in_head = False
        self._is_wanted = False
        self._is_over = False
        self._was_found = False

    def feed(self, piece: bytes) -> bytes:
        self._data += piece
        wanted = b""
        is_moving = True
        while is_moving and not self._is_over:
            if self._in_head:
                is_moving = self._read_head()
            else:
                is_wanted = self._is_wanted
                content, is_moving = self._read_content()
                if is_wanted:
                    wanted += content
        return wanted

    def finish(self) -> None:
        """The body has ended: was it whole, and was there a file?"""
        if not self._is_over:
            raise _bad("the body ends in the middle")
        if not self._was_found:
            raise _bad("there is no part called `file`")

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
            self._is_over = True
        elif ending == b"\r\n":
            self._in_head = True
        else:
            raise _bad("a boundary is followed by something else")
        return content, True

    def _read_head(self) -> bool:
        at = self._data.find(_HEAD_END)
        if at < 0:
            if len(self._data) > _MAX_HEAD_BYTES:
                raise _bad("the headers of a part are too long")
            return False
        is_file = _part_name(self._data[:at]) == "file"
        if is_file and self._was_found:
            raise _bad("there are two parts called `file`")
        self._in_head, self._is_wanted = False, is_file
        self._was_found = self._was_found or is_file
        self._data = self._data[at + len(_HEAD_END) :]
        return True
