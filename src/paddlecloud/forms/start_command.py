"""The command of a container that runs an entry point in its package directory, and back.

`command(package, entry)` is what the templates of both custom resources carry; `read` finds the
two again. The directory is entered by a shell and not by `workingDir`, which a container runtime
makes where it is missing, in the midst of the user's files. Works with any image that has `sh`.
"""

from __future__ import annotations

from collections.abc import Sequence

NAME = "paddlecloud"
# How a container says that its program never ran; the directory's name follows.
CANNOT_START = "cannot start: "

# Old programs read their rank from files; where they cannot be written nobody misses them.
_START = f"""\
if ! cd -- "$1" 2>/dev/null; then
  why="{CANNOT_START}the working directory $1 does not exist"
  echo "$why" >&2; echo "$why" >/dev/termination-log; exit 127
fi
export PYTHONPATH="$1${{PYTHONPATH:+:$PYTHONPATH}}"
( echo "$PADDLE_TRAINER_ID" >/trainer_id; echo "$PADDLE_TRAINERS_NUM" >/trainer_count ) 2>/dev/null
exec sh -c "$2"
"""


def literal(text: str) -> str:
    """For a command or a variable of a container: Kubernetes reads `$(NAME)` and `$$` there."""
    return text.replace("$", "$$")


def meant(text: str) -> str:
    """What `literal` was given."""
    return text.replace("$$", "$")


def command(package: str, entry: str) -> list[str]:
    if not package:
        return ["sh", "-c", literal(entry)]
    return [literal(word) for word in ("sh", "-c", _START, NAME, package, entry)]


def read(command: Sequence[str]) -> tuple[str, str] | None:
    """The package and the entry of a command made here; None for any other."""
    words = [meant(word) for word in command]
    if len(words) == 3 and words[:2] == ["sh", "-c"]:
        return "", words[2]
    if len(words) == 6 and words[:4] == ["sh", "-c", _START, NAME]:
        return words[4], words[5]
    return None
