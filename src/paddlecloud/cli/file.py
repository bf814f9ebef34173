"""`paddlecloud file put|get|ls`: files and folders between here and `/pfs`, in the old words.

The words and refusals of the first client: `src/` puts the content, `src` the folder itself; `get`
never replaces an existing file; `dst/` keeps the base name. Underneath it is `pfs cp`.
"""

from __future__ import annotations

import os

from paddlecloud.cli import sizes
from paddlecloud.cli.pfs import paths
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import Conflict, InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.sdk.transfers.events import FileDone

USAGE = "paddlecloud file put SRC DST | get SRC DST | ls PATH"
HELP = """
Paths on the platform are /pfs/<datacenter>/home/<user>/... (your own) and
/pfs/<datacenter>/public/... (for everyone, read-only). paddlecloud pfs can do more.

  put SRC DST   SRC/ puts the content of a folder, SRC the folder itself
  get SRC DST   a file or a folder; DST/ keeps the name; what exists is never replaced
  ls PATH       one name per line

Examples:
  paddlecloud file put ./data/ '~/data'
  paddlecloud file ls '~/data'
  paddlecloud file get '~/jobs/wide-deep/output/model' ./
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


def _ls(session: Session, typed: str) -> int:
    [path] = paths.remote(session, [typed], "file ls")
    with paths.Naming(session, path):
        for entry in session.client.files.entries(path):
            session.say(entry["name"])
    return 0


def _put(session: Session, source: str, target: str) -> int:
    if source.startswith(".."):
        raise InvalidInput(
            f"src must not start with '..': {source}", hint="name the folder itself", field="SRC"
        )
    if not os.path.exists(source):
        raise InvalidInput(f"there is no {source}", field="SRC")
    [target] = paths.remote(session, [target], "file put")
    is_folder = os.path.isdir(source)
    to = target.rstrip("/") + "/" if is_folder else target
    count = 0

    def told(done: FileDone) -> str | None:
        nonlocal count
        count += 1
        return f"Uploading ... {done.source} {done.target}"

    code = _copy(session, source, to, told)
    if is_folder and not code:
        session.note(f"{sizes.counted(count, 'file')} uploaded")
    return code


def _get(session: Session, source: str, target: str) -> int:
    [source] = paths.remote(session, [source], "file get")
    if target.endswith(("/", os.sep)) or os.path.isdir(target):
        target = os.path.join(target, paths.base_name(source))
    if os.path.lexists(target):
        raise Conflict(f"file already exist: {target}", hint="remove it or choose another name")
    with paths.Naming(session, source):
        is_folder = session.client.files.entry(source)["type"] == "directory"
    # With the slash it is the content that comes, and `target` is the folder it comes into.
    whole = source.rstrip("/") + "/" if is_folder else source.rstrip("/")

    def told(done: FileDone) -> str | None:
        size = sizes.of_bytes(done.size_bytes)
        return f"Downloading {done.source} ... Done   {done.target}, {size}"

    return _copy(session, whole, target, told)


def _copy(session: Session, source: str, target: str, told: Told) -> int:
    from paddlecloud.cli.pfs import transfer

    way = transfer.direction([source], target, "file")
    teller = transfer.Teller(session, way, [source], told=told)
    summary = transfer.carry_out(
        session,
        teller,
        lambda on_event: session.client.files.copy(
            [source], target, recursive=True, tell_same=True, on_event=on_event
        ),
    )
    return transfer.finish(session, way, summary, has_summary=False)


if TYPE_CHECKING:
    from collections.abc import Callable

    Told = Callable[[FileDone], str | None]
