"""`paddlecloud runtime`: the Python environments jobs run in, for the administrator.

`add` names one that exists on the server's machine; `install` makes a virtual environment there,
so it works only on that machine.
"""

from __future__ import annotations

import os

from paddlecloud.cli import tables
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import Conflict, InvalidInput, NotAllowed, Unavailable
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud runtime add NAME PYTHON | install NAME [requirement ...] | list | remove NAME"
HELP = """
  add NAME PYTHON   register an interpreter, or the folder that holds bin/python
  install NAME ...  make a virtual environment and install requirements into it with pip
  list              what --runtime may name
  remove NAME       forget it; its files stay

Examples:
  paddlecloud runtime add paddle /opt/paddle/bin/python --default
  paddlecloud runtime install np numpy==2.1.3 pandas
  paddlecloud runtime list
"""
FLAGS = (
    Flag(("--default",), Kind.BOOL, meaning="jobs that name no runtime use this one"),
    Flag(("--python",), value="PATH", meaning="install: the interpreter to start from"),
    output_flag("table", "json", "yaml", "name"),
)


def run(session: Session) -> int:
    words = session.parsed.positionals
    action, rest = (words[0], words[1:]) if words else ("", ())
    if action == "list" and not rest:
        return _list(session)
    if action == "add" and len(rest) == 2:
        return _add(session, rest[0], _absolute(rest[1]))
    if action == "install" and rest:
        return _install(session, rest[0], list(rest[1:]))
    if action == "remove" and len(rest) == 1:
        session.client.remove_runtime(rest[0])
        session.say(f"runtime    {rest[0]} removed; its files stay")
        return 0
    raise InvalidInput("runtime needs an action", hint=f"usage: {USAGE}")


def _list(session: Session) -> int:
    runtimes = session.client.runtimes()
    form = session.parsed.text("o", "table")
    if form != "table":
        from paddlecloud.cli.output import print_items

        print_items(session, runtimes, form)  # type: ignore[arg-type]
        return 0
    rows = [
        (
            runtime["name"],
            "yes" if runtime["default"] else "",
            "yes" if runtime["has_paddle_train"] else "no",
            runtime["python"],
        )
        for runtime in runtimes
    ]
    headers = ("NAME", "DEFAULT", "PADDLE-TRAIN", "PYTHON")
    session.write(tables.render(headers, rows, session.terminal))
    return 0


def _absolute(path: str) -> str:
    # The server wants its own paths; a relative one can only mean this machine.
    return path if path.startswith("/") else os.path.abspath(os.path.expanduser(path))


def _add(session: Session, name: str, python: str) -> int:
    default = True if session.parsed.switch("default") else None
    runtime = session.client.add_runtime(name, python, default=default)
    word = " (default)" if runtime["default"] else ""
    session.say(f"runtime    {runtime['name']}{word}   {runtime['python']}")
    return 0


def _install(session: Session, name: str, requirements: list[str]) -> int:
    import subprocess
    import sys

    from paddlecloud.cli.local_platform import running, state_directory

    record = running(state_directory())
    if record is None or record.endpoint != session.client.endpoint:
        raise NotAllowed(
            f"{session.client.endpoint} does not run on this machine from this state directory",
            hint="make the environment there and use: paddlecloud runtime add NAME PYTHON",
        )
    if not session.client.whoami()["admin"]:
        raise NotAllowed("only the administrator may install a runtime")
    if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise InvalidInput(f"{name}: letters, digits and . _ - only", field="NAME")
    folder = os.path.join(record.state, "runtimes", name)
    if os.path.lexists(folder):
        raise Conflict(
            f"{folder} is already there", hint=f"paddlecloud runtime add {name} {folder}"
        )
    python = session.parsed.text("python") or sys.executable
    steps = [[python, "-m", "venv", folder]]
    if requirements:
        own = os.path.join(folder, "bin", "python")
        steps.append([own, "-m", "pip", "install", "--disable-pip-version-check", *requirements])
    session.note(f"making {folder} ...")
    for step in steps:
        if subprocess.run(step).returncode != 0:
            import shutil

            shutil.rmtree(folder, ignore_errors=True)
            raise Unavailable(f"{' '.join(step[1:4])} failed; nothing was installed")
    return _add(session, name, folder)
