"""The first process of a real node, inside its namespaces: prepares them and starts the parts.

It gets what realnode.py wrote (orders.json). It never returns while all parts run: it takes in the
processes that lost their parents, and ends, and with it everything inside, when a part ends. What
parts would write outside their own folders lands in memory that is thrown away with the namespaces;
what they would set in the kernel for the whole machine, they find set already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

WAIT_S = 60.0
# What a kubelet wants of the kernel. It believes these files, which only it sees.
KERNEL = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def private_folders(home: Path) -> None:
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    run("mount", "-t", "tmpfs", "tmpfs", "/var/log")
    # The same as before, but new names can be made in it that the machine never sees.
    lib, below = Path("/var/lib"), Path("/run/var-lib")
    below.mkdir()
    run("mount", "--rbind", str(lib), str(below))
    run("mount", "-t", "tmpfs", "tmpfs", str(lib))
    for entry in sorted(below.iterdir()):
        if entry.is_dir() and not entry.is_symlink() and entry.name not in ("kubelet", "cni"):
            (lib / entry.name).mkdir()
            run("mount", "--rbind", str(entry), str(lib / entry.name))
    (lib / "kubelet").mkdir()
    run("mount", "--bind", str(home / "kubelet"), "/var/lib/kubelet")


def private_kernel(home: Path) -> None:
    for name, value in KERNEL.items():
        told, real = home / "kernel" / name, Path("/proc/sys") / name
        if real.exists() and real.read_text().strip() != value:
            told.parent.mkdir(parents=True, exist_ok=True)
            told.write_text(value)
            run("mount", "--bind", str(told), str(real))


def network(address: str, services: str) -> None:
    """A bridge for the pods; the machine is plugged into it like a pod."""
    deadline = time.monotonic() + WAIT_S
    while not Path("/proc/sys/net/ipv4/conf/machine").exists():
        if time.monotonic() > deadline:
            raise SystemExit("nobody connected this node to the machine")
        time.sleep(0.01)
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "pods", "type", "bridge")
    run("ip", "address", "add", f"{address}/24", "dev", "pods")
    run("ip", "link", "set", "machine", "master", "pods", "up")
    run("ip", "link", "set", "pods", "up")
    # To the services, which kube-proxy redirects, and nowhere else: an image that is not here must
    # be missed at once.
    run("ip", "route", "add", services, "dev", "pods")
    run("ip", "route", "add", "unreachable", "default")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def start(home: Path, part: str, command: list[str]) -> int:
    with (home / f"{part}.log").open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/"
        )
    return process.pid


def import_images(control: list[str], images: list[str]) -> None:
    deadline = time.monotonic() + WAIT_S
    while subprocess.run([*control, "version"], capture_output=True).returncode != 0:
        if time.monotonic() > deadline:
            raise SystemExit("containerd does not answer")
        time.sleep(0.05)
    for image in images:
        run(*control, "images", "import", image)


def main() -> int:
    orders = json.loads(Path(sys.argv[1]).read_text())
    home, runtime = Path(orders["home"]), orders["runtime"]
    private_folders(home)
    private_kernel(home)
    network(orders["address"], orders["services"])
    (home / "resolv.conf").write_text("")
    libraries = sorted(Path(runtime, "usr/lib").glob("*-linux-gnu*"))
    # Nothing of whoever started it: folders it names may not be here, or not for long.
    os.environ.clear()
    os.environ.update(
        HOME="/",
        PATH=f"{runtime}/usr/sbin:{runtime}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        LD_LIBRARY_PATH=":".join(map(str, libraries)),
    )
    parts = {
        start(
            home, "containerd", ["containerd", "--config", f"{home}/containerd.toml"]
        ): "containerd"
    }
    control = ["ctr", "--address", orders["socket"], "--namespace", "k8s.io"]
    import_images(control, orders["images"])
    kubelet = [
        *(orders["node"], "kubelet", f"--config={home}/kubelet.json"),
        *(f"--kubeconfig={home}/kubelet.kubeconfig", f"--hostname-override={orders['name']}"),
        *(f"--node-ip={orders['address']}", "--root-dir=/var/lib/kubelet"),
        *("--cert-dir=/var/lib/kubelet/pki", "--node-labels=paddlepaddle.org/node=real"),
    ]
    parts[start(home, "kubelet", kubelet)] = "kubelet"
    proxy = [orders["node"], "kube-proxy", f"--config={home}/kube-proxy.json"]
    parts[start(home, "kube-proxy", proxy)] = "kube-proxy"
    names = [orders["dns"], "-conf", f"{home}/Corefile", "-quiet"]
    parts[start(home, "dns", names)] = "dns"
    while True:
        pid, status = os.wait()
        if pid in parts:
            code = os.waitstatus_to_exitcode(status)
            print(f"{parts[pid]} ended ({code}); see {home}/{parts[pid]}.log", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
