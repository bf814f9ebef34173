"""Secrets of the state directory: made once, readable by the platform's user alone.

Used by the settings (Django's key), by tokens (what job tokens are derived from) and by TLS. A
secret never leaves its file except to sign something; no default exists.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from paddlecloud.core.errors import Conflict

NAMES = ("access-keys", "django-key", "pfs-relay", "publish-key", "registries")
_SHORTEST = 32


def secrets_dir(state_dir: Path) -> Path:
    path = state_dir / "secrets"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write_secret(path: Path, data: bytes) -> None:
    """Atomically, 0600 from the first byte."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def secret_text(state_dir: Path, name: str) -> str:
    """The secret of that name, made on first use (64 random characters).

    It is whole and on the disk before it has its name, so nobody ever reads a part of it. One that
    is too short to be ours is refused: whatever is signed or sealed with it would be everybody's.
    """
    path = secrets_dir(state_dir) / name
    if not path.exists():
        _make(path)
    value = path.read_text(encoding="ascii")
    _check(name, value)
    return value


def check_secrets(state_dir: Path) -> None:
    """Raise `Conflict` for one that cannot be used, before anybody is served."""
    for name in NAMES:
        path = secrets_dir(state_dir) / name
        if path.exists():
            _check(name, path.read_text(encoding="ascii"))


def _check(name: str, value: str) -> None:
    length = len(value.strip())
    if length < _SHORTEST:
        raise Conflict(
            f"the secret secrets/{name} has {length} characters, at least {_SHORTEST} are needed",
            hint="restore it from a backup; if there is none, delete it: a new one is made, and"
            " what the old one signed or sealed (tokens, keys) has to be made anew",
        )


def _make(path: Path) -> None:
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    write_secret(part, secrets.token_urlsafe(48).encode("ascii"))
    try:
        os.link(part, path)
    except FileExistsError:
        pass  # another process of ours was quicker
    finally:
        part.unlink()
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in it last."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
