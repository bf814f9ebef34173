"""Deletes what jobs left, without anybody waiting for it.

A tree is renamed into `<state>/removed/`, which takes a moment whatever is in it, and emptied by a
thread of its own: a program may leave ten million files, or a tree of any depth, and its job still
ends at once and its CPU and cards are free. What a killed platform did not get done is found there
by its successor. No failure here is anybody's business but the log's.
"""

from __future__ import annotations

import logging
import os
import queue
import secrets
import threading
from pathlib import Path

from paddlecloud.localfs import trees

log = logging.getLogger(__name__)

_PATIENCE_S = 5.0


class Remover:
    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / "removed"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._is_closing = False
        self._waiting: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
        for left in sorted(self._folder.iterdir()):
            self._waiting.put(left)
        self._thread = threading.Thread(target=self._run, name="removal", daemon=True)
        self._thread.start()

    def remove(self, path: Path) -> None:
        """`path` is gone when this returns, as far as its name goes. Never raises."""
        aside = self._folder / secrets.token_hex(8)
        try:
            if not _is_empty_and_gone(path):
                _rename(path, aside)
                self._waiting.put(aside)
        except FileNotFoundError:
            return
        except Exception:
            log.exception("cannot remove %s; it stays", path)

    def _run(self) -> None:
        while (path := self._waiting.get()) is not None and not self._is_closing:
            try:
                trees.empty_and_remove(path)
            except Exception:
                log.exception("cannot remove %s; the next start tries again", path)

    def close(self) -> None:
        """Stop after what is being removed now; the rest is a successor's."""
        self._is_closing = True
        self._waiting.put(None)
        self._thread.join(_PATIENCE_S)


def _is_empty_and_gone(path: Path) -> bool:
    """Most programs leave nothing."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def _rename(path: Path, aside: Path) -> None:
    source = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        target = os.open(aside.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            trees.move(path.name, source, aside.name, target)
        finally:
            os.close(target)
    finally:
        os.close(source)
