"""How long from asking for a job to having it: through the SDK, and by the command line.

The floors in the same run: starting Python, and starting a shell under bubblewrap, below which no
submit can come that starts a sandboxed process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from datetime import datetime

from _platform import CLI, Platform
from _report import CannotMeasure, Report, median, percentile, run

JOBS = 40
CLI_JOBS = 20
FLOORS = 20
WARM_UP = 3
SMALL = {"parallelism": 1, "pservers": 0, "mode": "single", "cpu": "100m", "memory": "32Mi"}


def _unix_s(rfc3339: str) -> float:
    return datetime.fromisoformat(rfc3339).timestamp()


def _one_by_sdk(client, number: int, digest: str) -> tuple[float, float, float]:
    """Milliseconds from the call: answered; replica started; seen running."""
    called_at_s = time.time()
    form = {"name": f"bench-{number}", "entry": "sleep 0.4", "package_digest": digest, **SMALL}
    job = client.submit(form)
    answered_at_s = time.time()
    running = client.wait(job["id"], "running", timeout_s=20)
    seen_at_s = time.time()
    if running is None:
        raise CannotMeasure(f"{job['name']} did not start")
    if running["phase"] != "Running":
        raise CannotMeasure(f"{job['name']} was never seen running: {running['phase']}")
    replica = client.replicas(job["id"])[0]
    # The next one is measured on a machine that has nothing else to do.
    ended = client.wait(job["id"], timeout_s=20)
    if ended is None or ended["phase"] != "Succeeded":
        raise CannotMeasure(f"{job['name']} ended {ended and ended['phase']}")
    started_at_s = _unix_s(replica["started_at"])
    moments_s = (answered_at_s, started_at_s, seen_at_s)
    answered_ms, started_ms, seen_ms = ((moment - called_at_s) * 1e3 for moment in moments_s)
    return answered_ms, started_ms, seen_ms


def _timed_ms(command: list[str], env: dict[str, str], cwd: str) -> float:
    started_at_s = time.perf_counter()
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL)
    took_ms = (time.perf_counter() - started_at_s) * 1e3
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise CannotMeasure(f"{' '.join(command)}: {said}")
    return took_ms


def _sandboxed_shell() -> list[str]:
    binds = [
        f"/{name}" for name in ("usr", "bin", "sbin", "lib", "lib64") if os.path.exists(f"/{name}")
    ]
    shown = [word for path in binds for word in ("--ro-bind", path, path)]
    spaces = ["--unshare-pid", "--unshare-ipc", "--proc", "/proc", "--dev", "/dev"]
    return ["bwrap", "--tmpfs", "/", *shown, *spaces, "--cap-drop", "ALL", "sh", "-c", "true"]


def _by_command(platform: Platform, report: Report) -> None:
    """The command line and what it stands on, in turns: all see the same noise."""
    resources = ["--mode", "single", "-cpu", "100m", "-memory", "32Mi"]
    took_ms: dict[str, list[float]] = {"cli": [], "python": [], "bwrap": []}
    for number in range(CLI_JOBS + WARM_UP):
        name = ["-jobname", f"cli-{number}", "-entry", "true", *resources]
        commands = {
            "cli": [str(CLI), "submit", "--wait", *name, str(platform.package)],
            "python": [sys.executable, "-c", "pass"],
        }
        if shutil.which("bwrap"):
            commands["bwrap"] = _sandboxed_shell()
        for what, command in commands.items():
            one_ms = _timed_ms(command, platform.env, str(platform.home))
            if number >= WARM_UP:
                took_ms[what].append(one_ms)
    cli_ms, python_ms = median(took_ms["cli"]), median(took_ms["python"])
    report.add("cli_submit_and_wait_p50_ms", cli_ms, at_most=250)
    report.add("cli_submit_and_wait_p95_ms", percentile(took_ms["cli"], 95))
    report.add("floor_python_pass_p50_ms", python_ms)
    report.add("cli_submit_and_wait_per_python_pass_ratio", cli_ms / python_ms)
    if took_ms["bwrap"]:
        report.add("floor_bwrap_shell_p50_ms", median(took_ms["bwrap"]))


def measure(report: Report) -> None:
    with Platform() as platform:
        platform.up()
        with platform.client() as client:
            digest = client.upload_folder(str(platform.package))
            for number in range(WARM_UP):
                _one_by_sdk(client, number, digest)
            rows = [_one_by_sdk(client, WARM_UP + number, digest) for number in range(JOBS)]
        answered_ms, started_ms, seen_ms = zip(*rows, strict=True)
        report.add("submit_answered_p50_ms", median(answered_ms))
        report.add("submit_to_replica_started_p50_ms", median(started_ms), at_most=60)
        report.add("submit_to_replica_started_p95_ms", percentile(started_ms, 95))
        report.add("submit_to_seen_running_p50_ms", median(seen_ms), at_most=60)
        report.add("submit_to_seen_running_p95_ms", percentile(seen_ms, 95))
        _by_command(platform, report)
        report.note("jobs", {"sdk": JOBS, "cli": CLI_JOBS})


if __name__ == "__main__":
    run("submit", measure)
