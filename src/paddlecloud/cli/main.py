"""The entry point: finds the verb, reads its flags, runs it, and turns errors into words.

It promises: the exit codes of `paddlecloud help exit-codes`; never a traceback unless
PADDLECLOUD_DEBUG is set; nothing imported but what the verb at hand needs. Called by the installed
`paddlecloud` and `paddlectl`. It never talks to a server itself.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from paddlecloud.cli.session import Session

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_VERSION_WORDS = ("--version", "-version", "-V")
_HELP_WORDS = ("-h", "-help", "--help")


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    if len(words) == 1 and words[0] in _VERSION_WORDS:
        from paddlecloud import __version__

        print(f"paddlecloud {__version__}")
        return 0
    if words == ["-v"]:  # in the words of the second client
        from paddlecloud import __version__

        print(f"paddle cloud platform v{__version__}")
        return 0
    try:
        _speak_any_text()
        code = _run(words)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        _write_error("\ninterrupted\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return EXIT_FAILED


def _run(words: list[str]) -> int:
    from paddlecloud.core.errors import PaddleCloudError

    verb = ""
    session: Session | None = None
    try:
        before, verb, rest = _split(words)
        if not verb or (verb == "help" and not rest):
            from paddlecloud.cli import helping

            return helping.overview() if words else helping.first_screen()
        verb, rest = _with_action(verb, rest)
        module = _module(verb)
        if _asks_for_help(module, rest):
            if hasattr(module, "show_help"):  # in the words of an older program
                shown: int = module.show_help(rest)
                return shown
            from paddlecloud.cli import helping

            return helping.about(verb)
        session = _session(module, before + rest)
        code: int = module.run(session)
        return code
    except PaddleCloudError as error:
        from paddlecloud.cli import failures

        failures.show(error, verb, session)
        return error.exit_code
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        from paddlecloud.cli import failures

        failures.show_unforeseen(error)
        return EXIT_FAILED
    finally:
        if session is not None and session.made_client is not None:
            session.made_client.close()


def _split(words: list[str]) -> tuple[list[str], str, list[str]]:
    """Flags before the verb, the verb, and all that follows it."""
    at = 0
    while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
        if words[at] in _HELP_WORDS:
            return [], "", []
        is_whole = "=" in words[at] or words[at].lstrip("-") == "debug"
        at += 1 if is_whole else 2
    if at >= len(words):
        if words:
            from paddlecloud.core.errors import InvalidInput

            raise InvalidInput(f"no verb after {words[0]}", hint="paddlecloud help lists the verbs")
        return [], "", []
    return words[:at], words[at], words[at + 1 :]


def _with_action(verb: str, rest: list[str]) -> tuple[str, list[str]]:
    """`pfs -v cp x y` → `pfs cp` and `-v x y`: the second word of a verb of two words."""
    from paddlecloud.cli.verbs import actions_of

    actions = actions_of(verb)
    if not actions:
        return verb, rest
    may_be_a_value = False
    for at, word in enumerate(rest):
        if word in actions:
            return f"{verb} {word}", rest[:at] + rest[at + 1 :]
        if not word.startswith("-") and not may_be_a_value:
            break
        may_be_a_value = word.startswith("-") and "=" not in word
    return verb, rest


def _asks_for_help(module: ModuleType, words: list[str]) -> bool:
    found = [word for word in _flags_part(words) if word in _HELP_WORDS]
    if found == ["-h"]:  # `du -h`
        return not any("-h" in flag.names for flag in module.FLAGS)
    return bool(found)


def _flags_part(words: list[str]) -> list[str]:
    return words[: words.index("--")] if "--" in words else words


def _module(verb: str) -> ModuleType:
    from paddlecloud.cli.verbs import module_of

    known = module_of(verb)
    if not known:
        from paddlecloud.cli import failures

        raise failures.unknown_verb(verb)
    from importlib import import_module

    return import_module(f"paddlecloud.cli.{known}")


def _session(module: ModuleType, words: list[str]) -> Session:
    if hasattr(module, "open_session"):
        opened: Session = module.open_session(words)
        return opened
    from paddlecloud.cli.everywhere import FLAGS
    from paddlecloud.cli.session import Session
    from paddlecloud.forms.faults import FaultList
    from paddlecloud.forms.go_flags import parse

    faults = FaultList()
    parsed = parse(words, (*module.FLAGS, *FLAGS), faults)
    faults.raise_if_any()
    return Session(parsed)


def _speak_any_text() -> None:
    """A terminal that cannot show a character shows `?`; that is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and (stream.encoding or "").lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def _forget_stdout() -> None:
    """The reader has gone; keep the interpreter from complaining about it while it ends."""
    import os

    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)


def _write_error(text: str) -> None:
    try:
        sys.stderr.write(text)
    except BrokenPipeError:
        pass
