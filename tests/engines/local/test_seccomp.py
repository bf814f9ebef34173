"""The filter says yes and no to the right calls, on machines we do not have as well.

It is run here by a few lines that do what the kernel does with it.
"""

from __future__ import annotations

import errno
import struct

import pytest

from paddlecloud.engines.local.seccomp import make_filter

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED, REFUSED = "allowed", "refused"
NUMBERS = {  # from the kernel's own tables
    "x86_64": {
        "read": 0, "mmap": 9, "clone": 56, "fork": 57, "execve": 59, "ptrace": 101, "setuid": 105,
        "pivot_root": 155, "chroot": 161, "mount": 165, "umount2": 166, "reboot": 169,
        "init_module": 175, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "setns": 308,
        "bpf": 321, "userfaultfd": 323,
    },
    "aarch64": {
        "read": 63, "mmap": 222, "clone": 220, "execve": 221, "ptrace": 117, "setuid": 146,
        "pivot_root": 41, "chroot": 51, "mount": 40, "umount2": 39, "reboot": 142,
        "init_module": 105, "keyctl": 219, "unshare": 97, "perf_event_open": 241, "setns": 268,
        "bpf": 280, "userfaultfd": 282,
    },
}  # fmt: skip
EVERYWHERE = {"io_uring_setup": 425, "open_tree": 428, "fspick": 433, "mount_setattr": 442}
HARMLESS = ("read", "mmap", "fork", "execve", "ptrace", "setuid")
CASES = [
    (machine, name, number)
    for machine, numbers in NUMBERS.items()
    for name, number in {**numbers, **EVERYWHERE}.items()
    if name not in ("clone", "unshare")
]


def run(program: bytes, architecture: int, number: int, argument: int = 0) -> int:
    """What the filter answers: 0, or the error."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, argument, 0, 0, 0, 0, 0)
    steps = list(struct.iter_unpack("=HBBI", program))
    at, loaded = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x06:
            return value & 0xFFFF if value >> 16 == 5 else 0
        if code == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
            continue
        holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
        at += if_true if holds else if_false


@pytest.mark.parametrize(("machine", "name", "number"), CASES)
def test_a_call_is_refused_unless_harmless(machine: str, name: str, number: int):
    program = make_filter(machine)
    assert program is not None
    expected = 0 if name in HARMLESS else errno.EPERM
    assert run(program, ARCHITECTURES[machine], number) == expected


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("name", ["clone", "unshare"])
@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (17, 0),  # fork
        (0x003D0F00, 0),  # a thread
        (0x10000000, errno.EPERM),  # CLONE_NEWUSER
        (0x10020000 | 17, errno.EPERM),
        (0x40000000, errno.EPERM),  # CLONE_NEWNET
    ],
)
def test_threads_and_forks_are_allowed_and_namespaces_are_not(machine, name, flags, error):
    program = make_filter(machine)
    assert program is not None
    assert run(program, ARCHITECTURES[machine], NUMBERS[machine][name], flags) == error


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_what_cannot_be_looked_into_does_not_exist(machine: str):
    program = make_filter(machine)
    assert program is not None
    assert run(program, ARCHITECTURES[machine], 435) == errno.ENOSYS  # clone3
    assert run(program, 0x40000003, 11) == errno.ENOSYS  # 32 bits
    assert run(program, ARCHITECTURES[machine], 0x40000000 + 165) == errno.ENOSYS  # x32 mount


def test_an_unknown_machine_gets_no_filter():
    assert make_filter("sparc64") is None
