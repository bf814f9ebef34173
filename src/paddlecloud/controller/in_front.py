"""Our runtime in the pods of a job: in front of which commands it stands, how, and what is said.

`paddlecloud.runtime` is one file. Jobs that use it own a ConfigMap with it, which their pods
mount; no image of ours is needed and no container starts before theirs. It is put in front of a
command only by a program that the command itself proves to be in the image, a shell or Python, or
when the job asks for it (`paddlepaddle.org/runtime: "true"`). Where no Python 3.6 is found, or the
file is not there, the command runs as if nothing stood in front of it. Pure; `pods`, `planning` and
`statuses` call it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from paddlecloud.controller.identity import Identity, Json
from paddlecloud.forms.custom_resources import ClusterJob
from paddlecloud.forms.job_policies import first_container
from paddlecloud.forms.start_command import literal
from paddlecloud.kube.words import RUNTIME_ANNOTATION
from paddlecloud.runtime import delivery

CONDITION = "Runtime"
VOLUME, FOLDER = "paddlecloud-runtime", "/var/run/paddlecloud/runtime"
FILE = f"{FOLDER}/{delivery.FILE_NAME}"
DEFAULT_MESSAGE_FILE = "/dev/termination-log"  # of Kubernetes

_SHELL = re.compile(r"(?:/[\w./-]*/)?(?:ash|bash|dash|ksh|sh|zsh)")
_PYTHON = re.compile(r"(?:/[\w./-]*/)?python(?:3(?:\.[0-9]+)?)?")

# Old ones can read it too. Modules beside the program, or on its PYTHONPATH, must not be taken for
# those of the library.
_LOAD = """\
import sys
own = (sys.prefix, sys.exec_prefix, getattr(sys, "base_prefix", sys.prefix))
sys.path = [path for path in sys.path[1:] if path.startswith(own)]
import os
file, command = sys.argv[1], sys.argv[3:]
if sys.version_info < (3, 6) or not os.access(file, os.R_OK):
    os.execvp(command[0], command)
sys.argv[:1] = []
exec(compile(open(file, "rb").read(), file, "exec"), {"__name__": "__main__", "__file__": file})
"""
_FLAGS = ("-s", "-S", "-c")

# $1 the lines above, $2 the file, $3 where to leave words, then the command.
_FIND_PYTHON = """\
if [ -r "$2" ]; then
  for python in python3 python; do
    if "$python" -s -S -c 'import sys; sys.exit(sys.version_info < (3, 6))' >/dev/null 2>&1; then
      exec "$python" -s -S -c "$@"
    fi
  done
fi
shift 3
exec "$@"
"""
_NAME = "paddlecloud"

_NEEDS = "it stands in front of the command, if the image has Python 3.6 or newer"
_MISSED = (
    "its cause of failure is not told in words, signals reach its first process only, and "
    "paddlecloud_runtime cannot be imported; it has its environment and its start order"
)


class Absence(StrEnum):
    """Why nothing stands in front of a command, the weightiest first."""

    NO_COMMAND = "NoCommand"
    UNKNOWN = "UnknownProgram"
    TERMINAL = "Terminal"
    SWITCHED_OFF = "SwitchedOff"

    @property
    def words(self) -> str:
        return {
            Absence.NO_COMMAND: "has no command, only what its image starts: write its command",
            Absence.UNKNOWN: (
                "runs a program that is neither a shell nor Python; if its image has sh, "
                f'annotate the job with {RUNTIME_ANNOTATION}: "true"'
            ),
            Absence.TERMINAL: "has a terminal (tty), which a program must have to itself",
            Absence.SWITCHED_OFF: f'is left alone, as {RUNTIME_ANNOTATION}: "false" says',
        }[self]


def absence(container: Mapping[str, Any], wish: str) -> Absence | None:
    """Why nothing is put in front of its command; None if something is."""
    if wish == "false":
        return Absence.SWITCHED_OFF
    if not _command(container):
        return Absence.NO_COMMAND
    if container.get("tty"):
        return Absence.TERMINAL
    return None if _in_front(container, wish) else Absence.UNKNOWN


def _command(container: Mapping[str, Any]) -> list[str]:
    command = container.get("command")
    is_readable = isinstance(command, list) and all(isinstance(word, str) for word in command)
    return command if isinstance(command, list) and is_readable else []


def _in_front(container: Mapping[str, Any], wish: str) -> Sequence[str]:
    """The words to put in front of the command; none where nobody is known to understand them."""
    program = _command(container)[0]
    message = literal(str(container.get("terminationMessagePath") or DEFAULT_MESSAGE_FILE))
    where = (FILE, message)
    if _PYTHON.fullmatch(program):
        return (program, *_FLAGS, _LOAD, *where)
    if _SHELL.fullmatch(program) or wish == "true":
        shell = program if _SHELL.fullmatch(program) else "sh"
        return (shell, "-c", literal(_FIND_PYTHON), _NAME, _LOAD, *where)
    return ()


def put_in_front(spec: Json, container: Json, who: Identity) -> None:
    """Of the command of a pod's container, if it may; `args` follow by themselves."""
    if absence(container, who.runtime_wish) is not None:
        return
    container["command"] = [*_in_front(container, who.runtime_wish), *container["command"]]
    source = {"name": who.runtime_name, "optional": True}
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": VOLUME, "configMap": source}]
    mount = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
    container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def is_used(job: ClusterJob, who: Identity) -> bool:
    return any(
        absence(first_container(role.template), who.runtime_wish) is None for role in job.spec.roles
    )


@functools.cache
def _source() -> str:
    return delivery.source()


def config_map(who: Identity) -> Json:
    """The file. It stays as it is made: all pods of a job have the same."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": who.metadata(who.runtime_name),
        "immutable": True,
        "data": {delivery.FILE_NAME: _source()},
    }


def without_text(body: Json) -> Json:
    """An object as the operator remembers it: of the file only that it is there."""
    data = body.get("data")
    if isinstance(data, dict) and delivery.FILE_NAME in data:
        return {**body, "data": {delivery.FILE_NAME: ""}}
    return body


def condition(job: ClusterJob, who: Identity) -> tuple[str, bool, str, str]:
    """Type, whether it is so, reason and message."""
    lacking = {
        who.kind.role_word(role.role): found
        for role in job.spec.roles
        if (found := absence(first_container(role.template), who.runtime_wish)) is not None
    }
    if not lacking:
        return CONDITION, True, "InFront", _NEEDS
    reason = min(lacking.values(), key=list(Absence).index)
    parts = []
    for one in Absence:
        roles = [word for word, found in lacking.items() if found == one]
        if roles:
            parts.append(f"the container of {' and '.join(roles)} {one.words}")
    return CONDITION, False, reason.value, f"{'; '.join(parts)}. Without the runtime {_MISSED}"
