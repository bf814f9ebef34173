"""`paddlecloud config --ak A --sk S`, `-t` and `-s`: the settings of the second client.

`-t` and `-s` ask on the terminal; Enter keeps the old value. `--ak --sk [--token-name]` and `--host
--port` set the same without asking. A key is never shown: not while it is typed, not as the old
value. Nothing is written unless all that was given is right. Called by the `config` verb; `token`
asks with it.
"""

from __future__ import annotations

import sys

from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import FaultList
from paddlecloud.sdk import paddlecli_files as files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from paddlecloud.forms.go_flags import Parsed
    from paddlecloud.sdk.paddlecli_files import Stored

DONE = "Configure done."


def run(session: Session) -> int:
    parsed = session.parsed
    old = files.read(files.config_file())
    faults = FaultList()
    _check_pair(parsed, "ak", "sk", faults)
    _check_pair(parsed, "host", "port", faults)
    if "token-name" in parsed and not ("ak" in parsed or parsed.switch("t")):
        faults.add("--token-name", "needs the keys it names: --ak and --sk, or -t")
    name = old.token_name or files.DEFAULT_NAME
    keys = _keys(parsed, name, faults) if "ak" in parsed or "sk" in parsed else None
    server = _server_by_flags(session, faults) if "host" in parsed or "port" in parsed else None
    faults.raise_if_any(hint="paddlecloud config --help")
    if parsed.switch("t"):
        keys = ask_keys(parsed.text("token-name") or name, old)
    if parsed.switch("s"):
        server = _ask_server(old)
    if keys is not None:
        files.keep_token(*keys, in_use=True)
    if server is not None:
        files.write(files.config_file(), files.SERVER, {"host": server[0], "port": server[1]})
    session.say(DONE)
    return 0


def keys_by_flags(parsed: Parsed, name: str) -> tuple[str, str, str]:
    """(name, access key, secret key) from --token-name, --ak and --sk."""
    faults = FaultList()
    _check_pair(parsed, "ak", "sk", faults)
    keys = _keys(parsed, name, faults)
    faults.raise_if_any()
    return keys


def _check_pair(parsed: Parsed, one: str, other: str, faults: FaultList) -> None:
    for here, there in ((one, other), (other, one)):
        if here in parsed and there not in parsed:
            faults.add(f"--{here}", f"needs --{there} beside it")


def _keys(parsed: Parsed, name: str, faults: FaultList) -> tuple[str, str, str]:
    name = parsed.text("token-name") or name
    ak, sk = (
        _checked(files.check_key, parsed.text(key), f"--{key}", faults) if key in parsed else ""
        for key in ("ak", "sk")
    )
    return _checked(files.check_name, name, "--token-name", faults), ak, sk


def _server_by_flags(session: Session, faults: FaultList) -> tuple[str, str]:
    parsed = session.parsed
    host = _checked(check_host, parsed.text("host"), "--host", faults) if "host" in parsed else ""
    port = parsed.text("port")
    return host, _checked(files.check_port, port, "--port", faults) if "port" in parsed else ""


def _checked(check: Callable[[str, str], str], text: str, field: str, faults: FaultList) -> str:
    """The text; what is wrong with it becomes a fault that does not repeat it (it may be a key)."""
    try:
        return check(text, field)
    except InvalidInput as error:
        faults.add(field, error.message.removeprefix(f"{field} "))
        return ""


def check_host(text: str, field: str) -> str:
    if not text or any(char.isspace() for char in text) or not text.isprintable():
        raise InvalidInput(f"{field} must be a name or an address", field=field)
    return text


def _ask_server(old: Stored) -> tuple[str, str]:
    host = check_host(_ask("host", old.host), "host")
    return host, files.check_port(_ask("port", old.port or files.DEFAULT_PORT), "port")


def ask_keys(name: str, old: Stored) -> tuple[str, str, str]:
    """(name, access key, secret key), asked for one after the other."""
    name = files.check_name(_ask("token name", name), "token name")
    known = files.tokens().get(name, (old.ak, old.sk) if name == old.token_name else ("", ""))
    ak = files.check_key(_ask("access key", known[0], is_secret=True), "access key")
    sk = files.check_key(_ask("secret key", known[1], is_secret=True), "secret key")
    return name, ak, sk


def _ask(what: str, old: str, *, is_secret: bool = False) -> str:
    shown = "******" if is_secret and old else old
    prompt = f"{what} [{shown}]: " if shown else f"{what}: "
    try:
        if is_secret and sys.stdin.isatty():
            import getpass

            typed = getpass.getpass(prompt)
        else:
            typed = input(prompt)
    except EOFError:
        typed = ""
    return typed.strip() or old
