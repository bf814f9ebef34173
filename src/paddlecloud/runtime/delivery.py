"""The text of the one file that jobs are given, and its name there."""

import os

FILE_NAME = "paddlecloud_runtime.py"


def source() -> str:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), FILE_NAME)
    with open(path, encoding="ascii") as file:
        return file.read()
