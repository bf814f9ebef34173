"""The process of the file service: open the store, listen, serve, stop politely.

    poller   one thread          connections, heads, everything that waits
    moving   eight               requests and the bytes of transfers
    slow     eight               syncs, digests of stored files, whole trees
    asking   four                questions to the cloud server
    desk     one                 files that clients on this machine hand over

SIGTERM: no new connection, requests in hand have three seconds, what is then still being sent is
cut as a lost connection would cut it (uploads keep their leaves), the store closes. A second signal
ends it at once; the store is made for that too.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import paddlecloud
from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.pfs.serving import adopting
from paddlecloud.pfs.serving.callers import Callers
from paddlecloud.pfs.serving.handlers import HANDLERS
from paddlecloud.pfs.serving.handovers import Desk
from paddlecloud.pfs.serving.links import Link
from paddlecloud.pfs.serving.polling import Poller
from paddlecloud.pfs.serving.service import Service
from paddlecloud.pfs.serving.settings import Settings
from paddlecloud.pfs.serving.workers import Pool

if TYPE_CHECKING:
    import ssl

    from paddlecloud.pfs.store import Store

_STOP_WITHIN_S = 3.0
_BACKLOG = 1024
_TICK_S = 1.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SPARE_DESCRIPTORS = 256
_DESCRIPTORS_EACH = 3  # its socket, and two files of what it transfers
_log = logging.getLogger("paddlecloud.pfs")


def run(settings: Settings) -> int:
    """Returns when it was told to stop. Raises for what cannot work from the start."""
    if settings.parent_pid is not None:
        adopting.end_with(settings.parent_pid)
    listener = listen(settings)
    tls = tls_context(settings)
    settings = _within_descriptors(settings)
    store = open_store(settings)
    try:
        return _serve(settings, store, listener, tls)
    finally:
        store.close()


def open_store(settings: Settings) -> Store:
    from paddlecloud.pfs.store import Store

    store = Store(settings.root, settings.datacenters or None, sync=settings.syncs)
    store.open()
    return store


def _serve(
    settings: Settings, store: Store, listener: socket.socket, tls: ssl.SSLContext | None
) -> int:
    callers = Callers(
        settings.server_url, relay_secret=settings.relay_secret, server_ca=settings.server_ca
    )
    desk = Desk(os.stat(store.places.hidden).st_dev)
    service = Service(
        store,
        callers,
        HANDLERS,
        desk,
        max_requests_per_account=settings.max_requests_per_account,
        max_file_bytes=settings.max_file_bytes,
    )
    poller = Poller(
        listener,
        service.begin,
        make_link=_link_maker(tls),
        max_connections=settings.max_connections,
        max_per_address=settings.max_connections_per_address,
    )
    service.poller = poller
    service.moving = poller.pool = Pool("moving", 8, poller)
    service.slow = Pool("slow", 8, poller, most_per_account=2)
    service.asking = Pool("asking", 4, poller)
    pools = (service.moving, service.slow, service.asking)
    # Before any thread is made: all of them leave these signals to `_tend`.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    for pool in pools:
        pool.start()
    if settings.hands_over:
        desk.start()
    thread = threading.Thread(target=poller.run, name="poller", daemon=True)
    thread.start()
    listener.listen(_BACKLOG)
    port = listener.getsockname()[1]
    _write_run_file(settings, port, _promise(settings, store))
    _announce(settings, store, port)
    gc.freeze()
    gc.enable()
    try:
        _tend(service)
        poller.stop()
        _let_the_next_one_kill()
        _finish(poller, pools, thread)
        service.flush()
    finally:
        if settings.run_file is not None:
            settings.run_file.unlink(missing_ok=True)
    return 0


def _tend(service: Service) -> None:
    """Until it is told to stop.

    Signals are waited for, not handled: a handler may come while its own thread holds a lock. And
    this thread does nothing else: housekeeping may walk through millions of files.
    """
    is_over = threading.Event()

    def keep_house() -> None:
        while not is_over.wait(_TICK_S):
            try:
                service.tick()
            except Exception:
                _log.exception("the housekeeping of the file store failed")

    threading.Thread(target=keep_house, name="housekeeping", daemon=True).start()
    signal.sigwait(_STOP_SIGNALS)
    is_over.set()


def _finish(poller: Poller, pools: tuple[Pool, ...], thread: threading.Thread) -> None:
    until_s = time.monotonic() + _STOP_WITHIN_S
    poller.knows_of_stop.wait(_STOP_WITHIN_S)
    _wait(poller, until_s)
    for pool in pools:
        pool.is_ending = True
    poller.cut()
    _wait(poller, until_s + 1.0)
    for pool in pools:
        pool.stop()
    for pool in pools:
        pool.join(until_s + 1.5)
    poller.end()
    thread.join(1.0)


def _wait(poller: Poller, until_s: float) -> None:
    while poller.has_work and time.monotonic() < until_s:
        time.sleep(0.02)


def _let_the_next_one_kill() -> None:
    """Who asks twice does not want to wait."""
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)


# --- the start ------------------------------------------------------------------------------


def listen(settings: Settings) -> socket.socket:
    """Bound but silent. A busy port is an answer, not a traceback."""
    if settings.listen_fd is not None:
        return adopting.inherited(settings.listen_fd)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
    except OSError as error:
        sock.close()
        raise Conflict(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}",
            field="--port",
            hint="another program may have it; --port 0 takes any free one",
        ) from None
    return sock


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls_cert is None:
        return None
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"cannot be used: {error}", field="--tls-cert") from None
    return context


def _link_maker(context: ssl.SSLContext | None) -> Callable[[socket.socket], Link]:
    if context is None:
        return Link
    from paddlecloud.pfs.serving.tls_links import TlsLink

    return lambda sock: TlsLink(sock, context)


def _within_descriptors(settings: Settings) -> Settings:
    """As many connections as there are descriptors for."""
    from dataclasses import replace

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_EACH * settings.max_connections + _SPARE_DESCRIPTORS
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    possible = max(1, (soft - _SPARE_DESCRIPTORS) // _DESCRIPTORS_EACH)
    return replace(settings, max_connections=min(settings.max_connections, possible))


def _write_run_file(settings: Settings, port: int, promises: str) -> None:
    if settings.run_file is None:
        return
    facts = {
        "pid": os.getpid(),
        "port": port,
        "host": settings.host,
        "tls": settings.tls_cert is not None,
        "root": str(settings.root),
        "promises": promises,
        "version": paddlecloud.__version__,
    }
    new = settings.run_file.with_name(settings.run_file.name + ".new")
    new.write_text(json.dumps(facts))
    os.replace(new, settings.run_file)


def _announce(settings: Settings, store: Store, port: int) -> None:
    scheme = "https" if settings.tls_cert else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    names = ", ".join(settings.datacenters) or "any datacenter"
    print(
        f"pfsserver  {scheme}://{host}:{port}   {Path(settings.root).resolve()} as {names}; "
        f"{_promise(settings, store)}",
        file=sys.stderr,
        flush=True,
    )


def _promise(settings: Settings, store: Store) -> str:
    """What the storage promises, in a sentence."""
    promises = store.promises
    if not settings.syncs:
        return "NOT synced: a power cut loses what was acknowledged"
    if not promises.tried:
        return "the disk is full: what it promises could not be tried"
    words = ["rename atomic", "fsync works"]
    if not promises.directory_sync:
        words.append("directories cannot be synced")
    if not promises.one_sync_for_all:
        words.append("batches sync all disks")
    if not promises.rename_refuses_to_replace:
        words.append("a job can race `move` without replace")
    if not promises.case_sensitive:
        words.append("case of names ignored")
    if not promises.keeps_names:
        words.append("names are changed")
    if promises.times.tick_ns:
        words.append(f"file times tick every {promises.times.tick_ns / 1e6:.3g} ms")
    return ", ".join(words)
