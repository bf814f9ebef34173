"""How long a command takes from exec to exit, in multiples of a Python that does nothing.

`python -c pass` of the same environment is the unit, run in turn with the commands so that a busy
machine slows all alike. `get jobs` lists 100 live jobs (one runs, the others wait for it) of a
real platform; http_client is the same request by the standard library's client, for comparison.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from _platform import CLI, Platform
from _report import CannotMeasure, Report, median, run

ROUNDS = 41
JOBS = 100
SMALL = {"parallelism": 1, "pservers": 0, "mode": "single", "memory": "32Mi"}
# What a plain script would do: argparse, http.client, json, and a table.
PLAIN = """
import argparse, http.client, json, sys
parser = argparse.ArgumentParser()
parser.add_argument("host"); parser.add_argument("token")
given = parser.parse_args()
connection = http.client.HTTPConnection(given.host)
headers = {"Authorization": "Token " + given.token}
connection.request("GET", "/api/v2/jobs?limit=500", headers=headers)
for job in json.loads(connection.getresponse().read())["items"]:
    print(job["name"], job["phase"], sep="   ")
"""


def _fill(platform: Platform) -> None:
    """One job holds every core; the others wait behind it."""
    with platform.client() as client:
        cpu = client.status()["capacity"]["cpu"]
        digest = client.upload_folder(str(platform.package))
        for number in range(JOBS):
            form = {"name": f"job-{number}", "package_digest": digest, "cpu": cpu, **SMALL}
            client.submit({**form, "entry": "sleep 3600"})


def _time_s(words: list[str], platform: Platform) -> float:
    began_s = time.perf_counter()
    done = subprocess.run(words, env=platform.env, capture_output=True, cwd=platform.home)
    took_s = time.perf_counter() - began_s
    if done.returncode:
        raise CannotMeasure(f"{words}: {done.stderr.decode().strip()}")
    return took_s


def measure(report: Report) -> None:
    with Platform() as platform:
        platform.up()
        _fill(platform)
        listed = json.loads(platform.ok("get", "jobs", "-o", "json"))["items"]
        if len(listed) != JOBS:
            raise CannotMeasure(f"{len(listed)} jobs are listed, not {JOBS}")
        with platform.client() as client:
            host, token = client.endpoint.removeprefix("http://"), client.profile.token
        commands = {
            "pass": [sys.executable, "-c", "pass"],
            "version": [str(CLI), "--version"],
            "get_jobs": [str(CLI), "get", "jobs"],
            "http_client": [sys.executable, "-c", PLAIN, host, token],
        }
        took_s: dict[str, list[float]] = {name: [] for name in commands}
        for round_number in range(ROUNDS + 1):
            for name, words in commands.items():
                one_s = _time_s(words, platform)
                if round_number:  # the first round only fills caches
                    took_s[name].append(one_s)
        unit_s = median(took_s["pass"])
        report.add("version_x", median(took_s["version"]) / unit_s, at_most=3.0)
        report.add("get_jobs_x", median(took_s["get_jobs"]) / unit_s, at_most=7.0)
        report.add("http_client_x", median(took_s["http_client"]) / unit_s)
        report.add("pass_ms", unit_s * 1000)
        report.add("get_jobs_ms", median(took_s["get_jobs"]) * 1000)
        report.note("rounds", ROUNDS)
        report.note("bytecode", not sys.dont_write_bytecode)


if __name__ == "__main__":
    run("cli", measure)
