"""Why a replica failed, read from how it ended and from the last lines it printed.

It promises: one sentence for the cause, whether running it again could help, and what to type
next; when the lines do not tell, it says so and guesses nothing. Called by `describe`. Text in,
text out: it talks to nobody.
"""

from __future__ import annotations

import re

from paddlecloud.cli.outcomes import how_it_ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.wire.shapes import FailureShape

_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(
    r"([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning|Iteration|Timeout)"
    r"|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?::\s?(.*))?$"
)
_PFS_PATH = re.compile(r"/pfs/[^\s'\",;:)]+")
_NOT_FOUND = re.compile(r"(?:^|: )([^:\s]+): (?:command )?not found$")
_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_OUT_OF_MEMORY = re.compile(r"\b(out of memory|OutOfMemoryError|ResourceExhaustedError)\b", re.I)

_MISSING = {"FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "FileExistsError"}
_NETWORK = {
    *("ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError"),
    *("ConnectionAbortedError", "TimeoutError", "gaierror", "timeout"),
}
_PROGRAM = {
    *("SyntaxError", "IndentationError", "NameError", "UnboundLocalError", "TypeError"),
    *("AttributeError", "KeyError", "IndexError", "ValueError", "AssertionError"),
    *("ZeroDivisionError", "NotImplementedError", "RecursionError", "UnicodeDecodeError"),
}


class Postmortem:
    """The findings. `retry` begins with yes, no, maybe or unknown."""

    def __init__(self, cause: str, retry: str, lines: list[str], command: str = "") -> None:
        self.cause = cause
        self.retry = retry
        self.lines = lines
        self.command = command


def examine(failure: FailureShape, log_tail: str, *, name: str, memory: str = "") -> Postmortem:
    """`log_tail` is the end of the log of the replica that failed first."""
    lines = [line.rstrip() for line in log_tail.splitlines() if line.strip()]
    cause = failure["cause"]
    if cause == "out_of_memory":
        limit = f" (its limit was {memory})" if memory else ""
        return Postmortem(
            f"out of memory{limit}",
            "no: it needs more memory than it asked for.",
            lines[-3:],
            "submit again with a larger -memory",
        )
    if cause == "start_failed":
        return Postmortem(
            f"could not start: {failure['message'] or 'no reason was given'}",
            "no: the program never ran.",
            lines[-3:],
        )
    raised = _last_exception(lines)
    if raised is not None:
        return _python(raised, lines, name)
    if cause == "signaled":
        return _signal(failure, lines, name)
    return _exit(failure, lines, name)


# --- Python ----------------------------------------------------------------------------------


def _last_exception(lines: list[str]) -> tuple[str, str, int] | None:
    """Type, message and line number of the exception that ended the program."""
    starts = [at for at, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    first = starts[-1] + 1 if starts else max(0, len(lines) - 3)
    for at in range(first, len(lines)):
        if starts and lines[at].startswith((" ", "\t")):
            continue
        match = _RAISED.match(lines[at])
        if match and (starts or match.group(2)):
            return match.group(1), match.group(2) or "", at
    return None


def _python(raised: tuple[str, str, int], lines: list[str], name: str) -> Postmortem:
    full, message, at = raised
    kind = full.rsplit(".", 1)[-1]
    shown = lines[max(0, at - 2) : at + 1]
    cause = f"Python exception: {full}" + (f": {message}" if message else "")
    retry, command = _python_verdict(kind, message, name)
    return Postmortem(cause, retry, shown, command)


def _python_verdict(kind: str, message: str, name: str) -> tuple[str, str]:
    if kind in _MISSING:
        path = _PFS_PATH.search(message)
        folder = path.group().rsplit("/", 1)[0] if path else ""
        why = "the file does not exist" if kind == "FileNotFoundError" else "the path is wrong"
        return f"no: {why}.", f"paddlecloud pfs ls {folder}" if folder else ""
    if kind in ("ModuleNotFoundError", "ImportError"):
        module = _MODULE.search(message)
        what = f"the module {module.group(1)}" if module else "something it imports"
        return f"no: the runtime lacks {what}.", "paddlecloud runtime list"
    if kind == "PermissionError":
        return "no: the job is not allowed to do that.", ""
    if kind == "MemoryError" or _OUT_OF_MEMORY.search(f"{kind} {message}"):
        return "no: it needs more memory than it asked for.", "submit again with more"
    if kind in _NETWORK or "Address already in use" in message:
        return "maybe: another replica or a service was not there.", f"paddlecloud rerun {name}"
    if "No space left" in message:
        return "no: the disk is full.", ""
    if kind in _PROGRAM:
        return "no: it is a fault of the program.", ""
    return "unlikely: the program raised an error of its own.", ""


# --- everything else -------------------------------------------------------------------------


def _signal(failure: FailureShape, lines: list[str], name: str) -> Postmortem:
    ended = how_it_ended(failure)
    if failure["signal"] in (4, 6, 7, 8, 11):
        return Postmortem(
            f"crashed in native code: {ended}",
            "maybe: if it happens again, it is a fault of the program or of a library.",
            lines[-3:],
            f"paddlecloud rerun {name}",
        )
    nobody = "nobody here asked for it: a person, or the system short of memory"
    who = failure["message"] or nobody  # a cluster says what it did: evicted from node-7
    return Postmortem(f"{ended}; {who}", "maybe.", lines[-3:], f"paddlecloud rerun {name}")


def _exit(failure: FailureShape, lines: list[str], name: str) -> Postmortem:
    code = failure["code"]
    if code == 127:
        match = next((m for m in map(_NOT_FOUND.search, reversed(lines)) if m), None)
        what = f"command not found: {match.group(1)}" if match else "command not found"
        return Postmortem(
            what, "no: the runtime has no such program.", lines[-1:], "paddlecloud runtime list"
        )
    if code == 126:
        return Postmortem("the command cannot be executed", "no: it is no program.", lines[-1:])
    message = failure["message"]
    cause = f"exit code {code}" + (f": {message}" if message else "")
    return Postmortem(cause, "unknown: the program does not say why.", lines[-5:])
