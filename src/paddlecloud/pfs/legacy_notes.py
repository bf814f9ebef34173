"""What is written down of the first protocol's drafts, so that another server goes on with them.

Beside a draft lies its note, `<draft>.json`. Neither is synced: what the kernel has survives the
server, and after a reboot no draft is believed, so that an old client finds its file as it was and
sends it again. Used by `legacy_files` and by whoever looks for leftovers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paddlecloud.pfs.boots import boot_id
from paddlecloud.pfs.owners import account_folders

_SUFFIX = ".json"
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Note:
    owner: str
    uid: int | None
    path: str
    size_bytes: int
    executable: bool
    is_touched: bool
    settled: tuple[Span, ...]
    asked: Span | None
    boot: str = field(default_factory=boot_id)


def write(draft: Path, note: Note) -> None:
    """Replace what was written; a note that cannot be is an older one, which claims less."""
    new = draft.with_name(f"{draft.name}.new")
    with suppress(OSError):
        new.write_text(json.dumps(asdict(note)))
        os.rename(new, _of(draft))


def forget(draft: Path) -> None:
    with suppress(OSError):
        _of(draft).unlink(missing_ok=True)


def find(folder: Path) -> Iterator[tuple[str, Note]]:
    """The names of the drafts in an account's folder that can be gone on with, and their notes."""
    boot = boot_id()
    for path in folder.glob(f"draft-*{_SUFFIX}"):
        name = path.name.removesuffix(_SUFFIX)
        with suppress(OSError, ValueError, KeyError, TypeError):
            note = _read(json.loads(path.read_text()))
            if note.boot == boot and os.stat(folder / name).st_size == note.size_bytes:
                yield name, note


def are_there(parts: Path) -> bool:
    """Whether any account has a draft to go on with."""
    return any(True for folder in account_folders(parts) for _ in find(folder))


def _read(body: dict[str, Any]) -> Note:
    settled = tuple(_span(one) for one in body.pop("settled"))
    asked = body.pop("asked")
    return Note(settled=settled, asked=None if asked is None else _span(asked), **body)


def _span(written: list[int]) -> Span:
    start, end = written
    return start, end


def _of(draft: Path) -> Path:
    return draft.with_name(draft.name + _SUFFIX)
