"""Runtimes of the embedded engine: named Python environments on this machine.

A runtime is known by its prefix, the directory with `bin/python`. This module finds what a
replica needs of it: what to put first on PATH, and which host paths must be visible. It never
runs the interpreter.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import paddlecloud

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ROOT = Path("/")
_ALWAYS_VISIBLE = Path("/usr")
_FIRST_PERSON = 1000  # below are the uids of services
# The case of the v1 start script, or the program behind it.
_TRAINS = re.compile(rb"""^\s*["']?train["']?\s*\)|paddle_trainer""", re.MULTILINE)
_SCRIPT_BYTES = 1 << 20


class RuntimeMissing(Exception):
    """The runtime cannot be used; the message says why and what there is."""


@dataclass(frozen=True, slots=True)
class Runtime:
    name: str
    prefix: Path
    binds: tuple[Path, ...]  # host directories it lives in, seen at the same place
    is_virtual_environment: bool

    def env(self) -> dict[str, str]:
        env = {"PATH": f"{self.prefix / 'bin'}:{SYSTEM_PATH}"}
        if self.is_virtual_environment:
            env["VIRTUAL_ENV"] = str(self.prefix)
        return env


def has_paddle_train(prefix: Path) -> bool:
    """Whether `paddle train` trains there, as in Paddle 0.x.

    Later releases ship a `bin/paddle` that answers every word with its version and success, so
    being there is not enough. It is read and never run: it calls home.
    """
    program = prefix / "bin" / "paddle"
    if not os.access(program, os.X_OK):
        return False
    try:
        with program.open("rb") as script:
            text = script.read(_SCRIPT_BYTES)
    except OSError:
        return False
    return _TRAINS.search(text) is not None


def _base_of(prefix: Path) -> Path | None:
    """The installation a virtual environment was made from."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "home":
            home = Path(value.strip())
            # /bin is /usr/bin on most systems, and a base of / would be the whole machine.
            return home.parent if home.parent != _ROOT else home.resolve().parent
    return None


@functools.cache
def _homes() -> frozenset[Path]:
    """Where people keep what is their own."""
    people = [one for one in pwd.getpwall() if one.pw_uid == 0 or one.pw_uid >= _FIRST_PERSON]
    homes = {Path("/home"), Path.home(), *(Path(one.pw_dir) for one in people)}
    return frozenset(home.resolve() for home in homes if home.is_dir() and home != _ROOT)


def check_exposed(paths: Iterable[Path], state_dir: Path) -> None:
    """Raise `RuntimeMissing` if a job that may read these could read what is not a runtime's."""
    kept = {"the state folder": [state_dir.resolve()], "a home": _homes(), "the machine": [_ROOT]}
    for path in paths:
        for what, places in kept.items():
            if any(place.is_relative_to(path.resolve()) for place in places):
                raise RuntimeMissing(
                    f"a runtime may not live in {path}: every job would see {what} with it; "
                    "use an environment in a folder of its own"
                )


def _visible(paths: list[Path]) -> tuple[Path, ...]:
    """Each path as named and as it really is, without what is visible already."""
    chosen: list[Path] = []
    for path in paths:
        for spelling in (path, path.resolve()):
            within = (_ALWAYS_VISIBLE, *chosen)
            if spelling.is_dir() and not any(spelling.is_relative_to(top) for top in within):
                chosen.append(spelling)
    return tuple(chosen)


@functools.cache
def _survey(name: str, prefix: Path) -> Runtime:
    base = _base_of(prefix)
    paths = [prefix, *([base] if base else [])]
    if prefix == Path(sys.prefix):
        # An editable install lives outside its environment, and programs import our library.
        paths.append(Path(paddlecloud.__file__).parent)
    return Runtime(name, prefix, _visible(paths), is_virtual_environment=base is not None)


def find_runtime(name: str, runtimes: Mapping[str, Path], state_dir: Path) -> Runtime:
    """The runtime of that name; the empty name is the default one.

    It is refused if showing it to jobs would show them `state_dir`, a home or the whole machine.
    """
    prefix = runtimes.get(name)
    if prefix is None and name:
        known = ", ".join(sorted(filter(None, runtimes))) or "none"
        raise RuntimeMissing(f"there is no runtime called {name}; known: {known}")
    if prefix is None:
        prefix = Path(sys.prefix)
    # A distribution's own installation often has no plain `python`.
    if not any(os.access(f"{prefix}/bin/{python}", os.X_OK) for python in ("python", "python3")):
        raise RuntimeMissing(f"the runtime {name or 'default'} has no {prefix}/bin/python")
    runtime = _survey(name, prefix)
    check_exposed(runtime.binds, state_dir)
    return runtime


def check_prefix(prefix: Path, state_dir: Path) -> None:
    """Raise `RuntimeMissing` if the environment at `prefix` cannot be shown to jobs."""
    check_exposed(_survey("", prefix).binds, state_dir)


@functools.cache
def shim_interpreter() -> tuple[Path, tuple[Path, ...]]:
    """The platform's own bare interpreter, and the host directories it needs."""
    return Path(sys.executable).resolve(), _visible([Path(sys.base_prefix)])
