"""A thousand open log followers, half of which never read: what everybody else notices of it.

One job writes a line ten times a second; 1,000 connections follow its log. Meanwhile one client
lists jobs, asks for one job and reads the end of the log, one call after another. The figure is
the slowest hundredth of those calls, beside the same calls before the followers came.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from _children import cpu_s, pss_mb
from _platform import Platform
from _report import CannotMeasure, Report, percentile, run
from _slow_clients import SlowClients, allow_files, calls_ms

FOLLOWERS = 1000
SECONDS = 10.0
SPARE_FILES = 200
SMALL = {"parallelism": 1, "pservers": 0, "mode": "single", "cpu": "100m", "memory": "32Mi"}
ENTRY = (
    "i=0; while [ $i -lt 3000 ]; do echo line $i of a log that goes on; i=$((i+1)); sleep 0.1; done"
)


def _others_ms(client, job_id: str) -> list[float]:
    """The calls of somebody else, one after another for the whole time."""
    calls = (
        lambda: client.jobs_page("all", limit=100),
        lambda: client.get(job_id),
        lambda: client.logs(job_id, "trainer-0", tail=10),
    )
    return calls_ms(calls, SECONDS)


def measure(report: Report) -> None:
    allow_files(FOLLOWERS + SPARE_FILES)
    with ExitStack() as stack:
        platform = stack.enter_context(Platform())
        platform.up()
        client = stack.enter_context(platform.client())
        digest = client.upload_folder(str(platform.package))
        job = client.submit({"name": "chatty", "entry": ENTRY, "package_digest": digest, **SMALL})
        client.wait(job["id"], "running", timeout_s=30)
        alone_ms = _others_ms(client, job["id"])
        path = f"/api/v2/jobs/{job['id']}/logs?follow=1"
        followers = SlowClients(platform.port, path, client.profile.token, FOLLOWERS)
        stack.callback(followers.close)
        began_s = time.monotonic()
        followers.open()
        report.add("followers_opened_per_s", FOLLOWERS / (time.monotonic() - began_s))
        server = [platform.server_pid]
        used_s, read_bytes, began_s = cpu_s(server), followers.bytes_read, time.monotonic()
        followed_ms = _others_ms(client, job["id"])
        elapsed_s = time.monotonic() - began_s
        if followers.open_count() != FOLLOWERS // 2:
            raise CannotMeasure("followers were cut off")
        report.add("alone_p50_ms", percentile(alone_ms, 50))
        report.add("alone_p99_ms", percentile(alone_ms, 99))
        report.add("followed_p50_ms", percentile(followed_ms, 50))
        report.add("followed_p99_ms", percentile(followed_ms, 99), at_most=1000)
        report.add("server_cpu_percent", (cpu_s(server) - used_s) / elapsed_s * 100)
        report.add("server_pss_mb", pss_mb(server))
        report.add("followed_kb_per_s", (followers.bytes_read - read_bytes) / elapsed_s / 1e3)
        report.note("followers", FOLLOWERS)


if __name__ == "__main__":
    run("followers", measure)
