"""Fits a line with parameter servers and the standard library alone: a program of generation A.

Every replica of a TrainingJob runs this file and finds its role in its environment. A server keeps
its share of the weights; trainers read them, work on their share of the samples, and send back
what to change. They do not wait for each other, so trainers may come and go.
"""

import json
import os
import random
import signal
import socket
import socketserver
import sys
import threading

FEATURES, SAMPLES, RATE = 8, 512, 0.01
TRUTH = [random.Random(7 + i).uniform(-1, 1) for i in range(FEATURES)]


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True
    weights = [0.0] * FEATURES  # those of this server; the others stay as they are
    lock = threading.Lock()


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            with self.server.lock:
                for place, change in json.loads(line.decode()).items():
                    self.server.weights[int(place)] += change
                answer = json.dumps(self.server.weights)
            self.wfile.write(answer.encode() + b"\n")


class Client:
    """All servers as one list of weights; weight i lives on server i modulo their number."""

    def __init__(self, endpoints):
        pairs = [endpoint.rsplit(":", 1) for endpoint in endpoints]
        streams = [socket.create_connection((host.strip("[]"), int(port))) for host, port in pairs]
        self.files = [stream.makefile("rwb") for stream in streams]

    def change(self, changes):
        count = len(self.files)
        weights = [0.0] * FEATURES
        for number, file in enumerate(self.files):
            mine = {i: changes[i] for i in range(number, FEATURES, count)}
            file.write(json.dumps(mine).encode() + b"\n")
            file.flush()
            kept = json.loads(file.readline().decode())
            for place in mine:
                weights[place] = kept[place]
        return weights


def product(a, b):
    return sum(a[i] * b[i] for i in range(FEATURES))


def samples(rank, trainers):
    """The share of one trainer, the same at every start."""
    for number in range(rank, SAMPLES, trainers):
        draw = random.Random(number)
        x = [draw.uniform(-1, 1) for _ in range(FEATURES)]
        yield x, product(x, TRUTH)


def train():
    rank, trainers = int(os.environ["PADDLE_TRAINER_ID"]), int(os.environ["TRAINERS"])
    client = Client(os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(","))
    weights = client.change([0.0] * FEATURES)
    for number in range(int(os.environ.get("PADDLE_INIT_NUM_PASSES", "1"))):
        loss = count = 0
        for x, y in samples(rank, trainers):
            error = product(x, weights) - y
            loss, count = loss + error * error, count + 1
            weights = client.change([-RATE * error * a for a in x])
        print(f"trainer {rank} pass {number} loss {loss / count:.6f}", flush=True)


if __name__ == "__main__":
    if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
        # The first process of a container is deaf to signals it does not ask for.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        address = (os.environ.get("POD_IP", ""), int(os.environ["PADDLE_PORT"]))
        print(f"serving at {address[0]}:{address[1]}", flush=True)
        Server(address, Handler).serve_forever()
    else:
        train()
