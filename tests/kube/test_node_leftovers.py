"""A real node that ends leaves the machine as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import possible
from tests.kube.running import ROOT, until
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube", "node")]


@pytest.fixture
def realnode(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "cluster"))
    import realnode

    yield realnode
    for name in ("realnode", "image"):
        sys.modules.pop(name, None)


def _links() -> set[str]:
    shown = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True)
    return {line.split(": ")[1].partition("@")[0] for line in shown.stdout.splitlines()}


def _processes(word: str) -> set[str]:
    found = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            found.add(line)
    return found


def _mounts(home: Path) -> list[str]:
    """Of the node's folder, and where a node mounts; tests beside this one mount things too."""
    places = (str(home), "/run", "/var/log", "/var/lib", "/proc/sys")
    lines = Path("/proc/mounts").read_text().splitlines()
    return [line for line in lines if line.split()[1].startswith(places)]


def _cgroups(name: str) -> list[Path]:
    return [*Path("/sys/fs/cgroup").glob(name), *Path("/sys/fs/cgroup").glob(f"*/{name}")]


def _wait_in_place_of(program: Path) -> None:
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)


def test_takes_everything_with_it(realnode, tmp_path):
    """With containerd, without a control plane: what a kubelet starts is below the same roof."""
    programs, home = tmp_path / "programs", tmp_path / "node"
    programs.mkdir()
    for name in ("node", "dns", "pause"):
        _wait_in_place_of(programs / name)
    mounts = _mounts(home)
    kernel = Path("/proc/sys/kernel/panic").read_text()
    number = realnode.claim_network()
    group = realnode.cgroup_name(number)
    process = None
    try:
        realnode.write_files(home, number, programs, possible.node_files())
        realnode.make_cgroups(number)
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(realnode.command(home), stdout=log, stderr=log)
        realnode.connect(number, process.pid)
        until((home / "dns.log").exists, "the last part to start")
        assert f"pcnode{number}" in _links()
        assert any("containerd" in line for line in _processes(str(home)))
        assert _cgroups(group)
        assert _mounts(home) == mounts  # none is seen from here
        another = realnode.claim_network()
        realnode.disconnect(another)
        assert another != number
    finally:
        if process is not None:
            realnode.kill(process.pid)
            process.wait(PATIENCE_S)
        realnode.remove_cgroups(number)
        realnode.disconnect(number)
    assert _processes(str(home)) == set()
    assert f"pcnode{number}" not in _links()
    assert _cgroups(group) == []
    assert _mounts(home) == mounts
    assert Path("/proc/sys/kernel/panic").read_text() == kernel
