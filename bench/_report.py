"""What a benchmark prints: figures, bars and whether they hold, as exactly one line of JSON.

Every file `bench/*_bench.py` makes one `Report`, adds figures and hands its work to `run`; each
figure also goes to stderr at once, so that a long or broken run has told what it knows. A
missed bar is a result (exit 0, `"ok": false`); what could not be measured is a failure (exit 1).
Where PADDLECLOUD_BENCH_RESULTS names a folder, the line is also kept there, with machine and date.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path


class CannotMeasure(Exception):
    """Something the measurement needs is missing or did not work."""


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


class Report:
    def __init__(self, bench: str) -> None:
        self._bench = bench
        self._figures: dict[str, float | int | str] = {}
        self._bars: dict[str, str] = {}
        self._missed: list[str] = []
        # More than the cores are: others used the machine, and times are too long.
        self._facts: dict[str, object] = {"load_before": round(os.getloadavg()[0], 1)}

    def add(
        self,
        name: str,
        value: float | int,
        *,
        at_most: float | None = None,
        below: float | None = None,
        at_least: float | None = None,
    ) -> None:
        """One figure (its name ends in its unit), with the bar it has to meet, if any."""
        self._figures[name] = round(value, 3) if isinstance(value, float) else value
        for sign, bar, is_met in (
            ("<=", at_most, at_most is None or value <= at_most),
            ("<", below, below is None or value < below),
            (">=", at_least, at_least is None or value >= at_least),
        ):
            if bar is None:
                continue
            self._bars[name] = f"{sign} {bar:g}"
            if not is_met:
                self._missed.append(name)
        bar_text = f" ({self._bars[name]})" if name in self._bars else ""
        print(f"{name}: {self._figures[name]}{bar_text}", file=sys.stderr, flush=True)

    def note(self, name: str, value: object) -> None:
        """A fact that is no figure: what was used, how often."""
        self._facts[name] = value

    def line(self) -> str:
        return json.dumps(
            {
                "bench": self._bench,
                "figures": self._figures,
                "bars": self._bars,
                "ok": not self._missed,
                **({"missed": self._missed} if self._missed else {}),
                **self._facts,
                "cores": os.cpu_count(),
            },
            ensure_ascii=False,
        )


def run(bench: str, measure: Callable[[Report], None]) -> None:
    """Measure and print; ends the program."""
    report = Report(bench)
    try:
        measure(report)
    except Exception as error:  # whatever it was, one line of JSON says it
        problem = str(error) or type(error).__name__
        print(json.dumps({"bench": bench, "ok": False, "error": problem}), flush=True)
        if not isinstance(error, CannotMeasure):
            raise
        sys.exit(1)
    print(report.line(), flush=True)
    if folder := os.environ.get("PADDLECLOUD_BENCH_RESULTS"):
        keep(Path(folder), bench, report.line())
    sys.exit(0)


def machine() -> str:
    """Processor, cores, memory, kernel and Python, as the stored results name them."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    model = re.sub(r"\(R\)|\(TM\)", "", found.group(1)) if found else platform.machine()
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    kernel = ".".join(platform.release().split(".")[:2])
    return (
        f"{os.cpu_count()} cores ({model}), "
        f"{memory_bytes / 2**30:.0f} GiB, Linux {kernel}, Python {platform.python_version()}"
    )


def keep(folder: Path, bench: str, line: str) -> None:
    """Store a result in the folder, in place of the last one of this bench."""
    program, *words = sys.argv
    command = shlex.join([f"bench/{Path(program).name}", *words])
    body = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine(),
        "command": command,
        "result": json.loads(line),
    }
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    (folder / f"{bench}.json").write_text(text, encoding="utf-8")
