#!/usr/bin/env python3
"""`make test`: sets up what the tests need, runs them all, and says what came of it.

    suites.py [pytest arguments]

It says first how long that will take on this machine; then which part it is in; failures as they
happen; and at the end one summary: passed, failed, skipped with reasons, seconds per part. All that
the parts printed is kept in build/test. With arguments it runs only what pytest finds by them.

What stands on a Kubernetes cluster mostly waits for pods, so it runs beside everything else from
the start: on one cluster with a real node, and on others with pretended ones. Of the rest, what
shares nothing but the machine runs in two workers; afterwards what fills disks, kills processes or
trains: file servers and whole platforms in one part, engines and stores in another. Meanwhile there
is a platform of a user (`user_platform.py`), and no test may be in its way.

Standard library only: it runs before the virtual environment is made.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from user_platform import UserPlatform

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
OUTPUT = ROOT / "build" / "test"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paddlecloud"
TIMES = CACHE / "test-times.json"  # seconds per part of the last whole run of this user

SETUP = ("system", "venv", "runtime", "cluster-programs")
CHECKS = ("lint", "types", "verify")
_USUAL_S = {"venv": 60, "runtime": 90, "cluster-programs": 600, "tests": 1200}
_SAY_EVERY_S = 60.0
_LOOK_EVERY_S = 0.2
_END_WITHIN_S = 60.0


# --- parts -------------------------------------------------------------------------------------


@dataclass
class Part:
    """A command that runs by itself; what it prints goes to build/test/NAME.log."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    began_s: float = 0.0
    took_s: float = 0.0
    code: int | None = None

    @property
    def log(self) -> Path:
        return OUTPUT / f"{self.name.replace(' ', '-')}.log"

    def start(self, env: dict[str, str]) -> None:
        self.began_s = time.monotonic()
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                self.command,
                env=env,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches it through us, once
            )

    def look(self) -> bool:
        """Whether it has ended just now."""
        if self.process is None or self.code is not None or self.process.poll() is None:
            return False
        self.code = self.process.returncode
        self.took_s = time.monotonic() - self.began_s
        return True

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.code is None

    @property
    def result(self) -> str:
        return "done" if self.code == 0 else f"failed, see {self.log.relative_to(ROOT)}"

    def failure(self) -> str:
        """Of what it printed, that which tells why it failed."""
        return self.log.read_text(encoding="utf-8", errors="replace").strip()


@dataclass
class Suite(Part):
    """A run of pytest, whose outcomes are read as they come (tests/outcomes.py)."""

    collected: int = 0
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)  # test -> outcome, reason
    _read_bytes: int = 0

    @property
    def rows(self) -> Path:
        return self.log.with_suffix(".jsonl")

    def start(self, env: dict[str, str]) -> None:
        self.rows.unlink(missing_ok=True)
        self.command += ["--outcomes", str(self.rows)]
        super().start(env)

    def take_news(self) -> list[str]:
        """The tests that failed since the last call."""
        if not self.rows.exists():
            return []
        with self.rows.open("rb") as file:
            file.seek(self._read_bytes)
            lines = file.read().rpartition(b"\n")[0]
        if not lines:
            return []
        self._read_bytes += len(lines) + 1
        failed = []
        for line in lines.splitlines():
            row = json.loads(line)
            if "collected" in row:
                self.collected = row["collected"]
                continue
            self.outcomes[row["test"]] = (row["outcome"], row["reason"])
            if row["outcome"] == "failed":
                failed.append(row["test"])
        return failed

    def count(self, outcome: str) -> int:
        return sum(found == outcome for found, _ in self.outcomes.values())

    @property
    def result(self) -> str:
        counts = [f"{self.count(word)} {word}" for word in ("passed", "failed", "skipped")]
        text = ", ".join(counts)
        if self.code and not self.count("failed"):  # it did not come to its tests, or to their end
            text += f", ended with {self.code}, see {self.log.relative_to(ROOT)}"
        return text

    def failure(self) -> str:
        text = super().failure()
        for head in ("= ERRORS =", "= FAILURES ="):
            before, found, after = text.partition(head)
            if found:
                return before.rpartition("\n")[2] + found + after
        return text


def _pytest(*words: str) -> list[str]:
    return [str(BIN / "pytest"), "-q", "-ra", *words]


def _whole_run() -> tuple[list[list[Part]], list[Part]]:
    """Rounds of suites that run one after another, and those beside them from the start."""
    together = [f"tests/{name}" for name in ("architecture", "cli", "server", "unit")]
    platforms = ["tests/pfs", "tests/e2e"]
    folders = [path for path in (ROOT / "tests").iterdir() if path.is_dir()]
    names = sorted(f"tests/{path.name}" for path in folders if path.name != "__pycache__")
    others = [name for name in names if name not in (*together, *platforms)]
    rounds: list[list[Part]] = [
        [Suite("units and server", _pytest("-n", "2", "--dist", "loadfile", *together))],
        [
            Suite("files and platforms", _pytest(*platforms)),
            Suite("engines and stores", _pytest("-m", "not cluster", *others)),
        ],
    ]
    beside: list[Part] = [
        Suite("real node", _pytest("-m", "node", *others)),
        Suite("clusters", _pytest("-m", "cluster and not node", *others)),
    ]
    return rounds, beside


# --- how long it takes -------------------------------------------------------------------------


def _lacking() -> list[str]:
    """The steps of the set-up that have to make something."""
    runtimes = Path(os.environ.get("PADDLECLOUD_RUNTIMES") or CACHE / "runtimes")
    build = subprocess.run(
        [ROOT / "tools" / "cluster" / "build.sh", "--where"], capture_output=True, text=True
    )
    stamp = ROOT / ".venv" / ".stamp"
    is_made = {
        "venv": stamp.exists() and stamp.read_text().strip() == str(ROOT),
        "runtime": any(runtimes.glob("paddle-*/.complete")),
        "cluster-programs": Path(build.stdout.strip(), ".complete").exists(),
    }
    return [step for step, is_there in is_made.items() if not is_there]


def _last_time() -> dict[str, float]:
    try:
        found = json.loads(TIMES.read_text())
        return {str(name): float(seconds) for name, seconds in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def expectation(lacking: Sequence[str], last_s: float) -> str:
    """What to expect, in one or two sentences."""
    cores = os.cpu_count() or 1
    tests_s = last_s or _USUAL_S["tests"]
    tests = f"the tests take about {_minutes(tests_s)}"
    tests += " here, as the last time" if last_s else f" on 2 cores; this machine has {cores}"
    makes = {
        "venv": "a virtual environment",
        "runtime": "a runtime with PaddlePaddle",
        "cluster-programs": "Kubernetes from source",
    }
    if not lacking:
        return f"make test: {tests}"
    made = ", ".join(f"{makes[step]} (about {_minutes(_USUAL_S[step])})" for step in lacking)
    return f"make test: first it makes {made}; then {tests}"


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return "a minute" if minutes == 1 else f"{minutes} minutes"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


# --- the run -----------------------------------------------------------------------------------


class Run:
    """The parts of one `make test`, in their order, and what is shown of them."""

    def __init__(self, scratch: Path) -> None:
        self.parts: list[Part] = []
        self.scratch = scratch  # for the folders of tests
        self._began_s = self._said_s = time.monotonic()
        self._is_terminal = sys.stdout.isatty()

    @property
    def took_s(self) -> float:
        return time.monotonic() - self._began_s

    @property
    def failed(self) -> list[Part]:
        return [part for part in self.parts if part.code]

    def say(self, text: str) -> None:
        self._said_s = time.monotonic()
        erase = "\r\x1b[K" if self._is_terminal else ""
        print(f"{erase}{_clock(self.took_s):>6}  {text}", flush=True)

    def start(self, part: Part, env: dict[str, str]) -> None:
        if isinstance(part, Suite):
            part.command += ["--basetemp", str(self.scratch / str(len(self.parts)))]
        self.parts.append(part)
        part.start(env)

    def finish(self, awaited: Sequence[Part]) -> None:
        """Wait for these; tell news of all."""
        while any(part.is_running for part in awaited):
            time.sleep(_LOOK_EVERY_S)
            self._tell_news()
        self._tell_news()

    def _tell_news(self) -> None:
        for part in self.parts:
            # The end first: what is read after it is all there is.
            has_ended = part.look()
            for test in part.take_news() if isinstance(part, Suite) else ():
                self.say(f"FAILED {test}")
            if has_ended:
                self.say(f"{part.name}: {part.result} in {_clock(part.took_s)}")
        running = [part for part in self.parts if part.is_running]
        if self._is_terminal and running:
            print(f"\r\x1b[K{_clock(self.took_s):>6}  {_progress(running)}", end="", flush=True)
        elif running and time.monotonic() - self._said_s >= _SAY_EVERY_S:
            self.say(_progress(running))

    def one_after_another(self, parts: Sequence[Part], env: dict[str, str]) -> bool:
        """Whether all went well; what comes after the first that fails is not begun."""
        for part in parts:
            self.start(part, env)
            self.finish([part])
            if part.code:
                return False
        return True

    def interrupt(self) -> None:
        """As Ctrl-C would: pytest then ends what its tests have started."""
        running = [part for part in self.parts if part.is_running]
        for part in running:
            assert part.process is not None
            part.process.send_signal(signal.SIGINT)
        until_s = time.monotonic() + _END_WITHIN_S
        while any(part.is_running for part in running) and time.monotonic() < until_s:
            time.sleep(_LOOK_EVERY_S)
            self._tell_news()
        for part in running:
            assert part.process is not None
            try:
                os.killpg(part.process.pid, signal.SIGKILL)  # what its workers left behind
            except ProcessLookupError:
                pass


def _progress(running: Sequence[Part]) -> str:
    texts = []
    for part in running:
        of = f" {len(part.outcomes)} of {part.collected or '?'}" if isinstance(part, Suite) else ""
        texts.append(f"{part.name}{of}")
    return "running: " + " · ".join(texts)


# --- the summary -------------------------------------------------------------------------------


def summary(parts: Sequence[Part], damage: Sequence[str], took_s: float) -> str:
    """One table, what was skipped and why, what failed, and the line that counts."""
    suites = [part for part in parts if isinstance(part, Suite)]
    width = max(len(part.name) for part in parts)
    lines = ["", f"{'part':<{width}}  passed  failed  skipped  seconds"]
    for part in parts:
        words = ("passed", "failed", "skipped")
        counts = [part.count(word) if isinstance(part, Suite) else "" for word in words]
        end = "" if part.code == 0 or (isinstance(part, Suite) and counts[1]) else "  failed"
        row = f"{counts[0]:>6}  {counts[1]:>6}  {counts[2]:>7}  {part.took_s:>7.0f}{end}"
        lines.append(f"{part.name:<{width}}  {row}")
    lines.append(f"{'all':<{width}}  {'':>23}  {took_s:>7.0f}")
    lines += _skips(suites)
    failed = [
        test for part in suites for test, (word, _) in part.outcomes.items() if word == "failed"
    ]
    if failed:
        lines += ["", "failed:", *(f"  {test}" for test in failed)]
    if damage:
        lines += ["", "a test was in the way of the user's own platform:"]
        lines += [f"  {one}" for one in damage]
    passed, skipped = (sum(part.count(word) for part in suites) for word in ("passed", "skipped"))
    lines += ["", f"total: {passed} passed, {len(failed)} failed, {skipped} skipped"]
    return "\n".join(lines)


def _skips(suites: Sequence[Suite]) -> list[str]:
    """Each reason once, with the files of the tests that were skipped for it."""
    by_reason: dict[str, Counter[str]] = {}
    for suite in suites:
        for test, (outcome, reason) in suite.outcomes.items():
            if outcome == "skipped":
                by_reason.setdefault(reason, Counter())[test.partition("::")[0]] += 1
    lines = []
    for reason, files in sorted(by_reason.items()):
        lines += ["", f"skipped {sum(files.values())}, {reason}:"]
        lines += [f"  {file} ({count})" for file, count in sorted(files.items())]
    return lines


# --- from the beginning to the end ---------------------------------------------------------------


def _make(step: str) -> Part:
    return Part(step, ["make", step])


def _set_up(run: Run) -> bool:
    env = {**os.environ, "PADDLECLOUD_STRICT": "1"}
    return run.one_after_another([_make(step) for step in SETUP], env)


def _run_suites(run: Run, env: dict[str, str]) -> None:
    rounds, beside = _whole_run()
    for part in beside:
        run.start(part, env)
    for one_round in rounds:
        for part in one_round:
            run.start(part, env)
        run.say(_progress([part for part in run.parts if part.is_running]))
        run.finish(one_round)
    run.finish(beside)


def _report(run: Run, damage: Sequence[str]) -> int:
    for part in run.failed:
        print(f"\n--- {part.name} " + "-" * 60, flush=True)
        print(part.failure())
    print(summary(run.parts, damage, run.took_s), flush=True)
    return 1 if run.failed or damage else 0


def whole(run: Run) -> int:
    last = _last_time()
    print(expectation(_lacking(), sum(last.values())), flush=True)
    damage: list[str] = []
    try:
        if not _set_up(run) or not run.one_after_another(
            [_make(step) for step in CHECKS], dict(os.environ)
        ):
            return _report(run, [])
        platform = UserPlatform(BIN / "paddlecloud")
        try:
            run.say(f"the platform of a user: {platform.start()}")
            _run_suites(run, {**platform.env, "PADDLECLOUD_STRICT": "1"})
            damage = platform.damage()
        finally:
            platform.stop()
    except KeyboardInterrupt:
        run.interrupt()
        _report(run, damage)
        return 130
    code = _report(run, damage)
    if code == 0:
        TIMES.parent.mkdir(parents=True, exist_ok=True)
        TIMES.write_text(json.dumps({"all but set-up": run.took_s - _set_up_s(run)}))
    return code


def _set_up_s(run: Run) -> float:
    return sum(part.took_s for part in run.parts if part.name in SETUP)


def some(run: Run, arguments: Sequence[str]) -> int:
    """What pytest finds by the arguments, in the same surroundings; it prints for itself."""
    if not _set_up(run):
        return _report(run, [])
    platform = UserPlatform(BIN / "paddlecloud")
    try:
        platform.start()
        env = {**platform.env, "PADDLECLOUD_STRICT": "1"}
        words = ["--basetemp", str(run.scratch / "0"), *arguments]
        code = subprocess.run(_pytest(*words), cwd=ROOT, env=env).returncode
        damage = platform.damage()
    finally:
        platform.stop()
    for one in damage:
        print(f"a test was in the way of the user's own platform: {one}")
    return code or (1 if damage else 0)


def main(arguments: Sequence[str]) -> int:
    os.chdir(ROOT)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Of this run alone, and with a short path: there are sockets in it.
    scratch = Path(tempfile.mkdtemp(prefix="pc-"))
    scratch.chmod(0o755)
    try:
        run = Run(scratch)
        return some(run, arguments) if arguments else whole(run)
    finally:
        # Not by Python: a test may have made a tree deeper than it can walk.
        subprocess.run(["rm", "-rf", scratch], check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
