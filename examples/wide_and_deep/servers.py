"""What a trainer must do with its parameter servers, beyond Paddle's own calls.

Promises: a trainer connects only when every server listens; the dense parameters are
initialised exactly once, however often trainer 0 is restarted; local dense parameters follow
the servers; a server that dies ends the trainer instead of freezing it. Called by train.py
only; never trains and never writes a file.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import socket
import sys
import time
from collections.abc import Iterator

import numpy as np
import paddle
from paddle.distributed import fleet
from paddle.distributed.fleet.utils.ps_util import DistributedInfer
from paddle.distributed.ps.utils.public import get_the_one_recv_context

LISTEN_TIMEOUT_S = 120.0
FIRST_VALUES_TIMEOUT_S = 120.0
STALL_LIMIT_S = 60.0
_POLL_S = 0.1


class ServersMissing(Exception):
    """A parameter server did not become ready in time; the message says which and how long."""


def wait_until_listening(endpoints: list[str]) -> None:
    """Return when every `host:port` accepts connections.

    Paddle does not wait: a trainer that comes before its servers crashes (trainer 0) or hangs.
    """
    deadline = time.monotonic() + LISTEN_TIMEOUT_S
    for endpoint in endpoints:
        host, port = endpoint.rsplit(":", 1)
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=1.0).close()
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise ServersMissing(
                        f"parameter server {endpoint} does not listen after "
                        f"{LISTEN_TIMEOUT_S:.0f} s ({error})"
                    ) from error
            time.sleep(_POLL_S)


class Servers:
    """The connection of this trainer to its parameter servers."""

    def __init__(self, executor: paddle.static.Executor) -> None:
        """Connect, and see to it that the dense parameters have their first values.

        Left alone, Paddle lets trainer 0 push its fresh random values whenever it starts,
        which throws away what the job has learnt if trainer 0 is restarted, and lets the
        others begin before that push. TEST_MODE switches the automatic push off; what
        follows does it with care.
        """
        self._runtime = fleet.fleet._runtime_handle
        with quiet():
            executor.run(paddle.static.default_startup_program())
            self._names_by_table = get_the_one_recv_context(
                self._runtime.context, split_dense_table=False
            )
        # Connecting pulls at once, which overwrites the local first values with zeros.
        fresh = {name: self._local_value(name) for name in self._dense_names()}
        os.environ["TEST_MODE"] = "1"
        with quiet():
            fleet.init_worker()
        if self._have_values():
            return
        if fleet.worker_index() == 0:
            self._push_dense(fresh)
        self._wait_for_values()

    def pull_dense(self) -> None:
        """Bring the local dense parameters up to date.

        Running the training program pushes gradients but never fetches the result: without
        this call every trainer would compute on its first random values for ever.
        """
        self._runtime._pull_all_dense(
            self._runtime.scopes, self._runtime._send_ctx, self._names_by_table
        )

    def dense_values(self) -> dict[str, np.ndarray]:
        """The dense parameters as the servers hold them now."""
        self.pull_dense()
        return {name: self._local_value(name) for name in self._dense_names()}

    def forward_program(self, program: paddle.static.Program) -> paddle.static.Program:
        """`program` without training, its tables read from the servers."""
        with quiet():
            return DistributedInfer(main_program=program).get_dist_infer_program()

    def disconnect(self) -> None:
        """Flush what is under way. A trainer that exits without this ends in a crash."""
        with quiet():
            fleet.stop_worker()

    def _dense_names(self) -> list[str]:
        return [name for names in self._names_by_table.values() for name in names]

    def _local_value(self, name: str) -> np.ndarray:
        return np.array(paddle.static.global_scope().find_var(name).get_tensor())

    def _have_values(self) -> bool:
        """Whether every server has its part of the first values.

        Servers start with zeros and the push reaches them one after the other, so one number
        that is not zero proves nothing: no weight may be zero (biases begin that way).
        """
        return all(
            value.all() for name, value in self.dense_values().items() if name.endswith("_weight")
        )

    def _push_dense(self, values: dict[str, np.ndarray]) -> None:
        for name in self._dense_names():
            tensor = paddle.static.global_scope().find_var(name).get_tensor()
            tensor.set(values[name], paddle.CPUPlace())
        self._runtime._init_all_params(
            self._runtime.scopes, self._runtime._send_ctx, self._names_by_table
        )

    def _wait_for_values(self) -> None:
        deadline = time.monotonic() + FIRST_VALUES_TIMEOUT_S
        while not self._have_values():
            if time.monotonic() > deadline:
                raise ServersMissing(
                    "trainer 0 gave the servers no parameters within "
                    f"{FIRST_VALUES_TIMEOUT_S:.0f} s"
                )
            time.sleep(_POLL_S)


def expect_progress() -> None:
    """End this process with exit code 1 unless called again within STALL_LIMIT_S.

    When a server dies, calls to it block inside Paddle with the interpreter locked, so no
    Python thread or signal handler could notice; faulthandler's timer does.
    """
    faulthandler.dump_traceback_later(STALL_LIMIT_S, exit=True)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hold back Paddle's debugging prints; show them only if the block fails."""
    held = io.StringIO()
    try:
        with contextlib.redirect_stdout(held):
            yield
    except BaseException:
        sys.stdout.write(held.getvalue())
        raise
