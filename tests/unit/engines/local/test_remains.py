"""A process whose first thread has ended runs until the last one has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from paddlecloud.engines.local import remains

FIRST_THREAD_ENDS = """
import ctypes, threading, time
def go_on():
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    print("ready", flush=True)
    time.sleep(600)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture
def headless() -> Iterator[int]:
    """The pid of one that goes on without its first thread."""
    with subprocess.Popen(
        [sys.executable, "-c", FIRST_THREAD_ENDS],
        env={**os.environ, "PADDLECLOUD_COOKIE": "a-cookie"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def test_it_is_found_and_killed_without_its_first_thread(headless):
    assert remains.is_running(headless)
    assert headless in remains.carriers("a-cookie")
    assert headless in remains.relatives(os.getpid())
    assert remains.kill_all([headless]) == {headless}
    os.waitid(os.P_PID, headless, os.WEXITED | os.WNOWAIT)
    assert not remains.is_running(headless)
    assert not remains.carries(headless, "a-cookie")
