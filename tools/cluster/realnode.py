"""A real node of the test cluster: a kubelet that runs containers, shut off from this machine.

Its container runtime, its kubelet and all its pods live in namespaces of their own (network,
mounts, processes), so any number of clusters can have one, and killing one process leaves nothing
behind: no mount, bridge, rule or process. What lies outside is made here: a pair of interfaces and
one address to the machine, and a folder per cgroup hierarchy. `nodeinit.py` is the first process
inside.

    10.201.N.1   the node, and the gateway of its pods (10.201.N.10 and up)
    10.201.N.2   the machine, where the API server listens

Needs root. Standard library only; run.py calls it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from image import write_image
from processes import start_time

HERE = Path(__file__).resolve().parent
NAME = "real-0"
PROXY_USER = "system:kube-proxy"
DNS_USER = "dns"
NODE_USER = f"system:node:{NAME}"
USERS = {NODE_USER: "system:nodes", PROXY_USER: "", DNS_USER: "system:masters"}
SERVICES = "10.96.0.0/16"
DOMAIN = "cluster.local"
PAUSE = "localhost/paddlecloud/pause:1"
WAIT_S = 30.0
# Where things are for those inside. /run is their own, and a socket's path must be short.
SOCKET = "/run/containerd/containerd.sock"


# --- network -----------------------------------------------------------------------------------


def claim_network() -> int:
    """A number that no other cluster of this machine has: adding an address twice is refused."""
    if os.geteuid() != 0:
        raise SystemExit("cluster: a real node needs root")
    for number in range(256):
        if hold_address(number):
            return number
    raise SystemExit("cluster: 256 real nodes are on this machine; stop some")


def hold_address(number: int) -> bool:
    return _ip("address", "add", f"{machine_address(number)}/32", "dev", "lo")


def machine_address(number: int) -> str:
    return f"10.201.{number}.2"


def node_address(number: int) -> str:
    return f"10.201.{number}.1"


def connect(number: int, pid: int) -> None:
    """Lay a cable into the network namespace of a process that has just got its own."""
    own = Path("/proc/self/ns/net").stat().st_ino
    deadline = time.monotonic() + WAIT_S
    while Path(f"/proc/{pid}/ns/net").stat().st_ino == own:
        if time.monotonic() > deadline:
            raise SystemExit("cluster: the node got no network of its own; see node.log")
        time.sleep(0.01)
    here, there = f"pcnode{number}", ("peer", "name", "machine", "netns", str(pid))
    done = (
        _ip("link", "add", here, "type", "veth", *there)
        and _ip("link", "set", here, "up")
        and _ip(
            *("route", "replace", f"10.201.{number}.0/24"),
            *("dev", here, "src", machine_address(number)),
        )
    )
    if not done:
        raise SystemExit("cluster: this machine refuses the interfaces of a real node")


def disconnect(number: int) -> None:
    _ip("link", "delete", f"pcnode{number}")
    _ip("address", "delete", f"{machine_address(number)}/32", "dev", "lo")


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True).returncode == 0


# --- cgroups -----------------------------------------------------------------------------------


def cgroup_name(number: int) -> str:
    return f"paddlecloud-node-{number}"


def _cgroup_roots() -> tuple[list[Path], list[Path]]:
    """Every hierarchy of the first kind, and of the second: a machine may have both."""
    first, second = [], []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, point = after.split()[0], Path(before.split()[4])
        if kind == "cgroup":
            first.append(point)
        elif kind == "cgroup2":
            second.append(point)
    return first, second


def make_cgroups(number: int) -> None:
    first, second = _cgroup_roots()
    for root in first or second:
        made = root / cgroup_name(number)
        made.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (root / file).exists() and not (made / file).read_text().strip():
                (made / file).write_text((root / file).read_text())
        switch = root / "cgroup.subtree_control"
        if switch.exists():
            for controller in (root / "cgroup.controllers").read_text().split():
                with contextlib.suppress(OSError):  # on already, or not ours to switch
                    switch.write_text(f"+{controller}")


def remove_cgroups(number: int) -> None:
    deadline = time.monotonic() + WAIT_S
    for root in itertools.chain(*_cgroup_roots()):
        for folder in _deepest_first(root / cgroup_name(number)):
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError:  # the last process has ended but is still counted
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)


def _deepest_first(folder: Path) -> Iterator[Path]:
    for path, _, _ in os.walk(folder, topdown=False):
        yield Path(path)


# --- what the parts read -------------------------------------------------------------------------


def write_files(home: Path, number: int, programs: Path, files: Path) -> None:
    """Everything `nodeinit.py` needs, in `home`; kubeconfigs are run.py's to write."""
    home.mkdir(exist_ok=True)
    for folder in ("kubelet", "containerd", "cni"):
        (home / folder).mkdir(exist_ok=True)
    (home / "containerd.toml").write_text(_containerd(home, files))
    _write_json(home / "cni" / "10-pods.conflist", _pod_network(number))
    _write_json(home / "kubelet.json", _kubelet(home, number))
    _write_json(home / "kube-proxy.json", _kube_proxy(home, number))
    names = f"{DOMAIN} {{\n errors\n kubernetes {{\n  kubeconfig {home}/dns.kubeconfig\n }}\n}}\n"
    (home / "Corefile").write_text(names)
    pause = home / "pause.tar"
    if not pause.exists():
        root = home / "pause"
        root.mkdir()
        shutil.copy(programs / "pause", root / "pause")
        write_image(pause, PAUSE, root, ["/pause"])
    orders = {
        "home": str(home),
        "node": str(programs / "node"),
        "dns": str(programs / "dns"),
        "runtime": str(files / "runtime"),
        "images": [str(pause), str(files / "base.tar")],
        "socket": SOCKET,
        "name": NAME,
        "address": node_address(number),
        "services": SERVICES,
    }
    _write_json(home / "orders.json", orders)


def make_client_certificate(home: Path) -> tuple[Path, Path]:
    """What the API server shows to the kubelet, which trusts exactly this one."""
    home.mkdir(parents=True, exist_ok=True)
    key, certificate = home / "to-kubelet.key", home / "to-kubelet.crt"
    if not certificate.exists():
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"),
                *("-subj", "/O=system:masters/CN=kube-apiserver"),
                *("-addext", "extendedKeyUsage=clientAuth"),
                *("-keyout", str(key), "-out", str(certificate)),
            ],
            check=True,
            capture_output=True,
        )
    return certificate, key


def _write_json(path: Path, body: object) -> None:
    # kube-proxy ends when its file is touched.
    text = json.dumps(body, indent=1)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _containerd(home: Path, files: Path) -> str:
    kind = ["stat", "--file-system", "--format=%T", str(home)]
    found = subprocess.run(kind, capture_output=True, text=True).stdout.strip()
    layers = "native" if found == "overlayfs" else "overlayfs"  # no overlay on an overlay
    runtime = files / "runtime"
    return f"""\
version = 2
root = "{home}/containerd"
state = "/run/containerd"
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  enable_selinux = false
  disable_apparmor = true
  # Where root may not lower a score, runc would die of trying.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{layers}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        BinaryName = "{runtime}/usr/sbin/runc"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{runtime}/usr/lib/cni"
    conf_dir = "{home}/cni"
"""


def _pod_network(number: int) -> object:
    subnet = {"subnet": f"10.201.{number}.0/24", "rangeStart": f"10.201.{number}.10"}
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "hairpinMode": True,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/addresses",
            "ranges": [[{**subnet, "gateway": node_address(number)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}


def _kubelet(home: Path, number: int) -> object:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node_address(number),
        "readOnlyPort": 0,
        "healthzBindAddress": "127.0.0.1",
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup_name(number)}",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "clusterDNS": [node_address(number)],
        "clusterDomain": DOMAIN,
        "resolvConf": f"{home}/resolv.conf",
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{home}/to-kubelet.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "evictionHard": {
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "memory.available": "100Mi",
        },
        "imageGCHighThresholdPercent": 99,
        "imageGCLowThresholdPercent": 98,
        # A test waits for each of these.
        "syncFrequency": "5s",
        "nodeStatusUpdateFrequency": "5s",
        "shutdownGracePeriod": "0s",
    }


def _kube_proxy(home: Path, number: int) -> object:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"{home}/kube-proxy.kubeconfig"},
        "mode": "nftables",
        # Two pods share a bridge: answers must come back the way the question went.
        "nftables": {"masqueradeAll": True},
        "clusterCIDR": f"10.201.{number}.0/24",
        "bindAddress": "127.0.0.1",
        "hostnameOverride": NAME,
        "nodePortAddresses": [f"10.201.{number}.0/24"],
        "conntrack": {"maxPerCore": 0},
        "oomScoreAdj": 0,
    }


# --- life ----------------------------------------------------------------------------------------


def command(home: Path) -> list[str]:
    """What starts the node: the first process of new namespaces, and all others are below it."""
    return [
        *("unshare", "--net", "--mount", "--propagation", "slave", "--pid", "--fork"),
        *("--kill-child", "--mount-proc"),
        *(sys.executable, str(HERE / "nodeinit.py"), str(home / "orders.json")),
    ]


def kill(pid: int) -> None:
    """End what `command` started, with everything inside. Waits until nothing of it runs."""
    for child in _children(pid):
        os.kill(child, signal.SIGKILL)
    deadline = time.monotonic() + WAIT_S
    while Path(f"/proc/{pid}/ns").exists() and start_time(pid) is not None:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _children(pid: int) -> list[int]:
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and _stat(name)[1:2] == [str(pid)]
    ]


def _stat(name: str) -> list[str]:
    try:
        return Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
