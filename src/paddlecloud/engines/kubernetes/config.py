"""Settings of the engine for Kubernetes: one frozen value, made by whoever starts the engine.

Nothing here reads files or the environment; `KubernetesConfig` is only what was decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecloud.forms.trainingjob import DEFAULT_IMAGE

DEFAULT_PREFIX = "paddlecloud-"
DEFAULT_GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class KubernetesConfig:
    """Which cluster, and how jobs are written for it."""

    state_dir: Path
    """Where the journal and the logs are kept. On a local file system."""

    cluster: str = "kubernetes"
    """The `<datacenter>` of `/pfs/<datacenter>/home/<user>`."""

    kubeconfig: Path | None = None
    """How to reach the API server; None (default): as the pod this runs in."""

    context: str = ""
    """A context of the kubeconfig; empty (default): its current one."""

    image: str = DEFAULT_IMAGE
    """The image of jobs that name no runtime."""

    images: Mapping[str, str] | None = None
    """Runtime name → image. A runtime that is not in it is taken for an image itself."""

    pfs_volume: Mapping[str, Any] | None = None
    """The volume that holds `home/<user>` and `public`, as a pod names it without its `name`, e.g.
    `{"nfs": {"server": "files", "path": "/pfs"}}`. None (default): jobs see no files."""

    namespace_prefix: str = DEFAULT_PREFIX
    """An account's namespace is this and its name."""

    gpu_resource: str = DEFAULT_GPU
    """What a card is called in this cluster."""

    pod_security: str = "baseline"
    """The Pod Security level of accounts' namespaces. `baseline` (the default) forbids hostPath
    volumes, so a `pfs_volume` of that kind needs `privileged`."""

    kubectl_user: str = ""
    """Who an account is for kubectl, e.g. `oidc:{account}`: that user may look after the jobs of
    the account's namespace. Empty (default): nobody."""

    archive_logs: bool = True
    """Keep the logs of pods that are gone (default). Pods then have a finalizer until theirs is
    stored."""

    log_cap_bytes: int = 64 * 2**20
    """Disk one attempt's log may take (default 64 MiB); beyond it the middle is dropped."""

    log_head_bytes: int = 2**20
    """The first part of a log that is never dropped (default 1 MiB)."""

    followers: int = 32
    """Logs that may be followed live at once (default 32): each is a connection and a thread."""

    patience_s: tuple[float, float] = (3.0, 8.0)
    """How long a call waits for a silent API server (default 3 s, up to 8 s when it is slow):
    the server's threads wait with it."""
