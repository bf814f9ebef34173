"""Runtimes: what `image` or `--runtime` names. On the embedded engine, Python environments.

Kept as one small JSON file in the state directory. The engine holds this object and looks names
up in it whenever it starts a replica, so a runtime added now is usable at once. The empty name is
the default.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paddlecloud.core.errors import Conflict, InvalidInput, NotFound
from paddlecloud.engines.local.runtimes import RuntimeMissing, check_prefix, has_paddle_train

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
OWN = "platform"  # the environment the platform itself runs in


class Runtimes(Mapping[str, Path]):
    """name → prefix (the directory that holds `bin/python`)."""

    def __init__(self, state_dir: Path, own_prefix: Path) -> None:
        self._state_dir = state_dir
        self._path = state_dir / "runtimes" / "runtimes.json"
        self._own = own_prefix
        self._lock = threading.Lock()
        self._prefixes: dict[str, Path] = {}
        self._default = ""
        if self._path.exists():
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            self._prefixes = {name: Path(prefix) for name, prefix in stored["prefixes"].items()}
            self._default = stored["default"]

    # --- the mapping an engine reads --------------------------------------------------------

    def __getitem__(self, name: str) -> Path:
        if name in ("", OWN):
            return self._prefixes.get(self._default, self._own) if not name else self._own
        return self._prefixes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("", OWN, *self._prefixes))

    def __len__(self) -> int:
        return len(self._prefixes) + 2

    # --- what people do with it -------------------------------------------------------------

    def has_paddle_train(self, name: str) -> bool:
        """Whether that runtime can run `paddle train` (only very old Paddle releases can)."""
        return has_paddle_train(self[name])

    def listed(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "python": str(self[name] / "bin" / "python"),
                "default": name == (self._default or OWN),
                "has_paddle_train": self.has_paddle_train(name),
            }
            for name in (OWN, *sorted(self._prefixes))
        ]

    def check(self, name: str, *, field: str) -> None:
        if name not in self:
            raise InvalidInput(
                f"there is no runtime {name}",
                field=field,
                hint=f"this platform has: {', '.join((OWN, *sorted(self._prefixes)))}"
                " (paddlecloud runtime add NAME PYTHON)",
            )

    def add(self, name: str, python: str, *, is_default: bool | None) -> dict[str, Any]:
        """`python` is an interpreter or the prefix that holds bin/python."""
        if not _NAME.fullmatch(name) or name == OWN:
            raise InvalidInput(
                f"must be letters, digits and . _ : / - (and not {OWN!r})", field="name"
            )
        prefix = _prefix_of(python)
        try:
            check_prefix(prefix, self._state_dir)
        except RuntimeMissing as error:
            raise InvalidInput(str(error), field="python") from None
        with self._lock:
            if self._prefixes.get(name, prefix) != prefix:
                raise Conflict(
                    f"there is already a runtime {name} at {self._prefixes[name]}",
                    field="name",
                    hint="remove it first, or choose another name",
                )
            # The first one is what people want their jobs to run in.
            if is_default or (is_default is None and not self._prefixes):
                self._default = name
            self._prefixes[name] = prefix
            self._store()
        return next(row for row in self.listed() if row["name"] == name)

    def remove(self, name: str) -> None:
        with self._lock:
            if name not in self._prefixes:
                raise NotFound(f"no runtime {name}", field="name")
            del self._prefixes[name]
            if self._default == name:
                self._default = ""
            self._store()

    def _store(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        prefixes = {name: str(prefix) for name, prefix in self._prefixes.items()}
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps({"prefixes": prefixes, "default": self._default}, indent=1))
        os.replace(part, self._path)


def _prefix_of(python: str) -> Path:
    path = Path(python)
    if not path.is_absolute():
        raise InvalidInput("must be an absolute path on the server", field="python")
    prefix = path if path.is_dir() else path.parent.parent
    if not os.access(prefix / "bin" / "python", os.X_OK):
        raise InvalidInput(
            f"{prefix}/bin/python is not a program",
            field="python",
            hint="give the interpreter of a virtual environment, e.g. /opt/paddle/bin/python",
        )
    return prefix
