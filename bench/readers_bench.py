"""A thousand open downloads, of which half take 2 kB now and then and half nothing at all.

Meanwhile one client lists a folder, looks at a file and reads a small one, one call after another.
The figure is the slowest hundredth of those calls, beside the same calls before the readers came.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from _children import cpu_s, pss_mb
from _platform import Platform
from _report import CannotMeasure, Report, percentile, run
from _slow_clients import SlowClients, allow_files, calls_ms

READERS = 1000
SECONDS = 10.0
SPARE_FILES = 200
LARGE_BYTES = 64 << 20
HOME = "/pfs/local/home/alice"


def _others_ms(files) -> list[float]:
    calls = (
        lambda: list(files.entries(f"{HOME}/small")),
        lambda: files.entry(f"{HOME}/small/1"),
        lambda: b"".join(files.read(f"{HOME}/small/2")),
    )
    return calls_ms(calls, SECONDS)


def measure(report: Report) -> None:
    allow_files(READERS + SPARE_FILES)
    with ExitStack() as stack:
        platform = stack.enter_context(Platform())
        platform.up()
        client = stack.enter_context(platform.client())
        small = platform.home / "small"
        small.mkdir()
        for number in range(100):
            (small / str(number)).write_bytes(b"x" * 4096)
        large = platform.home / "large"
        large.write_bytes(bytes(LARGE_BYTES))
        client.files.copy([str(small), str(large)], f"{HOME}/", recursive=True)
        alone_ms = _others_ms(client.files)
        service = client.status()["pfs"]
        path = f"/api/v2/pfs/content?path={HOME}/large"
        readers = SlowClients(
            service["port"], path, client.profile.token, READERS, piece_bytes=2048, pause_s=0.1
        )
        stack.callback(readers.close)
        began_s = time.monotonic()
        readers.open()
        report.add("readers_opened_per_s", READERS / (time.monotonic() - began_s))
        server = platform.file_server_pids
        used_s, began_s = cpu_s(server), time.monotonic()
        beside_ms = _others_ms(client.files)
        elapsed_s = time.monotonic() - began_s
        if readers.open_count() != READERS // 2:
            raise CannotMeasure("readers were cut off")
        report.add("alone_p50_ms", percentile(alone_ms, 50))
        report.add("alone_p99_ms", percentile(alone_ms, 99))
        report.add("beside_p50_ms", percentile(beside_ms, 50))
        report.add("beside_p99_ms", percentile(beside_ms, 99), at_most=1000)
        report.add("file_server_cpu_percent", (cpu_s(server) - used_s) / elapsed_s * 100)
        report.add("file_server_mb", pss_mb(server))
        report.note("readers", READERS)


if __name__ == "__main__":
    run("readers", measure)
