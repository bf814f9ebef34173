"""The server and the file server in a cluster, as objects for kubectl, and the server's rights.

One pod holds both, beside the state they share; two services reach them. The server's role has what
its engine does and nothing else. RBAC cannot say "only in namespaces of accounts", so an admission
policy of the API server (no webhook: nothing of ours has to run for it) holds every write of the
server to namespaces that begin with the prefix. Secrets it may make, replace and delete there, and
read nowhere. `manifests` prints it all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.controller.identity import Json
from paddlecloud.engines.kubernetes.config import DEFAULT_PREFIX
from paddlecloud.engines.kubernetes.tenant_bodies import RBAC, USER_ROLE
from paddlecloud.forms import trainingjob
from paddlecloud.kube.definitions import RESOURCE_GROUPS
from paddlecloud.kube.kinds import KINDS

SERVER, FILES = "paddlecloud-server", "paddlecloud-files"
STATE = "/var/lib/paddlecloud"
PORT, FILES_PORT = 8000, 8800
FIRST_ACCOUNT = "admin"
_ADMISSION = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Site:
    """What differs from cluster to cluster."""

    namespace: str
    image: str  # with paddlecloud in it
    job_image: str = ""  # of jobs that name none
    pfs_volume: Mapping[str, Any] | None = None  # None: a claim, which jobs do not see
    prefix: str = DEFAULT_PREFIX


def _rule(group: str, resources: str, verbs: str, *names: str) -> Json:
    rule: Json = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return {**rule, "resourceNames": list(names)} if names else rule


def rules() -> list[Json]:
    """All that the server may do, but see `policy`."""
    return [
        *(_rule(k.group, k.plural, "get list watch create patch delete") for k in KINDS),
        _rule(trainingjob.GROUP, RESOURCE_GROUPS, "get list watch create update delete"),
        _rule("", "namespaces", "get list watch create patch"),
        _rule("", "resourcequotas limitranges serviceaccounts", "create patch"),
        _rule("", "secrets", "create patch delete"),
        _rule("", "pods", "get list watch patch"),  # patch: lets one go whose log is stored
        _rule("", "pods/log", "get"),
        _rule("", "events nodes", "list watch"),
        _rule(RBAC, "rolebindings", "create patch"),
        _rule(RBAC, "clusterroles", "bind", USER_ROLE),
    ]


def user_rules() -> list[Json]:
    """What an account's owner may do with kubectl in its namespace, where that is wanted."""
    whole = "get list watch create update patch delete"
    return [
        *(_rule(kind.group, kind.plural, whole) for kind in KINDS),
        *(_rule(kind.group, f"{kind.plural}/scale", "get update patch") for kind in KINDS),
        _rule("", "configmaps persistentvolumeclaims", whole),
        _rule("", "pods pods/log events services", "get list watch"),
        _rule("", "resourcequotas limitranges", "get list watch"),
    ]


def policy(site: Site) -> list[Json]:
    """Every write of the server is in a namespace of an account, or makes one."""
    user = f"system:serviceaccount:{site.namespace}:{SERVER}"
    place = "(request.resource.resource == 'namespaces' ? request.name : request.namespace)"

    def written(group: str, resources: str) -> Json:
        return {
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": resources.split(),
            "scope": "*",  # the default; left out, every `apply` would see a change
        }

    return [
        {
            "apiVersion": f"{_ADMISSION}/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": SERVER},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [
                        written(
                            "",
                            "namespaces secrets pods resourcequotas limitranges serviceaccounts",
                        ),
                        written(RBAC, "rolebindings"),
                        *(written(kind.group, kind.plural) for kind in KINDS),
                    ]
                },
                "matchConditions": [
                    {"name": "the-server", "expression": f"request.userInfo.username == '{user}'"}
                ],
                "validations": [
                    {
                        "expression": f"{place}.startsWith('{site.prefix}')",
                        "message": "the PaddleCloud server writes only where the namespace begins"
                        f" with {site.prefix}",
                    }
                ],
            },
        },
        {
            "apiVersion": f"{_ADMISSION}/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": SERVER},
            "spec": {"policyName": SERVER, "validationActions": ["Deny"]},
        },
    ]


def objects(site: Site) -> list[Json]:
    """In the order they must be applied; the namespace and the definitions are there already."""
    here = {"name": SERVER, "namespace": site.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        _role(SERVER, rules()),
        _role(USER_ROLE, user_rules()),
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": SERVER},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": SERVER},
            "subjects": [{"kind": "ServiceAccount", **here}],
        },
        *policy(site),
        _service(site, SERVER, "http"),
        _service(site, FILES, "files"),
        _claim(site, SERVER, "ReadWriteOnce", "10Gi"),
        *([] if site.pfs_volume else [_claim(site, FILES, "ReadWriteOnce", "100Gi")]),
        _stateful_set(site),
    ]


def _role(name: str, allowed: list[Json]) -> Json:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": allowed,
    }


def _service(site: Site, name: str, port: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": site.namespace},
        "spec": {
            "selector": {"app": SERVER},
            "ports": [{"name": "http", "port": 80, "targetPort": port}],
        },
    }


def _claim(site: Site, name: str, mode: str, size: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": site.namespace},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": size}}},
    }


def _url(site: Site, service: str) -> str:
    return f"http://{service}.{site.namespace}.svc"


def _stateful_set(site: Site) -> Json:
    labels = {"app": SERVER}
    files = site.pfs_volume or {"persistentVolumeClaim": {"claimName": FILES}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",  # never two at once: the state is one server's
        "metadata": {"name": SERVER, "namespace": site.namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "serviceName": SERVER,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": SERVER,
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [_server(site), _file_server(site)],
                    "volumes": [
                        {"name": "state", "persistentVolumeClaim": {"claimName": SERVER}},
                        {"name": "files", **files},
                        {"name": "tmp", "emptyDir": {}},
                    ],
                },
            },
        },
    }


def _container(site: Site, name: str, port: tuple[str, int], **more: Any) -> Json:
    return {
        "name": name,
        "image": site.image,
        "ports": [{"name": port[0], "containerPort": port[1]}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"memory": "2Gi"},
        },
        # Homes belong to their accounts, each with a uid: only root gives files away.
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]},
        },
        **more,
    }


def _server(site: Site) -> Json:
    env = {
        "HOME": "/tmp",
        "PADDLECLOUD_HOME": STATE,
        "PADDLECLOUD_HOST": "0.0.0.0",
        "PADDLECLOUD_PORT": str(PORT),
        "PADDLECLOUD_PUBLIC_URL": _url(site, SERVER),
        "PADDLECLOUD_ENGINE": "kubernetes",
        "PADDLECLOUD_PFS_URL": _url(site, FILES),
        "PADDLECLOUD_PFS_SECRET": "1",
    }
    optional = {
        "PADDLECLOUD_KUBE_IMAGE": site.job_image,
        "PADDLECLOUD_KUBE_PFS_VOLUME": json.dumps(site.pfs_volume) if site.pfs_volume else "",
        "PADDLECLOUD_KUBE_NAMESPACE_PREFIX": site.prefix if site.prefix != DEFAULT_PREFIX else "",
    }
    env |= {name: value for name, value in optional.items() if value}
    return _container(
        site,
        "server",
        ("http", PORT),
        command=["paddlecloud", "serve", "--account", FIRST_ACCOUNT],
        env=[{"name": name, "value": value} for name, value in env.items()],
        livenessProbe={
            "httpGet": {"path": "/healthz", "port": "http"},
            "initialDelaySeconds": 30,
            "timeoutSeconds": 5,
        },
        readinessProbe={"httpGet": {"path": "/healthz", "port": "http"}},
        volumeMounts=[
            {"name": "state", "mountPath": STATE, "subPath": "state"},
            {"name": "files", "mountPath": f"{STATE}/pfs"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    )


def _file_server(site: Site) -> Json:
    return _container(
        site,
        "pfsserver",
        ("files", FILES_PORT),
        command=[
            *("paddlecloud", "pfsserver", "--root", "/files", "--host", "0.0.0.0"),
            *("--port", str(FILES_PORT), "--server", f"http://127.0.0.1:{PORT}"),
            # Made by the server when it first starts; until then this one is started again.
            *("--relay-secret", "/secrets/pfs-relay"),
        ],
        env=[{"name": "HOME", "value": "/tmp"}],
        livenessProbe={"tcpSocket": {"port": "files"}, "initialDelaySeconds": 30},
        volumeMounts=[
            {"name": "files", "mountPath": "/files"},
            {
                "name": "state",
                "mountPath": "/secrets",
                "subPath": "state/secrets",
                "readOnly": True,
            },
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    )
