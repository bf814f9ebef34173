"""Ask a trained wide & deep model about two impressions.

    python predict.py MODEL_FOLDER

MODEL_FOLDER is the `model` folder of the job's output. Runs alone, without any server.
"""

from __future__ import annotations

import os
import sys
import warnings

os.environ.setdefault("FLAGS_enable_pir_api", "0")
os.environ.setdefault("GLOG_minloglevel", "2")
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore", module="paddle")

import data  # noqa: E402
import model  # noqa: E402
import numpy as np  # noqa: E402
import paddle  # noqa: E402


def impression(
    interest: str, topic: str, device: str, hour: int, price: float, past_clicks: float
) -> tuple[np.ndarray, np.ndarray]:
    """One impression; user and ad stay the same, so that only what is written here differs."""
    ids = data.encode(
        user=np.array([0]),
        ad=np.array([0]),
        interest=np.array([data.TOPICS.index(interest)]),
        topic=np.array([data.TOPICS.index(topic)]),
        device=np.array([data.DEVICES.index(device)]),
        hour=np.array([hour]),
    )
    return ids, np.array([[price, past_clicks]], "float32")


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python predict.py MODEL_FOLDER", file=sys.stderr)
        return 2
    if not os.path.isdir(sys.argv[1]):
        print(f"error: there is no folder {sys.argv[1]}", file=sys.stderr)
        return 1
    paddle.enable_static()
    predictor = model.Predictor(sys.argv[1])
    likely = impression("sport", "sport", "phone", hour=20, price=-0.5, past_clicks=0.8)
    unlikely = impression("sport", "garden", "phone", hour=4, price=0.9, past_clicks=-0.8)
    for words, (ids, numbers) in (
        ("likes sport, cheap sport ad at 20:00     ", likely),
        ("likes sport, expensive garden ad at 04:00", unlikely),
    ):
        print(f"{words}  click probability {predictor.probability(ids, numbers)[0]:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
