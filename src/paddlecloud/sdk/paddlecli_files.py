"""`~/.paddlecli/config`: which server the `job` client talks to, and with which key pair.

It promises: the INI file of the old client, sections `[token]` (`token_name user_ak user_sk`) and
`[server]` (`host port`), read and written so that the old client could still use it; a file that
is no INI is refused by name; what is written is readable by its owner only. Called by the `job`
and `config` verbs. It never prints, and no message of it holds a key.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping

from paddlecloud.core.errors import InvalidInput

TOKEN, SERVER = "token", "server"
DEFAULT_PORT = "80"
_KEY = re.compile(r"[A-Za-z0-9]{1,128}")


class Stored:
    """What the file says; empty where it says nothing."""

    __slots__ = ("ak", "host", "port", "sk", "token_name")

    def __init__(
        self, host: str = "", port: str = "", token_name: str = "", ak: str = "", sk: str = ""
    ) -> None:
        self.host = host
        self.port = port
        self.token_name = token_name
        self.ak = ak
        self.sk = sk

    def __repr__(self) -> str:
        return f"Stored(host={self.host!r}, port={self.port!r}, token_name={self.token_name!r})"


def folder(environ: Mapping[str, str] | None = None) -> str:
    environ = os.environ if environ is None else environ
    return environ.get("PADDLECLI_HOME") or os.path.join(os.path.expanduser("~"), ".paddlecli")


def config_file() -> str:
    return os.path.join(folder(), "config")


def read(path: str) -> Stored:
    parser = _parser(path)

    def text(section: str, key: str) -> str:
        return parser.get(section, key, fallback="").strip()

    return Stored(
        text(SERVER, "host"),
        text(SERVER, "port"),
        text(TOKEN, "token_name"),
        text(TOKEN, "user_ak"),
        text(TOKEN, "user_sk"),
    )


def _parser(path: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_string(file.read())
    except FileNotFoundError:
        return parser
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        # Never configparser's own words: they quote the line.
        why = getattr(error, "strerror", None) or "it is not an INI file"
        raise InvalidInput(f"cannot read {path}: {why}", field=path) from None
    return parser


def write(path: str, section: str, values: Mapping[str, str]) -> None:
    """Set these keys of a section; everything else in the file stays."""
    parser = _parser(path)
    if not parser.has_section(section):
        parser.add_section(section)
    for key, value in values.items():
        parser.set(section, key, value)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        beside = f"{path}.new"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            parser.write(file)
        os.replace(beside, path)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}", field=path) from error


def check_key(text: str, field: str) -> str:
    if not _KEY.fullmatch(text):
        raise InvalidInput(f"{field} must be letters and digits only", field=field)
    return text


def check_port(text: str, field: str) -> str:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536):
        raise InvalidInput(f"{field} must be a number from 1 to 65535", field=field)
    return text


def endpoint(host: str, port: str) -> str:
    """`http://host:port`; a host that brings its own scheme keeps it."""
    scheme, found, bare = host.rpartition("://")
    return f"{scheme if found else 'http'}://{bare.rstrip('/')}:{port}"
