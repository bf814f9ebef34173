"""Runs a command as a user who is nobody in particular, from tests that run as root.

The interpreter may live where only root may look (pyenv in /root). The command gets a mount
namespace of its own, in which the closed directories on the way to what it needs are replaced by
open ones that hold nothing else.

    python ordinary_user.py UID COMMAND...
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

UID = 61_234  # no name, no files, no rights
_REPOSITORY = Path(__file__).parent.parent
_TRAVERSABLE = 0o005


def _closed_ancestor(path: Path) -> Path | None:
    """The topmost directory on the way to `path` that is shut to others."""
    for parent in reversed(path.parents):
        if parent.stat().st_mode & _TRAVERSABLE != _TRAVERSABLE:
            return parent
    return None


def _mount(*words: str | Path) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


def _open_the_way(needed: Sequence[Path]) -> None:
    """Make what is needed reachable. Only for a process in a mount namespace of its own."""
    shut = {path: top for path in needed if (top := _closed_ancestor(path)) is not None}
    with tempfile.TemporaryDirectory(prefix="paddlecloud-way-") as folder:
        kept = {}
        for number, path in enumerate(shut):
            kept[path] = Path(folder, str(number))
            kept[path].mkdir()
            _mount("--bind", path, kept[path])
        for top in set(shut.values()):
            _mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", top)
        for path, place in kept.items():
            path.mkdir(parents=True, exist_ok=True)
            _mount("--bind", place, path)
            subprocess.run(["umount", str(place)], check=True)


def command(argv: Sequence[str], uid: int = UID) -> list[str]:
    """What root runs so that `argv` is run by that uid, without groups."""
    return [
        *("unshare", "--mount", "--propagation", "private", sys.executable, __file__),
        *(str(uid), *argv),
    ]


def environment(home: Path, uid: int = UID) -> dict[str, str]:
    """Of a user who lives at `home`, which becomes theirs."""
    home.mkdir(parents=True, exist_ok=True)
    os.chown(home, uid, uid)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PADDLECLOUD_STRICT": "1",
    }


def main() -> None:
    uid, argv = int(sys.argv[1]), sys.argv[2:]
    _open_the_way(
        sorted({Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), _REPOSITORY})
    )
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
