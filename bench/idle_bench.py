"""What a platform costs that nobody uses, and how long it takes to be there.

Memory is the proportional set size of every process `paddlecloud up` left running, after it has
served a few calls and run a few jobs; CPU is theirs over twenty idle seconds. Start-up runs from
the exec of `paddlecloud up` to its end, which it reaches when the server answers as healthy.
"""

from __future__ import annotations

import time

from _children import cpu_s, pss_mb
from _platform import Platform
from _report import CannotMeasure, Report, median, run

STARTS = 7
IDLE_S = 20.0
SETTLE_S = 3.0
SMALL = {"parallelism": 1, "pservers": 0, "mode": "single", "cpu": "100m", "memory": "32Mi"}


def _use_a_little(platform: Platform) -> None:
    with platform.client() as client:
        digest = client.upload_folder(str(platform.package))
        for number in range(5):
            form = {"name": f"few-{number}", "entry": "true", "package_digest": digest, **SMALL}
            client.wait(client.submit(form)["id"], timeout_s=30)
        for _ in range(50):
            list(client.list_jobs("all"))


def _idle_cpu_percent(platform: Platform) -> float:
    pids = platform.mark.pids()
    used_s, began_s = cpu_s(pids), time.monotonic()
    time.sleep(IDLE_S)
    if platform.mark.pids() != pids:
        raise CannotMeasure("processes came or went while the platform should have been idle")
    return (cpu_s(pids) - used_s) / (time.monotonic() - began_s) * 100


def measure(report: Report) -> None:
    with Platform() as platform:
        report.add("first_up_to_healthy_s", platform.up())
        starts_s = []
        for _ in range(STARTS):
            platform.ok("down")
            starts_s.append(platform.up())
        report.add("up_to_healthy_p50_s", median(starts_s), at_most=0.8)
        report.add("up_to_healthy_max_s", max(starts_s))
        time.sleep(SETTLE_S)
        report.add("fresh_pss_mb", pss_mb(platform.mark.pids()), at_most=80)
        _use_a_little(platform)
        time.sleep(SETTLE_S)
        pids = platform.mark.pids()
        if not pids:
            raise CannotMeasure("no process of the platform was found")
        report.add("used_pss_mb", pss_mb(pids), at_most=80)
        report.add("idle_cpu_percent", _idle_cpu_percent(platform), below=0.5)
        report.note("processes", len(pids))


if __name__ == "__main__":
    run("idle", measure)
