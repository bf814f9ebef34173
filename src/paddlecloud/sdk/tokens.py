"""Keeps tokens that were fetched with a password: `~/.paddle/token_cache`.

It promises: one token per datacenter, endpoint and user, so switching never sends the wrong one;
the file is readable by its owner only; an unreadable or foreign file counts as empty. Called by
the client. It never holds a password.
"""

from __future__ import annotations

import json
import os

from paddlecloud.sdk.config import Profile, home_directory


def cache_path() -> str:
    return os.path.join(home_directory(), ".paddle", "token_cache")


def _key(profile: Profile) -> str:
    return "\n".join((profile.name, profile.endpoint, profile.username))


def _read() -> dict[str, str]:
    try:
        with open(cache_path(), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(k): v for k, v in found.items() if isinstance(v, str)}


def cached(profile: Profile) -> str:
    return _read().get(_key(profile), "")


def store(profile: Profile, token: str) -> None:
    """Remember it; a home that cannot be written to only means the next call logs in again."""
    from paddlecloud.sdk.config_writing import write_private

    tokens = _read()
    tokens[_key(profile)] = token
    try:
        os.makedirs(os.path.dirname(cache_path()), mode=0o700, exist_ok=True)
        write_private(cache_path(), json.dumps(tokens, indent=1) + "\n")
    except OSError:
        pass
