"""A platform that gets killed: run by test_crashes.py as a process of its own.

    python doomed.py <root> <way> <plan as JSON>

The plan: `entries` to start, `die_at` the n-th file or process operation after that (0: never),
`die_after_spawning`, `wait` for "running" or "ended", `stop_grace_s` to stop them all after that.
Then it says that it is done and kills itself with SIGKILL, as the machine's owner would.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from paddlecloud.engines.local import spawning
from tests.engines.local.bench import Bench

# What Python announces before it does it; in between lie the moments a kill can hit.
STEPS = ("os.mkdir", "os.posix_spawn", "os.chmod", "os.remove", "os.rename", "os.rmdir")


def is_step(event: str, arguments: tuple[object, ...]) -> bool:
    """Whether something outside this process is about to change."""
    if event != "open":
        return event in STEPS
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def die_at(number: int) -> None:
    seen = 0
    lock = threading.Lock()

    def on_event(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if is_step(event, arguments):
            with lock:
                seen += 1
                if seen == number:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(on_event)


def die_after_spawning() -> None:
    """At the worst moment for bubblewrap: it has begun, and when it speaks nobody listens. It is
    held still until we are surely gone; whoever started us lets it go on."""
    start = spawning._start

    def start_and_die(*arguments: object) -> None:
        pid = start(*arguments)  # type: ignore[arg-type]
        os.kill(pid, signal.SIGSTOP)
        print(pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    spawning._start = start_and_die  # type: ignore[assignment]


def main() -> None:
    root, way, plan = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    bench = Bench(root, way)
    launches = [
        bench.launch(entry, key=bench.key(number)) for number, entry in enumerate(plan["entries"])
    ]
    if plan.get("die_at"):
        bench.output_of("true")  # what is done once only is not worth a kill each
        die_at(plan["die_at"])
    if plan.get("die_after_spawning"):
        die_after_spawning()
    for launch in launches:
        bench.processes.create(launch)
    for launch in launches:
        bench.running(launch.key) if plan["wait"] == "running" else bench.ended(launch.key)
    if "stop_grace_s" in plan:
        for launch in launches:
            bench.says(launch.key, "ready")
            bench.processes.stop(launch.key, plan["stop_grace_s"])
    print("done", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
