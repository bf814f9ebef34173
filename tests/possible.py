"""What a test may need that a machine may lack, and when lacking it is excusable.

conftest.py reads this table to skip tests marked `root`, `paddle` or `needs("...")`; a test that
finds out half-way calls `skip_unless_possible("...")`. There is no other way to skip: `make test`
turns every other skip into a failure, and also the skip of something `make` could have provided.

The probes ask the machine directly, never the code under test: a platform that wrongly believes
it has no cgroups must fail its tests, not skip them.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

PREFIX = "not possible here: "
_REAL_HOME = Path.home()  # read before conftest.py hides it
_REAL_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or _REAL_HOME / ".cache")


@dataclass(frozen=True)
class Need:
    """Something outside the repository: how to look for it, and whether its lack is excused."""

    is_there: Callable[[], bool]
    remedy: str
    is_lack_excused: Callable[[], bool]


def runtime_python() -> Path:
    """The interpreter of the PaddlePaddle runtime, whether it exists or not."""
    pins = (Path(__file__).parent.parent / "constraints-runtime.txt").read_text()
    version = next(
        line.partition("==")[2] for line in pins.splitlines() if line.startswith("paddlepaddle==")
    )
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    # conftest.py sets it before it hides the real HOME.
    runtimes = Path(os.environ["PADDLECLOUD_RUNTIMES"])
    return runtimes / f"paddle-{version}-{tag}" / "bin" / "python"


def _runtime_is_whole() -> bool:
    return (runtime_python().parent.parent / ".complete").exists()


@functools.cache
def cluster_programs() -> Path:
    """Where `make cluster-programs` puts Kubernetes and kwok, whether they are there or not."""
    text = (Path(__file__).parent.parent / "tools" / "cluster" / "versions.sh").read_text()
    pins = dict(line.split("=") for line in text.splitlines() if "=" in line and line[0] != "#")
    name = "kubernetes-{KUBERNETES}-kwok-{KWOK}-{RECIPE}".format(**pins)
    return _REAL_CACHE / "paddlecloud" / "kube" / name


@functools.cache
def node_files() -> Path:
    """Where `make cluster-programs` puts the parts of a real node, there or not."""
    text = (Path(__file__).parent.parent / "tools" / "cluster" / "versions.sh").read_text()
    recipe = next(
        line.partition("=")[2] for line in text.splitlines() if line.startswith("NODE_RECIPE=")
    )
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {"ID": "unknown"}
    name = f"node-{system['ID']}-{system.get('VERSION_ID', 'rolling')}-{recipe}"
    return _REAL_CACHE / "paddlecloud" / "kube" / name


@functools.cache
def _can_hold_a_node() -> bool:
    """Root with namespaces, bridges and cgroups: a container without privileges has none."""
    spaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc"]
    bridge = ["ip", "link", "add", "probe", "type", "bridge"]
    if not _is_root() or shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    is_shut_off = subprocess.run([*spaces, *bridge], capture_output=True).returncode == 0
    return is_shut_off and _can_make_a_cgroup()


def _node_is_beyond_make() -> bool:
    return shutil.which("apt-get") is None or not _can_hold_a_node()


@functools.cache
def old_python() -> str | None:
    """A Python 3.6 interpreter that answers: by name, or where pyenv keeps its own."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or _REAL_HOME / ".pyenv")
    is_open = os.access(pyenv, os.R_OK | os.X_OK)
    kept = sorted(pyenv.glob("versions/3.6.*/bin/python")) if is_open else []
    for candidate in [shutil.which("python3.6"), *map(str, kept)]:
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    return None


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _bubblewrap_works() -> bool:
    if shutil.which("bwrap") is None:
        return False
    probe = ["bwrap", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    return subprocess.run(probe, capture_output=True).returncode == 0


def _bubblewrap_is_beyond_make() -> bool:
    # `make system` installs it when it can; an installed one may still be refused by the kernel.
    can_install = _is_root() and shutil.which("apt-get") is not None
    return shutil.which("bwrap") is not None or not can_install


@functools.cache
def postgres_programs() -> dict[str, str]:
    """Where initdb, pg_ctl and postgres are; empty unless all are of one installation.

    Debian keeps them beside the path, in a folder per version.
    """
    wanted = ("initdb", "pg_ctl", "postgres")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in [*map(str, folders), os.environ.get("PATH", ""), "/usr/local/bin"]:
        found = {name: shutil.which(name, path=folder) for name in wanted}
        whole = {name: path for name, path in found.items() if path}
        if len(whole) == len(wanted):
            return whole
    return {}


def _postgres_is_there() -> bool:
    return bool(postgres_programs()) and importlib.util.find_spec("psycopg") is not None


def _postgres_is_beyond_make() -> bool:
    # The driver comes with `make venv`; the programs with `make test`, for root with apt.
    has_driver = importlib.util.find_spec("psycopg") is not None
    return has_driver and not (_is_root() and shutil.which("apt-get") is not None)


def _can_make_a_cgroup() -> bool:
    root = Path("/sys/fs/cgroup")
    for parent in (root, root / "memory"):
        if not (parent / "cgroup.procs").exists():
            continue
        try:
            os.rmdir(tempfile.mkdtemp(prefix="paddlecloud-probe-", dir=parent))
        except OSError:
            continue
        return True
    return False


def _can_mount_an_image() -> bool:
    if not _is_root() or any(shutil.which(name) is None for name in ("mkfs.ext4", "mount")):
        return False
    with tempfile.TemporaryDirectory(prefix="paddlecloud-probe-") as folder:
        image, point = Path(folder, "image"), Path(folder, "point")
        point.mkdir()
        with image.open("wb") as file:
            file.truncate(2 << 20)
        steps = (["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(point)])
        if any(subprocess.run(step, capture_output=True).returncode for step in steps):
            return False
        return subprocess.run(["umount", str(point)], capture_output=True).returncode == 0


def _has_landlock_scopes() -> bool:
    """Whether a process may be kept from abstract sockets: Landlock ABI 6, Linux 6.12."""
    import ctypes

    create_ruleset, ask_version = 444, 1
    return int(ctypes.CDLL(None).syscall(create_ruleset, None, 0, ask_version)) >= 6


def _always() -> bool:
    return True


def _never() -> bool:
    return False


NEEDS = {
    "linux": Need(lambda: sys.platform == "linux", "run the tests on Linux", _always),
    "root": Need(_is_root, "run the tests as root", _always),
    "bubblewrap": Need(_bubblewrap_works, "make system", _bubblewrap_is_beyond_make),
    "paddle": Need(_runtime_is_whole, "make runtime", _never),
    "kube": Need(
        lambda: (cluster_programs() / ".complete").exists(), "make cluster-programs", _never
    ),
    "node": Need(
        lambda: _can_hold_a_node() and (node_files() / ".complete").exists(),
        "make cluster-programs, as root",
        _node_is_beyond_make,
    ),
    "cgroup": Need(_can_make_a_cgroup, "run where cgroups may be made", _always),
    "postgres": Need(_postgres_is_there, "make test installs it", _postgres_is_beyond_make),
    "python3.6": Need(lambda: old_python() is not None, "install Python 3.6", _always),
    "shared-memory": Need(
        lambda: os.access("/dev/shm", os.W_OK), "mount a tmpfs at /dev/shm", _always
    ),
    "landlock-scopes": Need(_has_landlock_scopes, "Linux 6.12 with Landlock", _always),
    "loop-mount": Need(_can_mount_an_image, "run as root where images can be mounted", _always),
    "no-job": Need(
        lambda: not Path("/trainer_id").exists(), "run the tests outside a job", _always
    ),
    "gpu": Need(lambda: Path("/dev/nvidia0").exists(), "a machine with a GPU", _always),
}


@functools.cache
def is_there(name: str) -> bool:
    """Whether the machine has it. Probed once per run."""
    return NEEDS[name].is_there()


def lack(name: str) -> str | None:
    """The reason to skip for want of `name`, or None when it is there."""
    return None if is_there(name) else f"{PREFIX}{name} ({NEEDS[name].remedy})"


def skip_unless_possible(*names: str) -> None:
    """Skip the running test unless the machine has everything named. See NEEDS for the names."""
    for name in names:
        reason = lack(name)
        if reason is not None:
            pytest.skip(reason)


def is_excused(reason: str) -> bool:
    """Whether a skip for this reason may stand in a strict run: a known need, truly lacking."""
    if not reason.startswith(PREFIX):
        return False
    name = reason.removeprefix(PREFIX).split(" ", 1)[0]
    return name in NEEDS and not is_there(name) and NEEDS[name].is_lack_excused()
