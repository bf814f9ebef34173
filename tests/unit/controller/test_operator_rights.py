"""What the operator may do in a cluster: what it uses, and nothing else."""

from __future__ import annotations

from paddlecloud.controller import manifests

RULES = [*manifests.rules(), *manifests.lease_rules()]


def test_no_right_is_a_star_and_none_is_about_secrets_or_the_inside_of_pods():
    assert "*" not in str(RULES)
    resources = {name for rule in RULES for name in rule["resources"]}
    assert "secrets" not in resources
    assert [name for name in resources if name.startswith(("pods/", "serviceaccounts"))] == []
    verbs = {verb for rule in RULES for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch", "create", "update", "patch", "delete"}


def test_the_spec_of_a_job_is_never_its_to_write():
    writes = {"create", "update", "patch", "delete"}
    for rule in RULES:
        if {"paddlejobs", "trainingjobs", "resourcegroups", "nodes"} & set(rule["resources"]):
            assert not writes & set(rule["verbs"])


def test_leases_are_its_own_only_where_it_lives():
    assert [rule["resources"] for rule in manifests.lease_rules()] == [["leases"]]
    assert all("leases" not in rule["resources"] for rule in manifests.rules())
