"""The programs people move files with, each as a server of its own on loopback with its client.

Every peer puts a file or folder below its server's folder and gets it back, by its ordinary
command line; `Timed` says how long that took and what CPU client and server used together.
`bench/pfs_bench.py` makes them take turns with `paddlecloud pfs cp`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from _children import cpu_s, end, free_port, wait_for_port
from _report import CannotMeasure

START_S = 10.0
CHILD_S = 20.0


@dataclass(frozen=True, slots=True)
class Timed:
    wall_s: float
    cpu_s: float


def timed(command: Sequence[str], servers: Callable[[], list[int]], env: dict[str, str]) -> Timed:
    """Run a client to its end; the CPU is its own and what its servers used meanwhile."""
    before_s, began_s = cpu_s(servers()), time.perf_counter()
    with open(os.devnull, "wb") as nowhere:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=nowhere, stderr=subprocess.PIPE, env=env
        )
        assert child.stderr is not None
        said = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - began_s
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise CannotMeasure(f"{' '.join(command)}: {said.decode(errors='replace').strip()[-300:]}")
    used_s = usage.ru_utime + usage.ru_stime + cpu_s(servers()) - before_s
    return Timed(wall_s, used_s)


def program(name: str) -> str:
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if found is None:
        raise CannotMeasure(f"{name} is not installed; `make bench` installs it when root")
    return found


class Peer:
    """A daemon in the foreground, and the two commands of its client."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / self.name
        self.files = self.folder / "files"
        self.files.mkdir(parents=True)
        self.port = free_port()
        self._daemon: subprocess.Popen[bytes] | None = None

    def daemon_command(self) -> list[str]:
        return []

    def put_command(self, source: Path, name: str) -> list[str]:
        raise NotImplementedError

    def get_command(self, name: str, target: Path) -> list[str]:
        raise NotImplementedError

    def __enter__(self) -> Peer:
        command = self.daemon_command()
        if command:
            with (self.folder / "log").open("wb") as log:
                self._daemon = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            if not wait_for_port(self.port, timeout_s=START_S):
                said = (self.folder / "log").read_text(errors="replace").strip()[-300:]
                raise CannotMeasure(f"{self.name} does not answer: {said}")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._daemon is not None:
            end(self._daemon.pid)
            self._daemon.wait()

    def _servers(self) -> list[int]:
        """One process; its children serve a client each, and count with it when they have ended."""
        if self._daemon is None:
            return []
        ends_at_s = time.monotonic() + CHILD_S
        while self._children():
            if time.monotonic() > ends_at_s:
                raise CannotMeasure(f"{self.name} goes on although its client has ended")
            time.sleep(0.005)
        return [self._daemon.pid]

    def _children(self) -> list[int]:
        assert self._daemon is not None
        children = Path(f"/proc/{self._daemon.pid}/task/{self._daemon.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def put(self, source: Path, name: str) -> Timed:
        return timed(self.put_command(source, name), self._servers, dict(os.environ))

    def get(self, name: str, target: Path) -> Timed:
        return timed(self.get_command(name, target), self._servers, dict(os.environ))


class Rsync(Peer):
    """The daemon, as fast as it goes: whole files, no ssh, no compression."""

    name = "rsync"
    flags: tuple[str, ...] = ()

    def daemon_command(self) -> list[str]:
        config = self.folder / "rsyncd.conf"
        config.write_text(
            f"use chroot = no\nuid = {pwd.getpwuid(os.getuid()).pw_name}\ngid = root\n"
            f"[files]\npath = {self.files}\nread only = no\n"
        )
        return [
            program("rsync"),
            "--daemon",
            "--no-detach",
            f"--config={config}",
            f"--port={self.port}",
            "--address=127.0.0.1",
        ]

    def _command(self, *paths: str) -> list[str]:
        return [program("rsync"), "-a", "--whole-file", *self.flags, *paths]

    def put_command(self, source: Path, name: str) -> list[str]:
        url = f"rsync://127.0.0.1:{self.port}/files/{name}"
        return self._command(f"{source}/" if source.is_dir() else str(source), url)

    def get_command(self, name: str, target: Path) -> list[str]:
        return self._command(f"rsync://127.0.0.1:{self.port}/files/{name}", str(target))


class RsyncSynced(Rsync):
    """The same, with every file on the disk before it is reported."""

    name = "rsync_fsync"
    flags = ("--fsync",)


class Scp(Peer):
    name = "scp"

    def daemon_command(self) -> list[str]:
        for key in ("host_key", "user_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key)]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        keys = self.folder / "authorized_keys"
        keys.write_text((self.folder / "user_key.pub").read_text())
        keys.chmod(0o600)
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd will not start without
        options = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": self.folder / "host_key",
            "AuthorizedKeysFile": keys,
            "PidFile": "none",
            "StrictModes": "no",
            "PermitRootLogin": "yes",
            "UsePAM": "no",
            "Subsystem": "sftp internal-sftp",
        }
        words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return [program("sshd"), "-D", "-e", "-f", "/dev/null", *words]

    def _command(self, *paths: str) -> list[str]:
        return [
            program("scp"),
            "-q",
            "-r",
            *("-P", str(self.port), "-c", "aes128-gcm@openssh.com"),
            *("-F", "/dev/null", "-i", str(self.folder / "user_key")),
            *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
            *("-o", "LogLevel=ERROR", "-o", "BatchMode=yes"),
            *paths,
        ]

    def put_command(self, source: Path, name: str) -> list[str]:
        return self._command(str(source), f"127.0.0.1:{self.files / name}")

    def get_command(self, name: str, target: Path) -> list[str]:
        return self._command(f"127.0.0.1:{self.files / name}", str(target))


class Nginx(Peer):
    """curl against nginx's dav module: single files only."""

    name = "curl_nginx"

    def daemon_command(self) -> list[str]:
        config = self.folder / "nginx.conf"
        temporary = self.folder / "temporary"
        temporary.mkdir()
        user = pwd.getpwuid(os.getuid()).pw_name
        config.write_text(
            f"user {user};\nworker_processes 2;\ndaemon off;\npid {self.folder}/pid;\n"
            "error_log stderr;\nevents {}\nhttp {\n  access_log off;\n  sendfile on;\n"
            f"  client_max_body_size 0;\n  client_body_temp_path {temporary};\n"
            f"  server {{ listen 127.0.0.1:{self.port}; root {self.files};"
            " location / { dav_methods PUT; } }\n}\n"
        )
        return [program("nginx"), "-c", str(config), "-p", str(self.folder)]

    def _servers(self) -> list[int]:
        return [] if self._daemon is None else [self._daemon.pid, *self._children()]

    def put_command(self, source: Path, name: str) -> list[str]:
        url = f"http://127.0.0.1:{self.port}/{name}"
        return [program("curl"), "-sSf", "-T", str(source), url]

    def get_command(self, name: str, target: Path) -> list[str]:
        return [program("curl"), "-sSf", "-o", str(target), f"http://127.0.0.1:{self.port}/{name}"]


class Copy(Peer):
    """`cp`: no network at all, the floor."""

    name = "cp"

    def put_command(self, source: Path, name: str) -> list[str]:
        return ["cp", "-r", str(source), str(self.files / name)]

    def get_command(self, name: str, target: Path) -> list[str]:
        return ["cp", "-r", str(self.files / name), str(target)]
