"""Requests that are held until something happens: wait for a job, wait for any change.

They live on the event loop: woken by a notice, they read the rows again, on a small pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.phases import TERMINAL
from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.notifying import Subject, account_subject, job_subject
from paddlecloud.server.pools import Pool
from paddlecloud.server.process import here
from paddlecloud.server.services import job_rows
from paddlecloud.server.streams import Stream

_ENDS = frozenset(phase.value for phase in TERMINAL)
WAIT_FOR = ("end", "running", "changed")


async def _until(
    subject: Subject,
    timeout_s: float,
    stream: Stream,
    pool: Pool,
    read: Callable[[], Any],
    is_reached: Callable[[Any], bool],
) -> Any:
    """What `read` gives once it `is_reached`, or as it is when the time is up."""
    process = here()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    notice = asyncio.Event()
    stream.tell(notice)
    with process.hub.listening(notice, subject):
        while True:
            notice.clear()
            value = await pool.run(read)
            left_s = deadline - loop.time()
            if is_reached(value) or left_s <= 0 or stream.is_gone or process.is_stopping:
                return value
            try:
                async with asyncio.timeout(left_s):
                    await notice.wait()
            except TimeoutError:
                pass


async def wait_for_job(request: Request, stream: Stream, pool: Pool) -> Answer:
    asked = request.params
    goal = asked["for"]
    if goal not in WAIT_FOR:
        raise InvalidInput(
            f"cannot wait for {goal[:40]!r}", field="for", hint=f"one of {', '.join(WAIT_FOR)}"
        )
    job_id = await pool.run(job_rows.visible_id, request.caller, request.segments["ref"])

    def is_reached(job: dict[str, Any]) -> bool:
        if goal == "changed":
            return bool(job["revision"] > asked["after"])
        return job["phase"] in _ENDS or (goal == "running" and job["phase"] == "Running")

    job = await _until(
        job_subject(job_id),
        asked["timeout_s"],
        stream,
        pool,
        lambda: job_rows.read(job_id),
        is_reached,
    )
    return json_answer(job)


async def wait_for_changes(request: Request, stream: Stream, pool: Pool) -> Answer:
    asked = request.params
    account_id = request.caller.account_id
    revision = await _until(
        account_subject(account_id),
        asked["timeout_s"],
        stream,
        pool,
        lambda: job_rows.account_revision(account_id),
        lambda revision: revision > asked["after"],
    )
    return json_answer({"revision": revision})
