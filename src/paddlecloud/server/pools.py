"""Small pools of daemon threads, started when first needed and never waited for at exit.

The front uses one for requests and one for logs, so that a slow part can only hold its own. Who
asks for much waits behind its own: callers take turns, and one never has more than its share of the
threads. `ask` bounds how long a caller waits for an engine: an engine that never answers costs
threads of its pool, then a quick refusal, never a request.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

from paddlecloud.core.errors import RateLimited, Unavailable
from paddlecloud.server.database import rows_only

T = TypeVar("T")
_Task = tuple[Callable[..., Any], tuple[Any, ...], Callable[[Any, BaseException | None], None]]


class Pool:
    """`most_each`: how many of the threads one caller may have at a time; None: all of them."""

    def __init__(self, name: str, size: int, most_each: int | None = None) -> None:
        self._name = name
        self._size = size
        self._most_each = most_each or size
        # One per waiting task, but for those whose callers have their share (`_set_aside`).
        self._tickets: SimpleQueue[None] = SimpleQueue()
        self._waiting: OrderedDict[Hashable, deque[_Task]] = OrderedDict()
        self._running: dict[Hashable, int] = {}
        self._set_aside = 0
        self._lock = threading.Lock()
        self._started = 0
        self._pending = 0  # queued or running

    @property
    def is_busy(self) -> bool:
        """Every thread has something to do."""
        return self._pending >= self._size

    def submit(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        done: Callable[[Any, BaseException | None], None],
        turn: Hashable = None,
    ) -> None:
        """Run `call(*args)` on some thread, then `done(result, error)` on the same thread.

        `turn` is on whose behalf."""
        with self._lock:
            self._pending += 1
            self._waiting.setdefault(turn, deque()).append((call, args, done))
            if self._started < min(self._pending, self._size):
                self._started += 1
                threading.Thread(
                    target=self._work, name=f"{self._name}-{self._started}", daemon=True
                ).start()
        self._tickets.put(None)

    def _take(self) -> tuple[_Task, Hashable]:
        while True:
            self._tickets.get()
            with self._lock:
                for turn, tasks in self._waiting.items():
                    running = self._running.get(turn, 0)
                    if running < self._most_each:
                        self._running[turn] = running + 1
                        task = tasks.popleft()
                        if tasks:
                            self._waiting.move_to_end(turn)  # behind the others
                        else:
                            del self._waiting[turn]
                        return task, turn
                self._set_aside += 1

    def _leave(self, turn: Hashable) -> None:
        with self._lock:
            self._pending -= 1
            left = self._running[turn] - 1
            if left:
                self._running[turn] = left
            else:
                del self._running[turn]
            is_one_free = self._set_aside > 0
            self._set_aside -= is_one_free
        if is_one_free:
            self._tickets.put(None)

    def _work(self) -> None:
        while True:
            (call, args, done), turn = self._take()
            result: Any = None
            error: BaseException | None = None
            try:
                result = call(*args)
            except BaseException as raised:  # handed to whoever asked
                error = raised
            self._leave(turn)
            done(result, error)
            del call, args, done, result, error

    async def run(self, call: Callable[..., T], *args: Any, turn: Hashable = None) -> T:
        """Await `call(*args)` on behalf of `turn`; the event loop stays free."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: T, error: BaseException | None) -> None:
            if future.done():  # the request was given up meanwhile
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        def done(result: T, error: BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(settle, result, error)
            except RuntimeError:  # the loop is closed: the process is on its way out
                pass

        self.submit(call, args, done, turn)
        return await future

    def ask(self, within_s: float, what: str, call: Callable[..., T], *args: Any) -> T:
        """`call(*args)` from a thread that will not wait longer than `within_s`."""
        rows_only(f"asking {what}")
        if self.is_busy:
            raise Unavailable(f"{what} does not answer", hint="try again in a moment")
        answered = threading.Event()
        box: list[Any] = [None, None]

        def done(result: T, error: BaseException | None) -> None:
            box[:] = (result, error)
            answered.set()

        self.submit(call, args, done)
        if not answered.wait(within_s):
            raise Unavailable(
                f"{what} did not answer within {within_s:g} s", hint="try again in a moment"
            )
        if box[1] is not None:
            raise box[1]
        result: T = box[0]
        return result


class Shares:
    """How much each caller has under way on this server, so that one cannot take all the room.

    Used on the event loop alone."""

    def __init__(self, requests_each: int, body_bytes_each: int) -> None:
        self._requests_each = requests_each
        self._body_bytes_each = body_bytes_each
        self._requests: Counter[Hashable] = Counter()
        self._body_bytes: Counter[Hashable] = Counter()

    @contextmanager
    def request(self, caller: Hashable) -> Iterator[None]:
        """One request, from here to its answer."""
        if self._requests[caller] >= self._requests_each:
            raise RateLimited(
                f"an account may have {self._requests_each} requests under way",
                hint="wait for some of them to end",
            )
        self._requests[caller] += 1
        try:
            yield
        finally:
            _give_back(self._requests, caller, 1)

    def take_body(self, caller: Hashable, size_bytes: int) -> None:
        """Bytes of a body that are kept until its request is answered."""
        if self._body_bytes[caller] + size_bytes > self._body_bytes_each:
            raise RateLimited(
                f"the requests an account has under way may hold {self._body_bytes_each >> 20} MiB",
                hint="wait for some of them to end",
            )
        self._body_bytes[caller] += size_bytes

    def give_body_back(self, caller: Hashable, size_bytes: int) -> None:
        _give_back(self._body_bytes, caller, size_bytes)


def _give_back(counter: Counter[Hashable], caller: Hashable, amount: int) -> None:
    counter[caller] -= amount
    if counter[caller] <= 0:
        del counter[caller]
