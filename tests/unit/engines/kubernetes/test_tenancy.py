"""What an account has on a cluster: the bodies, and when which of them are sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.core.errors import Conflict, Unavailable
from paddlecloud.engines.kubernetes import tenant_bodies as bodies
from paddlecloud.engines.kubernetes.tenancy import BELIEVED_FOR_S, Tenancy, Terms, namespace_of
from paddlecloud.engines.kubernetes.tenant_bodies import Tenant
from paddlecloud.kube.refusals import Refused
from paddlecloud.scheduling.snapshot import Quota

QUOTA = Quota(cpu_milli=4500, memory_bytes=8 << 30, gpu=2, replicas=10)


class Server:
    """An API server that keeps what is applied to it."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.writes: list[str] = []

    def get(self, path: str) -> dict[str, Any]:
        if path not in self.kept:
            raise Refused(404, "NotFound", "no")
        return self.kept[path]

    def call(self, method: str, path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        assert (method, more["query"]["force"]) == ("PATCH", "true")
        self.writes.append(path)
        self.kept[path] = body
        return body

    def delete(self, path: str) -> None:
        self.writes.append(f"DELETE {path}")
        self.get(path)
        del self.kept[path]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tenancy(server: Server, clock: Clock) -> Tenancy:
    return Tenancy(server, Terms(), clock)  # type: ignore[arg-type]


ALICE = "/api/v1/namespaces/paddlecloud-alice"


def test_different_accounts_have_different_namespaces() -> None:
    names = ["alice", "a.b@c", "a_b@c", "a-b-c", "Alice", "x" * 150, "x" * 149, "a--b"]
    made = {namespace_of(name) for name in names}
    assert len(made) == len(names)
    assert all(len(one) <= 63 and one.startswith("paddlecloud-") for one in made)
    assert namespace_of("alice") == "paddlecloud-alice"


def test_a_namespace_says_whose_it_is_and_what_pods_may() -> None:
    body = bodies.namespace(Tenant(7, "alice", QUOTA), Terms(), [])
    notes = body["metadata"]["annotations"]
    assert (notes["paddlepaddle.org/account"], notes["paddlepaddle.org/account-id"]) == (
        "alice",
        "7",
    )
    assert json.loads(notes["paddlepaddle.org/quota"]) == {
        "cpu": "4500m",
        "memory": "8Gi",
        "gpu": "2",
        "replicas": "10",
    }
    assert body["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"


def test_without_limits_nothing_but_ports_is_limited() -> None:
    quota, *_ = bodies.inside(Tenant(7, "alice"), Terms())
    assert quota["spec"]["hard"] == {"services.nodeports": "0", "services.loadbalancers": "0"}
    body = bodies.namespace(Tenant(7, "alice"), Terms(), [])
    assert "paddlepaddle.org/quota" not in body["metadata"]["annotations"]


def test_hard_limits_are_those_of_the_account() -> None:
    quota, *_ = bodies.inside(Tenant(7, "alice", QUOTA), Terms(gpu_resource="amd.com/gpu"))
    assert (
        quota["spec"]["hard"].items()
        >= {
            "requests.cpu": "4500m",
            "requests.memory": "8Gi",
            "requests.amd.com/gpu": "2",
            "pods": "10",
        }.items()
    )


def test_an_owner_gets_kubectl_only_where_that_is_wanted() -> None:
    kinds = {body["kind"] for body in bodies.inside(Tenant(7, "alice"), Terms())}
    assert kinds == {"ResourceQuota", "LimitRange", "ServiceAccount"}
    *_, binding = bodies.inside(Tenant(7, "alice"), Terms(kubectl_user="oidc:{account}"))
    assert binding["subjects"][0]["name"] == "oidc:alice"
    assert binding["roleRef"]["name"] == "paddlecloud-user"


def test_the_password_is_not_in_what_prints_a_tenant() -> None:
    assert "s3cret" not in repr(Tenant(7, "alice", registries={"hub": "s3cret"}))


def test_makes_everything_once_and_then_believes_it(
    tenancy: Tenancy, server: Server, clock: Clock
) -> None:
    assert tenancy.ensure(7, "alice") == "paddlecloud-alice"
    first = list(server.writes)
    assert first[0] == ALICE
    assert len(first) == 4
    tenancy.ensure(7, "alice")
    assert server.writes == first
    clock.now = BELIEVED_FOR_S + 1
    tenancy.ensure(7, "alice")
    assert server.writes == first * 2
    tenancy.forget(7)
    tenancy.ensure(7, "alice")
    assert server.writes == first * 3


def test_sends_changed_limits_to_those_who_have_a_namespace(
    tenancy: Tenancy, server: Server
) -> None:
    tenancy.ensure(7, "alice")
    tenancy.set_quotas({7: QUOTA, 8: QUOTA})
    server.writes.clear()
    tenancy.refresh()
    assert "paddlepaddle.org/quota" in server.kept[ALICE]["metadata"]["annotations"]
    assert all("paddlecloud-alice" in path for path in server.writes)


def test_keeps_exactly_the_pull_secrets_of_the_account(tenancy: Tenancy, server: Server) -> None:
    def there() -> list[str]:
        return sorted(path.rsplit("/", 1)[1] for path in server.kept if "/secrets/" in path)

    tenancy.set_registries(7, "alice", {})
    assert server.writes == []  # nothing to keep, so no namespace
    tenancy.set_registries(7, "alice", {"a": "{}", "b": "{}"})
    assert there() == ["pcloud-registry-a", "pcloud-registry-b"]
    tenancy.set_registries(7, "alice", {"b": '{"new": 1}'})
    assert there() == ["pcloud-registry-b"]
    notes = server.kept[ALICE]["metadata"]["annotations"]
    assert notes["paddlepaddle.org/registries"] == '["b"]'


def test_a_start_that_knows_no_registries_leaves_them_and_a_later_list_removes_them(
    server: Server, clock: Clock
) -> None:
    Tenancy(server, Terms(), clock).set_registries(7, "alice", {"a": "{}"})  # type: ignore[arg-type]
    again = Tenancy(server, Terms(), clock)  # type: ignore[arg-type]
    again.ensure(7, "alice")
    assert f"{ALICE}/secrets/pcloud-registry-a" in server.kept
    third = Tenancy(server, Terms(), clock)  # type: ignore[arg-type]
    third.set_registries(7, "alice", {})
    assert f"{ALICE}/secrets/pcloud-registry-a" not in server.kept


@pytest.mark.parametrize("owner", ["bob", None])
def test_never_takes_over_what_is_not_the_accounts(
    tenancy: Tenancy, server: Server, owner: str | None
) -> None:
    notes = {"paddlepaddle.org/account": owner} if owner else {}
    server.kept[ALICE] = {"metadata": {"name": "paddlecloud-alice", "annotations": notes}}
    with pytest.raises(Conflict, match="paddlecloud-alice"):
        tenancy.ensure(7, "alice")
    assert server.writes == []


def test_waits_for_a_namespace_that_is_being_deleted(tenancy: Tenancy, server: Server) -> None:
    tenancy.ensure(7, "alice")
    server.kept[ALICE]["metadata"]["deletionTimestamp"] = "2026-11-16T18:00:00Z"
    tenancy.forget(7)
    with pytest.raises(Unavailable, match="being deleted"):
        tenancy.ensure(7, "alice")


def test_what_failed_half_way_is_sent_again(tenancy: Tenancy, server: Server) -> None:
    whole = server.call

    def failing(method: str, path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
        if "limitranges" in path:
            raise Refused(503, "ServiceUnavailable", "not now")
        return whole(method, path, body, **more)

    server.call = failing  # type: ignore[method-assign]
    with pytest.raises(Refused):
        tenancy.ensure(7, "alice")
    server.call = whole  # type: ignore[method-assign]
    tenancy.ensure(7, "alice")
    assert f"{ALICE}/serviceaccounts/paddlecloud-job" in server.kept
