"""The wide & deep network, and the form in which it is kept after training.

`build` writes the network into the current Paddle program, either with its tables on the
parameter servers (training) or as ordinary local parameters (prediction); parameters have
fixed names, so values move between the two by name. `save` and `load` are the two ends of
the model folder. Called by train.py and predict.py; never talks to a server.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import data
import numpy as np
import paddle

DEEP_TABLE = "deep_table"
WIDE_TABLE = "wide_table"
EMBEDDING_SIZE = 8
HIDDEN_SIZES = (32, 16)


class Network(NamedTuple):
    """The variables of one built network that its users need."""

    ids: paddle.static.Variable
    numbers: paddle.static.Variable
    deep_rows: paddle.static.Variable
    wide_rows: paddle.static.Variable
    logit: paddle.static.Variable
    probability: paddle.static.Variable


def build(tables_on_servers: bool) -> Network:
    """Write the network into the default main program."""
    ids = paddle.static.data("ids", [-1, data.FIELD_COUNT], "int64")
    numbers = paddle.static.data("numbers", [-1, data.NUMBER_COUNT], "float32")
    # is_sparse is what sends a table to the parameter servers: a trainer then never holds
    # it, it pulls the rows a batch names and pushes their gradients.
    deep_rows = _table(DEEP_TABLE, EMBEDDING_SIZE, ids, tables_on_servers)
    wide_rows = _table(WIDE_TABLE, 1, ids, tables_on_servers)

    deep = paddle.concat(
        [paddle.reshape(deep_rows, [-1, data.FIELD_COUNT * EMBEDDING_SIZE]), numbers], axis=1
    )
    for layer, size in enumerate(HIDDEN_SIZES):
        deep = _dense(f"deep_{layer}", size, deep, activation="relu")
    wide = paddle.sum(wide_rows, axis=1)
    logit = _dense("top", 1, paddle.concat([deep, numbers], axis=1)) + wide
    probability = paddle.nn.functional.sigmoid(logit)
    return Network(ids, numbers, deep_rows, wide_rows, logit, probability)


def save(folder: str, parameters: dict[str, np.ndarray]) -> None:
    """Write the network with these parameter values so that one process can load it."""
    os.makedirs(folder, exist_ok=True)
    program, startup, scope = paddle.static.Program(), paddle.static.Program(), _new_scope()
    executor = paddle.static.Executor(paddle.CPUPlace())
    with paddle.static.program_guard(program, startup), paddle.static.scope_guard(scope):
        network = build(tables_on_servers=False)
        executor.run(startup)
        for parameter in program.all_parameters():
            scope.find_var(parameter.name).get_tensor().set(
                parameters[parameter.name], paddle.CPUPlace()
            )
        paddle.static.save_inference_model(
            _prefix(folder),
            [network.ids, network.numbers],
            [network.probability],
            executor,
            program=program,
        )


class Predictor:
    """A loaded model folder; `probability` answers for rows of encoded impressions."""

    def __init__(self, folder: str) -> None:
        self._scope = _new_scope()
        self._executor = paddle.static.Executor(paddle.CPUPlace())
        with paddle.static.scope_guard(self._scope):
            self._program, self._inputs, self._outputs = paddle.static.load_inference_model(
                _prefix(folder), self._executor
            )

    def probability(self, ids: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The click probability of each row."""
        with paddle.static.scope_guard(self._scope):
            (answer,) = self._executor.run(
                self._program,
                feed={"ids": ids, "numbers": numbers},
                fetch_list=self._outputs,
            )
        return answer[:, 0]


def _table(
    name: str, width: int, ids: paddle.static.Variable, on_servers: bool
) -> paddle.static.Variable:
    weights = paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Uniform(-0.1, 0.1))
    return paddle.static.nn.embedding(
        ids, [data.VOCABULARY, width], is_sparse=on_servers, param_attr=weights
    )


def _dense(
    name: str, size: int, inputs: paddle.static.Variable, activation: str | None = None
) -> paddle.static.Variable:
    return paddle.static.nn.fc(
        inputs,
        size,
        weight_attr=paddle.ParamAttr(name=f"{name}_weight"),
        bias_attr=paddle.ParamAttr(name=f"{name}_bias"),
        activation=activation,
    )


def _new_scope() -> paddle.static.Scope:
    return paddle.static.Scope()


def _prefix(folder: str) -> str:
    return os.path.join(folder, "wide_and_deep")
