"""Open files that clients on this machine hand over, instead of sending their bytes.

Whoever shares the machine with the service gives it the open file itself (SCM_RIGHTS), and the
service reads it: no byte goes through TCP, and the client does nothing.

It promises: only who was told the ticket of an upload hands over its file, and only a process of
the service's own user, for whom it may read everything anyway; it is taken only if it is a regular
file of that length on the filesystem of the store, so that reading it hangs no longer than the
store itself would; it is let go when the client leaves or hands over another. One thread, which
never reads a file. Where there are no such sockets nothing is offered, and bytes are sent.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
import selectors
import socket
import stat
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from paddlecloud.wire import handovers as words

MOST_CLIENTS = 64  # the others send bytes
_MOST_TICKETS = 4096
_TICKET_WITHIN_S = 5.0
_NO_DESCRIPTOR_S = 0.1
_INT_BYTES = 4
_log = logging.getLogger("paddlecloud.pfs")


@dataclass(slots=True)
class _Client:
    sock: socket.socket
    until_s: float  # when it must have shown a ticket
    upload_id: str = ""  # whose file it has handed over


class Desk:
    """`start` it once; `offer` and `open` may be called by any thread."""

    def __init__(self, device: int) -> None:
        """`device` is the one the store is on."""
        self._device = device
        self._lock = threading.Lock()
        self._tickets: OrderedDict[str, tuple[str, int]] = OrderedDict()  # → upload, its length
        self._files: dict[str, int] = {}  # upload → descriptor
        self._clients: dict[int, _Client] = {}
        self._selector = selectors.DefaultSelector()
        # Without a place in the file system, so nothing is left behind. No secret: see `wire`.
        self._name = words.socket_name(secrets.token_hex(16))
        self._listener: socket.socket | None = None

    def start(self) -> None:
        try:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.bind("\0" + self._name)
            listener.listen(64)
        except OSError as error:
            _log.warning("no files can be handed over: %s", error.strerror)
            return
        listener.setblocking(False)
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ)
        threading.Thread(target=self._run, name="handovers", daemon=True).start()

    # --- what requests ask --------------------------------------------------------------------

    def offer(self, upload_id: str, size_bytes: int) -> dict[str, str] | None:
        """Where its file can be handed over, and the ticket that is asked for there."""
        if self._listener is None:
            return None
        ticket = secrets.token_hex(words.TICKET_BYTES // 2)
        with self._lock:
            self._tickets[ticket] = (upload_id, size_bytes)
            if len(self._tickets) > _MOST_TICKETS:
                self._tickets.popitem(last=False)
        return {"socket": self._name, "ticket": ticket}

    def open(self, upload_id: str) -> int | None:
        """A descriptor of the caller's own; None: nothing was handed over, or not any more."""
        with self._lock:
            fd = self._files.get(upload_id)
            return None if fd is None else os.dup(fd)

    # --- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select(1.0 if self._clients else None):
                client = self._clients.get(key.fd)
                try:
                    if client is None:
                        self._accept()
                    elif client.upload_id:
                        self._leave(client)  # it has nothing more to say: it is gone
                    else:
                        self._take(client)
                except Exception:
                    _log.exception("a file could not be taken over")
                    if client is not None:
                        self._leave(client)
            self._sweep(time.monotonic())

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            sock, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(_NO_DESCRIPTOR_S)  # it is still there the next time
            return
        credentials = sock.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, words.CREDENTIALS_BYTES
        )
        is_own = words.user_of(credentials) == os.geteuid()
        if not is_own or len(self._clients) >= MOST_CLIENTS:
            sock.close()
            return
        sock.setblocking(False)
        client = _Client(sock, time.monotonic() + _TICKET_WITHIN_S)
        self._clients[sock.fileno()] = client
        self._selector.register(sock, selectors.EVENT_READ)

    def _take(self, client: _Client) -> None:
        try:
            ticket, fd = _receive(client.sock)
        except BlockingIOError:
            return
        except OSError:
            self._leave(client)
            return
        with self._lock:
            upload_id, size_bytes = self._tickets.pop(ticket, ("", 0))
        if fd is not None and upload_id and _is_readable(fd, self._device, size_bytes):
            self._keep(client, upload_id, fd)
            return
        if fd is not None:
            os.close(fd)
        self._leave(client)

    def _keep(self, client: _Client, upload_id: str, fd: int) -> None:
        with self._lock:
            old, self._files[upload_id] = self._files.get(upload_id), fd
        if old is not None:
            os.close(old)
            for other in self._clients.values():
                if other.upload_id == upload_id:
                    other.upload_id = ""  # the sweep closes it
        client.upload_id = upload_id
        try:
            client.sock.send(words.TAKEN)
        except OSError:
            self._leave(client)

    def _leave(self, client: _Client) -> None:
        if self._clients.pop(client.sock.fileno(), None) is None:
            return  # it has left
        self._selector.unregister(client.sock)
        client.sock.close()
        with self._lock:
            fd = self._files.pop(client.upload_id, None)
        if fd is not None:
            os.close(fd)

    def _sweep(self, now_s: float) -> None:
        for client in list(self._clients.values()):
            if not client.upload_id and client.until_s < now_s:
                self._leave(client)


def _receive(sock: socket.socket) -> tuple[str, int | None]:
    """A ticket, and the file that came with it. (`socket.recv_fds` would let children inherit it.)
    There is room for one: the kernel closes the others."""
    room = socket.CMSG_LEN(_INT_BYTES)
    ticket, attached, _, _ = sock.recvmsg(words.TICKET_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    fds = [
        int.from_bytes(data[:_INT_BYTES], sys.byteorder)
        for level, kind, data in attached
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS) and len(data) >= _INT_BYTES
    ]
    return ticket.decode("latin-1"), fds[0] if fds else None


def _is_readable(fd: int, device: int, size_bytes: int) -> bool:
    try:
        facts = os.fstat(fd)
    except OSError:  # some mounts show their files to nobody else
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_dev == device and facts.st_size == size_bytes
