"""What moving a file must cost at least: the same copies and hashes, and nothing else.

One process reads a file, checks it and sends it; another receives, checks, hashes and writes where
room was made, and lets what is written pass the kernel's memory, as ours does. No HTTP, no paths
and no threads. A figure in CPU seconds says little about another machine; a multiple of this does.
"""

from __future__ import annotations

import os
import resource
import socket
from pathlib import Path

from paddlecloud.pfs import syscalls
from paddlecloud.pfs.page_cache import Passing
from paddlecloud.pfs.receiving import ALLOCATED_BYTES
from paddlecloud.wire.buffers import buffer
from paddlecloud.wire.digests import leaf_check, leaf_hash
from paddlecloud.wire.windows import UNPACED

PIECE_BYTES = 512 << 10


def put_cpu_s_per_gb(source: Path, target: Path) -> float:
    """CPU seconds of both processes for 10^9 bytes; `target` is removed again."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = os.fork()
        if not sender:
            try:
                _send(source, listener.getsockname())
            finally:
                os._exit(0)
        before_s = _used_s(resource.RUSAGE_SELF)
        taken, _ = listener.accept()
        with taken:
            _receive(taken, target)
        receiving_s = _used_s(resource.RUSAGE_SELF) - before_s
        _, _, usage = os.wait4(sender, 0)
    size_bytes = target.stat().st_size
    target.unlink()
    return (usage.ru_utime + usage.ru_stime + receiving_s) / (size_bytes / 1e9)


def _used_s(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def _send(source: Path, address: tuple[str, int]) -> None:
    view, check = buffer(PIECE_BYTES), leaf_check()
    with source.open("rb", buffering=0) as file, socket.create_connection(address) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, UNPACED)
        while n_bytes := file.readinto(view):
            check.update(view[:n_bytes])
            link.sendall(view[:n_bytes])


def _receive(link: socket.socket, target: Path) -> None:
    view, check, whole = buffer(PIECE_BYTES), leaf_check(), leaf_hash()
    with target.open("wb", buffering=0) as file:
        passing, at, allocated_to = Passing(file.fileno(), 0), 0, 0
        while n_bytes := link.recv_into(view):
            if at + n_bytes > allocated_to:
                syscalls.allocate(file.fileno(), allocated_to, ALLOCATED_BYTES)
                allocated_to += ALLOCATED_BYTES
            check.update(view[:n_bytes])
            whole.update(view[:n_bytes])
            file.write(view[:n_bytes])
            at += n_bytes
            passing.reached(at)
        file.truncate(at)
