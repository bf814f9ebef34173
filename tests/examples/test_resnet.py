"""The program of examples/paddlejob/resnet.yaml, as that file starts it, with real PaddlePaddle."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from paddlecloud.core.contract import ReplicaFacts, environment
from tests.unit.core.test_contract_with_paddle import make_job

pytestmark = [pytest.mark.paddle, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = EXAMPLES / "resnet" / "train_fleet.py"


def test_trains_under_the_launcher_that_the_paddlejob_names(
    paddle_python: Path, tmp_path: Path
) -> None:
    job = yaml.safe_load((EXAMPLES / "paddlejob" / "resnet.yaml").read_text(encoding="utf-8"))
    (container,) = job["spec"]["worker"]["template"]["spec"]["containers"]
    *launcher, program = container["args"]
    assert (container["command"], program) == (["python"], PROGRAM.name)

    # Once over the pictures: enough to see the loss fall.
    shorter = PROGRAM.read_text(encoding="utf-8").replace("EPOCHS = 3", "EPOCHS = 1")
    (tmp_path / program).write_text(shorter, encoding="utf-8")
    facts = make_job("collective", job["spec"]["worker"]["replicas"])
    workers = []
    for index in range(len(facts.trainers)):
        home = tmp_path / f"worker-{index}"
        home.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "OMP_NUM_THREADS": "1"}
        env |= environment(facts, ReplicaFacts("trainer", index))
        command = [str(paddle_python), *launcher, str(tmp_path / program)]
        workers.append(
            subprocess.Popen(
                command,
                env={**env, "OUTPUT_PATH": str(home)},
                cwd=home,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        )
    try:
        outputs = [worker.communicate(timeout=240)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    for index, (worker, output) in enumerate(zip(workers, outputs, strict=True)):
        assert worker.returncode == 0, output
        assert f"worker {index} of 2 ready" in output
        losses = [float(loss) for loss in re.findall(r"step \d+ loss ([0-9.]+)", output)]
        assert losses[-1] < losses[0] / 2
    assert (tmp_path / "worker-0" / "model" / "resnet.pdiparams").exists()
    assert not (tmp_path / "worker-1" / "model").exists()
