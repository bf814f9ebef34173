"""The generated /etc of a sandbox: chosen files of the host's, and the account's own name.

One directory per account, copied from the host and brought up to date when the host's files
change: cheaper than a mount for each file, and nothing unforeseen can be in it.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from pathlib import Path

from paddlecloud.engines.protocols import Launch

_HOST = Path("/etc")
_FILES = (
    "debian_version gai.conf host.conf hosts ld.so.cache ld.so.conf localtime magic mime.types "
    "networks nsswitch.conf os-release protocols resolv.conf rpc services shells timezone"
).split()
_DIRS = ("alternatives", "fonts", "ld.so.conf.d", "pki/tls/certs", "ssl/certs")
_LOOK_AGAIN_S = 5.0  # a laptop that moves to another network gets another resolv.conf


class Mounts:
    """Options that mount, each after `--dir` for the directories above it: those that bubblewrap
    makes by itself are closed to all but root."""

    def __init__(self) -> None:
        self.args: list[str] = []
        self._made = {"/", "/usr", "/etc", "/dev", "/tmp", "/run", "/var", "/proc", "/sys"}

    def add(self, option: str, source: Path | str, place: str) -> None:
        for parent in reversed(Path(place).parents):
            if str(parent) not in self._made and not place.startswith(("/etc/", "/dev/")):
                self.args += ["--dir", str(parent)]
                self._made.add(str(parent))
        self.args += [option, str(source), place]


def _replace(path: Path, data: bytes) -> None:
    """Never rewritten in place: a running sandbox reads the old file."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    os.chmod(part, 0o644)
    os.rename(part, path)


class Etc:
    """Keeps the generated directories under one parent."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._dirs = tuple(name for name in _DIRS if (_HOST / name).is_dir())
        self._host: dict[str, bytes] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._looked_at_s = float("-inf")
        self._made: dict[Path, int] = {}  # directory → generation of the host's files it holds
        self._generation = 0

    def mount(self, launch: Launch, mounts: Mounts) -> None:
        uid = os.geteuid() if launch.uid is None else launch.uid
        # By the account too: without root all of them have one uid.
        account = hashlib.sha256(f"{launch.cluster}/{launch.account}".encode()).hexdigest()[:12]
        etc = self._parent / f"etc-{uid}-{account}"
        with self._lock:
            self._look_at_host()
            if self._made.get(etc) != self._generation:
                self._write(etc, uid, launch)
                self._made[etc] = self._generation
        mounts.add("--ro-bind", etc, "/etc")
        for name in self._dirs:
            mounts.add("--ro-bind", f"/etc/{name}", f"/etc/{name}")

    def read(self, name: str) -> str:
        """A file of the host's, as of the last look."""
        text = self._host.get(name, b"").decode("utf-8", "replace")
        return text if not text or text.endswith("\n") else text + "\n"

    def _look_at_host(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_at_s < _LOOK_AGAIN_S:
            return
        self._looked_at_s = now_s
        stamps = {}
        for name in _FILES:
            try:
                stat = os.stat(_HOST / name)
            except OSError:
                continue
            stamps[name] = (stat.st_mtime_ns, stat.st_size)
        if stamps != self._stamps:
            self._host = {name: (_HOST / name).read_bytes() for name in stamps}
            self._stamps = stamps
            self._generation += 1

    def _write(self, etc: Path, uid: int, launch: Launch) -> None:
        for name in self._dirs:
            (etc / name).mkdir(parents=True, exist_ok=True)
        etc.mkdir(parents=True, exist_ok=True)
        home = f"/pfs/{launch.cluster}/home/{launch.account}"
        for name, data in {
            "hosts": b"",
            **self._host,
            **_people(uid, launch.account, home),
        }.items():
            _replace(etc / name, data)
        for name in set(_FILES) - set(self._host) - {"hosts"}:
            (etc / name).unlink(missing_ok=True)


def _people(uid: int, account: str, home: str) -> dict[str, bytes]:
    """passwd and group with nobody in them but root, nobody and the account."""
    login = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in account)
    passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    group = "root:x:0:\nnogroup:x:65534:\n"
    if uid != 0:
        login = login[:32] or "user"
        passwd = f"{login}:x:{uid}:{uid}:{login}:{home}:/bin/sh\n" + passwd
        group = f"{login}:x:{uid}:\n" + group
    return {"passwd": passwd.encode(), "group": group.encode()}
