"""Documents that run: records or checks the `console` blocks of a guide on a fresh platform.

    python tools/transcripts.py record docs/guides/quickstart.md
    python tools/transcripts.py check docs/guides/*.md

In a block marked `console`, a line `$ command` is run by a shell and the lines after it are its
output, as a reader would see them. Recording writes what was printed; checking compares it after
ids, times, sizes and addresses were replaced by their kind, so a guide cannot show what nobody saw.
Each document has a platform, a home and an account of its own, whose name is drawn at random and is
written down as alice, and starts in a copy of the checkout, where it may leave what it likes. The
environment is that of a new login, with one variable more: PADDLECLOUD_PORT, as the port 8000 that
documents show may be taken on this machine. What is only said on a slow machine (progress after a
second) is left out on both sides.
"""

from __future__ import annotations

import difflib
import os
import random
import re
import shutil
import string
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paddlecloud.core.names import dns_label
from paddlecloud.testing.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 120
RUNTIMES = Path(
    os.environ.get("PADDLECLOUD_RUNTIMES") or Path.home() / ".cache" / "paddlecloud" / "runtimes"
)

# What differs from run to run, and the word that stands for it when comparing. Order matters.
_KINDS = (
    (r"job-[0-9a-f]{16}", "JOB"),
    (r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?Z?", "TIME"),
    (r"127\.\d+\.\d+\.\d+(:\d+)?", "ADDRESS"),
    (r"pid \d+|\"(\w+_)?pid\": \d+", "PID"),
    (r"\b\d+(\.\d+)?(Ki|Mi|Gi|kB|MB|B)\b", "SIZE"),
    (r"\b(\d+ of )?\d+ cpu\b", "N cpu"),
    (r"\bholds \d+\b", "holds N"),
    (r"\b(cores|cpu|revision|start_\w+_s)(\"?): ?[\"']?[\d.]+[\"']?", r"\1\2: N"),
    (r"\b(\d+h)?(\d+m)?\d+(\.\d+)?s\b|\b\d+m\b|\b\d+\.\d s\b", "AGO"),
    (r"\"(seconds|mtime_ns|port)\": [\d.]+", r"\1: N"),
    (r"paddle-[\d.]+-cp\d+", "RUNTIME"),
    (r"probability 0\.\d+", "probability N"),
    (r"[\d.,]+ [KMG]?i?B used, \d+ files|\d+ of \d+ bytes are used", "USED"),
    (r"\b[0-9a-f]{28,64}\b", "DIGEST"),
    (r"\.venv/bin/python[\d.]*", "PYTHON"),
    (r"[ \t]+", " "),
)

# Lines that appear only when something takes long.
_PASSING = re.compile(
    r"(starting the platform|waiting for its end) \.\.\.|started after [\d.]+ s"
    r"|\S+ is (Submitted|Starting|Running)(: starting .*)?"
)


def kinds_of(line: str) -> str:
    for pattern, word in _KINDS:
        line = re.sub(pattern, word, line)
    return line.strip()


@dataclass
class Step:
    """One command of a document and the output that stands under it."""

    command: str
    shown: list[str] = field(default_factory=list)


@dataclass
class Document:
    """A guide as alternating prose lines and steps."""

    path: Path
    parts: list[str | Step] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Document:
        document, step, inside = cls(path), None, False
        for line in path.read_text(encoding="utf-8").splitlines():
            if inside and line.startswith("$ "):
                step = Step(line[2:])
                document.parts.append(step)
            elif inside and step is not None and step.command.endswith("\\"):
                step.command += "\n" + line
            elif inside and step is not None and line != "```":
                step.shown.append(line)
            else:
                if line.startswith("```"):
                    inside, step = line.strip() == "```console", None
                document.parts.append(line)
        return document

    @property
    def steps(self) -> list[Step]:
        return [part for part in self.parts if isinstance(part, Step)]

    def write(self) -> None:
        lines: list[str] = []
        for part in self.parts:
            if isinstance(part, Step):
                lines += ["$ " + part.command, *part.shown]
            else:
                lines.append(part)
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


FOUR_DIGITS = range(8100, 10_000)  # as wide as the port the guides show
WRITTEN_AS = "alice"


def any_account(signs: str = "._-") -> str:
    """A name an operating system could give, with one of the signs in it: `aq.7w`.

    As long as the name it is written down as, and before bob and carol: tables look the same. With
    a dash that is true of its namespace too.
    """
    pick = random.SystemRandom().choice
    beyond_hex = string.ascii_lowercase[6:]
    return f"a{pick(beyond_hex)}{pick(signs)}{pick(string.digits)}{pick(beyond_hex)}"


class Reader:
    """Somebody with an empty home and a copy of the checkout who types what a document says."""

    def __init__(
        self, home: Path, tools: Sequence[Path] = (), *, account: str = "", **env: str
    ) -> None:
        self.account = account or any_account()
        self._home = home
        self._checkout = home / "paddlecloud"
        left_out = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info")
        shutil.copytree(ROOT, self._checkout, ignore=left_out, symlinks=True)
        (self._checkout / ".venv").symlink_to(sys.prefix)  # as `make venv` would
        cache = home / ".cache" / "paddlecloud"
        cache.mkdir(parents=True)
        (cache / "runtimes").symlink_to(RUNTIMES)  # as `make runtime` would
        folders = [*tools, self._checkout / ".venv" / "bin", os.environ["PATH"]]
        self._env = {
            "PATH": ":".join(map(str, folders)),
            "HOME": str(home),
            "USER": self.account,
            "LOGNAME": self.account,
            "LANG": "C.UTF-8",
            "PADDLECLOUD_PORT": str(free_port(FOUR_DIGITS)),
            **env,
        }

    def type(self, command: str) -> list[str]:
        address = f"127.0.0.1:{self._env['PADDLECLOUD_PORT']}"
        done = subprocess.run(
            ["bash", "-c", command.replace("127.0.0.1:8000", address)],
            cwd=self._checkout,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )
        # No secret in a document, not even a dead one.
        text = re.sub(r"\bpct_[\w-]+", "pct_...", done.stdout)
        text = text.replace(str(self._home), "~").replace(str(ROOT), "~/paddlecloud")
        text = text.replace(self._env["PADDLECLOUD_PORT"], "8000")
        for name in (dns_label(self.account), self.account):
            text = text.replace(name, WRITTEN_AS)
        lines = [line.rstrip() for line in text.splitlines()]
        return [line for line in lines if not _PASSING.fullmatch(line)]

    def leave(self) -> None:
        self.type("paddlecloud down --kill-jobs")


def play(document: Document, tools: Sequence[Path] = (), **env: str) -> list[list[str]]:
    with tempfile.TemporaryDirectory(prefix="paddlecloud-reader-") as folder:
        reader = Reader(Path(folder), tools, **env)
        try:
            return [reader.type(step.command) for step in document.steps]
        finally:
            reader.leave()


def differences(document: Document, tools: Sequence[Path] = (), **env: str) -> list[str]:
    """What the document shows otherwise than it happens, as a diff; empty when it is right.

    Its reader has what the guide asks for: `tools` on the path, and `env`.
    """
    found: list[str] = []
    for step, printed in zip(document.steps, play(document, tools, **env), strict=True):
        shown, seen = ([kinds_of(line) for line in lines] for lines in (step.shown, printed))
        if shown != seen:
            found += [f"{document.path.name}: $ {step.command}"]
            found += list(difflib.unified_diff(shown, seen, "shown", "printed", lineterm="", n=1))
    return found


def record(document: Document, tools: Sequence[Path] = (), **env: str) -> None:
    played = play(document, tools, account=any_account("-"), **env)
    for step, printed in zip(document.steps, played, strict=True):
        step.shown = printed
    document.write()


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0] not in ("record", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    wrong = []
    for name in arguments[1:]:
        document = Document.read(Path(name))
        if arguments[0] == "record":
            record(document)
        else:
            wrong += differences(document)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
