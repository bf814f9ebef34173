"""The environment this program runs from, and another one beside it to switch to.

A release gets an environment of its own below `versions/` of the state folder; what the installed
one has besides this program is seen from there. No environment is ever changed, so whatever runs
from one runs on; switching is replacing the launchers (`bin/paddlecloud`), each at once, and the
way back is to put the old ones in their place again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass

from paddlecloud.cli.update.wheels import PACKAGE, Wheel, unpack
from paddlecloud.core.errors import Conflict, NotAllowed

_RECORD = "paddlecloud-update.json"
_LAUNCHERS = ("paddlecloud", "paddlectl")
_SHEBANG_CHARACTERS = 120
_WITHIN_S = 120


class NotSwitched(Conflict):
    """The new release did not work; the old one is in place."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Installed:
    """What runs now. `development` says why it cannot be updated, where it cannot."""

    version: str
    prefix: str
    site: str  # where the packages of the first installation are
    launchers: tuple[str, ...]
    requires: tuple[str, ...]
    development: str
    before: dict[str, str]  # launchers of the release before this one, for going back


def installed() -> Installed:
    from importlib import metadata

    import paddlecloud

    folder = os.path.dirname(os.path.dirname(os.path.abspath(paddlecloud.__file__)))
    record = _read_record(sys.prefix)
    scripts = sysconfig.get_path("scripts")
    own = [os.path.join(scripts, name) for name in _LAUNCHERS]
    launchers = record.get("launchers") or [path for path in own if os.path.isfile(path)]
    development, requires = "", tuple[str, ...]()
    try:
        found = metadata.distribution(PACKAGE)
        requires = tuple(each for each in found.requires or () if "extra ==" not in each)
        editable = json.loads(found.read_text("direct_url.json") or "{}").get("dir_info", {})
        is_here = os.path.samefile(str(found.locate_file("")), folder)
        if editable.get("editable") or not is_here:
            development = f"installed for development from {folder}"
    except metadata.PackageNotFoundError:
        development = f"run from its source in {folder}"
    return Installed(
        paddlecloud.__version__,
        sys.prefix,
        str(record.get("site") or folder),
        tuple(launchers),
        requires,
        development,
        record.get("before", {}),
    )


def _read_record(prefix: str) -> dict[str, dict[str, str]]:
    try:
        with open(os.path.join(prefix, _RECORD), encoding="utf-8") as file:
            found: dict[str, dict[str, str]] = json.load(file)
            return found
    except (OSError, ValueError):
        return {}


def check_launchers(now: Installed) -> None:
    """Said before anything is fetched: what cannot be switched is not prepared."""
    if not now.launchers:
        raise Conflict(
            f"{now.prefix} has no launcher of this program to switch",
            hint="update it the way it was installed",
        )
    for path in now.launchers:
        if not os.access(os.path.dirname(path), os.W_OK):
            raise NotAllowed(f"{os.path.dirname(path)} cannot be written", hint="ask its owner")


def place_for(folder: str, name: str) -> str:
    """Where a new environment may be: something may run from one that was switched to before."""
    number = 1
    while os.path.exists(os.path.join(folder, name, _RECORD)):
        number += 1
        name = f"{name.rpartition('.r')[0] or name}.r{number}"
    return os.path.join(folder, name)


# --- making one ------------------------------------------------------------------------------


def make(now: Installed, wheel: Wheel, target: str, pip_source: list[str]) -> str:
    """An environment with this release that has been tried; the interpreter in it."""
    import shutil
    import venv

    shutil.rmtree(target, ignore_errors=True)  # what a try left that did not come to its end
    os.makedirs(os.path.dirname(target), exist_ok=True)
    venv.EnvBuilder(symlinks=os.name != "nt", with_pip=False).create(target)
    python = os.path.join(target, "bin", "python")
    site = sysconfig.get_path("purelib", vars={"base": target, "platbase": target})
    unpack(wheel, site)
    with open(os.path.join(site, "paddlecloud-installed.pth"), "w", encoding="utf-8") as file:
        file.write(now.site + "\n")
    if set(wheel.requires) != set(now.requires):
        _install_requirements(python, wheel, pip_source)
    _try(wheel.version, [python, "-m", PACKAGE])
    return python


def _install_requirements(python: str, wheel: Wheel, pip_source: list[str]) -> None:
    """What this release needs and the installed one did not."""
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-input"]
    done = _run([*pip, "--disable-pip-version-check", *pip_source, *wheel.requires])
    if done.returncode != 0:
        raise NotSwitched(
            f"{wheel.version} needs packages that could not be installed:\n{done.stderr.strip()}",
            hint="the installed release is untouched",
        )


def _try(version: str, command: list[str]) -> None:
    """Whether the new release starts and says who it is."""
    for words, wanted in ((["version"], f"paddlecloud {version}\n"), (["help"], "")):
        done = _run([*command, *words])
        if done.returncode != 0 or (wanted and done.stdout != wanted):
            said = (done.stderr or done.stdout).strip()[-500:]
            raise NotSwitched(
                f"{version} does not start: {said}", hint="the installed release is in place"
            )


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        return subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=_WITHIN_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


# --- switching -------------------------------------------------------------------------------


def switch(now: Installed, version: str, target: str, python: str) -> None:
    """Have the launchers start this release; on any failure all start the old one again."""
    before = {path: _text(path) for path in now.launchers}
    record = {"launchers": list(now.launchers), "site": now.site, "before": before}
    with open(os.path.join(target, _RECORD), "w", encoding="utf-8") as file:
        json.dump(record, file)
    try:
        for path in now.launchers:
            _place(path, _launcher(python))
        _try(version, [now.launchers[0]])
    except BaseException:
        _put_back(before)
        raise


def go_back(now: Installed) -> str:
    """The launchers of the release before this one; which it is."""
    if not now.before:
        raise Conflict("there is no release to go back to", hint="paddlecloud update --check")
    current = {path: _text(path) for path in now.before}
    _put_back(now.before)
    done = _run([*now.launchers[:1], "version"])
    if done.returncode != 0:
        _put_back(current)
        raise NotSwitched("the release before this one no longer starts", hint="this one stays")
    return done.stdout.strip()


def _put_back(texts: dict[str, str]) -> None:
    for path, text in texts.items():
        _place(path, text)


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _place(path: str, text: str) -> None:
    beside = f"{path}.{os.getpid()}.new"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(beside, 0o755)
        os.replace(beside, path)
    except OSError as error:
        raise NotAllowed(f"cannot replace {path}: {error.strerror}") from error


def _launcher(python: str) -> str:
    body = "import sys\nfrom paddlecloud.cli.main import main\n\nsys.exit(main())\n"
    if len(python) <= _SHEBANG_CHARACTERS and " " not in python:
        return f"#!{python}\n{body}"
    # Longer lines, and blanks, are nothing a kernel reads: a shell starts it instead.
    return f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n{body}"
