"""Secrets of the state directory: made once, readable by the platform's user alone.

Used by the settings (Django's key), by tokens (what job tokens are derived from) and by TLS. A
secret never leaves its file except to sign something; no default exists.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path


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
    """The secret of that name, made on first use (64 random characters)."""
    path = secrets_dir(state_dir) / name
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        pass
    value = secrets.token_urlsafe(48)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:  # another process of ours was quicker
        return path.read_text(encoding="ascii")
    with open(fd, "w", encoding="ascii") as file:
        file.write(value)
    return value
