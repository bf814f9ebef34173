"""Small pools of daemon threads, started when first needed and never waited for at exit.

The front uses one for requests and one for logs, so that a slow part can only
hold its own. `ask` bounds how long a caller waits for an engine: an engine that never answers
costs threads of its pool, then a quick refusal, never a request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from paddlecloud.core.errors import Unavailable

T = TypeVar("T")
_Task = tuple[Callable[..., Any], tuple[Any, ...], Callable[[Any, BaseException | None], None]]


class Pool:
    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
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
    ) -> None:
        """Run `call(*args)` on some thread, then `done(result, error)` on the same thread."""
        with self._lock:
            self._pending += 1
            if self._started < min(self._pending, self._size):
                self._started += 1
                threading.Thread(
                    target=self._work, name=f"{self._name}-{self._started}", daemon=True
                ).start()
        self._tasks.put((call, args, done))

    def _work(self) -> None:
        while True:
            call, args, done = self._tasks.get()
            result: Any = None
            error: BaseException | None = None
            try:
                result = call(*args)
            except BaseException as raised:  # handed to whoever asked
                error = raised
            with self._lock:
                self._pending -= 1
            done(result, error)
            del call, args, done, result, error

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        """Await `call(*args)`; the event loop stays free."""
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

        self.submit(call, args, done)
        return await future

    def ask(self, within_s: float, what: str, call: Callable[..., T], *args: Any) -> T:
        """`call(*args)` from a thread that will not wait longer than `within_s`."""
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
