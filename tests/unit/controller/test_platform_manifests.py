"""The server and the file server as objects: their rights, and that the parts fit together."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.controller import manifests, platform_manifests
from paddlecloud.controller.platform_manifests import Site

NFS = {"nfs": {"server": "files", "path": "/pfs"}}
SITE = Site("cloud", "you/paddlecloud:1", "you/paddle:2", NFS)


def _one(kind: str, site: Site = SITE, name: str = "") -> dict[str, Any]:
    found = [
        one
        for one in platform_manifests.objects(site)
        if one["kind"] == kind and name in ("", one["metadata"]["name"])
    ]
    assert found, kind
    return found[0]


def _containers(site: Site = SITE) -> dict[str, dict[str, Any]]:
    pod = _one("StatefulSet", site)["spec"]["template"]["spec"]
    return {container["name"]: container for container in pod["containers"]}


@pytest.mark.parametrize("rules", [platform_manifests.rules(), platform_manifests.user_rules()])
def test_no_right_is_a_star_and_none_reads_secrets_or_runs_in_pods(rules: list[Any]) -> None:
    assert "*" not in str(rules)
    for rule in rules:
        if "secrets" in rule["resources"]:
            assert set(rule["verbs"]) == {"create", "patch", "delete"}
        assert not {"pods/exec", "pods/attach", "pods/portforward"} & set(rule["resources"])
        assert not {"escalate", "impersonate"} & set(rule["verbs"])


def test_the_server_may_bind_nothing_but_the_role_of_owners() -> None:
    (bind,) = [rule for rule in platform_manifests.rules() if "bind" in rule["verbs"]]
    assert bind["resourceNames"] == ["paddlecloud-user"]


def test_every_namespaced_write_of_the_server_is_held_to_the_prefix() -> None:
    spec = _one("ValidatingAdmissionPolicy")["spec"]
    held = {
        (group, resource)
        for rule in spec["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    written = {
        (group, resource)
        for rule in platform_manifests.rules()
        if {"create", "patch", "update", "delete"} & set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert written - held == {("paddlepaddle.org", "resourcegroups")}  # has no namespace
    assert "system:serviceaccount:cloud:paddlecloud-server" in str(spec["matchConditions"])
    assert spec["validations"][0]["expression"].endswith(".startsWith('paddlecloud-')")


def test_services_lead_to_the_two_servers() -> None:
    ports = {
        port["name"]: port["containerPort"]
        for container in _containers().values()
        for port in container["ports"]
    }
    labels = _one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    for name, port in (("paddlecloud-server", 8000), ("paddlecloud-files", 8800)):
        service = _one("Service", name=name)["spec"]
        assert service["selector"].items() <= labels.items()
        assert ports[service["ports"][0]["targetPort"]] == port


def test_jobs_and_servers_have_the_same_files() -> None:
    env = {row["name"]: row["value"] for row in _containers()["server"]["env"]}
    assert env["PADDLECLOUD_KUBE_PFS_VOLUME"] == '{"nfs": {"server": "files", "path": "/pfs"}}'
    assert env["PADDLECLOUD_KUBE_IMAGE"] == "you/paddle:2"
    assert env["PADDLECLOUD_PFS_URL"] == "http://paddlecloud-files.cloud.svc"
    volumes = _one("StatefulSet")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "files", **NFS} in volumes
    claims = [o for o in platform_manifests.objects(SITE) if o["kind"] == "PersistentVolumeClaim"]
    assert [claim["metadata"]["name"] for claim in claims] == ["paddlecloud-server"]


def test_without_a_volume_the_files_are_in_a_claim() -> None:
    site = Site("cloud", "you/paddlecloud:1")
    names = {row["name"] for row in _containers(site)["server"]["env"]}
    assert not {name for name in names if name.startswith("PADDLECLOUD_KUBE")}
    assert _one("PersistentVolumeClaim", site, "paddlecloud-files")


def test_what_is_mounted_is_there() -> None:
    pod = _one("StatefulSet")["spec"]["template"]["spec"]
    there = {volume["name"] for volume in pod["volumes"]}
    for container in pod["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= there


@pytest.mark.parametrize("with_operator", [True, False])
@pytest.mark.parametrize("with_server", [True, False])
def test_parts_can_be_left_out(with_operator: bool, with_server: bool) -> None:
    printed = manifests.whole_platform(SITE, with_operator=with_operator, with_server=with_server)
    kinds = [one["kind"] for one in printed]
    assert "CustomResourceDefinition" in kinds
    assert ("Deployment" in kinds) == with_operator
    assert ("StatefulSet" in kinds) == with_server
    assert kinds.index("Namespace") < min(
        (kinds.index(kind) for kind in ("ServiceAccount",) if kind in kinds), default=99
    )
