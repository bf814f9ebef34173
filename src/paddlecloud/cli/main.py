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

            return helping.overview()
        module = _module(verb)
        if any(word in _HELP_WORDS for word in _flags_part(rest)):
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


def _flags_part(words: list[str]) -> list[str]:
    return words[: words.index("--")] if "--" in words else words


def _module(verb: str) -> ModuleType:
    from paddlecloud.cli.verbs import VERBS

    known = VERBS.get(verb)
    if known is None:
        from paddlecloud.cli import failures

        raise failures.unknown_verb(verb)
    from importlib import import_module

    return import_module(f"paddlecloud.cli.{known[0]}")


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
