#!/usr/bin/env python3
"""Makes a container image of one layer from a folder, as an archive that containerd imports.

    image.py OUT.tar NAME:TAG FOLDER [COMMAND...]

Owners become root and times zero, so the same folder gives the same image. Standard library only;
packages.sh and realnode.py call it.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import sys
import tarfile
import tempfile
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def write_image(out: Path, name: str, folder: Path, command: list[str]) -> None:
    with tempfile.TemporaryFile(dir=out.parent) as layer, tarfile.open(out, "w") as archive:
        _write_layer(layer, folder)
        layer.seek(0)
        digest = hashlib.file_digest(layer, "sha256").hexdigest()
        config = _as_json(
            {
                "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
                "os": "linux",
                "config": {"Env": [f"PATH={PATH}"], "Cmd": command, "WorkingDir": "/"},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
                "history": [{"created": "1970-01-01T00:00:00Z"}],
            }
        )
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        layers = [f"{digest}/layer.tar"]
        manifest = _as_json([{"Config": config_name, "RepoTags": [name], "Layers": layers}])
        _add(archive, layers[0], layer, layer.seek(0, io.SEEK_END))
        _add(archive, config_name, io.BytesIO(config), len(config))
        _add(archive, "manifest.json", io.BytesIO(manifest), len(manifest))


def _write_layer(file: io.IOBase, folder: Path) -> None:
    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = 0
        return member

    with tarfile.open(fileobj=file, mode="w") as layer:
        for entry in sorted(folder.iterdir()):
            layer.add(entry, arcname=entry.name, filter=plain)


def _add(archive: tarfile.TarFile, name: str, file: io.IOBase, size: int) -> None:
    member = tarfile.TarInfo(name)
    member.size = size
    file.seek(0)
    archive.addfile(member, file)


def _as_json(value: object) -> bytes:
    return json.dumps(value).encode()


if __name__ == "__main__":
    write_image(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
