"""The one thread that waits: for connections, for heads, and for parked transfers.

It accepts, collects heads until they are complete and hands them to the workers; idle connections
and transfers whose socket is not ready lie here in epoll and cost a file descriptor and a few
hundred bytes. Every wait has an end: a head must be complete in ten seconds, an active transfer
must move a byte a minute. It never touches a disk and never runs a request.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable

from paddlecloud.pfs.serving.connection_counts import ConnectionCounts, network_of
from paddlecloud.pfs.serving.heads import MAX_HEAD_BYTES
from paddlecloud.pfs.serving.links import READ, Cut, Link
from paddlecloud.pfs.serving.workers import Pool, Steps, Task

_HEAD_WITHIN_S = 10.0
_IDLE_S = 120.0
_SWEEP_S = 1.0
_RECV_BYTES = 64 << 10
_HEAD_END = b"\r\n\r\n"

_log = logging.getLogger("paddlecloud.pfs")

Begin = Callable[[Task, bytes], Steps]


class Poller:
    def __init__(
        self,
        listener: socket.socket,
        begin: Begin,
        *,
        make_link: Callable[[socket.socket], Link] = Link,
        max_connections: int,
        max_per_address: int | None = None,
    ) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._begin = begin
        self._make_link = make_link
        self._counts = ConnectionCounts(max_connections, max_per_address or max_connections)
        self._epoll = select.epoll()
        self._links: dict[int, Link] = {}
        self._alarm = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_listening = False
        self.is_stopping = False
        self.knows_of_stop = threading.Event()  # `has_work` is true of everything sent before
        self._is_cutting = False
        self._has_ended = False
        self.pool: Pool  # the first to get a request; set before `run`

    # --- what other threads call ------------------------------------------------------------

    def park(self, task: Task, wanted: int) -> None:
        link = task.link
        link.deadline_s = min(time.monotonic() + task.patience_s, task.until_s)
        link.task = task
        self._arm(link, wanted)

    def await_head(self, link: Link) -> None:
        """The connection is free for the next request, which may be here already."""
        if self.is_stopping and not link.pending:
            self.forget(link)
            return
        link.scanned_bytes = 0
        link.waits_since_s = time.monotonic()
        link.deadline_s = link.waits_since_s + (_HEAD_WITHIN_S if link.pending else _IDLE_S)
        link.task = None  # last: from here on the sweep may look at it
        if link.pending or link.hides_bytes:
            self._collect(link)
        else:
            self._arm(link, READ)

    def forget(self, link: Link) -> None:
        self._leave(link)
        link.close()

    def _leave(self, link: Link) -> None:
        if self._links.get(link.fileno()) is link:
            del self._links[link.fileno()]
            self._counts.remove(link.network)

    def stop(self) -> None:
        """Listen no more, close what is idle. Safe in a signal handler."""
        self.is_stopping = True
        os.eventfd_write(self._alarm, 1)

    def cut(self) -> None:
        """The stop does not wait any longer for what is parked."""
        self._is_cutting = True
        os.eventfd_write(self._alarm, 1)

    @property
    def has_work(self) -> bool:
        """Whether a request is under way, however far."""
        links = list(self._links.values())
        return any(link.task is not None or link.pending for link in links)

    def end(self) -> None:
        self._has_ended = True
        os.eventfd_write(self._alarm, 1)

    # --- the thread -------------------------------------------------------------------------

    def run(self) -> None:
        self._epoll.register(self._alarm, select.EPOLLIN)
        self._listen(True)
        next_sweep_s = time.monotonic() + _SWEEP_S
        while not self._has_ended:
            wait_s = max(0.0, next_sweep_s - time.monotonic()) if self._links else 60.0
            if not self._is_listening:
                wait_s = min(wait_s, _SWEEP_S)
            for fd, _ in self._epoll.poll(wait_s):
                self._handle(fd)
            if time.monotonic() >= next_sweep_s:
                next_sweep_s = time.monotonic() + _SWEEP_S
                self._sweep()
        for link in list(self._links.values()):
            self.forget(link)
        self._epoll.close()
        # The alarm stays open with the process: `end` may be about to write to it.

    def _handle(self, fd: int) -> None:
        if fd == self._listener.fileno():
            self._accept()
        elif fd == self._alarm:
            os.eventfd_read(self._alarm)
            self._wind_down()
        elif (found := self._links.get(fd)) is not None:
            task, found.task = found.task, _BUSY
            if isinstance(task, Task):
                self.pool.put(task)
            elif not found.is_agreed:
                self.pool.put(self._task(found, b"", _shake(found), until_s=found.deadline_s))
            else:
                found.task = None
                self._collect(found)

    def _accept(self) -> None:
        for _ in range(64):
            try:
                sock, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    _log.warning("cannot accept connections for a moment: %s", error.strerror)
                    self._listen(False)
                    return
                continue  # the client has gone already
            network = network_of(address[0])
            crowded = self._counts.crowded(network)
            if crowded is not None and not self._drop_one_of(crowded):
                _refuse(sock, b"503 Service Unavailable", b"too many connections")
                continue
            try:
                link = self._make_link(sock)
            except OSError:
                sock.close()
                continue
            link.network = network
            self._counts.add(network)
            self._links[link.fileno()] = link
            link.waits_since_s = time.monotonic()
            link.deadline_s = link.waits_since_s + _HEAD_WITHIN_S
            self._arm(link, READ)

    def _drop_one_of(self, network: str) -> bool:
        """Room for who has a request: of the address with the most connections, the one that has
        waited longest for a head, whether it had a request before or never sent one."""
        waiting = [
            link
            for link in list(self._links.values())
            if link.network == network
            and (link.task is None or (isinstance(link.task, Task) and not link.is_agreed))
        ]
        if not waiting:
            return False
        self._cut(min(waiting, key=lambda link: link.waits_since_s))
        return True

    def _collect(self, link: Link) -> None:
        """Read on until the head is complete. The link belongs to the calling thread."""
        try:
            while True:
                end = link.pending.find(_HEAD_END, max(0, link.scanned_bytes - 3))
                link.scanned_bytes = len(link.pending)
                if end > MAX_HEAD_BYTES or (end < 0 and len(link.pending) > MAX_HEAD_BYTES):
                    self._dispatch(link, 0)
                    return
                if end >= 0:
                    self._dispatch(link, end + len(_HEAD_END))
                    return
                data = link.recv(_RECV_BYTES)
                if data is None:
                    self._arm(link, link.wants)
                    return
                if not data:
                    self.forget(link)
                    return
                if not link.pending:
                    data = data.lstrip(b"\r\n")  # an empty line left over by a sloppy client
                    link.deadline_s = time.monotonic() + _HEAD_WITHIN_S
                link.pending += data
        except Cut:
            self.forget(link)

    def _dispatch(self, link: Link, head_bytes: int) -> None:
        """An empty head means: there is none within the limit."""
        raw = bytes(link.pending[:head_bytes])
        del link.pending[:head_bytes]
        self.pool.put(self._task(link, raw, None))

    def _task(
        self, link: Link, raw: bytes, steps: Steps | None, until_s: float = float("inf")
    ) -> Task:
        task = Task(link)
        task.until_s = until_s
        link.task = _BUSY
        task.steps = steps if steps is not None else self._begin(task, raw)
        return task

    def _arm(self, link: Link, wanted: int) -> None:
        events = wanted | select.EPOLLONESHOT
        try:
            if link.is_registered:
                self._epoll.modify(link.fileno(), events)
            else:
                link.is_registered = True
                self._epoll.register(link.fileno(), events)
        except (OSError, ValueError):  # closed, or everything ends
            self.forget(link)

    def _listen(self, wanted: bool) -> None:
        if wanted and not self._is_listening:
            self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        elif not wanted and self._is_listening:
            self._epoll.unregister(self._listener.fileno())
        self._is_listening = wanted

    def _sweep(self) -> None:
        if not self._is_listening and not self.is_stopping:
            self._listen(True)
        now_s = time.monotonic()
        for link in list(self._links.values()):
            if link.task is not _BUSY and link.deadline_s <= now_s:
                self._cut(link)

    def _wind_down(self) -> None:
        if not self.is_stopping:
            return
        self._listen(False)
        for link in list(self._links.values()):
            if link.task is None and not link.pending and not link.hides_bytes:
                self._collect(link)  # what was asked before the stop is answered
            is_idle = link.task is None and not link.pending
            if is_idle or (self._is_cutting and link.task is not _BUSY):
                self._cut(link)
        self.knows_of_stop.set()

    def _cut(self, link: Link) -> None:
        task, link.task = link.task, _BUSY
        try:
            self._epoll.unregister(link.fileno())
        except (OSError, ValueError):
            pass
        if isinstance(task, Task):
            # Its end may touch the disk (an upload keeps what it has): not here.
            task.is_cancelled = True
            self.pool.put(task)
            return
        if link.pending and link.is_agreed:
            self._leave(link)
            _refuse(link.sock, b"408 Request Timeout", b"the head of the request took too long")
            return
        self.forget(link)


class _Busy:
    """A worker has the link."""


_BUSY = _Busy()


def _shake(link: Link) -> Steps:
    while link.handshake() is None:
        yield link.wants
    return True


def _refuse(sock: socket.socket, status: bytes, message: bytes) -> None:
    """A few words at best; never waits."""
    code = b"rate_limited" if status.startswith(b"503") else b"invalid_input"
    body = b'{"code":"%s","message":"%s","hint":"","field":""}' % (code, message)
    try:
        sock.setblocking(False)
        sock.send(
            b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
            b"Connection: close\r\n\r\n%s" % (status, len(body), body)
        )
    except OSError:
        pass
    sock.close()
