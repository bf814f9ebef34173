"""Wide & deep click prediction, trained through parameter servers on CPU.

The platform starts this same program in every replica; TRAINING_ROLE decides whether it
serves parameters or trains. Trainer 0 leaves the trained model in $OUTPUT_PATH/model, which
predict.py loads. Everything it needs to know comes from the environment.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings

# Before Paddle is imported: it reads these once. One thread each, because a job's replicas
# share the machine; the parameter-server mode of Paddle 3.0 needs the older program format.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("FLAGS_enable_pir_api", "0")
os.environ.setdefault("GLOG_minloglevel", "2")
warnings.filterwarnings("ignore", module="paddle")

import data  # noqa: E402
import model  # noqa: E402
import numpy as np  # noqa: E402
import paddle  # noqa: E402
from paddle.distributed import fleet  # noqa: E402
from servers import Servers, ServersMissing, expect_progress, quiet, wait_until_listening  # noqa: E402

EPOCHS = 4
TRAIN_SAMPLES = 65_536  # of all trainers together
TEST_SAMPLES = 8_192
BATCH_SIZE = 512
LEARNING_RATE = 0.01
REPORT_EVERY_STEPS = 16
TRAIN_SEED, TEST_SEED = 1, 2


def main() -> None:
    # Otherwise a plain TERM is reported as a crash with a page of C++ frames.
    paddle.disable_signal_handler()
    paddle.enable_static()
    paddle.seed(7)
    with quiet():
        fleet.init(log_level="WARNING")
    network = model.build(tables_on_servers=True)
    forward = paddle.static.default_main_program().clone(for_test=True)
    label = paddle.static.data("label", [-1, 1], "float32")
    loss = paddle.mean(paddle.nn.functional.binary_cross_entropy_with_logits(network.logit, label))
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True  # no trainer ever waits for another
    optimizer = paddle.optimizer.Adam(LEARNING_RATE)
    with quiet():
        fleet.distributed_optimizer(optimizer, strategy).minimize(loss)

    if fleet.is_server():
        serve()
    else:
        train(network, loss, forward)


def serve() -> None:
    """Hold a share of the parameters until the platform stops this process (TERM)."""
    with quiet():
        fleet.init_server()
    print(f"listening on {os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}", flush=True)
    fleet.run_server()


def train(
    network: model.Network, loss: paddle.static.Variable, forward: paddle.static.Program
) -> None:
    trainer_id, trainer_count = fleet.worker_index(), fleet.worker_num()
    endpoints = fleet.server_endpoints()
    print(f"trainer {trainer_id} of {trainer_count}, servers {' '.join(endpoints)}", flush=True)
    wait_until_listening(endpoints)
    expect_progress()
    executor = paddle.static.Executor(paddle.CPUPlace())
    servers = Servers(executor)

    share = data.share_of(data.generate(TRAIN_SAMPLES, TRAIN_SEED), trainer_id, trainer_count)
    for epoch in range(EPOCHS):
        train_epoch(epoch, share, executor, servers, loss)

    if trainer_id == 0:
        parameters = collect_parameters(network, executor, servers, forward)
        folder = os.path.join(os.environ.get("OUTPUT_PATH", "output"), "model")
        model.save(folder, parameters)
        report_test(folder)
    servers.disconnect()
    print("done", flush=True)


def train_epoch(
    epoch: int,
    share: data.Samples,
    executor: paddle.static.Executor,
    servers: Servers,
    loss: paddle.static.Variable,
) -> None:
    """One pass over this trainer's share, in an order of its own per epoch."""
    order = np.random.RandomState(epoch).permutation(len(share.label))
    recent: list[float] = []
    for step, start in enumerate(range(0, len(order), BATCH_SIZE)):
        rows = order[start : start + BATCH_SIZE]
        (batch_loss,) = executor.run(
            paddle.static.default_main_program(),
            feed={
                "ids": share.ids[rows],
                "numbers": share.numbers[rows],
                "label": share.label[rows],
            },
            fetch_list=[loss],
        )
        servers.pull_dense()
        recent.append(float(batch_loss))
        if step % REPORT_EVERY_STEPS == 0:
            expect_progress()
            print(f"epoch {epoch} step {step} loss {np.mean(recent):.4f}", flush=True)
            recent.clear()


def collect_parameters(
    network: model.Network,
    executor: paddle.static.Executor,
    servers: Servers,
    forward: paddle.static.Program,
) -> dict[str, np.ndarray]:
    """All parameters as the servers hold them, by name.

    The embedding tables exist only on the servers. They are small here, so every row is
    looked up once and the model becomes an ordinary one that a single process can load
    (fleet's own save would leave about a thousand shard files only servers can read).
    """
    rows = -(-data.VOCABULARY // data.FIELD_COUNT)
    ids = np.resize(np.arange(data.VOCABULARY, dtype="int64"), (rows, data.FIELD_COUNT))
    deep, wide = executor.run(
        servers.forward_program(forward),
        feed={"ids": ids, "numbers": np.zeros((rows, data.NUMBER_COUNT), "float32")},
        fetch_list=[network.deep_rows.name, network.wide_rows.name],
    )
    return {
        **servers.dense_values(),
        model.DEEP_TABLE: deep.reshape(-1, model.EMBEDDING_SIZE)[: data.VOCABULARY],
        model.WIDE_TABLE: wide.reshape(-1, 1)[: data.VOCABULARY],
    }


def report_test(folder: str) -> None:
    """Load the model back as a user would and measure it on impressions it never saw."""
    test = data.generate(TEST_SAMPLES, TEST_SEED)
    answer = model.Predictor(folder).probability(test.ids, test.numbers)
    clicked = test.label[:, 0] > 0.5
    loss = -np.mean(np.log(np.where(clicked, answer, 1.0 - answer) + 1e-7))
    accuracy = np.mean((answer > 0.5) == clicked)
    print(f"test loss {loss:.4f} accuracy {accuracy:.3f}", flush=True)
    print(f"saved {folder}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except ServersMissing as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    except Exception:
        # A trainer that unwinds with its connections open ends in a segmentation fault,
        # which would hide the real reason from whoever reads the exit code.
        traceback.print_exc()
        os._exit(1)
