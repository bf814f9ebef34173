"""Pools of threads that drive requests, and what a request yields to them.

A request is a generator. It runs until it cannot go on and then yields why:

    READ, WRITE   its socket is not ready: the worker looks a moment longer if the transfer was
                  moving and nobody waits, then parks it in the poller, where it costs no thread
    AGAIN         it ran for its share of time while others wait: back into the queue
    a Pool        what comes next would hold up this pool (a sync, a question to another server)

Every worker of a pool that moves bytes owns one buffer; a request never keeps bytes in it across a
yield. So slow clients, however many, hold neither threads nor buffers.
"""

from __future__ import annotations

import logging
import select
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Generator
from typing import TYPE_CHECKING

from paddlecloud.pfs.serving.links import READ, Cut, Link
from paddlecloud.wire.buffers import buffer

if TYPE_CHECKING:
    from paddlecloud.pfs.serving.polling import Poller

AGAIN = -1
BUFFER_BYTES = 512 << 10  # measured: less is more calls, more falls out of the cache
PATIENCE_S = 60.0  # without a byte; then the transfer is cut and can be resumed
_LOOK_MS = 50
_WAS_MOVING_BYTES = 64 << 10
_SHARE_S = 0.1

_log = logging.getLogger("paddlecloud.pfs")

Steps = Generator["int | Pool", None, bool]  # returns whether the connection may go on


class Task:
    """One request on its way. `worker` is who drives it at the moment."""

    __slots__ = (
        "account_id",
        "began_s",
        "is_cancelled",
        "link",
        "patience_s",
        "steps",
        "until_s",
        "worker",
    )

    def __init__(self, link: Link) -> None:
        self.link = link
        self.steps: Steps | None = None
        self.worker: Worker | None = None
        self.account_id = 0  # whose; 0 while nobody knows
        self.is_cancelled = False
        self.began_s = 0.0
        self.patience_s = PATIENCE_S
        self.until_s = float("inf")  # when waiting has to end even if bytes trickle

    @property
    def buffer(self) -> memoryview:
        assert self.worker is not None
        return self.worker.buffer

    @property
    def has_had_its_share(self) -> bool:
        """Asked between two pieces of a transfer, which is also where it can be stopped."""
        assert self.worker is not None
        pool = self.worker.pool
        if pool.is_ending:
            raise Cut("the service stops")
        return pool.is_waited_for and time.monotonic() - self.began_s > _SHARE_S


class Pool:
    """Threads and what waits for them, in turn by account.

    With `most_per_account` one account never has more of the threads, however much it asks for:
    eight long digests of one must not hold up the commits of all.
    """

    def __init__(
        self, name: str, threads: int, poller: Poller, most_per_account: int | None = None
    ) -> None:
        self.name = name
        self.poller = poller
        self.is_ending = False  # transfers under way are cut
        self._most = most_per_account or threads
        self._changed = threading.Condition()
        self._waiting: OrderedDict[int, deque[Task]] = OrderedDict()
        self._running: dict[int, int] = {}
        self._is_stopped = False
        self.workers = [Worker(self, index) for index in range(threads)]

    @property
    def is_waited_for(self) -> bool:
        return bool(self._waiting)

    def start(self) -> None:
        for worker in self.workers:
            worker.thread.start()

    def put(self, task: Task) -> None:
        with self._changed:
            self._waiting.setdefault(task.account_id, deque()).append(task)
            self._changed.notify()

    def take(self) -> tuple[Task, int] | None:
        """The next task, and whose turn it takes; None: the end."""
        with self._changed:
            while True:
                for account_id, tasks in self._waiting.items():
                    if self._running.get(account_id, 0) < self._most:
                        task = tasks.popleft()
                        del self._waiting[account_id]
                        if tasks:  # behind the others
                            self._waiting[account_id] = tasks
                        self._running[account_id] = self._running.get(account_id, 0) + 1
                        return task, account_id
                if self._is_stopped:
                    return None
                self._changed.wait()

    def leave(self, account_id: int) -> None:
        with self._changed:
            left = self._running[account_id] - 1
            if left:
                self._running[account_id] = left
            else:
                del self._running[account_id]
            if account_id in self._waiting:
                self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def join(self, until_s: float) -> None:
        for worker in self.workers:
            worker.thread.join(max(0.0, until_s - time.monotonic()))


class Worker:
    def __init__(self, pool: Pool, index: int) -> None:
        self.pool = pool
        self._buffer: memoryview | None = None
        self._look = select.poll()
        self.thread = threading.Thread(target=self._run, name=f"{pool.name}-{index}", daemon=True)

    @property
    def buffer(self) -> memoryview:
        if self._buffer is None:  # untouched memory costs nothing, but idle workers need none
            self._buffer = buffer(BUFFER_BYTES)
        return self._buffer

    def _run(self) -> None:
        while (taken := self.pool.take()) is not None:
            task, account_id = taken
            try:
                self._drive(task)
            except Exception:
                _log.exception("a request failed in a way nobody foresaw")
                self.pool.poller.forget(task.link)
            finally:
                self.pool.leave(account_id)

    def _drive(self, task: Task) -> None:
        """Run it until it ends or has to wait."""
        poller, link, steps = self.pool.poller, task.link, task.steps
        assert steps is not None
        task.worker = self
        task.began_s = time.monotonic()
        try:
            if task.is_cancelled:
                steps.close()
                poller.forget(link)
                return
            while True:
                wanted = next(steps)
                if wanted is AGAIN:
                    self.pool.put(task)
                    return
                if isinstance(wanted, Pool):
                    if wanted is not self.pool:
                        wanted.put(task)
                        return
                elif not self._is_ready_soon(link, wanted):
                    poller.park(task, wanted)
                    return
        except StopIteration as ended:
            if ended.value:
                poller.await_head(link)
            else:
                poller.forget(link)
        except Cut:
            poller.forget(link)

    def _is_ready_soon(self, link: Link, wanted: int) -> bool:
        was_moving = link.moved_bytes >= _WAS_MOVING_BYTES
        link.moved_bytes = 0
        fd = link.fileno()
        if self.pool.is_waited_for or not was_moving or fd < 0:
            return False
        self._look.register(fd, select.POLLIN if wanted == READ else select.POLLOUT)
        try:
            return bool(self._look.poll(_LOOK_MS))
        finally:
            self._look.unregister(fd)
