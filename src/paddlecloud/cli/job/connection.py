"""What stands between `job` and the action: which server, which keys, whose answers.

It promises the precedence of the old client: `--server` and `--port` together, else the file
`~/.paddlecli/config`, else what every other verb uses; and the same for `--ak` and `--sk`, with
which requests are signed. What is wrong with these flags is kept, to be told together with what is
wrong behind the action. Read by `verb`, `algo`, `cluster` and `group`. It makes no connection.
"""

from __future__ import annotations

import os

from paddlecloud.cli.everywhere import FLAGS as EVERYWHERE
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.go_flags import Flag, Kind, Parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from paddlecloud.sdk.config import Profile

COMPAT_VARIABLE = "PADDLECLOUD_JOB_COMPAT"
FLAGS = (
    Flag(("--debug",), Kind.BOOL, meaning="debug mode, this will print debug message"),
    Flag(("--server",), value="<ARG>", meaning="specify remote server host"),
    Flag(("--port",), value="<ARG>", meaning="specify remote server port"),
    Flag(("--ak", "--user-ak"), value="<ARG>", meaning="your access key"),
    Flag(("--sk", "--user-sk"), value="<ARG>", meaning="your secret key"),
    Flag(
        ("--compat",),
        value="1|2",
        choices=("1", "2"),
        meaning="answer as release 1.x or 2.x did (default 2, or 1 with --user-ak)",
    ),
)
ALL = (*FLAGS, *(flag for flag in EVERYWHERE if flag.key != "debug"))


class JobSession(Session):
    """A session of the second client; `words` are the action and all that follows it."""

    def __init__(self, parsed: Parsed, words: Sequence[str], faults: FaultList) -> None:
        super().__init__(parsed)
        self.action = words[0] if words else ""
        self.words = list(words[1:])
        self.faults = faults
        self.unknown = list(parsed.unknown)
        self.generation = _generation(parsed)

    def take(self, flags: Sequence[Flag]) -> Parsed:
        """What stands behind the action; its faults are kept with the others."""
        from paddlecloud.forms.long_flags import parse

        parsed = parse(self.words, flags, self.faults, earlier=ALL)
        self.unknown += parsed.unknown
        return parsed

    def raise_if_any(self, hint: str) -> None:
        """Refuse the command line if anything is wrong with it, with all that is."""
        from paddlecloud.cli.job.refusing import raise_if_any

        raise_if_any(self.faults, self.unknown, hint)

    def refuse_action(self, problem: str, hint: str) -> None:
        """The action is missing or not known, so what follows it cannot be read."""
        if not self.faults:
            raise InvalidInput(problem, hint=hint)
        self.faults.add(self.action or "<action>", problem)
        self.raise_if_any(hint)

    def profile(self) -> Profile:
        from paddlecloud.sdk.config import load_profile

        profile = load_profile(
            path=self.parsed.text("config"),
            datacenter=self.parsed.text("datacenter"),
            endpoint=self.parsed.text("endpoint") or self._old_endpoint(),
        )
        profile.ak, profile.sk = self._keys()
        return profile

    def _old_endpoint(self) -> str:
        """By the flags or the file of the old client; empty: as every other verb."""
        from paddlecloud.sdk import paddlecli_files as files

        host, port = self.parsed.text("server"), self.parsed.text("port")
        if host and port:
            return files.endpoint(host, files.check_port(port, "--port"))
        if host or port:
            alone, missing = ("--server", "--port") if host else ("--port", "--server")
            self.note(f"note: {alone} is used only together with {missing}")
        if os.environ.get("PADDLECLOUD_ENDPOINT") or self.parsed.text("datacenter"):
            return ""
        stored = files.read(files.config_file())
        if not stored.host:
            return ""
        return files.endpoint(stored.host, stored.port or files.DEFAULT_PORT)

    def _keys(self) -> tuple[str, str]:
        """By the flags, if there are both, or the file; empty: logged in as every other verb."""
        from paddlecloud.sdk import paddlecli_files as files

        pair = self.parsed.text("ak"), self.parsed.text("sk")
        if all(pair):
            return pair
        if any(pair):
            alone = self.parsed.given["ak" if pair[0] else "sk"].written
            self.note(f"note: {alone} is used only together with its other half")
        if os.environ.get("PADDLECLOUD_TOKEN"):  # meant for this very command
            return "", ""
        stored = files.read(files.config_file())
        if not (stored.ak and stored.sk):
            return "", ""
        where = files.config_file()
        return (
            files.check_key(stored.ak, f"user_ak in {where}"),
            files.check_key(stored.sk, f"user_sk in {where}"),
        )

    def debug(self, error: BaseException) -> None:
        """With --debug, where an error came from."""
        if self.parsed.switch("debug") or os.environ.get("PADDLECLOUD_DEBUG"):
            import traceback

            traceback.print_exception(error)


def split(words: list[str], actions: Collection[str]) -> JobSession:
    """The flags before the action are read, what follows it is only kept."""
    from paddlecloud.forms.long_flags import parse

    faults = FaultList()
    parsed = parse(words, ALL, faults, stops_at_positional=True, never_values=actions)
    _check_values(parsed, faults)
    return JobSession(parsed, parsed.positionals, faults)


def _check_values(parsed: Parsed, faults: FaultList) -> None:
    given = {key: parsed.given[key] for key in ("ak", "sk", "port") if key in parsed}
    if not given:
        return
    from paddlecloud.sdk import paddlecli_files as files

    for key, each in given.items():
        check = files.check_port if key == "port" else files.check_key
        try:
            check(each.text, each.written)
        except InvalidInput as error:  # a key is not repeated
            shown = each.text if key == "port" else ""
            faults.add(each.written, error.message.removeprefix(f"{each.written} "), shown)


def _generation(parsed: Parsed) -> int:
    """Which release's users read the answer: asked for, or told by a spelling only 1.x had."""
    asked = parsed.text("compat") or os.environ.get(COMPAT_VARIABLE, "")
    if asked not in ("", "1", "2"):
        raise InvalidInput(f"{COMPAT_VARIABLE} must be 1 or 2", field=COMPAT_VARIABLE)
    if asked:
        return int(asked)
    keys = (parsed.given[key].written for key in ("ak", "sk") if key in parsed)
    return 1 if any(written.lstrip("-").startswith("user") for written in keys) else 2
