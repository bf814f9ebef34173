"""What people ask of a job that exists, by annotations on its object.

`paddlepaddle.org/cancel` ends the job and keeps the object; `paddlepaddle.org/moves` has replicas
leave their nodes; `paddlepaddle.org/runtime` is for `in_front`. An order that cannot be read is a
warning on the job and changes nothing. Pure; `planning` calls it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from paddlecloud.controller.identity import Json
from paddlecloud.core.observed import Move
from paddlecloud.core.topology import role_from_word
from paddlecloud.forms.custom_resources import Warned
from paddlecloud.kube.words import CANCEL_ANNOTATION, MOVES_ANNOTATION, RUNTIME_ANNOTATION

_KILLED = "killed"
_SHAPE = 'a JSON list of {"role": "worker", "index": 0, "attempt": 1, "host": "node", "at": 0}'


@dataclass(frozen=True, slots=True)
class Orders:
    cancel: str = ""  # non-empty: end the job; the words for its reason
    moves: tuple[Move, ...] = ()
    warnings: tuple[Warned, ...] = ()


def read(body: Json) -> Orders:
    notes = body["metadata"].get("annotations") or {}
    moves, warnings = _moves(notes.get(MOVES_ANNOTATION))
    warnings += _odd_wish(notes.get(RUNTIME_ANNOTATION))
    return Orders(_cancel(notes.get(CANCEL_ANNOTATION)), moves, warnings)


def _odd_wish(text: str | None) -> tuple[Warned, ...]:
    """Of a word about the runtime (`in_front`) that means nothing."""
    if text in (None, "", "true", "false"):
        return ()
    where = f"metadata.annotations.{RUNTIME_ANNOTATION}"
    return (Warned(where, 'is ignored; the words are "true" and "false"'),)


def _cancel(why: str | None) -> str:
    if why is None:
        return ""
    words = why.strip()
    if words.startswith(_KILLED):
        return words
    return f"{_KILLED}: {words}" if words else _KILLED


def _moves(text: str | None) -> tuple[tuple[Move, ...], tuple[Warned, ...]]:
    if not text:
        return (), ()
    try:
        rows = json.loads(text)
    except ValueError:
        rows = None
    found, odd = [], not isinstance(rows, list)
    for row in rows if isinstance(rows, list) else ():
        move = _move(row)
        if move is None:
            odd = True
        else:
            found.append(move)
    where = f"metadata.annotations.{MOVES_ANNOTATION}"
    warnings = (Warned(where, f"is ignored where it is not {_SHAPE}"),) if odd else ()
    return tuple(found), warnings


def _move(row: Any) -> Move | None:
    if not isinstance(row, dict):
        return None
    role = role_from_word(str(row.get("role")))
    index, attempt, host = row.get("index"), row.get("attempt"), row.get("host")
    at = row.get("at", 0)
    if role is None or not isinstance(host, str) or not host or not isinstance(at, int | float):
        return None
    if not isinstance(index, int) or not isinstance(attempt, int) or index < 0 or attempt < 1:
        return None
    return Move(role, index, attempt, host, float(at))
