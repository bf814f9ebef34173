"""What an empty cluster needs before the first job, as objects for kubectl.

`definitions()` are the custom resources; `everything(...)` adds a namespace, the operator, and
exactly the rights it uses: no star, no secrets, no exec. `whole_platform(...)` has the server and
the file server of `platform_manifests` too. `deploy/` holds the definitions as YAML, and a test
compares. Printed by `paddlecloud manifests`. Nothing here talks to a cluster.
"""

from __future__ import annotations

from paddlecloud.controller import platform_manifests
from paddlecloud.controller.identity import Json
from paddlecloud.controller.platform_manifests import Site
from paddlecloud.forms import trainingjob
from paddlecloud.kube import definitions as defined
from paddlecloud.kube.definitions import RESOURCE_GROUPS
from paddlecloud.kube.kinds import KINDS

NAME = "paddlecloud-operator"
PORT = 8080


def definitions() -> list[Json]:
    return defined.all_definitions()


def rules() -> list[Json]:
    """All that the operator may do."""

    def rule(group: str, resources: str, verbs: str) -> Json:
        return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}

    jobs = []
    for kind in KINDS:
        jobs += [
            rule(kind.group, kind.plural, "get list watch"),
            rule(kind.group, f"{kind.plural}/status", "get patch"),
            # blockOwnerDeletion in an owner reference asks for this.
            rule(kind.group, f"{kind.plural}/finalizers", "update"),
        ]
    return [
        *jobs,
        rule("", "pods", "get list watch create patch delete"),
        rule("", "services", "get list watch create delete"),
        rule("", "configmaps", "get list watch create update delete"),
        rule("", "events", "create"),
        # To plan: what there is, whose it is.
        rule("", "nodes namespaces", "list watch"),
        rule(trainingjob.GROUP, RESOURCE_GROUPS, "list watch"),
        rule(trainingjob.GROUP, f"{RESOURCE_GROUPS}/status", "patch"),
        rule("scheduling.volcano.sh", "podgroups", "get list watch create update delete"),
    ]


def lease_rules() -> list[Json]:
    """In the operator's own namespace only."""
    return [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get", "create", "update"],
        }
    ]


def everything(namespace: str, image: str) -> list[Json]:
    """Definitions, rights and the operator itself, in the order they must be applied."""
    return whole_platform(Site(namespace, image), with_server=False)


def whole_platform(
    site: Site, *, with_operator: bool = True, with_server: bool = True
) -> list[Json]:
    """Definitions, a namespace and what runs in it, in the order they must be applied."""
    return [
        *definitions(),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.namespace}},
        *(_operator(site.namespace, site.image) if with_operator else ()),
        *(platform_manifests.objects(site) if with_server else ()),
    ]


def _operator(namespace: str, image: str) -> list[Json]:
    """Its rights, and the operator itself."""
    here = {"name": NAME, "namespace": namespace}
    account = {"kind": "ServiceAccount", **here}
    rbac = "rbac.authorization.k8s.io"

    def bound(kind: str, metadata: Json, role: str) -> Json:
        return {
            "apiVersion": f"{rbac}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": kind, "name": role},
            "subjects": [account],
        }

    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": NAME},
            "rules": rules(),
        },
        bound("ClusterRole", {"name": NAME}, NAME),
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": here,
            "rules": lease_rules(),
        },
        bound("Role", here, NAME),
        _deployment(namespace, image),
    ]


def _deployment(namespace: str, image: str) -> Json:
    labels = {"app": NAME}
    probe = {"port": PORT, "scheme": "HTTP"}
    container = {
        "name": "operator",
        "image": image,
        "command": ["paddlecloud", "controller", "--metrics-port", str(PORT)],
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}},
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # Key material from a kubeconfig passes through here; in a pod nothing does.
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": NAME,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }


def as_yaml(objects: list[Json]) -> str:
    import yaml

    class Plain(yaml.SafeDumper):
        """Without anchors, which kubectl reads but people do not."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    return "---\n".join(
        yaml.dump(one, Dumper=Plain, sort_keys=False, width=100, allow_unicode=True)
        for one in objects
    )
