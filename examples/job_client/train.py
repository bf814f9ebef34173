"""A straight line fitted by several trainers, each on its own share of the data.

Reads every file of ./train_data (one `x y` per line), adds up what a fit needs, and lets trainer 0
collect the sums over a socket; every trainer writes what was learnt to ./output/model.json. It
needs nothing but Python and the variables a PaddleCloud job has.
"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

RANK = int(os.environ["PADDLE_TRAINER_ID"])
TRAINERS = int(os.environ["PADDLE_TRAINERS_NUM"])
FIRST = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")[0]
CONNECT_WITHIN_S = 30.0


def sums_of(folder: Path) -> list[float]:
    """count, sum of x, of y, of x*x, of x*y"""
    sums = [0.0] * 5
    for path in sorted(folder.iterdir()):
        for line in path.read_text().splitlines():
            x, y = map(float, line.split())
            for at, value in enumerate((1.0, x, y, x * x, x * y)):
                sums[at] += value
        print(f"trainer {RANK} of {TRAINERS} read {path.name}", flush=True)
    return sums


def connect(address: tuple[str, int]) -> socket.socket:
    deadline = time.monotonic() + CONNECT_WITHIN_S
    while True:
        try:
            return socket.create_connection(address, timeout=CONNECT_WITHIN_S)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def all_sums(mine: list[float]) -> list[float]:
    """Everybody's sums, on every trainer."""
    host, _, port = FIRST.rpartition(":")
    if RANK != 0:
        with connect((host, int(port))) as link, link.makefile("rw") as stream:
            stream.write(json.dumps(mine) + "\n")
            stream.flush()
            return list(json.loads(stream.readline()))
    with socket.create_server((host, int(port))) as listening:
        links = [listening.accept()[0] for _ in range(TRAINERS - 1)]
    streams = [link.makefile("rw") for link in links]
    parts = [mine, *(json.loads(stream.readline()) for stream in streams)]
    total = [sum(values) for values in zip(*parts, strict=True)]
    for stream, link in zip(streams, links, strict=True):
        stream.write(json.dumps(total) + "\n")
        stream.flush()
        stream.close()
        link.close()
    return total


def main() -> None:
    count, x, y, xx, xy = all_sums(sums_of(Path("train_data")))
    slope = (count * xy - x * y) / (count * xx - x * x)
    offset = (y - slope * x) / count
    learnt = {"slope": round(slope, 3), "offset": round(offset, 3), "samples": int(count)}
    Path("output", "model.json").write_text(json.dumps(learnt))
    print(f"y = {slope:.2f} x + {offset:.2f} from {int(count)} samples", flush=True)


if __name__ == "__main__":
    main()
