"""`paddlecloud pfs cp` against rsync, scp, curl and nginx, and cp: all in one run, on loopback.

Three parts: one large file, 20,000 small files, and a tree again when nothing has changed. Ours is
on the disk when it is acknowledged; the peers' is not, unless they are named fsync. Everybody takes
turns on the same disk, with memory that was touched just before; a first round is not counted. The
figures are medians; MB is 10^6 bytes. CPU is client and server together. On one machine our client
hands files over; what a put costs when its bytes are sent is measured beside it, against a floor: a
program of twenty lines that reads, checks and sends, and one that receives, checks, hashes and
writes.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from _children import pss_mb
from _copy_floor import put_cpu_s_per_gb
from _file_peers import Copy, Nginx, Peer, Rsync, RsyncSynced, Scp, Timed, timed
from _platform import CLI, Platform
from _report import CannotMeasure, Report, median, run

from paddlecloud.wire.buffers import buffer
from paddlecloud.wire.digests import leaf_hash

LARGE_BYTES = 2 << 30
# A virtual machine may give free memory back to its host and pay dearly to get it again: whoever
# writes 2 GiB then measures the host. This much stays here between two copies.
WARM_BYTES = 768 << 20
SMALL_FILES, SMALL_BYTES = 20_000, 4 << 10
FOLDERS = 100
TREE_BYTES = 1 << 30  # of the unchanged tree, in its 20,000 files
OLD_ENOUGH_S = 40  # a younger file's digest is not remembered (sdk/transfers/settling.py)
ROUNDS = 2
CALM_ROUNDS, CALM_S = 6, 10
MEMORY_PUTS = 8


class PaddleCloud:
    """Our own command line and server, with the interface of a peer."""

    name = "paddlecloud"

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self.home = "/pfs/local/home/alice"
        self.files = platform.state / "pfs" / "home" / "alice"

    def _run(self, *args: str) -> Timed:
        return timed([str(CLI), *args], self._platform.mark.pids, self._platform.env)

    def put(self, source: Path, name: str) -> Timed:
        source_text = f"{source}/" if source.is_dir() else str(source)
        return self._run("pfs", "cp", "-r", source_text, f"{self.home}/{name}")

    def get(self, name: str, target: Path) -> Timed:
        return self._run("pfs", "cp", "-r", f"{self.home}/{name}", str(target))


Mover = PaddleCloud | Peer


def _random_file(path: Path, size_bytes: int) -> None:
    with path.open("wb") as file:
        for _ in range(0, size_bytes, 1 << 20):
            file.write(os.urandom(min(1 << 20, size_bytes)))


def _tree(folder: Path, files: int, size_bytes: int) -> None:
    for number in range(files):
        below = folder / f"part-{number % FOLDERS:03}"
        if number < FOLDERS:
            below.mkdir(parents=True)
        (below / f"sample-{number:05}.bin").write_bytes(os.urandom(size_bytes))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Rates:
    """What each mover did, round by round; the first round is thrown away."""

    def __init__(self, size_mb: float) -> None:
        self._size_mb = size_mb
        self._walls_s: dict[str, list[float]] = {}
        self._cpus_s: dict[str, list[float]] = {}

    def add(self, name: str, one: Timed) -> None:
        self._walls_s.setdefault(name, []).append(one.wall_s)
        self._cpus_s.setdefault(name, []).append(one.cpu_s)

    def wall_s(self, name: str) -> float:
        return median(self._walls_s[name][1:])

    def mb_per_s(self, name: str) -> float:
        return self._size_mb / self.wall_s(name)

    def cpu_s_per_gb(self, name: str) -> float:
        return median(self._cpus_s[name][1:]) / (self._size_mb / 1000)


def _warm_memory(size_bytes: int) -> None:
    """Use and free as much memory as a copy will take: a virtual machine gets it page by page from
    its host, which costs several seconds per GB, and whoever comes first would pay."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, size_bytes, flags=flags).close()


# --- one large file --------------------------------------------------------------------------


def _one_file(report: Report, name: str, movers: list[Mover], source: Path, back: Path) -> None:
    """One file put and got by everybody; `name` begins the figures' names."""
    puts, gets = (Rates(source.stat().st_size / 1e6) for _ in range(2))
    for number in range(ROUNDS + 1):
        for mover in movers:
            _warm_memory(source.stat().st_size)
            puts.add(mover.name, mover.put(source, f"{name}-{number}"))
            _warm_memory(source.stat().st_size)
            gets.add(mover.name, mover.get(f"{name}-{number}", back))
            if back.stat().st_size != source.stat().st_size:
                raise CannotMeasure(f"{mover.name} gave back another file")
            _remove(back)
            _remove(mover.files / f"{name}-{number}")
    for mover in movers:
        for word, rates in (("put", puts), ("get", gets)):
            report.add(f"{name}_{word}_{mover.name}_mb_per_s", rates.mb_per_s(mover.name))
            # A smaller file is measured for its rate: starting the client weighs more there.
            has_bar = mover.name == "paddlecloud" and source.stat().st_size >= LARGE_BYTES
            cpu, at_most = rates.cpu_s_per_gb(mover.name), 1.8 if has_bar else None
            report.add(f"{name}_{word}_{mover.name}_cpu_s_per_gb", cpu, at_most=at_most)
    own_put, own_get = puts.mb_per_s("paddlecloud"), gets.mb_per_s("paddlecloud")
    report.add(f"{name}_put_per_rsync_x", own_put / puts.mb_per_s("rsync"), at_least=0.9)
    report.add(f"{name}_get_per_rsync_x", own_get / gets.mb_per_s("rsync"), at_least=1.3)
    report.add(f"{name}_put_per_scp_x", own_put / puts.mb_per_s("scp"), at_least=2)
    report.add(f"{name}_get_per_scp_x", own_get / gets.mb_per_s("scp"), at_least=2)


def _hash_gb_per_s() -> float:
    """What a core hashes when it does nothing else: both ends hash every byte they move."""
    view, n_bytes = buffer(512 << 10), 1 << 30
    whole, began_s = leaf_hash(), time.process_time()
    for _ in range(0, n_bytes, len(view)):
        whole.update(view)
    return n_bytes / 1e9 / (time.process_time() - began_s)


def _sent_puts(report: Report, source: Path, place: Path) -> None:
    """Puts whose bytes are sent, as to another machine, in turns with their floor and with nobody
    else: what a peer leaves behind, memory that goes back to the host for seconds, is not our CPU.
    """
    puts, floors = Rates(source.stat().st_size / 1e6), []
    with Platform(place) as platform:
        platform.env["PADDLECLOUD_PFS_HANDOVER"] = "0"
        platform.up()
        ours = PaddleCloud(platform)
        time.sleep(CALM_S)
        for _ in range(CALM_ROUNDS):
            _warm_memory(source.stat().st_size)
            puts.add(ours.name, ours.put(source, "sent"))
            _remove(ours.files / "sent")
            _warm_memory(source.stat().st_size)
            floors.append(put_cpu_s_per_gb(source, place / "back"))
    own_cpu, floor = puts.cpu_s_per_gb(ours.name), median(floors[1:])
    report.add("hash_gb_per_s", _hash_gb_per_s())
    report.add("sent_put_floor_cpu_s_per_gb", floor)
    report.add("sent_put_paddlecloud_mb_per_s", puts.mb_per_s(ours.name))
    report.add("sent_put_paddlecloud_cpu_s_per_gb", own_cpu)
    report.add("sent_put_cpu_per_floor_x", own_cpu / floor, at_most=1.3)


def _memory_of_puts(report: Report, ours: PaddleCloud, source: Path, pids: list[int]) -> None:
    """The most the file server had while eight clients put 2 GiB each."""
    idle_mb, most_mb, is_over = pss_mb(pids), 0.0, threading.Event()
    errors: list[BaseException] = []

    def put(number: int) -> None:
        try:
            ours.put(source, f"parallel-{number}")
        except BaseException as error:
            errors.append(error)

    clients = [threading.Thread(target=put, args=(n,)) for n in range(MEMORY_PUTS)]
    for client in clients:
        client.start()
    while any(client.is_alive() for client in clients):
        most_mb = max(most_mb, pss_mb(pids))
        is_over.wait(0.05)
    if errors:
        raise CannotMeasure(f"a parallel put failed: {errors[0]}")
    for number in range(MEMORY_PUTS):
        _remove(ours.files / f"parallel-{number}")
    report.add("idle_file_server_mb", idle_mb)
    report.add("parallel_puts_file_server_mb", most_mb, at_most=120)


# --- many small files ------------------------------------------------------------------------


def _small(report: Report, movers: list[Mover], source: Path) -> None:
    rates = Rates(SMALL_FILES * SMALL_BYTES / 1e6)
    for number in range(ROUNDS):
        for mover in movers:
            os.sync()
            rates.add(mover.name, mover.put(source, f"small-{number}"))
            if sum(len(files) for _, _, files in os.walk(mover.files)) < SMALL_FILES:
                raise CannotMeasure(f"{mover.name} did not put every file")
            _remove(mover.files / f"small-{number}")
    for mover in movers:
        report.add(f"small_put_{mover.name}_files_per_s", SMALL_FILES / rates.wall_s(mover.name))
        report.add(f"small_put_{mover.name}_cpu_s", rates.cpu_s_per_gb(mover.name) * 0.08192)
    own_s = rates.wall_s("paddlecloud")
    report.add("small_put_per_rsync_fsync_x", rates.wall_s("rsync_fsync") / own_s, at_least=1)
    report.add("small_put_per_scp_x", rates.wall_s("scp") / own_s, at_least=5)


# --- again, when nothing has changed ---------------------------------------------------------


def _unchanged(report: Report, ours: PaddleCloud, rsync: Peer, source: Path) -> None:
    times: dict[str, list[float]] = {}
    for mover in (ours, rsync):
        mover.put(source, "tree")
    for _ in range(2 * ROUNDS + 1):
        for mover in (ours, rsync):
            times.setdefault(mover.name, []).append(mover.put(source, "tree").wall_s)
    own_s, rsync_s = (median(times[mover.name][1:]) for mover in (ours, rsync))
    report.add("unchanged_paddlecloud_s", own_s)
    report.add("unchanged_rsync_s", rsync_s)
    report.add("unchanged_per_rsync_ratio", own_s / rsync_s, at_most=1.5)


def _in_place(work: Callable[[Path, PaddleCloud, Platform], None]) -> None:
    """With a platform whose files lie where the peers' do."""
    place = Path(tempfile.mkdtemp(prefix="paddlecloud-bench-"))
    try:
        with Platform(place) as platform:
            platform.up()
            work(place, PaddleCloud(platform), platform)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def measure(report: Report) -> None:
    def large(place: Path, ours: PaddleCloud, platform: Platform) -> None:
        source = place / "large"
        _random_file(source, LARGE_BYTES)
        with Rsync(place) as rsync, Scp(place) as scp, Nginx(place) as nginx, Copy(place) as cp:
            movers: list[Mover] = [ours, rsync, scp, nginx, cp]
            _one_file(report, "large", movers, source, place / "back")
            _sent_puts(report, source, place)
            warm = place / "warm"
            _random_file(warm, WARM_BYTES)
            _one_file(report, "warm", movers, warm, place / "back")
            _remove(warm)
        _memory_of_puts(report, ours, source, platform.file_server_pids)

    def many(place: Path, ours: PaddleCloud, platform: Platform) -> None:
        source = place / "small"
        _tree(source, SMALL_FILES, SMALL_BYTES)
        with RsyncSynced(place) as synced, Rsync(place) as rsync, Scp(place) as scp:
            _small(report, [ours, synced, rsync, scp], source)
        _remove(source)
        source = place / "tree"
        _tree(source, SMALL_FILES, TREE_BYTES // SMALL_FILES)
        time.sleep(OLD_ENOUGH_S)
        with Rsync(place / "again") as rsync:
            _unchanged(report, ours, rsync, source)

    _in_place(large)
    _in_place(many)
    report.note("rounds", ROUNDS)


if __name__ == "__main__":
    run("pfs", measure)
