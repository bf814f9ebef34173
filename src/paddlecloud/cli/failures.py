"""Errors in the words of the command line: one line, what to do next, and never a secret.

It promises: the shapes of docs (`error:`, `hint:`, one line per fault), on the standard error.
Called by `main` when a verb failed; everything here may be slow to import.
"""

from __future__ import annotations

import os
import sys

from paddlecloud.cli.verbs import ELSEWHERE, VERBS, module_of
from paddlecloud.core.errors import Fault, InvalidInput, NotFound, PaddleCloudError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.cli.session import Session

_NOTHING = {"submit": "nothing was submitted"}
_REPORT = "this is a fault of paddlecloud; PADDLECLOUD_DEBUG=1 shows where it happened"


def show(error: PaddleCloudError, verb: str, session: Session | None) -> None:
    is_debug = bool(os.environ.get("PADDLECLOUD_DEBUG")) or bool(
        session is not None and session.parsed.switch("debug")
    )
    if is_debug:
        import traceback

        traceback.print_exception(error)
    sys.stdout.flush()
    if session is not None:
        error = session.in_typed_words(error)
    if isinstance(error, InvalidInput) and error.faults:
        text = _faults_text(error, verb)
    else:
        text = f"error: {_with_suggestion(error, session)}\n"
    if error.hint and not (error.hint.startswith("usage:") and "usage:" in text):
        text += f"hint:  {error.hint}\n"
    sys.stderr.write(text)


def _faults_text(error: InvalidInput, verb: str) -> str:
    count = len(error.faults)
    outcome = _NOTHING.get(verb, "nothing was done")
    heads = [_head(fault) for fault in error.faults]
    column = min(max(len(head) for head in heads), 40)
    lines = [f"error: {count} problem{'s' if count > 1 else ''}, {outcome}"]
    for head, fault in zip(heads, error.faults, strict=True):
        lines.append(f"  {head:<{column}}    {fault.problem}")
    usage = usage_of(verb)
    if usage:
        lines.append(f"usage: {usage}     (paddlecloud {verb} --help)")
    return "\n".join(lines) + "\n"


def _head(fault: Fault) -> str:
    return f"{fault.field} {fault.value}".rstrip()


def usage_of(verb: str) -> str:
    if not module_of(verb):
        return ""
    from importlib import import_module

    module = import_module(f"paddlecloud.cli.{module_of(verb)}")
    # `rm` and `pfs rm` are one module.
    return str(getattr(module, "USAGE", "")).replace(
        f"paddlecloud pfs {verb}", f"paddlecloud {verb}"
    )


def _with_suggestion(error: PaddleCloudError, session: Session | None) -> str:
    """`no job named wide-dep. Did you mean wide-deep?`"""
    if not isinstance(error, NotFound) or session is None or not session.job_ref:
        return error.message
    if "did you mean" in f"{error.message} {error.hint}".lower():
        return error.message
    from paddlecloud.forms.faults import nearest

    try:
        page = session.client.jobs_page("all", limit=200)
    except PaddleCloudError:
        return error.message
    near = nearest(session.job_ref, {job["name"] for job in page["items"]})
    message = error.message.rstrip(".")
    is_another = near and near != session.job_ref
    return f"{message}. Did you mean {near}?" if is_another else error.message


def unknown_verb(verb: str) -> InvalidInput:
    from paddlecloud.forms.faults import nearest

    if verb in ELSEWHERE:
        return InvalidInput(f"unknown verb {verb}", hint=ELSEWHERE[verb])
    near = nearest(verb, VERBS)
    advice = f". Did you mean {near}?" if near else ""
    return InvalidInput(f"unknown verb {verb}{advice}", hint="paddlecloud help lists the verbs")


def show_unforeseen(error: Exception) -> None:
    if os.environ.get("PADDLECLOUD_DEBUG"):
        import traceback

        traceback.print_exception(error)
    sys.stderr.write(f"error: {type(error).__name__}: {error}\nhint:  {_REPORT}\n")
