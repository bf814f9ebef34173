"""The flags of `up` and `serve` that say which engine runs the jobs, and how it is reached.

Flags are only another spelling of the variables in docs/guides/administration.md; the server reads
those. Nothing is checked here that the server checks.
"""

from __future__ import annotations

import os

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.forms.go_flags import Parsed

KUBERNETES = "kubernetes"
FLAGS = (
    Flag(
        ("--engine",),
        value="ENGINE",
        choices=("embedded", KUBERNETES),
        meaning="what runs jobs: this machine (embedded, the default) or a cluster (kubernetes)",
    ),
    Flag(("--cluster",), value="NAME", meaning="the datacenter in /pfs/<datacenter> (local)"),
    Flag(
        ("--kubeconfig",),
        value="FILE",
        meaning="kubernetes: how to reach the cluster (default: the one this runs in)",
    ),
    Flag(("--context",), value="NAME", meaning="kubernetes: a context of that file"),
    Flag(("--image",), value="IMAGE", meaning="kubernetes: the image of jobs that name none"),
    Flag(
        ("--pfs-volume",),
        value="JSON",
        meaning="kubernetes: the volume with the files, as a pod names it",
    ),
)
_VARIABLES = {
    "engine": "PADDLECLOUD_ENGINE",
    "cluster": "PADDLECLOUD_CLUSTER",
    "kubeconfig": "PADDLECLOUD_KUBECONFIG",
    "context": "PADDLECLOUD_KUBE_CONTEXT",
    "image": "PADDLECLOUD_KUBE_IMAGE",
    "pfs-volume": "PADDLECLOUD_KUBE_PFS_VOLUME",
}
_OF_A_CLUSTER = ("kubeconfig", "context", "image", "pfs-volume")


def given(parsed: Parsed) -> list[str]:
    """Those that were typed."""
    return [name for name in _VARIABLES if name in parsed]


def to_environment(parsed: Parsed) -> None:
    """For the server that is started next."""
    chosen = parsed.text("engine") or os.environ.get("PADDLECLOUD_ENGINE", "")
    idle = [f"--{name}" for name in _OF_A_CLUSTER if name in parsed]
    if idle and chosen != KUBERNETES:
        raise InvalidInput(
            f"{', '.join(idle)} is for a cluster",
            field=idle[0],
            hint=f"say --engine {KUBERNETES} as well",
        )
    for name in given(parsed):
        text = parsed.text(name)
        if name == "kubeconfig":  # the server may be started in another folder
            text = os.path.abspath(os.path.expanduser(text))
        os.environ[_VARIABLES[name]] = text
