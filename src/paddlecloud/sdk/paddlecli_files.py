"""`~/.paddlecli/config` and `token`: which server the `job` client talks to, with which key pair.

It promises: the INI files of the old client, read and written so that it could still use them. In
`config` the sections `[token]` (`token_name user_ak user_sk`, the pair in use) and `[server]`
(`host port`), in `token` one section per named pair. A file that is no INI is refused by name; what
is written is whole or not at all, and readable by its owner only. Called by the `job`, `config` and
`token` verbs. It never prints, and no message of it holds a key.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping

from paddlecloud.core.errors import InvalidInput

TOKEN, SERVER = "token", "server"
DEFAULT_PORT = "80"
DEFAULT_NAME = "default"
_KEY = re.compile(r"[A-Za-z0-9]{1,128}")
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")


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


def token_file() -> str:
    return os.path.join(folder(), "token")


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


def read_value(path: str, section: str, key: str) -> str:
    """One value, empty where there is none."""
    return _parser(path).get(section, key, fallback="").strip()


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
    _save(path, parser)


def remove(path: str, section: str) -> bool:
    """Drop a section; False if there was none."""
    parser = _parser(path)
    if not parser.remove_section(section):
        return False
    _save(path, parser)
    return True


def _save(path: str, parser: configparser.RawConfigParser) -> None:
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        beside = f"{path}.{os.getpid()}.new"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                parser.write(file)
            os.chmod(beside, 0o600)  # one that was left there may be open to others
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}", field=path) from error


# --- named key pairs -------------------------------------------------------------------------


def tokens() -> dict[str, tuple[str, str]]:
    """Every named pair, (access key, secret key); the one in use is among them."""
    parser = _parser(token_file())
    found = {
        name: (parser.get(name, "user_ak", fallback=""), parser.get(name, "user_sk", fallback=""))
        for name in parser.sections()
    }
    current = read(config_file())
    if current.ak:  # a client that knew no other file wrote it there only
        found.setdefault(current.token_name or DEFAULT_NAME, (current.ak, current.sk))
    return found


def keep_token(name: str, ak: str, sk: str, *, in_use: bool) -> None:
    """Keep a pair under its name, and use it if told. The one used before stays known."""
    for known, pair in {**tokens(), name: (ak, sk)}.items():
        write(token_file(), known, {"user_ak": pair[0], "user_sk": pair[1]})
    if in_use:
        write(config_file(), TOKEN, {"token_name": name, "user_ak": ak, "user_sk": sk})


def forget_token(name: str) -> None:
    remove(token_file(), name)
    if (read(config_file()).token_name or DEFAULT_NAME) == name:
        remove(config_file(), TOKEN)


def check_name(text: str, field: str) -> str:
    """A name an INI file can hold as a section; DEFAULT means something else there."""
    if not _NAME.fullmatch(text) or text == "DEFAULT":
        raise InvalidInput(
            f"{field} must be 1 to 64 letters, digits and . _ @ -, and not DEFAULT", field=field
        )
    return text


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
