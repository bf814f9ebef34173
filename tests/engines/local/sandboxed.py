"""A program in a sandbox that tries things and tells what it got."""

from __future__ import annotations

import json

import pytest

from tests.engines.local.bench import Bench

PRELUDE = """
import ctypes, errno, json, os, signal, socket, stat, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    ctypes.set_errno(0)
    if getattr(libc, name)(*arguments) == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
def attempt(action):
    try:
        return ["did", repr(action())]
    except Exception as error:
        return ["refused", str(error)]
def tell(**results):
    print(json.dumps(results))
"""


@pytest.fixture
def bench(make_bench) -> Bench:
    return make_bench("sandbox")


def inside(bench: Bench, program: str, **changes) -> dict[str, list[str]]:
    """Run a program in a sandbox; what it told."""
    bench.put("program.py", PRELUDE + program, changes.get("account", "ann"))
    return json.loads(bench.output_of("exec python program.py", **changes))
