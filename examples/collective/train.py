"""Data-parallel training of a small convolutional network, gloo on CPU.

Each replica is one rank. It learns who it is from the environment the platform sets, without
Paddle's launcher, trains on its own share of synthetic pictures, and averages gradients with
the others at every step. Rank 0 leaves the model in $OUTPUT_PATH/model.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import time
import warnings

# Before Paddle is imported: it reads these once. One thread each, because the ranks share
# the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("FLAGS_enable_pir_api", "0")
os.environ.setdefault("GLOG_minloglevel", "2")
os.environ.setdefault("PADDLE_DISTRI_BACKEND", "gloo")
warnings.filterwarnings("ignore", module="paddle")

import numpy as np  # noqa: E402
import paddle  # noqa: E402
import paddle.distributed as dist  # noqa: E402

EPOCHS = 4
TRAIN_SAMPLES = 6_144  # of all ranks together
TEST_SAMPLES = 1_024
BATCH_SIZE = 64
LEARNING_RATE = 0.005
REPORT_EVERY_STEPS = 8
PICTURE_SIZE = 16
CLASSES = ("horizontal bar", "vertical bar", "diagonal", "cross", "square", "blob")
NOISE = 0.35
TRAIN_SEED, TEST_SEED = 1, 2
PEER_TIMEOUT_S = 120.0
_POLL_S = 0.1


def main() -> int:
    paddle.disable_signal_handler()
    paddle.seed(7)
    rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    expected = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    if rank > 0 and not wait_for_rank_0():
        return 1
    # Joining prints a banner about every changed flag; a failure still raises.
    with contextlib.redirect_stderr(io.StringIO()):
        dist.init_parallel_env()
    world = dist.get_world_size()
    # Paddle falls back to training alone when it misses a variable; every rank would then
    # finish happily with a model of its own.
    if world != expected:
        print(f"error: {expected} trainers expected, {world} joined", file=sys.stderr)
        return 1
    print(f"rank {rank} of {world} ready", flush=True)

    network = build()
    parallel = paddle.DataParallel(network) if world > 1 else network
    pictures, labels = draw(TRAIN_SAMPLES, TRAIN_SEED)
    train(parallel, pictures[rank::world], labels[rank::world])
    if rank == 0:
        report_test(network)
        save(network)
    print("done", flush=True)
    return 0


def wait_for_rank_0() -> bool:
    """Wait until rank 0 listens; gloo's own retry would cost three seconds more."""
    first = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")[0]
    host, port = first.rsplit(":", 1)
    deadline = time.monotonic() + PEER_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), timeout=1.0).close()
            return True
        except OSError:
            time.sleep(_POLL_S)
    print(f"error: rank 0 at {first} does not listen after {PEER_TIMEOUT_S:.0f} s", file=sys.stderr)
    return False


def build() -> paddle.nn.Layer:
    return paddle.nn.Sequential(
        paddle.nn.Conv2D(1, 8, kernel_size=3, padding=1),
        paddle.nn.ReLU(),
        paddle.nn.MaxPool2D(2),
        paddle.nn.Conv2D(8, 16, kernel_size=3, padding=1),
        paddle.nn.ReLU(),
        paddle.nn.MaxPool2D(2),
        paddle.nn.Flatten(),
        paddle.nn.Linear(16 * (PICTURE_SIZE // 4) ** 2, len(CLASSES)),
    )


def train(network: paddle.nn.Layer, pictures: np.ndarray, labels: np.ndarray) -> None:
    optimizer = paddle.optimizer.Adam(LEARNING_RATE, parameters=network.parameters())
    criterion = paddle.nn.CrossEntropyLoss()
    # All ranks must do the same number of steps, or one waits for a partner that has left.
    steps = TRAIN_SAMPLES // (BATCH_SIZE * dist.get_world_size())
    for epoch in range(EPOCHS):
        order = np.random.RandomState(epoch).permutation(len(labels))
        recent: list[float] = []
        for step in range(steps):
            rows = order[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]
            answer = network(paddle.to_tensor(pictures[rows]))
            loss = criterion(answer, paddle.to_tensor(labels[rows]))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            recent.append(float(loss))
            if step % REPORT_EVERY_STEPS == 0:
                print(f"epoch {epoch} step {step} loss {np.mean(recent):.4f}", flush=True)
                recent.clear()


def draw(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy pictures of simple shapes at random places; the same seed, the same pictures."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, len(CLASSES), count)
    pictures = random.normal(0.0, NOISE, (count, 1, PICTURE_SIZE, PICTURE_SIZE))
    size = PICTURE_SIZE // 2
    shapes = _shapes(size)
    corners = random.randint(0, PICTURE_SIZE - size + 1, (count, 2))
    for picture, label, (top, left) in zip(pictures, labels, corners, strict=True):
        picture[0, top : top + size, left : left + size] += shapes[label]
    return pictures.astype("float32"), labels.astype("int64")


def _shapes(size: int) -> list[np.ndarray]:
    horizontal, square = np.zeros((size, size)), np.zeros((size, size))
    horizontal[size // 2 - 1 : size // 2 + 1] = 1.0
    square[[0, -1], :] = square[:, [0, -1]] = 1.0
    blob = np.zeros((size, size))
    blob[2:-2, 2:-2] = 1.0
    vertical = horizontal.T
    return [horizontal, vertical, np.eye(size), np.maximum(horizontal, vertical), square, blob]


def report_test(network: paddle.nn.Layer) -> None:
    pictures, labels = draw(TEST_SAMPLES, TEST_SEED)
    network.eval()
    with paddle.no_grad():
        answer = network(paddle.to_tensor(pictures)).numpy().argmax(axis=1)
    print(f"test accuracy {np.mean(answer == labels):.3f}", flush=True)


def save(network: paddle.nn.Layer) -> None:
    folder = os.path.join(os.environ.get("OUTPUT_PATH", "output"), "model")
    picture = paddle.static.InputSpec([None, 1, PICTURE_SIZE, PICTURE_SIZE], "float32", "picture")
    paddle.jit.save(network, os.path.join(folder, "shapes"), input_spec=[picture])
    print(f"saved {folder}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
