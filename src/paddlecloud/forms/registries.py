"""Registries of images and the logins to them: what people write, and what a cluster is given.

`parse(body)` reads the four keys of the first client and says all that is wrong at once. A registry
is called by its own name or by that of the secret the first client made of it; `plain_name` and
`secret_name` go between them. `docker_config` writes what a kubelet pulls with. Pure; the server
calls it. The password is kept out of whatever prints these objects.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.forms.faults import FaultList, shorten

PREFIX = "pcloud-registry-"  # scripts name the secret in -registry
MAX_NAME = 63
MAX_TEXT = 255
MAX_PASSWORD_BYTES = 16384  # some registries take a whole JSON key file for a password
KEYS = ("name", "username", "password", "server")

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_SERVER = re.compile(
    r"(?:https?://)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?(?:/\S*)?"
)


@dataclass(frozen=True, slots=True)
class Registry:
    name: str
    server: str  # as a kubelet compares it: host, host:port or https://host/v1/
    username: str
    password: str = field(repr=False)


def plain_name(name: str) -> str:
    """`reg` for both `reg` and `pcloud-registry-reg`."""
    return name.removeprefix(PREFIX)


def secret_name(name: str) -> str:
    return PREFIX + plain_name(name)


def check_name(name: object) -> str:
    """The plain name; raises ValueError with a sentence about what is allowed."""
    if not isinstance(name, str) or not plain_name(name):
        raise ValueError("is missing")
    plain = plain_name(name)
    if len(plain) > MAX_NAME or not _NAME.fullmatch(plain) or ".." in plain:
        raise ValueError(
            f"must be at most {MAX_NAME} of a-z, 0-9, '-' and '.', first and last a letter or digit"
        )
    return plain


def parse(body: object) -> Registry:
    if not isinstance(body, Mapping):
        problem = "must be a JSON object with name, username, password and server"
        raise InvalidInput(faults=[Fault("body", problem)])
    faults = FaultList()
    for key in body:
        if key not in KEYS:
            faults.add(shorten(str(key)) or '""', f"unknown key; allowed are {', '.join(KEYS)}")
    name = ""
    try:
        name = check_name(body.get("name"))
    except ValueError as error:
        faults.add("name", str(error), _shown(body.get("name")))
    found = Registry(
        name,
        _text(body, "server", faults, _check_server),
        _text(body, "username", faults, _check_username),
        _text(body, "password", faults, _check_password),
    )
    faults.raise_if_any()
    return found


def _text(body: Mapping[Any, Any], key: str, faults: FaultList, check: Any) -> str:
    value = body.get(key)
    if value is None or value == "":
        faults.add(key, "is missing")
    elif not isinstance(value, str):
        faults.add(key, "must be a text")
    elif problem := check(value):
        # What was written for a password is never repeated.
        faults.add(key, problem, "" if key == "password" else shorten(value))
    else:
        return value
    return ""


def _check_server(text: str) -> str:
    if len(text) > MAX_TEXT or not _SERVER.fullmatch(text):
        return "must be a host such as hub.example.com or hub.example.com:5000"
    return ""


def _check_username(text: str) -> str:
    if len(text) > MAX_TEXT or not text.isprintable() or ":" in text:
        return f"must be at most {MAX_TEXT} printable characters without a colon"
    return ""


def _check_password(text: str) -> str:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_PASSWORD_BYTES or "\0" in text:
        return f"must be at most {MAX_PASSWORD_BYTES} bytes and hold no NUL character"
    return ""


def _shown(value: object) -> str:
    return value if isinstance(value, str) else ""


def docker_config(registry: Registry) -> str:
    """The text of `.dockerconfigjson` in a secret of the type kubernetes.io/dockerconfigjson."""
    login = f"{registry.username}:{registry.password}".encode("utf-8", "surrogatepass")
    entry = {
        "username": registry.username,
        "password": registry.password,
        "auth": base64.b64encode(login).decode(),
    }
    return json.dumps({"auths": {registry.server: entry}}, separators=(",", ":"))
