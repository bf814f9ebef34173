"""The job configuration file of the `job` client: `config.ini`, `*.cfg`, `conf.py`, `common.py`.

`parse(text, faults)` reads `key = value` lines in every shape seen: bare or quoted values, `#`
comments, a Python docstring, commas and the `cluster_config(...)` call of the first API. Every key
is exported to the job under its own name, so `render(parse(text).env)` means the same; what the
start script of a job acts on beside that is `ACTED_ON`. A file-system password (`fs_ugi`) is
neither exported nor ever part of a message. Pure: the caller reads the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from paddlecloud.forms.faults import BadValue, FaultList
from paddlecloud.forms.fields import check_env

# Keys whose value, if it is a path under /pfs, the start script puts to use.
ACTED_ON: Mapping[str, str] = {
    "train_data_path": "linked into ./train_data, shared out over the trainers",
    "test_data_path": "linked into ./test_data",
    "thirdparty_path": "linked into ./thirdparty",
    "init_model_path": "linked as ./init_model",
    "output_path": "./output of each replica is a folder below it",
}
# Keys that name what this platform does not have; the job may still read them.
_ELSEWHERE: Mapping[str, str] = {
    "storage_type": "this platform reads /pfs only",
    "fs_name": "this platform reads /pfs only",
    "mount_afs": "AFS is not mounted; put the files under /pfs",
    "afs_remote_mount_point": "AFS is not mounted; put the files under /pfs",
    "afs_local_mount_point": "AFS is not mounted; put the files under /pfs",
}
MASK = "******"
_MAX_BYTES = 1 << 20
_HELD_BACK = re.compile(r"(?i)(?:^|_)ugi$")
_SECRET = re.compile(
    r"(?i)(?:^|_)ugi$|passw|secret|token|credential|access_?key|private_?key|(?:^|_)sk$"
)
_LINE = re.compile(r"\s*([^\s=#]+)\s*=\s*(.*?)\s*\Z", re.DOTALL)
_CALL = re.compile(r"\s*cluster_config\s*\(\s*")
_NEXT_ARGUMENT = re.compile(r",\s*(?=[^\s=,#'\"]+\s*=)")
_PYTHON = re.compile(r"\s*(?:import|from)\s")
_DOCSTRING = re.compile(r"\s*[rRuUbB]{0,2}(\"\"\"|''')")
_QUOTED = re.compile(r"""[rRuU]?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""", re.DOTALL)
_ESCAPE = re.compile(r"""\\([\\"'nrtbf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})""")
_ESCAPES = {"\\": "\\", '"': '"', "'": "'"}
_ESCAPES |= {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Config:
    """What a file says: variables for the job, and one sentence per key that needs one."""

    env: Mapping[str, str]
    held_back: tuple[str, ...] = ()  # names of secrets that stay here
    notes: tuple[str, ...] = ()  # never hold a value of a secret


def is_secret(name: str) -> bool:
    """Whether a variable of this name is shown as `******`."""
    return _SECRET.search(name) is not None


def shown(env: Mapping[str, str]) -> dict[str, str]:
    return {name: MASK if is_secret(name) and value else value for name, value in env.items()}


def parse(text: str, faults: FaultList, *, field: str = "--job-conf") -> Config:
    """What the file means; each bad line is a fault of `field` that names its number."""
    env: dict[str, str] = {}
    held_back: list[str] = []
    notes: list[str] = []
    if len(text) > _MAX_BYTES:
        faults.add(field, "is larger than 1 MiB")
        return Config({})
    in_call = False
    for number, line in _lines(text):
        in_call = in_call or _CALL.match(line) is not None
        line = _CALL.sub("", line, count=1) if in_call else line
        if _is_empty(line, in_call):
            continue
        if line.lstrip().startswith("["):
            notes.append(f"line {number}: a section means nothing here")
            continue
        if _PYTHON.match(line):
            notes.append(f"line {number}: the file is not run as Python; this line is not used")
            continue
        for part in _arguments(line) if in_call else [line]:
            try:
                name, value = _pair(part, in_call)
                check_env(name, value)
            except ValueError as error:
                # Never the line itself: it may be the one with the password.
                faults.add(field, f"line {number}: {error}")
                continue
            if _HELD_BACK.search(name):
                held_back.append(name)
            else:
                env[name] = value
    notes += [f"{name}: a secret; it stays on this machine" for name in held_back]
    notes += [note for name, value in env.items() if (note := _note(name, value))]
    return Config(env, tuple(dict.fromkeys(held_back)), tuple(notes))


def _lines(text: str) -> list[tuple[int, str]]:
    """Numbered lines without a docstring; `\\n` alone ends a line, as it did for Python."""
    kept: list[tuple[int, str]] = []
    closing = ""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        line = line.rstrip("\r")
        if closing:
            _, found, line = line.partition(closing)
            if not found:
                continue
            closing = ""
        elif opening := _DOCSTRING.match(line):
            _, found, after = line[opening.end() :].partition(opening.group(1))
            closing = "" if found else opening.group(1)
            line = after
        kept.append((number, line))
    return kept


def _is_empty(line: str, in_call: bool) -> bool:
    bare = line.strip()
    return not bare or bare.startswith(("#", ";")) or (in_call and bare.strip(",)") == "")


def _arguments(line: str) -> list[str]:
    """A line of a call, `a="x, y", b=1`, as one text per argument."""
    parts, start, at = [], 0, 0
    while at < len(line):
        if line[at] == "#":
            break
        if quoted := _QUOTED.match(line, at):
            at = quoted.end()
        elif following := _NEXT_ARGUMENT.match(line, at):
            parts.append(line[start:at])
            start = at = following.end()
        else:
            at += 1
    return [*parts, line[start:]]


def _pair(line: str, in_call: bool) -> tuple[str, str]:
    match = _LINE.match(line)
    if match is None:
        raise BadValue("is not key = value; begin a comment with #")
    name, written = match.groups()
    return name, _value(written, in_call)


def _value(written: str, in_call: bool) -> str:
    quoted = _QUOTED.match(written)
    if quoted is None:
        bare = re.split(r"(?:\s|^)#", written, maxsplit=1)[0].strip()
        if written[:1] in ("'", '"'):
            raise BadValue("the quote is not closed")
        return bare.rstrip(",) \t") if in_call else bare
    rest = written[quoted.end() :].lstrip(",); \t")
    if rest and not rest.startswith("#"):
        raise BadValue("has text after the closing quote")
    inside = quoted.group(1)[1:-1]
    return inside if quoted.group()[0] in "rR" else _ESCAPE.sub(_unescaped, inside)


def _unescaped(match: re.Match[str]) -> str:
    """As in a Python text; a backslash before anything else stays."""
    escape = match.group(1)
    return _ESCAPES[escape] if escape in _ESCAPES else chr(int(escape[1:], 16))


def _note(name: str, value: str) -> str:
    if name in ACTED_ON:
        if not value or value.startswith("/pfs/"):
            return f"{name}: {ACTED_ON[name]}" if value else ""
        return f"{name}: only paths under /pfs are put to use; it is exported as it is"
    return f"{name}: {_ELSEWHERE[name]}; it is exported as it is" if name in _ELSEWHERE else ""


def render(env: Mapping[str, str]) -> str:
    """A file that means these variables."""
    return "".join(
        f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in env.items()
    )
