"""The folder a `job train` sends: the user's files below `env_run/`, and the start script.

It promises: `--files` land by base name and folders among them are walked, `--file-dir .` lands
with its content, any other folder under its own name; the rules of `.gitignore` and
`.paddleignore` hold for folders; nothing of the user's is changed. Called by `train`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.train_flags import Training
from paddlecloud.sdk.ignoring import FILES as IGNORE_FILES
from paddlecloud.sdk.ignoring import Rules
from paddlecloud.wire import job_workspace


def check(training: Training, faults: FaultList) -> None:
    """Whether all that is named is there; what is not becomes a fault."""
    seen: dict[str, str] = {}
    for path in training.files:
        if not os.path.exists(path):
            faults.add(training.word("files"), "there is no such file", path)
            continue
        for source in _flattened(path):
            name = os.path.basename(source)
            other = seen.setdefault(name, source)
            if not os.path.samefile(other, source):
                problem = f"would replace {other}: both are called {name}"
                faults.add(training.word("files"), problem, source)
    if training.file_dir and not os.path.isdir(training.file_dir):
        what = "is not a folder" if os.path.exists(training.file_dir) else "there is no such folder"
        faults.add(training.word("file_dir"), what, training.file_dir)


def compose(training: Training, folder: str) -> list[str]:
    """Fill `folder`; the paths that were taken, in order."""
    with open(os.path.join(folder, job_workspace.SCRIPT_NAME), "w", encoding="utf-8") as script:
        script.write(job_workspace.SCRIPT)
    target = os.path.join(folder, job_workspace.FOLDER)
    os.mkdir(target)
    taken = []
    if training.file_dir:
        below = _name_of_folder(training.file_dir)
        for source, path in _walk(training.file_dir):
            _place(source, os.path.join(target, below, path))
            taken.append(source)
    for path in training.files:
        for source in _flattened(path):
            _place(source, os.path.join(target, os.path.basename(source)))
            taken.append(source)
    return taken


def _name_of_folder(path: str) -> str:
    """Empty for this folder itself: its content is what is meant."""
    if os.path.normpath(path) == os.curdir:
        return ""
    return os.path.basename(os.path.abspath(path))


def _flattened(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for source, _ in _walk(path):
        yield source


def _walk(top: str) -> Iterator[tuple[str, str]]:
    """(a file, its path below `top`), in order; links are left out as in every package."""
    rules = Rules(*(_text(os.path.join(top, name)) for name in IGNORE_FILES))
    for folder, folders, files in os.walk(top):
        below = os.path.relpath(folder, top).replace(os.sep, "/")
        prefix = "" if below == "." else f"{below}/"
        folders[:] = sorted(
            name for name in folders if not rules.is_ignored(prefix + name, is_folder=True)
        )
        for name in sorted(files):
            source = os.path.join(folder, name)
            if os.path.islink(source) or rules.is_ignored(prefix + name, is_folder=False):
                continue
            if os.path.isfile(source):
                yield source, prefix + name


def _place(source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    # `--files` after `--file-dir`: what is named by itself wins.
    if os.path.lexists(target):
        os.remove(target)
    real = os.path.realpath(source)
    try:
        os.link(real, target)  # the same bytes, without copying them
    except OSError:
        shutil.copy2(real, target)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
