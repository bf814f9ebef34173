"""Releases of this program for tests: wheels of the source with another version, and an index."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import paddlecloud
from tests.patience import PATIENCE_S

SOURCE = Path(paddlecloud.__file__).parent
CURRENT = paddlecloud.__version__


def make_wheel(
    folder: Path,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    python: str = ">=3.11",
    replace: dict[str, str] | None = None,
    spoil: bool = False,
) -> Path:
    """The source as a wheel that says it is `version`; `replace` gives files another text."""
    files: dict[str, bytes] = {}
    for path in sorted(SOURCE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[f"paddlecloud/{path.relative_to(SOURCE).as_posix()}"] = path.read_bytes()
    start = files["paddlecloud/__init__.py"].decode()
    files["paddlecloud/__init__.py"] = start.replace(f'"{CURRENT}"', f'"{version}"').encode()
    files |= {name: text.encode() for name, text in (replace or {}).items()}
    info = f"paddlecloud-{version}.dist-info"
    head = ["Metadata-Version: 2.1", "Name: paddlecloud", f"Version: {version}"]
    head += [f"Requires-Python: {python}", *(f"Requires-Dist: {each}" for each in requires)]
    files[f"{info}/METADATA"] = ("\n".join(head) + "\n").encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    if spoil:
        files["paddlecloud/__init__.py"] += b"# changed on the way\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"paddlecloud-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def sha256_of(wheel: Path) -> str:
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def with_sum(wheel: Path) -> Path:
    wheel.with_name(f"{wheel.name}.sha256").write_text(f"{sha256_of(wheel)}  {wheel.name}\n")
    return wheel


class Installation:
    """This program installed from a wheel into an environment of its own."""

    def __init__(self, home: Path, wheel: Path) -> None:
        self.home = home
        self.prefix = home / "env"
        venv.EnvBuilder(symlinks=True, with_pip=False).create(self.prefix)
        self.python = self.prefix / "bin" / "python"
        base = {"base": str(self.prefix), "platbase": str(self.prefix)}
        self.site = Path(sysconfig.get_path("purelib", vars=base))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site)
        # What it needs besides itself, as pip would have installed it.
        (self.site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.launcher = self.prefix / "bin" / "paddlecloud"
        text = f"#!{self.python}\nimport sys\nfrom paddlecloud.cli.main import main\n"
        for name in ("paddlecloud", "paddlectl"):
            (self.prefix / "bin" / name).write_text(f"{text}sys.exit(main())\n")
            (self.prefix / "bin" / name).chmod(0o755)

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PADDLE", "PYTHON"))}
        clean |= {"HOME": str(self.home), **env}
        return subprocess.run(
            [str(self.launcher), *words],
            env=clean,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    @property
    def version(self) -> str:
        return self.run("version").stdout.strip().removeprefix("paddlecloud ")

    def content(self) -> dict[str, bytes]:
        """Every file of the first environment but what Python compiles."""
        return {
            str(path.relative_to(self.prefix)): path.read_bytes()
            for path in self.prefix.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.parent.name != "bin"
        }

    def remove(self) -> None:
        shutil.rmtree(self.home)


@contextmanager
def index_of(*wheels: Path, folder: Path, hashes: bool = True) -> Iterator[str]:
    """A simple index on this machine; its address."""
    page = folder / "simple" / "paddlecloud"
    page.mkdir(parents=True)
    links = []
    for wheel in wheels:
        shutil.copy(wheel, folder / wheel.name)
        fragment = f"#sha256={sha256_of(wheel)}" if hashes else ""
        links.append(f'<a href="../../{wheel.name}{fragment}">{wheel.name}</a>')
    (page / "index.html").write_text(f"<html><body>{'<br/>'.join(links)}</body></html>")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            """Nothing: it would be taken for the program's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    thread.join()
    server.server_close()


PYTHON = ".".join(map(str, sys.version_info[:3]))
