"""How many trivial jobs a second the platform takes in, runs in their sandboxes and ends.

From the first call of `submit` to the moment the client knows that all have succeeded; with one
thread that submits, and with four, in turns; the median of the rounds counts.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from _platform import Platform
from _report import CannotMeasure, Report, median, run

JOBS = 50
ROUNDS = 3
TIMEOUT_S = 60
SMALL = {"parallelism": 1, "pservers": 0, "mode": "single", "cpu": "100m", "memory": "32Mi"}


def _wait_for_all(client, ids: list[str], deadline_s: float) -> None:
    """Returns when none is live; woken by changes, not by a clock."""
    while True:
        page = client.jobs_page("live", limit=500)
        if not page["items"]:
            break
        if time.monotonic() > deadline_s:
            raise CannotMeasure(f"{len(page['items'])} of {len(ids)} jobs did not end")
        client.changes(page["revision"], timeout_s=5)
    ended = {job["id"]: job["phase"] for job in client.list_jobs("all")}
    wrong = [ended.get(job_id) for job_id in ids if ended.get(job_id) != "Succeeded"]
    if wrong:
        raise CannotMeasure(f"{len(wrong)} of {len(ids)} jobs did not succeed: {set(wrong)}")


def _jobs_per_s(client, digest: str, prefix: str, threads: int) -> float:
    def submit(number: int) -> str:
        form = {"name": f"{prefix}-{number}", "entry": "true", "package_digest": digest, **SMALL}
        return client.submit(form)["id"]

    started_at_s = time.monotonic()
    if threads == 1:
        ids = [submit(number) for number in range(JOBS)]
    else:
        with ThreadPoolExecutor(threads) as pool:
            ids = list(pool.map(submit, range(JOBS)))
    _wait_for_all(client, ids, started_at_s + TIMEOUT_S)
    return JOBS / (time.monotonic() - started_at_s)


def measure(report: Report) -> None:
    with Platform() as platform:
        platform.up()
        with platform.client() as client:
            digest = client.upload_folder(str(platform.package))
            client.wait(
                client.submit({"name": "warm", "entry": "true", "package_digest": digest, **SMALL})[
                    "id"
                ]
            )
            rates: dict[int, list[float]] = {1: [], 4: []}
            for number in range(ROUNDS):
                for threads, measured in rates.items():
                    prefix = f"round-{number}-{threads}"
                    measured.append(_jobs_per_s(client, digest, prefix, threads))
        report.add("one_thread_jobs_per_s", median(rates[1]), at_least=20)
        report.add("four_threads_jobs_per_s", median(rates[4]), at_least=20)
        report.note("jobs", JOBS)
        report.note("rounds_jobs_per_s", {n: [round(r, 1) for r in v] for n, v in rates.items()})


if __name__ == "__main__":
    run("throughput", measure)
