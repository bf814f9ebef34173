"""What an account has on a cluster, as bodies for the API server: pure, values in, objects out.

A namespace with a Pod Security level, hard limits, defaults for containers that ask for nothing, a
service account that may do nothing, and one pull secret per registry. `tenancy` sends them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.core.names import dns_label
from paddlecloud.core.resources import format_cpu, format_memory
from paddlecloud.engines.kubernetes.config import DEFAULT_GPU, DEFAULT_PREFIX
from paddlecloud.engines.kubernetes.rendering import JOB_ACCOUNT
from paddlecloud.forms import registries
from paddlecloud.kube.words import ACCOUNT_ANNOTATION, ACCOUNT_ID_ANNOTATION, QUOTA_ANNOTATION
from paddlecloud.scheduling.snapshot import Quota

Json = dict[str, Any]

NAME = "paddlecloud"  # of the objects there is one of
USER_ROLE = "paddlecloud-user"  # what an account's owner may do with kubectl
MANAGED_LABEL = "app.kubernetes.io/managed-by"
REGISTRIES_ANNOTATION = "paddlepaddle.org/registries"  # JSON list: whose secrets are there
POD_SECURITY = "pod-security.kubernetes.io"
LEVELS = ("privileged", "baseline", "restricted")
# Of a container that asks for nothing, so that limits of the namespace can be counted.
DEFAULT_REQUEST = {"cpu": "100m", "memory": "128Mi"}
UNLIMITED = Quota()
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Terms:
    """How every account of this cluster is set up."""

    prefix: str = DEFAULT_PREFIX
    pod_security: str = "baseline"
    gpu_resource: str = DEFAULT_GPU
    kubectl_user: str = ""  # e.g. `oidc:{account}`: who that account is for kubectl; empty: nobody


@dataclass(frozen=True, slots=True)
class Tenant:
    account_id: int
    account: str
    quota: Quota = UNLIMITED
    # Name → docker config. None: not known here, so what is there stays.
    registries: Mapping[str, str] | None = field(default=None, repr=False)


def namespace_of(account: str, prefix: str = DEFAULT_PREFIX) -> str:
    """Different accounts have different namespaces, whatever their names."""
    return dns_label(prefix + account)


def namespace(tenant: Tenant, terms: Terms, registries_there: list[str]) -> Json:
    annotations = {
        ACCOUNT_ANNOTATION: tenant.account,
        ACCOUNT_ID_ANNOTATION: str(tenant.account_id),
        REGISTRIES_ANNOTATION: json.dumps(sorted(registries_there)),
    }
    if limits := _limits(tenant.quota):
        annotations[QUOTA_ANNOTATION] = json.dumps(limits)
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace_of(tenant.account, terms.prefix),
            "labels": {
                MANAGED_LABEL: NAME,
                f"{POD_SECURITY}/enforce": terms.pod_security,
                f"{POD_SECURITY}/audit": "restricted",
            },
            "annotations": annotations,
        },
    }


def inside(tenant: Tenant, terms: Terms) -> list[Json]:
    """What is in the namespace, but for secrets."""
    bodies = [
        _quota(tenant, terms),
        _defaults(),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": JOB_ACCOUNT},
            "automountServiceAccountToken": False,
        },
    ]
    if terms.kubectl_user:
        bodies.append(_user_binding(terms.kubectl_user.replace("{account}", tenant.account)))
    home = namespace_of(tenant.account, terms.prefix)
    for body in bodies:
        body["metadata"] |= {"namespace": home, "labels": {MANAGED_LABEL: NAME}}
    return bodies


def secrets(tenant: Tenant, terms: Terms) -> list[Json]:
    home = namespace_of(tenant.account, terms.prefix)
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": registries.secret_name(name),
                "namespace": home,
                "labels": {MANAGED_LABEL: NAME},
            },
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": base64.b64encode(config.encode()).decode()},
        }
        for name, config in sorted((tenant.registries or {}).items())
    ]


def _limits(quota: Quota) -> Json:
    """In quantities of Kubernetes, without what has no limit."""
    said = {
        "cpu": None if quota.cpu_milli is None else format_cpu(quota.cpu_milli),
        "memory": None if quota.memory_bytes is None else format_memory(quota.memory_bytes),
        "gpu": None if quota.gpu is None else str(quota.gpu),
        "replicas": None if quota.replicas is None else str(quota.replicas),
    }
    return {key: value for key, value in said.items() if value is not None}


def _quota(tenant: Tenant, terms: Terms) -> Json:
    """The planner keeps to these limits by itself; here they hold for whatever else is made."""
    words = {
        "cpu": "requests.cpu",
        "memory": "requests.memory",
        "gpu": f"requests.{terms.gpu_resource}",
        "replicas": "pods",
    }
    hard = {words[key]: amount for key, amount in _limits(tenant.quota).items()}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": NAME},
        # Ports of nodes and of load balancers are the cluster's.
        "spec": {"hard": {**hard, "services.nodeports": "0", "services.loadbalancers": "0"}},
    }


def _defaults() -> Json:
    """No default limits: a request above one would be refused."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": NAME},
        "spec": {"limits": [{"type": "Container", "defaultRequest": dict(DEFAULT_REQUEST)}]},
    }


def _user_binding(user: str) -> Json:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": USER_ROLE},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": USER_ROLE},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
