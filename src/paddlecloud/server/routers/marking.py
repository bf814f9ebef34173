"""Marks on jobs (`job favorite`): anybody's own, on what they may look at."""

from __future__ import annotations

from paddlecloud.server.exchange import Answer, Request
from paddlecloud.server.services import job_rows, sharing


def mark(request: Request) -> Answer:
    """PUT sets it, DELETE takes it away; repeating either changes nothing."""
    caller = request.caller
    job_id = job_rows.visible_id(caller, request.segments["ref"])
    sharing.mark(caller.account_id, job_id, is_marked=request.method == "PUT")
    return Answer(204)
