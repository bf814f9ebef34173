"""Any program is a job: a straight line fitted by gradient descent, standard library only.

Prints one line per epoch and writes what it learnt to $OUTPUT_PATH/model.json, or to
./output/model.json without that variable.
"""

from __future__ import annotations

import json
import os
import random
import time

TRUE_SLOPE, TRUE_OFFSET, NOISE = 3.0, -2.0, 0.1
SAMPLES = 200
EPOCHS = 10
LEARNING_RATE = 0.01
EPOCH_PAUSE_S = 0.2  # so that there is something to follow


def main() -> None:
    source = random.Random(1)
    points = []
    for _ in range(SAMPLES):
        x = source.uniform(-1.0, 1.0)
        points.append((x, TRUE_SLOPE * x + TRUE_OFFSET + source.gauss(0.0, NOISE)))

    slope = offset = 0.0
    for epoch in range(EPOCHS):
        source.shuffle(points)
        squares = 0.0
        for x, y in points:
            error = slope * x + offset - y
            squares += error * error
            slope -= LEARNING_RATE * error * x
            offset -= LEARNING_RATE * error
        print(f"epoch {epoch} loss {squares / len(points):.4f}", flush=True)
        time.sleep(EPOCH_PAUSE_S)

    folder = os.environ.get("OUTPUT_PATH", "output")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"slope": round(slope, 4), "offset": round(offset, 4)}, file)
    print(f"y = {slope:.2f} x + {offset:.2f}, saved {path}", flush=True)


if __name__ == "__main__":
    main()
