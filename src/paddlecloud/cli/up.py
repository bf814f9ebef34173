"""`paddlecloud up`: starts the platform on this machine and logs you in to it.

Doing it again is fine: a running platform is left alone. The first start makes an administrator
named after the operating system's user, whose token goes into `~/.paddle/config`.
"""

from __future__ import annotations

import os

from paddlecloud.cli import engine_choice, local_platform, platform_life
from paddlecloud.cli.local_platform import Running
from paddlecloud.cli.session import Session
from paddlecloud.cli.status import platform_line
from paddlecloud.cli.verbs import NEXT
from paddlecloud.core.errors import NotLoggedIn
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen

    from paddlecloud.sdk.config import Config, Profile
    from paddlecloud.wire.shapes import StatusShape

USAGE = "paddlecloud up [--port N] [--host ADDRESS] [--state FOLDER] [--tls] [--foreground]"
HELP = """
Everything is kept in one state folder (PADDLECLOUD_HOME, default ~/.paddlecloud). Jobs outlive the
server: `down` and even kill -9 leave them running, and the next `up` finds them again. A small
parent process starts the server again, on the same port, when it dies.

Examples:
  paddlecloud up
  paddlecloud up --port 8001 --state ./state
  paddlecloud up --tls --host 0.0.0.0
  paddlecloud up --engine kubernetes --kubeconfig ~/.kube/config --image you/paddle:2.6
"""
FLAGS = (
    Flag(
        ("--port",),
        Kind.INT,
        value="N",
        low=0,
        high=65535,
        meaning="port (default 8000, or the next that is free; 0 = any free)",
    ),
    Flag(("--host",), value="ADDRESS", meaning="address to listen on (default 127.0.0.1)"),
    Flag(("--state",), value="FOLDER", meaning="state folder (default ~/.paddlecloud)"),
    Flag(("--tls",), Kind.BOOL, meaning="serve https, with a CA of the platform's own"),
    Flag(("--foreground",), Kind.BOOL, meaning="stay attached, log here; Ctrl-C stops all"),
    *engine_choice.FLAGS,
)
DEFAULT_PORT = 8000
_PORTS_TRIED = 100


def run(session: Session) -> int:
    from paddlecloud.sdk.config import config_path, read_config

    local_platform.require_linux()
    state = local_platform.state_directory(session.parsed.text("state"))
    path = session.parsed.text("config") or config_path()
    config = read_config(path)  # a malformed one is refused before anything starts
    found = local_platform.settled(state)
    if found is not None:
        _say_what_does_not_apply(session, found)
        return _greet(session, found, config, path, is_new=False)
    engine_choice.to_environment(session.parsed)
    is_detached = not session.parsed.switch("foreground")
    command = platform_life.server_command(
        state=state,
        host=session.parsed.text("host"),
        port=_port(session),
        account=_account_name(),
    )
    progress = Progress(session, "starting the platform")
    found, child = platform_life.start(
        command,
        state,
        is_tls=session.parsed.switch("tls"),
        is_detached=is_detached,
        on_wait=progress,
    )
    progress.finish("started")
    if is_detached:
        return _greet(session, found, config, path, is_new=True)
    try:
        _pass_on_term(child)
        _greet(session, found, config, path, is_new=True)
        session.flush()
        return child.wait()
    except KeyboardInterrupt:
        return child.wait()  # it heard Ctrl-C itself


def _port(session: Session) -> int | None:
    """What was asked for; else the default one, or the next that is free. None: as the
    environment says."""
    if "port" in session.parsed:
        return session.parsed.number("port")
    if os.environ.get("PADDLECLOUD_PORT"):
        return None
    host = session.parsed.text("host") or os.environ.get("PADDLECLOUD_HOST") or "127.0.0.1"
    for port in range(DEFAULT_PORT, DEFAULT_PORT + _PORTS_TRIED):
        if platform_life.can_listen(host, port):
            if port != DEFAULT_PORT:
                session.note(f"note: port {DEFAULT_PORT} is taken, so it is {port} (--port N)")
            return port
    return DEFAULT_PORT  # and the server says what is wrong


def _pass_on_term(child: Popen[bytes]) -> None:
    """A TERM to the command in the foreground is meant for the platform."""
    import signal

    signal.signal(signal.SIGTERM, lambda number, frame: child.terminate())


def _say_what_does_not_apply(session: Session, found: Running) -> None:
    """A running platform keeps the address it has."""
    asked = [f"--{key}" for key in ("port", "host", "tls") if key in session.parsed]
    asked += [f"--{key}" for key in engine_choice.given(session.parsed)]
    port = session.parsed.number("port")
    if asked and not (asked == ["--port"] and found.endpoint.endswith(f":{port}")):
        session.note(
            f"note: it runs already, so {', '.join(asked)} changes nothing; "
            "paddlecloud down stops it first"
        )


class Progress:
    """Says on the standard error what takes longer than a second, and then how long it took."""

    def __init__(self, session: Session, what: str) -> None:
        self._session = session
        self._what = what
        self._was_said = False
        self._waited_s = 0.0

    def __call__(self, waited_s: float) -> None:
        self._waited_s = waited_s
        if waited_s > 1.0 and not self._was_said:
            self._was_said = True
            self._session.note(f"{self._what} ...")

    def finish(self, what: str) -> None:
        if self._was_said:
            self._session.note(f"{what} after {self._waited_s:.1f} s")


def _account_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "admin"


# --- saying what is there --------------------------------------------------------------------


def _greet(
    session: Session, found: Running, config: Config | None, path: str, *, is_new: bool
) -> int:
    profile, status = _log_in(found, config)
    was_saved = _save(config, path, profile, status)
    shown = _short(path)
    session.say(platform_line(status) + ("" if is_new else "   already running"))
    where = f"token saved in {shown}" if was_saved else f"logged in by {shown}"
    session.say(f"account    {status['account']:<{_width(status)}}   {where}")
    for note in status["notes"]:
        session.say(f"note       {note}")
    if was_saved and config is not None and config.current is not None:
        before = config.current.name
        if before != profile.name:
            session.say(
                f"before     {before}: paddlecloud config use-datacenter {before} switches back"
            )
    session.say(f"next       {NEXT}")
    return 0


def _width(status: StatusShape) -> int:
    return max(len(status["endpoint"]), len(status["account"]))


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + os.sep) else path


def _log_in(found: Running, config: Config | None) -> tuple[Profile, StatusShape]:
    """The configured login for this address if it works, else the platform's own first token."""
    from paddlecloud.sdk.client import Client

    known = [p for p in config.profiles if p.endpoint == found.endpoint] if config else []
    if config and config.current in known:
        known.sort(key=lambda profile: profile is not config.current)
    for profile in [*known, local_platform.profile_at(found, "", "")]:
        if not (profile.token or profile.password or profile.usercert):
            continue
        try:
            with Client(profile=profile) as client:
                return profile, client.status()
        except NotLoggedIn:
            continue
    # The state directory is ours to read and write, so its platform is too.
    local_platform.renew_token(found.state, _account_name())
    profile = local_platform.profile_at(found, "", "")
    with Client(profile=profile) as client:
        return profile, client.status()


def _save(config: Config | None, path: str, profile: Profile, status: StatusShape) -> bool:
    """Make this login the current one; whether the file had to be written."""
    if config is not None and profile is config.current:
        return False
    from paddlecloud.sdk.config_writing import save_profile

    if not profile.name:
        profile.name = status["cluster"]
        profile.username = status["account"]
    save_profile(path, profile)
    return True
