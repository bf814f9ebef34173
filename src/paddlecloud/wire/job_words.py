"""The words of the second generation for a job, as its command line and its service say them.

`status_word` names a phase; `name_of` and `group_of` read what a user gave from a specification.
The server answers with these, the command line prints them. Nothing is imported.
"""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The annotation with the name a user gave; the platform's own name is unique and plain.
JOB_NAME = "job-name"
PERMISSION = "permission"

# How far a kill has come: asked for, or its replicas have been told to stop.
KILL_ASKED, KILL_STOPPING = "asked", "stopping"
_KILLS = {KILL_ASKED: "kill_submit", KILL_STOPPING: "killing"}

_STATUS = {
    "Submitted": "submit",
    "Starting": "schedule",
    "Queued": "queue",
    "Preempted": "queue",
    "Suspended": "queue",
    "Running": "running",
    "Rescaling": "running",
    "Succeeded": "success",
    "Failed": "fail",
    "Killed": "killed",
    # `timeout` is a word of the public trial; scripts of this client wait for `killed`.
    "TimedOut": "killed",
}
ENDED = frozenset({"Succeeded", "Failed", "Killed", "TimedOut"})


def status_word(phase: str, kill: str | None = None) -> str:
    """`kill`: how far the kill of a job that has not ended has come, if there is one."""
    if kill and phase not in ENDED:
        return _KILLS[kill]
    return _STATUS.get(phase, "running")


def name_of(notes: Mapping[str, str], name: str) -> str:
    """The name the user gave."""
    return notes.get(JOB_NAME) or name


def group_of(spec: Mapping[str, Any], account: str) -> str:
    """Whose quota a specification counts against; every account is a group of its own."""
    return str(spec.get("group") or account)
