"""Accounts' namespaces on a real API server: made, kept right, and holding what they promise."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.core.errors import Conflict
from paddlecloud.engines.kubernetes.tenancy import Tenancy, Terms, namespace_of
from paddlecloud.scheduling.snapshot import Quota
from tests.kube.running import Cluster, until

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]

_numbers = itertools.count(1)
HOSTILE: dict[str, dict[str, Any]] = {
    "hostNetwork": {"hostNetwork": True},
    "hostPath": {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]},
    "hostPID": {"hostPID": True},
    "capabilities": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}},
    "hostPort": {"ports": [{"containerPort": 1, "hostPort": 1}]},
}


def _pod(name: str, **more: Any) -> str:
    container: dict[str, Any] = {"name": "c", "image": "x"}
    for key in ("securityContext", "ports", "resources"):
        if key in more:
            container[key] = more.pop(key)
    spec = {"containers": [container], **more}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    return json.dumps(body)


@pytest.fixture
def account(cluster: Cluster) -> Iterator[str]:
    name = f"tenant.{next(_numbers)}@example"
    yield name
    cluster.kubectl("delete", "namespace", namespace_of(name), "--wait=false", "--ignore-not-found")


def test_an_account_gets_a_namespace_that_holds_its_limits(cluster: Cluster, account: str) -> None:
    tenancy = Tenancy(cluster.client(), Terms(kubectl_user="oidc:{account}"))
    tenancy.set_quotas({1: Quota(cpu_milli=2000, memory_bytes=4 << 30, gpu=1, replicas=2)})
    tenancy.set_registries(1, account, {"hub": '{"auths":{}}'})
    home = tenancy.ensure(1, account)

    def kubectl(*words: str, **more: Any) -> str:
        return cluster.kubectl("-n", home, *words, **more)

    # Level triggered: what somebody takes away or changes comes back.
    kubectl("delete", "limitrange/paddlecloud", "secret/pcloud-registry-hub")
    kubectl("patch", "resourcequota/paddlecloud", "-p", '{"spec":{"hard":{"pods":"99"}}}')
    kubectl(
        "label", "namespace", home, "pod-security.kubernetes.io/enforce=privileged", "--overwrite"
    )
    kubectl("annotate", "namespace", home, "somebody.else/note=stays")
    tenancy.forget(1)
    tenancy.ensure(1, account)
    hard = json.loads(kubectl("get", "resourcequota/paddlecloud", "-o", "json"))["spec"]["hard"]
    assert hard == {
        "pods": "2",
        "requests.cpu": "2",
        "requests.memory": "4Gi",
        "requests.nvidia.com/gpu": "1",
        "services.nodeports": "0",
        "services.loadbalancers": "0",
    }
    secret = json.loads(kubectl("get", "secret/pcloud-registry-hub", "-o", "json"))
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    found = json.loads(kubectl("get", "namespace", home, "-o", "json"))["metadata"]
    assert found["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    assert found["annotations"]["somebody.else/note"] == "stays"
    assert found["annotations"]["paddlepaddle.org/account"] == account

    # And it holds. The quota is counted by a controller, which has to have seen it first.
    until(
        lambda: (
            json.loads(kubectl("get", "resourcequota/paddlecloud", "-o", "json"))
            .get("status", {})
            .get("used")
        ),
        "the quota is counted",
    )
    for what, spec in HOSTILE.items():
        refused = kubectl("create", "-f", "-", text=_pod("hostile", **spec), ok=False)
        assert "violates PodSecurity" in refused, what
    kubectl("create", "-f", "-", text=_pod("one"))  # asks for nothing: defaults are counted
    big = _pod("two", resources={"requests": {"cpu": "3"}})
    assert "exceeded quota" in kubectl("create", "-f", "-", text=big, ok=False)
    account_facts = json.loads(kubectl("get", "serviceaccount/paddlecloud-job", "-o", "json"))
    assert account_facts["automountServiceAccountToken"] is False

    # Lifted limits and removed registries go away too.
    tenancy.set_quotas({})
    tenancy.set_registries(1, account, {})
    left = json.loads(kubectl("get", "resourcequota/paddlecloud", "-o", "json"))["spec"]["hard"]
    assert left == {"services.nodeports": "0", "services.loadbalancers": "0"}
    assert "NotFound" in kubectl("get", "secret/pcloud-registry-hub", ok=False)


def test_somebody_elses_namespace_is_left_alone(cluster: Cluster, account: str) -> None:
    home = Tenancy(cluster.client(), Terms()).ensure(1, account)
    cluster.kubectl(*("annotate", "namespace", home, "paddlepaddle.org/account=bob", "--overwrite"))
    other = Tenancy(cluster.client(), Terms(pod_security="privileged"))
    with pytest.raises(Conflict, match="belongs to the account bob"):
        other.ensure(1, account)
    found = json.loads(cluster.kubectl("get", "namespace", home, "-o", "json"))["metadata"]
    assert found["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
