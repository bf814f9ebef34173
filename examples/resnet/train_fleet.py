"""ResNet-18 on pictures of flowers, data parallel under Paddle's launcher:

    python -m paddle.distributed.launch train_fleet.py

One process for each GPU, or one on the CPU where there is none; fleet averages the gradients of
all. The pictures are drawn by the program, each process has its own share of them. Rank 0 leaves
the model in $OUTPUT_PATH/model.
"""

from __future__ import annotations

import os
import sys
import warnings

# Before Paddle is imported: it reads these once.
os.environ.setdefault("GLOG_minloglevel", "2")
warnings.filterwarnings("ignore", module="paddle")

import numpy as np  # noqa: E402
import paddle  # noqa: E402
from paddle.distributed import fleet  # noqa: E402
from paddle.vision.models import resnet18  # noqa: E402

EPOCHS = 3
TRAIN_SAMPLES = 1_024  # of all workers together
TEST_SAMPLES = 256
BATCH_SIZE = 32
LEARNING_RATE = 0.002
REPORT_EVERY_STEPS = 4
PICTURE_SIZE = 32
PETALS = (3, 4, 5, 6, 8)  # the classes: how many petals a flower has
NOISE = 0.1
TRAIN_SEED, TEST_SEED = 1, 2


def main() -> int:
    paddle.disable_signal_handler()
    if not paddle.is_compiled_with_cuda():
        os.environ.setdefault("PADDLE_DISTRI_BACKEND", "gloo")
    paddle.seed(7)
    expected = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    fleet.init(is_collective=True, log_level="WARNING")
    rank, world = fleet.worker_index(), fleet.worker_num()
    # Paddle lets each worker train alone when it misses a variable, and says nothing.
    if world != expected:
        print(f"error: {expected} workers expected, {world} joined", file=sys.stderr)
        return 1
    print(f"worker {rank} of {world} ready on {paddle.device.get_device()}", flush=True)

    network = resnet18(num_classes=len(PETALS))
    train(fleet.distributed_model(network), network, rank, world)
    if rank == 0:
        report_test(network)
        save(network)
    print("done", flush=True)
    return 0


def train(parallel: paddle.nn.Layer, network: paddle.nn.Layer, rank: int, world: int) -> None:
    optimizer = fleet.distributed_optimizer(
        paddle.optimizer.Adam(LEARNING_RATE, parameters=network.parameters())
    )
    criterion = paddle.nn.CrossEntropyLoss()
    pictures, labels = draw(TRAIN_SAMPLES, TRAIN_SEED)
    pictures, labels = pictures[rank::world], labels[rank::world]
    # All workers must do the same number of steps, or one waits for a partner that has left.
    steps = TRAIN_SAMPLES // (BATCH_SIZE * world)
    for epoch in range(EPOCHS):
        order = np.random.RandomState(epoch).permutation(len(labels))
        recent: list[float] = []
        for step in range(steps):
            rows = order[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]
            answer = parallel(paddle.to_tensor(pictures[rows]))
            loss = criterion(answer, paddle.to_tensor(labels[rows]))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            recent.append(float(loss))
            if step % REPORT_EVERY_STEPS == 0:
                print(f"epoch {epoch} step {step} loss {np.mean(recent):.4f}", flush=True)
                recent.clear()


def draw(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Flowers of any colour, turned any way, on noise; the same seed, the same pictures."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, len(PETALS), count)
    line = np.linspace(-1.0, 1.0, PICTURE_SIZE)
    x, y = np.meshgrid(line, line)
    distance, angle = np.hypot(x, y), np.arctan2(y, x)
    pictures = random.normal(0.0, NOISE, (count, 3, PICTURE_SIZE, PICTURE_SIZE))
    for picture, label in zip(pictures, labels, strict=True):
        turned = angle + random.uniform(0, 2 * np.pi)
        edge = 0.55 + 0.35 * np.cos(PETALS[label] * turned)
        colour = random.uniform(0.4, 1.0, (3, 1, 1))
        picture += colour * (distance < edge)
    return pictures.astype("float32"), labels.astype("int64")


def report_test(network: paddle.nn.Layer) -> None:
    pictures, labels = draw(TEST_SAMPLES, TEST_SEED)
    network.eval()
    with paddle.no_grad():
        answer = network(paddle.to_tensor(pictures)).numpy().argmax(axis=1)
    print(f"test accuracy {np.mean(answer == labels):.3f}", flush=True)


def save(network: paddle.nn.Layer) -> None:
    folder = os.path.join(os.environ.get("OUTPUT_PATH", "output"), "model")
    picture = paddle.static.InputSpec([None, 3, PICTURE_SIZE, PICTURE_SIZE], "float32", "picture")
    paddle.jit.save(network, os.path.join(folder, "resnet"), input_spec=[picture])
    print(f"saved {folder}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
