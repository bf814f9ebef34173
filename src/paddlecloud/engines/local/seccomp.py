"""The system calls a sandboxed program may not make, as a filter for the kernel.

A second wall behind namespaces and dropped capabilities: with user namespaces a program could
make itself root of a world of its own and from there reach kernel code that is rarely needed and
often broken. Refused are mounts, namespaces, modules and other kernel control, the kernel's key
rings, and io_uring; everything a training program uses is allowed. `Sandbox` hands the filter to
bubblewrap. The choice follows the default profile of container runtimes.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000  # the low half of a refusal is the error
_X32_CALLS = 0x40000000  # a second numbering of the same calls on x86-64
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET and TIME


@dataclass(frozen=True, slots=True)
class _Machine:
    architecture: int  # AUDIT_ARCH_*
    clone: int
    unshare: int
    refused: tuple[int, ...]


# Same number on every machine: they came after the numbering was unified.
_REFUSED_EVERYWHERE = (
    *(425, 426, 427),  # io_uring_setup, io_uring_enter, io_uring_register
    *(428, 429, 430, 431, 432, 433),  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick
    442,  # mount_setattr
)
_CLONE3 = 435
_MACHINES = {
    "x86_64": _Machine(
        architecture=0xC000003E,
        clone=56,
        unshare=272,
        refused=(
            *(155, 161, 165, 166, 308),  # pivot_root, chroot, mount, umount2, setns
            *(167, 168, 169, 175, 176, 313),  # swapon, swapoff, reboot, *_module
            *(246, 320, 321, 298, 323),  # kexec_*, bpf, perf_event_open, userfaultfd
            *(248, 249, 250),  # add_key, request_key, keyctl
            *(163, 172, 173, 304),  # acct, iopl, ioperm, open_by_handle_at
        ),
    ),
    "aarch64": _Machine(
        architecture=0xC00000B7,
        clone=220,
        unshare=97,
        refused=(
            *(41, 51, 40, 39, 268),
            *(224, 225, 142, 105, 106, 273),
            *(104, 294, 280, 241, 282),
            *(217, 218, 219),
            *(89, 265),
        ),
    ),
}


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refusal(error: int) -> bytes:
    return _step(_RETURN, _REFUSE | error)


def make_filter(machine: str = "") -> bytes | None:
    """The filter as a classic BPF program; None for a machine whose numbers we do not know."""
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    steps = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_EQUAL, known.architecture, if_true=1),
        _refusal(errno.ENOSYS),  # 32-bit programs: their numbers mean other calls
        _step(_LOAD, _NUMBER_AT),
        _step(_AT_LEAST, _X32_CALLS, if_false=1),
        _refusal(errno.ENOSYS),
        # Its flags are behind a pointer, where no filter can look; the C library then uses clone.
        _step(_EQUAL, _CLONE3, if_false=1),
        _refusal(errno.ENOSYS),
        _step(_EQUAL, known.clone, if_true=1),
        _step(_EQUAL, known.unshare, if_false=4),
        _step(_LOAD, _FIRST_ARGUMENT_AT),
        _step(_ANY_BIT, _NEW_NAMESPACES, if_false=1),
        _refusal(errno.EPERM),
        _step(_RETURN, _ALLOW),
    ]
    for number in (*known.refused, *_REFUSED_EVERYWHERE):
        steps += [_step(_EQUAL, number, if_false=1), _refusal(errno.EPERM)]
    return b"".join((*steps, _step(_RETURN, _ALLOW)))
