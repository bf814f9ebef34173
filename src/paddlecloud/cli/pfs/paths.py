"""Paths as people type them: which are on the platform, what is wrong with them, what they mean.

It promises: a fault names the argument and what to type instead; nothing is asked of a server that
the text alone can tell; `~` is the caller's home on the platform, for every verb. Called by the
verbs that take paths. It never touches a file: the server decides what a path may reach.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from paddlecloud.cli.session import Session
from paddlecloud.core.errors import Conflict, InvalidInput, NotAllowed, NotFound, PaddleCloudError

ROOT = "/pfs"
FORM = "/pfs/<datacenter>/home/<user>/... or /pfs/<datacenter>/public/..."
_AREAS = {"home": 3, "public": 2}  # how many parts name the area, the datacenter included
_FINAL = ("rm", "mv")  # what these do cannot be undone, so they guess nothing


def is_remote(path: str) -> bool:
    return path == ROOT or path.startswith(ROOT + "/")


def is_home(path: str) -> bool:
    """Whether it is written from the caller's home on the platform."""
    return path == "~" or path.startswith("~/")


def is_pattern(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def base_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def below(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


def check(path: str, verb: str = "") -> None:
    """Refuse what cannot be a path of the platform, in the words it was written in."""
    if not is_remote(path):
        hint = f"paths on the platform are {FORM}"
        if path.startswith("pfs/"):
            hint = f"did you mean /{path}?"
        elif path.startswith("~"):
            hint = "~ is your own home; that of somebody else cannot be named"
        elif verb == "rm" and "/" not in path:
            hint = f"to stop a job and forget it: paddlecloud kill -rm {path}"
        raise InvalidInput(
            f"{shown(path) or repr(path)} is not a path under /pfs", hint=hint, field=path
        )
    parts = [part for part in path.split("/") if part not in ("", ".")][1:]
    if ".." in parts:
        raise InvalidInput(
            f"{path}: a path under /pfs cannot contain '..'",
            hint="write the whole path from /pfs on",
            field=path,
        )
    if len(parts) < 2 or len(parts) < _AREAS.get(parts[1], 99):
        raise InvalidInput(
            f"{path} names no home and not the public files",
            hint=f"paths on the platform are {FORM}",
            field=path,
        )


def check_fully(path: str, verb: str = "") -> None:
    """As `check`, and every name in it as the server does: for where something will be written."""
    from paddlecloud.wire.pfspath import PfsPath

    check(path, verb)
    try:
        PfsPath.parse(path)
    except InvalidInput as error:
        error.message = naming(error.message, path)
        raise


def home(session: Session) -> str:
    """The caller's own folder, as the server names it."""
    status = session.client.status()
    return f"{ROOT}/{status['cluster']}/home/{status['account']}"


def resolve(session: Session, words: Sequence[str]) -> list[str]:
    """The words with the caller's home on the platform in place of `~`; others as they are."""
    if not any(map(is_home, words)):
        return list(words)
    own = home(session)
    return [own + word[1:] if is_home(word) else word for word in words]


def remote(session: Session, words: Sequence[str], verb: str) -> list[str]:
    """The paths that are meant, all of them on the platform; what cannot be one is refused.

    A shell replaces an unquoted `~` by the home on this machine. Where only the platform can be
    meant that is understood, and said; a verb that removes asks for the quotes instead.
    """
    quoted = [_before_the_shell(word) for word in words]
    if (changed := [word for word, own in zip(words, quoted, strict=True) if own]) and (
        verb in _FINAL
    ):
        raise InvalidInput(
            f"{shown(changed[0])} is on this machine; {verb} works on the platform",
            hint=f"if you typed ~, your shell has replaced it; quote it: {_quoted(changed[0])}",
            field=changed[0],
        )
    found = resolve(session, [own or word for word, own in zip(words, quoted, strict=True)])
    for path in found:
        check(path, verb)
    if changed:
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        session.note(
            f"note: your shell has replaced ~ by the home on this machine; "
            f"taken as {_quoted(changed[0])}{more}. Quote it so."
        )
    return found


def _before_the_shell(word: str) -> str:
    """`/home/bob/data`, where that is the home on this machine: `~/data`. Else empty."""
    here = os.path.expanduser("~").rstrip(os.sep)
    if not here or is_remote(word) or not (word == here or word.startswith(here + os.sep)):
        return ""
    return "~" + word[len(here) :].replace(os.sep, "/")


def _quoted(word: str) -> str:
    return shown(f"'{_before_the_shell(word)}'")


def quote_hint(words: Sequence[str]) -> str:
    """What to type if one of these local paths was meant to be on the platform; empty if none."""
    near = [word for word in words if _before_the_shell(word)]
    return f"to mean your home on the platform, quote it: {_quoted(near[-1])}" if near else ""


def expand(
    session: Session, words: Sequence[str], verb: str, missing_ok: bool = False
) -> list[str]:
    """The paths that are meant; patterns under /pfs are looked up."""
    words = remote(session, words, verb)
    found: list[str] = []
    for word in words:
        if not is_pattern(word):
            found.append(word)
            continue
        with Naming(session, word):
            matches = session.client.files.expand(word)
        if not matches and not missing_ok:
            raise NotFound(f"nothing matches {word}", field=word)
        found += matches
    return found


def each(session: Session, words: Sequence[str], do: Callable[[str], None]) -> int:
    """One after the other. A failure of the only one is raised; of several, named and passed."""
    code = 0
    for word in words:
        try:
            with Naming(session, word):
                do(word)
        except (NotFound, NotAllowed, Conflict, InvalidInput) as error:
            if len(words) == 1:
                raise
            session.flush()
            session.note(f"error: {error.message}")
            code = 1
    return code


def shown(text: str) -> str:
    """On one line, and with nothing in it that a terminal could obey or not show."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def naming(message: str, path: str) -> str:
    """The message with the path it is about, unless it says so itself."""
    message, path = shown(message), shown(path)
    bare = path.rstrip("/")
    words = {word.strip(",.;'\"").removesuffix(":") for word in message.split()}
    is_told = bare in words or ("/" in bare and bare in message)
    return message if is_told or not bare else f"{path}: {message}"


class Naming:
    """Adds to an error which path it is about, and what to do about it."""

    def __init__(self, session: Session, path: str) -> None:
        self._session = session
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not isinstance(error, NotFound | NotAllowed | Conflict | InvalidInput):
            return
        error.message = naming(error.message, self._path)
        explain(self._session, error)


def explain(session: Session, error: PaddleCloudError) -> None:
    """A hint where the server gave none."""
    if error.hint or session.made_client is None:
        return
    try:
        if isinstance(error, NotAllowed):
            error.hint = f"your own files are below {home(session)}; paddlecloud publish shares one"
        elif "datacenter" in error.message:
            error.hint = f"this server has the datacenter {session.client.status()['cluster']}"
    except PaddleCloudError:
        return  # what went wrong first is what counts
    if isinstance(error, Conflict) and "can't del directory" in error.message:
        error.hint = "-r removes a folder and all that is in it"
