"""Which server to talk to and as whom: `~/.paddle/config` in its three forms, and overrides.

It promises: one `Profile`, chosen by each form's own rule; credentials of one endpoint are never
sent to another; a malformed file is refused by name and line, never half read. Called by the
client and by `paddlecloud config|up`. It never prints, and never talks to a server.

    form 1   <name>: {username, usercert, userkey, endpoint}      the first entry; https
    form 2   datacenters: [{name, active, username, password, endpoint}]     the active one
    form 3   current-datacenter: <name>, datacenters: [...]       the one of that name
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from paddlecloud.core.errors import InvalidInput
from paddlecloud.sdk import settings_file
from paddlecloud.sdk.http import Endpoint
from paddlecloud.sdk.settings_file import List, Malformed, Map, Text

DEFAULT_ENDPOINT = "http://127.0.0.1:8000"
_KEYS = (
    "name",
    "active",
    "username",
    "password",
    "token",
    "usercert",
    "userkey",
    "cacert",
    "endpoint",
)
_TRUE = ("true", "yes", "on")
_FALSE = ("false", "no", "off", "")


class Profile:
    """One datacenter of the configuration: an address and how to log in there."""

    __slots__ = (
        "ak",
        "cacert",
        "endpoint",
        "is_active",
        "name",
        "password",
        "sk",
        "token",
        "usercert",
        "userkey",
        "username",
    )

    def __init__(
        self,
        name: str = "",
        endpoint: str = DEFAULT_ENDPOINT,
        *,
        username: str = "",
        password: str = "",
        token: str = "",
        usercert: str = "",
        userkey: str = "",
        cacert: str = "",
        is_active: bool | None = None,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.username = username
        self.password = password
        self.token = token
        self.usercert = usercert
        self.userkey = userkey
        self.cacert = cacert
        self.is_active = is_active  # form 2; None when the key is not there
        # An access key: with both, requests are signed and nothing else logs in.
        self.ak = ""
        self.sk = ""

    def __repr__(self) -> str:
        # Profiles end up in debug output: no password, no token, no key.
        return f"Profile(name={self.name!r}, endpoint={self.endpoint!r}, user={self.username!r})"


class Config:
    """A read configuration file: its profiles, in order, and which one is current."""

    def __init__(self, path: str, profiles: list[Profile], current: Profile | None) -> None:
        self.path = path
        self.profiles = profiles
        self.current = current

    def named(self, name: str) -> Profile:
        for profile in self.profiles:
            if profile.name == name:
                return profile
        raise InvalidInput(
            f"{self.path} has no datacenter named {name}",
            hint=_known_names(self.profiles),
            field="datacenter",
        )


def home_directory() -> str:
    return os.path.expanduser("~")


def config_path(environ: Mapping[str, str] | None = None) -> str:
    """`~/.paddle/config`; on Windows `.paddle\\config` under the profile directory."""
    environ = os.environ if environ is None else environ
    return environ.get("PADDLECLOUD_CONFIG") or os.path.join(home_directory(), ".paddle", "config")


def load_profile(
    *,
    environ: Mapping[str, str] | None = None,
    path: str = "",
    datacenter: str = "",
    endpoint: str = "",
) -> Profile:
    """The profile to use: arguments first, then PADDLECLOUD_ENDPOINT/_TOKEN, then the file."""
    environ = os.environ if environ is None else environ
    config = read_config(path or config_path(environ))
    if datacenter:
        if config is None:
            raise InvalidInput(
                f"there is no configuration file {path or config_path(environ)}",
                field="datacenter",
            )
        profile = config.named(datacenter)
    else:
        profile = config.current if config and config.current else Profile()
    wanted = endpoint or environ.get("PADDLECLOUD_ENDPOINT", "")
    if wanted:
        profile = _at_endpoint(wanted, profile, config)
    token = environ.get("PADDLECLOUD_TOKEN", "")
    if token:
        profile.token, profile.password = token, ""
    return profile


def _at_endpoint(wanted: str, profile: Profile, config: Config | None) -> Profile:
    """The profile of that address if there is one; a strange address gets no credentials."""
    url = checked_endpoint(wanted, "PADDLECLOUD_ENDPOINT").url
    if profile.endpoint == url:
        return profile
    for other in config.profiles if config else ():
        if other.endpoint == url:
            return other
    return Profile(profile.name, url, cacert=profile.cacert)


def checked_endpoint(text: str, field: str) -> Endpoint:
    try:
        return Endpoint(text)
    except ValueError as error:
        raise InvalidInput(f"{field}: {error}", field=field) from None


def read_config(path: str) -> Config | None:
    """The file, checked; None when it does not exist."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidInput(f"cannot read {path}: {why}", field=path) from error
    try:
        return _interpret(path, settings_file.read(text))
    except Malformed as error:
        raise InvalidInput(
            f"{path}, line {error.line}: {error.problem}",
            hint="the three forms of this file are shown by: paddlecloud help config",
            field=path,
        ) from None


def _interpret(path: str, root: object) -> Config:
    if not isinstance(root, Map):
        raise Malformed(1, "must be a map of datacenters, or have `datacenters:`")
    if "datacenters" in root:
        return _with_list(path, root)
    if "current-datacenter" in root:
        raise Malformed(_line(root["current-datacenter"]), "has no `datacenters:` list beside it")
    if "endpoint" in root:
        raise Malformed(
            root.line, "the settings must stand below a datacenter's name, indented by two spaces"
        )
    profiles = [_profile(name, value, is_form_1=True) for name, value in root.items()]
    return Config(path, profiles, profiles[0] if profiles else None)


def _with_list(path: str, root: Map) -> Config:
    for key, value in root.items():
        if key not in ("datacenters", "current-datacenter"):
            raise Malformed(
                _line(value), f"unknown setting {key}; allowed are datacenters, current-datacenter"
            )
    rows = root["datacenters"]
    if isinstance(rows, Text) and not rows:
        rows = List()
    if not isinstance(rows, List):
        raise Malformed(_line(rows), "datacenters must be a list: `- name: ...`")
    profiles = [_profile("", row, is_form_1=False) for row in rows]
    _refuse_doubles(profiles, rows)
    if "current-datacenter" in root:
        current = _text(root, "current-datacenter")
        chosen = next((p for p in profiles if p.name == current), None)
        if chosen is None:
            raise Malformed(
                _line(root["current-datacenter"]),
                f"current-datacenter {current} is not in the list; {_known_names(profiles)}",
            )
        return Config(path, profiles, chosen)
    return Config(path, profiles, _active(profiles, rows))


def _active(profiles: list[Profile], rows: List) -> Profile | None:
    active = [p for p in profiles if p.is_active]
    if len(active) > 1:
        second = rows[profiles.index(active[1])]
        raise Malformed(
            _line(second), "a second datacenter has `active: true`; at most one may have it"
        )
    if active:
        return active[0]
    # One entry that does not speak about `active` can only mean itself.
    if len(profiles) == 1 and profiles[0].is_active is None:
        return profiles[0]
    if profiles:
        raise Malformed(rows.line, "no datacenter has `active: true`, and no current-datacenter")
    return None


def _refuse_doubles(profiles: list[Profile], rows: List) -> None:
    seen: set[str] = set()
    for profile, row in zip(profiles, rows, strict=True):
        if profile.name in seen:
            raise Malformed(_line(row), f"the datacenter {profile.name} is there twice")
        seen.add(profile.name)


def _profile(name: str, row: object, *, is_form_1: bool) -> Profile:
    if not isinstance(row, Map):
        raise Malformed(_line(row), f"{name or 'a datacenter'} must be a map of settings")
    for key, value in row.items():
        if key not in _KEYS:
            raise Malformed(_line(value), f"unknown setting {key}; allowed are {', '.join(_KEYS)}")
    name = name or _text(row, "name")
    if not name:
        raise Malformed(row.line, "a datacenter without `name:`")
    endpoint = _text(row, "endpoint")
    if not endpoint:
        raise Malformed(row.line, f"the datacenter {name} has no `endpoint:`")
    has_cert = bool(_text(row, "usercert"))
    if "://" not in endpoint:
        # Form 1 writes a bare host: a certificate is only good for TLS.
        endpoint = f"{'https' if is_form_1 or has_cert else 'http'}://{endpoint}"
    try:
        url = Endpoint(endpoint).url
    except ValueError as error:
        raise Malformed(_line(row["endpoint"]), f"endpoint: {error}") from None
    return Profile(
        name,
        url,
        username=_text(row, "username"),
        password=_text(row, "password"),
        token=_text(row, "token"),
        usercert=_path(row, "usercert"),
        userkey=_path(row, "userkey"),
        cacert=_path(row, "cacert"),
        is_active=_flag(row, "active") if "active" in row else None,
    )


def _text(row: Map, key: str) -> str:
    value = row.get(key, "")
    if isinstance(value, str):
        return str(value)
    raise Malformed(
        _line(value), f"{key} must be one text; replace the brackets and what is in them"
    )


def _path(row: Map, key: str) -> str:
    return os.path.expanduser(_text(row, key))


def _flag(row: Map, key: str) -> bool:
    word = _text(row, key).lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise Malformed(_line(row[key]), f"{key} must be true or false, not {word}")


def _line(value: object) -> int:
    return int(getattr(value, "line", 1)) or 1


def _known_names(profiles: list[Profile]) -> str:
    names = ", ".join(p.name for p in profiles)
    return f"it has {names}" if names else "it has none"
