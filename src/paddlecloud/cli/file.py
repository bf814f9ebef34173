"""`paddlecloud file put|get|ls`: files and folders between here and `/pfs`.

The words and refusals of the first client: `src/` puts the content, `src` the folder itself; `get`
never replaces an existing file; `dst/` keeps the base name.
"""

from __future__ import annotations

import os

from paddlecloud.cli import sizes
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import Conflict, InvalidInput, NotFound, PaddleCloudError

USAGE = "paddlecloud file put SRC DST | get SRC DST | ls PATH"
HELP = """
Paths on the platform are /pfs/<datacenter>/home/<user>/... (your own) and
/pfs/<datacenter>/public/... (for everyone, read-only).

  put SRC DST   SRC/ puts the content of a folder, SRC the folder itself
  get SRC DST   a file or a folder; DST/ keeps the name; what exists is never replaced
  ls PATH       one name per line

Examples:
  paddlecloud file put ./data/ /pfs/local/home/alice/data
  paddlecloud file ls /pfs/local/home/alice/data
  paddlecloud file get /pfs/local/home/alice/jobs/wide-deep/output/model ./
"""
FLAGS = ()


def run(session: Session) -> int:
    words = session.parsed.positionals
    action, rest = (words[0], words[1:]) if words else ("", ())
    if action == "put" and len(rest) == 2:
        return _put(session, *rest)
    if action == "get" and len(rest) == 2:
        return _get(session, *rest)
    if action == "ls" and len(rest) == 1:
        return _ls(session, rest[0])
    raise InvalidInput("file does one of three things", hint=f"usage: {USAGE}")


def _ls(session: Session, path: str) -> int:
    try:
        names = session.client.list_files(path)
    except NotFound as error:
        raise _named(error, path) from None
    session.write("".join(f"{name}\n" for name in names))
    return 0


def _named(error: NotFound, path: str) -> NotFound:
    """The server says `dir not exist`, as it always has; people want to know which."""
    message = error.message if path in error.message else f"{error.message}: {path}"
    return NotFound(message, hint=error.hint, field=error.field)


# --- put -------------------------------------------------------------------------------------


def _put(session: Session, source: str, target: str) -> int:
    if source.startswith(".."):
        raise InvalidInput(
            f"src must not start with '..': {source}", hint="name the folder itself", field="SRC"
        )
    if not os.path.exists(source):
        raise InvalidInput(f"there is no {source}", field="SRC")
    _check_remote(target, "DST")
    base = os.path.basename(os.path.abspath(source))
    if os.path.isfile(source):
        to = target + base if target.endswith("/") else target
        _put_one(session, source, to)
        return 0
    root = target.rstrip("/")
    if not source.endswith(("/", os.sep)):
        root = f"{root}/{base}"
    count = 0
    for folder, folders, names in os.walk(source):
        folders.sort()
        below = os.path.relpath(folder, source).replace(os.sep, "/")
        prefix = root if below == "." else f"{root}/{below}"
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                session.note(f"note: {path} is no regular file and was not sent")
                continue
            _put_one(session, path, f"{prefix}/{name}")
            count += 1
    session.note(f"{sizes.counted(count, 'file')} uploaded")
    return 0


def _put_one(session: Session, source: str, target: str) -> None:
    session.say(f"Uploading ... {source} {target}")
    session.flush()
    session.client.put_file(source, target)


# --- get -------------------------------------------------------------------------------------


def _get(session: Session, source: str, target: str) -> int:
    _check_remote(source, "SRC")
    base = source.rstrip("/").rsplit("/", 1)[-1]
    if target.endswith(("/", os.sep)) or os.path.isdir(target):
        os.makedirs(target, exist_ok=True)
        target = os.path.join(target, base)
    if os.path.lexists(target):
        raise Conflict(f"file already exist: {target}", hint="remove it or choose another name")
    try:
        _get_one(session, source, target)
    except PaddleCloudError as error:
        names = _as_folder(session, source, error)
        _get_folder(session, source.rstrip("/"), target, names)
    return 0


def _as_folder(session: Session, source: str, error: PaddleCloudError) -> list[str]:
    """What is in `source` if it is a folder; else the error of getting it as a file stands."""
    if not isinstance(error, InvalidInput | NotFound | Conflict):
        raise error
    try:
        return session.client.list_files(source)
    except PaddleCloudError:
        raise (_named(error, source) if isinstance(error, NotFound) else error) from None


def _get_folder(session: Session, source: str, target: str, names: list[str]) -> None:
    os.mkdir(target)
    for name in names:
        bare = name.rstrip("/")
        if bare in ("", ".", "..") or "/" in bare or "\\" in bare or "\0" in bare:
            raise InvalidInput(f"the server named a file {name!r}; that is not safe to write")
        path, to = f"{source}/{bare}", os.path.join(target, bare)
        try:
            _get_one(session, path, to)
        except PaddleCloudError as error:
            _get_folder(session, path, to, _as_folder(session, path, error))


def _get_one(session: Session, source: str, target: str) -> None:
    size_bytes = session.client.get_file(source, target)
    session.say(f"Downloading {source} ... Done   {target}, {sizes.of_bytes(size_bytes)}")
    session.flush()


def _check_remote(path: str, field: str) -> None:
    from paddlecloud.wire.pfspath import PfsPath

    try:
        PfsPath.parse(path)
    except InvalidInput as error:
        hint = error.hint or "such as /pfs/<datacenter>/home/<user>/file"
        raise InvalidInput(f"{field} {path}: {error.message}", hint=hint, field=field) from None
