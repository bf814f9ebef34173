"""Writes `~/.paddle/config`: a new datacenter by `up`, another current one by `config`.

It promises: the result is form 3, readable by its owner only, replaced in one step; what other
datacenters said is kept. Comments are not: a file that has other datacenters is first copied to
`config.bak`. Called by the command line. It never writes a file that `config` could not read.
"""

from __future__ import annotations

import os

from paddlecloud.sdk.config import Config, Profile, read_config

_ORDER = ("username", "password", "token", "usercert", "userkey", "cacert", "endpoint")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./@+-")
# Words YAML readers of other programs would take for something else than text.
_TAKEN = frozenset({"true", "false", "yes", "no", "on", "off", "null"})


def save_profile(path: str, profile: Profile) -> None:
    """Add or replace the datacenter of that name and make it current."""
    config = read_config(path)
    others = [p for p in config.profiles if p.name != profile.name] if config else []
    _write(path, Config(path, [*others, profile], profile), is_backup_wanted=bool(others))


def use_datacenter(path: str, name: str) -> Profile:
    config = read_config(path) or Config(path, [], None)
    chosen = config.named(name)
    _write(path, Config(path, config.profiles, chosen), is_backup_wanted=True)
    return chosen


def _write(path: str, config: Config, *, is_backup_wanted: bool) -> None:
    directory = os.path.dirname(path) or "."
    os.makedirs(directory, mode=0o700, exist_ok=True)
    if is_backup_wanted:
        with open(path, encoding="utf-8") as file:
            write_private(path + ".bak", file.read())
    write_private(path, render(config))


def render(config: Config) -> str:
    lines = []
    if config.current:
        lines.append(f"current-datacenter: {_scalar(config.current.name)}")
    lines.append("datacenters:")
    for profile in config.profiles:
        lines.append(f"- name: {_scalar(profile.name)}")
        for key in _ORDER:
            value = getattr(profile, key)
            if value:
                lines.append(f"  {key}: {_scalar(value)}")
    return "\n".join(lines) + "\n"


def _scalar(text: str) -> str:
    is_plain = (
        text
        and text[0] not in "-.@"
        and text.lower() not in _TAKEN
        and all(c in _PLAIN for c in text.replace("://", "").replace(":", ""))
        and ": " not in text
        and not text.endswith(":")
        and not text.replace(".", "").replace("-", "").isdigit()
    )
    if is_plain:
        return text
    if "'" not in text and "\n" not in text:
        return f"'{text}'"
    import json

    return json.dumps(text, ensure_ascii=False)


def write_private(path: str, text: str) -> None:
    """Replace a file in one step; only its owner may read it."""
    temporary = f"{path}.{os.getpid()}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
