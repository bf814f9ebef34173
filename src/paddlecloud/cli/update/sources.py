"""Where releases come from: one wheel, a folder of wheels, or an index; each with its checksum.

An index is a "simple" one (PEP 503), whose links carry `#sha256=`. For files, the checksum is in
`<wheel>.sha256` or `SHA256SUMS` beside them. It reads and fetches; it judges nothing but names.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from paddlecloud.cli.update.wheels import PACKAGE, version_in
from paddlecloud.core.errors import InvalidInput, ServerUnreachable, TooLarge

VARIABLE = "PADDLECLOUD_UPDATE_INDEX"
_WITHIN_S = 30
_MOST_PAGE_BYTES = 8 << 20
_MOST_WHEEL_BYTES = 512 << 20
_BLOCK_BYTES = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Release:
    version: str
    where: str  # a path or a URL
    sha256: str  # empty: nobody said
    said_by: str  # who says the checksum

    @property
    def file_name(self) -> str:
        return (
            unquote(os.path.basename(urlsplit(self.where).path))
            if is_url(self.where)
            else (os.path.basename(self.where))
        )


def is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def is_safe(url: str) -> bool:
    """Whether what it says cannot be changed on the way."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


def check_sha256(text: str, field: str) -> str:
    found = text.strip().lower().removeprefix("sha256:")
    if not _SHA256.fullmatch(found):
        raise InvalidInput("must be the 64 hex digits of a sha256", field=field)
    return found


def of_wheel(path: str) -> Release:
    name = os.path.basename(path)
    if not version_in(name):
        raise InvalidInput(
            f"{name} is not the name of a wheel of this program",
            field="--wheel",
            hint=f"such as {PACKAGE}-0.2.0-py3-none-any.whl",
        )
    if not os.path.isfile(path):
        raise InvalidInput(f"there is no file {path}", field="--wheel")
    return Release(version_in(name), os.path.abspath(path), *_sum_beside(path))


def of_index(index: str) -> list[Release]:
    """Every release there, in no order."""
    if is_url(index):
        return _linked(index)
    if not os.path.isdir(index):
        raise InvalidInput(f"there is no folder {index}", field="--index")
    paths = [os.path.join(index, name) for name in sorted(os.listdir(index)) if version_in(name)]
    return [of_wheel(path) for path in paths]


def _sum_beside(path: str) -> tuple[str, str]:
    """(checksum, where it is said), both empty where it is not said."""
    folder, name = os.path.split(os.path.abspath(path))
    for beside in (f"{path}.sha256", os.path.join(folder, "SHA256SUMS")):
        try:
            with open(beside, encoding="utf-8") as file:
                lines = [line.split() for line in file]
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"cannot read {beside}", field=beside) from error
        for words in lines:
            is_named = len(words) == 2 and words[1].lstrip("*") == name
            if is_named or (len(words) == 1 and beside.endswith(".sha256")):
                return check_sha256(words[0], beside), beside
    return "", ""


# --- an index --------------------------------------------------------------------------------


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and values.get("href") and "data-yanked" not in values:
            self.found.append(str(values["href"]))


def _linked(index: str) -> list[Release]:
    page = f"{index.rstrip('/')}/{PACKAGE}/"
    links = _Links()
    links.feed(_read(page, _MOST_PAGE_BYTES).decode("utf-8", "replace"))
    releases = []
    for link in links.found:
        url, fragment = urldefrag(urljoin(page, link))
        version = version_in(unquote(os.path.basename(urlsplit(url).path)))
        sha256 = fragment.partition("sha256=")[2].lower()
        if version and is_url(url):
            is_said = bool(_SHA256.fullmatch(sha256))
            releases.append(Release(version, url, sha256 if is_said else "", page * is_said))
    return releases


def _read(url: str, most_bytes: int) -> bytes:
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=_WITHIN_S) as answer:
            data = bytes(answer.read(most_bytes + 1))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ServerUnreachable(f"cannot read {url}: {reason}") from error
    if len(data) > most_bytes:
        raise TooLarge(f"{url} is larger than {most_bytes} bytes")
    return data


def fetch(release: Release, folder: str) -> str:
    """The path of the wheel on this machine."""
    if not is_url(release.where):
        return release.where
    path = os.path.join(folder, release.file_name)
    with open(path, "wb") as file:
        file.write(_read(release.where, _MOST_WHEEL_BYTES))
    return path
