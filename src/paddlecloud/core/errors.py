"""Every error a user can meet, as one tree with stable codes.

    PaddleCloudError
    ├── InvalidInput       400  exit 2   the request is wrong; carries all its faults
    ├── CannotFit          422  exit 1   the job would not fit the empty cluster
    ├── NotLoggedIn        401  exit 3
    ├── NotAllowed         403  exit 3
    ├── NotFound           404  exit 4
    ├── Conflict           409  exit 5
    ├── TooLarge           413  exit 1
    ├── RateLimited        429  exit 1
    ├── OutOfSpace         507  exit 1
    │   └── QuotaExceeded  507  exit 1   the account's own limit, not the disk's
    ├── Unavailable        503  exit 1   an engine or a part does not answer
    ├── ServerUnreachable  ---  exit 6   only a client can see this one
    └── InternalError      500  exit 1

The server turns an error into `to_json()` and its HTTP status; the SDK rebuilds the same class
with `error_from_json`. Nothing here knows HTTP libraries; `http_status` is only a number.

Every start of the command line imports this, so it imports neither `typing` nor `dataclasses`
(together they cost more than starting Python does).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, NamedTuple

    class _FaultFields(NamedTuple):
        field: str  # as written: "-memory", "psmemory", "spec.worker.replicas"
        problem: str  # 'unknown suffix GB; write 10Gi (binary) or 10G (decimal)'
        value: str = ""  # the offending text, shortened by the caller when huge
else:
    _FaultFields = namedtuple("_FaultFields", ("field", "problem", "value"), defaults=("",))


class Fault(_FaultFields):
    """One thing wrong with an input, in the words the user wrote."""

    __slots__ = ()

    def to_json(self) -> dict[str, str]:
        return {"field": self.field, "problem": self.problem, "value": self.value}


class PaddleCloudError(Exception):
    """The root: a stable code, a sentence, and where known a hint and the field at fault."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "", field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.field = field

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "field": self.field,
        }


class _WithFaults(PaddleCloudError):
    """What is wrong in several places is told for all of them at once, each by its field."""

    def __init__(
        self, message: str = "", *, faults: Iterable[Fault] = (), hint: str = "", field: str = ""
    ) -> None:
        self.faults = tuple(faults)
        if not message:
            message = "; ".join(f"{fault.field}: {fault.problem}" for fault in self.faults)
        if not field and self.faults:
            field = self.faults[0].field
        super().__init__(message, hint=hint, field=field)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "faults": [fault.to_json() for fault in self.faults]}


class InvalidInput(_WithFaults):
    """The request can never be right as written. All faults are reported at once."""

    code = "invalid_input"
    http_status = 400
    exit_code = 2


class CannotFit(_WithFaults):
    code = "cannot_fit"
    http_status = 422


class NotLoggedIn(PaddleCloudError):
    code = "not_logged_in"
    http_status = 401
    exit_code = 3


class NotAllowed(PaddleCloudError):
    code = "not_allowed"
    http_status = 403
    exit_code = 3


class NotFound(PaddleCloudError):
    code = "not_found"
    http_status = 404
    exit_code = 4


class Conflict(PaddleCloudError):
    code = "conflict"
    http_status = 409
    exit_code = 5


class TooLarge(PaddleCloudError):
    code = "too_large"
    http_status = 413


class RateLimited(PaddleCloudError):
    code = "rate_limited"
    http_status = 429


class OutOfSpace(PaddleCloudError):
    code = "out_of_space"
    http_status = 507


class QuotaExceeded(OutOfSpace):
    code = "quota_exceeded"


class Unavailable(PaddleCloudError):
    code = "unavailable"
    http_status = 503


class ServerUnreachable(PaddleCloudError):
    code = "server_unreachable"
    http_status = 503
    exit_code = 6


class InternalError(PaddleCloudError):
    code = "internal"


_WITH_FAULTS: Mapping[str, type[_WithFaults]] = {cls.code: cls for cls in (InvalidInput, CannotFit)}
ERROR_CLASSES: Mapping[str, type[PaddleCloudError]] = {
    cls.code: cls
    for cls in (
        NotLoggedIn,
        NotAllowed,
        NotFound,
        Conflict,
        TooLarge,
        RateLimited,
        OutOfSpace,
        QuotaExceeded,
        Unavailable,
        ServerUnreachable,
        InternalError,
    )
}


def error_from_json(body: Mapping[str, Any]) -> PaddleCloudError:
    """Rebuild the error a server answered with; an unknown code keeps its message."""
    code, hint, field = (_text(body, key) for key in ("code", "hint", "field"))
    message = _text(body, "message") or "the server gave no message"
    if code in _WITH_FAULTS:
        listed = body.get("faults")
        faults = [
            Fault(_text(row, "field"), _text(row, "problem"), _text(row, "value"))
            for row in (listed if isinstance(listed, list | tuple) else ())
            if isinstance(row, Mapping)
        ]
        return _WITH_FAULTS[code](message, faults=faults, hint=hint, field=field)
    return ERROR_CLASSES.get(code, InternalError)(message, hint=hint, field=field)


def _text(body: Mapping[str, Any], key: str) -> str:
    """A text of the body; whatever else stands there (another program answered) is nothing."""
    value = body.get(key)
    return value if isinstance(value, str) else ""
