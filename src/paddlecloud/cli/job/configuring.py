"""`paddlecloud config --ak A --sk S`, `-t` and `-s`: the settings of the second client.

`-t` and `-s` ask on the terminal; Enter keeps the old value. A key is never shown: not while it is
typed, not as the old value. Called by the `config` verb.
"""

from __future__ import annotations

import sys

from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.sdk import paddlecli_files as files

DONE = "Configure done."


def run(session: Session) -> int:
    path = files.config_file()
    parsed = session.parsed
    if ("ak" in parsed) != ("sk" in parsed):
        given, missing = ("--ak", "--sk") if "ak" in parsed else ("--sk", "--ak")
        raise InvalidInput(f"{given} needs {missing} beside it", field=given)
    old = files.read(path)
    if "ak" in parsed:
        keys = {key: files.check_key(parsed.text(key), f"--{key}") for key in ("ak", "sk")}
        name = old.token_name or "default"
        _keep_keys(path, name, keys["ak"], keys["sk"])
    if parsed.switch("t"):
        name = _ask("token name", old.token_name or "default")
        ak = files.check_key(_ask("access key", old.ak, is_secret=True), "access key")
        sk = files.check_key(_ask("secret key", old.sk, is_secret=True), "secret key")
        _keep_keys(path, name, ak, sk)
    if parsed.switch("s"):
        host = _ask("host", old.host)
        if not host or any(char.isspace() for char in host):
            raise InvalidInput("host must be a name or an address", field="host")
        port = files.check_port(_ask("port", old.port or files.DEFAULT_PORT), "port")
        files.write(path, files.SERVER, {"host": host, "port": port})
    session.say(DONE)
    return 0


def _keep_keys(path: str, name: str, ak: str, sk: str) -> None:
    files.write(path, files.TOKEN, {"token_name": name, "user_ak": ak, "user_sk": sk})


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
