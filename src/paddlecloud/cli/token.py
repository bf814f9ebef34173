"""`paddlecloud token`: the named key pairs of the second client, as its release 1.x had them.

They live in ~/.paddlecli/token; the one in use is in ~/.paddlecli/config as well, where that client
looks for it. No key is ever shown whole.
"""

from __future__ import annotations

from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput, NotFound
from paddlecloud.forms.go_flags import Flag, Kind
from paddlecloud.sdk import paddlecli_files as files

USAGE = "paddlecloud token [-a | -l | --switch NAME | --remove NAME]"
HELP = """
Without a flag it says which pair is in use. -a asks for a name and both keys; --ak and --sk give
them without asking: paddlecloud token -a --token-name NAME --ak A --sk S.

Examples:
  paddlecloud token
  paddlecloud token -a
  paddlecloud token --switch work
"""
FLAGS = (
    Flag(("-a", "--add"), Kind.BOOL, meaning="add a named key pair, or change one"),
    Flag(("-l", "--list"), Kind.BOOL, meaning="list the names"),
    Flag(("--switch",), value="NAME", meaning="use this pair from now on"),
    Flag(("--remove",), value="NAME", meaning="forget this pair"),
    Flag(("--token-name",), value="NAME", meaning="-a: its name"),
    Flag(("--ak",), value="KEY", meaning="-a: the access key"),
    Flag(("--sk",), value="KEY", meaning="-a: the secret key"),
    Flag(("--json",), Kind.BOOL, meaning="print JSON"),
)
_ORDERS = ("a", "l", "switch", "remove")
_SHOWN_CHARACTERS = 4


def run(session: Session) -> int:
    parsed = session.parsed
    asked = [key for key in _ORDERS if key in parsed]
    if parsed.positionals or len(asked) > 1:
        wrong = " ".join([*parsed.positionals, *(parsed.given[key].written for key in asked[1:])])
        raise InvalidInput(f"token cannot do {wrong} as well", hint=f"usage: {USAGE}")
    beside = [key for key in ("token-name", "ak", "sk") if key in parsed]
    if beside and asked != ["a"]:
        raise InvalidInput(f"--{beside[0]} goes with -a only", field=f"--{beside[0]}")
    if not asked:
        return _current(session)
    do = {"a": _add, "l": _list, "switch": _switch, "remove": _remove}
    return do[asked[0]](session)


def _current(session: Session) -> int:
    stored = files.read(files.config_file())
    if not stored.ak:
        session.say("no key pair is in use")
        session.note("hint:  paddlecloud token -a adds one")
        return 0
    name = stored.token_name or files.DEFAULT_NAME
    if session.parsed.switch("json"):
        _print_json(session, {"token_name": name, "user_ak": _shown(stored.ak)})
    else:
        session.say(f"{name}   access key {_shown(stored.ak)}")
    return 0


def _add(session: Session) -> int:
    from paddlecloud.cli.job import configuring

    parsed = session.parsed
    old = files.read(files.config_file())
    if "ak" in parsed or "sk" in parsed:
        keys = configuring.keys_by_flags(parsed, files.DEFAULT_NAME)
    else:
        keys = configuring.ask_keys(parsed.text("token-name") or files.DEFAULT_NAME, old)
    is_first = not old.ak or keys[0] == (old.token_name or files.DEFAULT_NAME)
    files.keep_token(*keys, in_use=is_first)
    session.say(configuring.DONE)
    if not is_first:
        session.note(f"hint:  paddlecloud token --switch {keys[0]} uses it from now on")
    return 0


def _list(session: Session) -> int:
    from paddlecloud.cli.job import answers

    stored = files.read(files.config_file())
    current = (stored.token_name or files.DEFAULT_NAME) if stored.ak else ""
    known = sorted(files.tokens().items())
    if session.parsed.switch("json"):
        rows = [
            {"token_name": name, "user_ak": _shown(ak), "current": name == current}
            for name, (ak, _) in known
        ]
        _print_json(session, rows)
    elif not known:
        session.say(answers.NO_DATA)
    else:
        cells = [(name, _shown(ak), "*" if name == current else "") for name, (ak, _) in known]
        session.write(answers.table(("token_name", "user_ak", "current"), cells))
    return 0


def _switch(session: Session) -> int:
    name = session.parsed.text("switch")
    ak, sk = _known(name, "--switch")
    files.keep_token(name, ak, sk, in_use=True)
    session.say(f"using {name}")
    return 0


def _remove(session: Session) -> int:
    name = session.parsed.text("remove")
    _known(name, "--remove")
    was = files.read(files.config_file())
    files.forget_token(name)
    session.say(f"removed {name}")
    if was.ak and (was.token_name or files.DEFAULT_NAME) == name:
        session.note("note: it was the one in use; paddlecloud token --switch NAME uses another")
    return 0


def _known(name: str, flag: str) -> tuple[str, str]:
    known = files.tokens()
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        raise NotFound(f"there is no key pair called {name}", field=flag, hint=f"known: {there}")
    return known[name]


def _shown(ak: str) -> str:
    """Enough to tell keys apart, not to use one."""
    return f"{ak[:_SHOWN_CHARACTERS]}******" if len(ak) > 2 * _SHOWN_CHARACTERS else "******"


def _print_json(session: Session, value: object) -> None:
    from paddlecloud.cli.job import answers

    session.say(answers.as_json(value))
