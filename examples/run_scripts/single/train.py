"""A straight line learnt by PaddlePaddle from every file of ./train_data.

Each line of a file is `x y`. The parameters are left in ./output, as Paddle keeps them and as JSON.
How long it trains is EPOCHS, which config.ini gives.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOG_minloglevel", "2")
warnings.filterwarnings("ignore", module="paddle")

import numpy as np  # noqa: E402
import paddle  # noqa: E402

EPOCHS = int(os.environ.get("EPOCHS", "20"))
BATCH_SIZE = 32
LEARNING_RATE = 0.05


def main() -> int:
    paddle.disable_signal_handler()
    paddle.seed(7)
    parts = sorted(Path("train_data").iterdir())
    samples = np.concatenate([np.loadtxt(part, dtype="float32", ndmin=2) for part in parts])
    print(f"{len(samples)} samples of {len(parts)} files", flush=True)
    line = paddle.nn.Linear(1, 1)
    optimizer = paddle.optimizer.Adam(LEARNING_RATE, parameters=line.parameters())
    loss = paddle.to_tensor(0.0)
    for epoch in range(EPOCHS):
        order = np.random.RandomState(epoch).permutation(len(samples))
        for start in range(0, len(order), BATCH_SIZE):
            rows = samples[order[start : start + BATCH_SIZE]]
            answer = line(paddle.to_tensor(rows[:, :1]))
            loss = paddle.nn.functional.mse_loss(answer, paddle.to_tensor(rows[:, 1:]))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        if epoch % 10 == 0:
            print(f"epoch {epoch} loss {float(loss):.4f}", flush=True)
    paddle.save(line.state_dict(), "output/line.pdparams")
    learnt = {"slope": float(line.weight[0, 0]), "offset": float(line.bias[0])}
    Path("output", "model.json").write_text(json.dumps(learnt))
    print(f"y = {learnt['slope']:.2f} x + {learnt['offset']:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
