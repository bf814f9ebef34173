"""The shape of the route table: one row per call, used to route and to write OpenAPI.

A row says everything a client must know (parameters, body, answers) and everything the front must
do before the handler (who may call, how the body is read, whether it changes something), so the
description and the behaviour cannot differ.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import parse_qsl

from paddlecloud.core.errors import Fault, InvalidInput


class Access(Enum):
    OPEN = "open"  # health and login
    USER = "user"  # an account, not a job's own token
    JOB = "job"  # also a job's own token, about that job
    ADMIN = "admin"


class Work(Enum):
    """Where a handler runs."""

    THREAD = "thread"  # handler(request) -> Answer, rows and files
    LOGS = "logs"  # the same, but it asks the engine for bytes
    LOOP = "loop"  # async handler(request, stream): waits and streams
    INLINE = "inline"  # handler(request) -> Answer, on the loop: neither rows nor files
    RELAY = "relay"  # handler(request) -> Errand; the file server reads the query and answers
    ERRAND = "errand"  # handler(request) -> Errand: what to ask the file server instead


class Change(Enum):
    NONE = "none"
    ATOMIC = "atomic"  # handler and idempotency key commit together
    OWN = "own"  # the handler keeps the key itself
    # Many small transactions, or one and slow work beside it: the key is kept after them. Repeating
    # it after a crash in between changes nothing more.
    EACH = "each"


_NUMBERS = {
    int: re.compile(r"[+-]?[0-9]{1,18}"),  # within 64 bits
    float: re.compile(r"[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})(e[+-]?[0-9]{1,2})?", re.I),
}


@dataclass(frozen=True, slots=True)
class Param:
    """One query parameter. `kind` is str, int, float or bool (`1 true yes` / `0 false no`)."""

    name: str
    kind: type
    about: str
    default: Any = None
    low: float | None = None
    high: float | None = None

    def parse(self, text: str) -> Any:
        if self.kind is str:
            if "\0" in text:  # no name holds one, and not every database can be asked for one
                raise ValueError("must not hold a NUL character")
            return text
        if self.kind is bool:
            if text.lower() in ("", "1", "true", "yes"):
                return True
            if text.lower() in ("0", "false", "no"):
                return False
            raise ValueError("must be 1 or 0")
        # Python's own int() takes 1_000, digits of every script and numbers no column holds.
        if not _NUMBERS[self.kind].fullmatch(text):
            raise ValueError(self._wanted())
        value = self.kind(text)
        in_range = (self.low is None or value >= self.low) and (
            self.high is None or value <= self.high
        )
        if not in_range or value != value:
            raise ValueError(self._wanted())
        return value

    def _wanted(self) -> str:
        noun = "a whole number" if self.kind is int else "a number"
        if self.low is not None and self.high is not None:
            return f"must be {noun} from {self.low:g} to {self.high:g}"
        return f"must be {noun}" + (f" of at least {self.low:g}" if self.low is not None else "")


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str  # at most one {segment}
    handler: Callable[..., Any]
    summary: str
    params: tuple[Param, ...] = ()
    body: type | None = None  # a shape from wire.shapes; None = no body or not JSON
    body_type: str = ""  # content type of a body that is not JSON
    answers: Mapping[int, Any] = field(default_factory=dict)  # status → shape(s) or content type
    access: Access = Access.USER
    work: Work = Work.THREAD
    change: Change = Change.NONE
    body_limit_bytes: int | None = None  # None: the configured limit of JSON bodies
    dialect: str = "v2"
    # What a change is answered with, if that asks more than rows: made after the transaction, and
    # again for who repeats the change.
    shown: Callable[..., Any] | None = None
    secret_answer: bool = False  # the answer holds a secret: derived again, never stored

    def parse_query(self, query: bytes, most_fields: int = 100) -> dict[str, Any]:
        """Typed values of all parameters; every fault is reported at once."""
        values = {param.name: param.default for param in self.params}
        if not query:
            return values
        known = {param.name: param for param in self.params}
        faults: list[Fault] = []
        given: set[str] = set()
        for name, text in _fields(query, most_fields):
            param = known.get(name)
            if param is None:
                if self.dialect == "v2":
                    problem = _unknown(name, () if faults else known)
                    faults.append(Fault(name[:100], problem, text[:100]))
                continue
            if name in given:
                faults.append(Fault(name, "is there twice", text[:100]))
            given.add(name)
            try:
                values[name] = param.parse(text)
            except ValueError as error:
                faults.append(Fault(name, str(error), text[:100]))
        if faults:
            raise InvalidInput(faults=faults)
        return values


def _fields(query: bytes, most_fields: int) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("latin-1"), keep_blank_values=True, max_num_fields=most_fields
        )
    except ValueError:
        raise InvalidInput(
            f"has more than {most_fields} parameters",
            field="query",
            hint="GET /api/v2/openapi.json",
        ) from None


def _unknown(name: str, known: Iterable[str]) -> str:
    """A suggestion costs a comparison with each of `known`: one is made, for the first fault."""
    close = difflib.get_close_matches(name[:100], list(known), 1)
    return "is no parameter of this call" + (f"; did you mean {close[0]}?" if close else "")


class Table:
    """Finds the row for a method and a path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._exact: dict[str, dict[str, Route]] = {}
        self._open: dict[tuple[str, ...], dict[str, tuple[Route, str, int]]] = {}
        for route in self.routes:
            if "{" not in route.path:
                self._exact.setdefault(route.path, {})[route.method] = route
                continue
            parts = route.path.split("/")
            place = next(i for i, part in enumerate(parts) if part.startswith("{"))
            key = (*parts[:place], "{}", *parts[place + 1 :])
            row = (route, parts[place][1:-1], place)
            self._open.setdefault(key, {})[route.method] = row
        self._places = sorted({row[2] for rows in self._open.values() for row in rows.values()})

    def find(self, method: str, path: str) -> tuple[Route | None, dict[str, str], list[str]]:
        """(route, segments, methods the path has). A HEAD without a row of its own is a GET."""
        rows = self._exact.get(path)
        if rows is not None:
            route = rows.get(method) or (rows.get("GET") if method == "HEAD" else None)
            return route, {}, sorted(rows)
        parts = path.split("/") if "\0" not in path else []
        for place in self._places:
            if len(parts) <= place or not parts[place]:
                continue
            open_rows = self._open.get((*parts[:place], "{}", *parts[place + 1 :]))
            if open_rows is not None:
                row = open_rows.get(method) or (open_rows.get("GET") if method == "HEAD" else None)
                if row is None:
                    return None, {}, sorted(open_rows)
                return row[0], {row[1]: parts[place]}, sorted(open_rows)
        return None, {}, []
