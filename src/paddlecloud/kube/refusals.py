"""How an API server says no, as one error class whose questions callers ask by name.

Raised by `kube.client` alone; what was refused, and by which code, stays readable in `message`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paddlecloud.core.errors import PaddleCloudError

UNREACHABLE = 0  # no answer at all
NOT_LEADING = "NotLeading"
GONE = 410
LONGEST_WAIT_S = 60.0  # nobody is obeyed for longer


class Refused(PaddleCloudError):
    """The API server refused a call, or did not answer."""

    code: ClassVar[str] = "kubernetes"

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after_s: float | None = None,
        causes: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(message or reason or f"the API server answered {status}")
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.causes = causes

    @property
    def is_missing(self) -> bool:
        return self.status == 404

    @property
    def is_taken(self) -> bool:
        """Something of this name is already there."""
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def is_outdated(self) -> bool:
        """The object, or its uid, is not the one the caller had seen."""
        return self.status == 409 and self.reason != "AlreadyExists"

    @property
    def is_gone(self) -> bool:
        """The history asked for is compacted; list again."""
        return self.status == GONE

    @property
    def is_fenced(self) -> bool:
        """It was not sent: another operator may lead."""
        return self.reason == NOT_LEADING

    @property
    def is_farewell(self) -> bool:
        """The namespace is being deleted; there is nothing left to look after."""
        return "NamespaceTerminating" in self.causes

    @property
    def is_final(self) -> bool:
        """Asking the same again will not help: the request itself is wrong or forbidden."""
        return self.status in (400, 403, 405, 413, 422)


def refusal(status: int, body: Mapping[str, Any] | None, retry_after: str | None = None) -> Refused:
    """The error a `Status` object (or its lack) means."""
    body = body or {}
    is_number = bool(retry_after) and str(retry_after).isdecimal()
    seconds = min(float(retry_after or 0), LONGEST_WAIT_S) if is_number else None
    details = body.get("details")
    causes = (details.get("causes") if isinstance(details, Mapping) else None) or ()
    return Refused(
        status,
        str(body.get("reason") or ""),
        str(body.get("message") or ""),
        seconds,
        frozenset(str(cause.get("reason")) for cause in causes if isinstance(cause, Mapping)),
    )
