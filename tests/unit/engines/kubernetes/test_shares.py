"""Whose share a job uses, and what is odd about a group or a namespace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.engines.kubernetes.shares import (
    MAX_REPLICAS,
    Shares,
    own_group,
    read_group,
    read_namespace,
)
from paddlecloud.kube.words import ACCOUNT_ANNOTATION, ACCOUNT_ID_ANNOTATION, QUOTA_ANNOTATION
from paddlecloud.scheduling.snapshot import Group, Quota


def group(name: str = "nlp", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"namespaces": ["team"], **spec}}


def namespace(name: str = "team", **notes: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": notes}}


def shares(*groups: dict[str, Any]) -> Shares:
    seen = [read_group(body) for body in groups]
    return Shares({one.group.name: one for one in seen}, {})


def test_reads_a_group():
    body = group(guarantee={"cpu": "2", "gpu": 4}, limit={"memory": "1Gi", "replicas": 9}, weight=3)
    seen = read_group(body)
    assert seen.group == Group(
        "nlp", Quota(2000, None, 4, None), Quota(None, 2**30, None, 9), weight=3
    )
    assert (seen.namespaces, seen.odd) == ({"team"}, ())


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"guarantee": {"cpu": "many"}}, "spec.guarantee.cpu: is not a quantity"),
        ({"limit": {"replicas": "-1"}}, f"from 0 to {MAX_REPLICAS}"),
        ({"limit": {"disk": 1}}, "spec.limit.disk: is none of cpu, memory, gpu, replicas"),
        ({"limit": [1]}, "spec.limit: must be an object"),
        (
            {"guarantee": {"gpu": 2}, "limit": {"gpu": 1}},
            "spec.guarantee.gpu: is more than spec.limit.gpu",
        ),
        ({"weight": 0}, "spec.weight: must be"),
        ({"namespaces": []}, "spec.namespaces: is empty"),
    ],
)
def test_says_what_is_odd(spec, told):
    assert told in "; ".join(map(str, read_group(group(**spec)).odd))


def test_reads_a_namespace():
    seen = read_namespace(
        namespace(
            **{
                ACCOUNT_ANNOTATION: "ann@x",
                ACCOUNT_ID_ANNOTATION: "7",
                QUOTA_ANNOTATION: '{"cpu": "8", "replicas": 3}',
            }
        )
    )
    assert (seen.account_id, seen.account) == (7, "ann@x")
    assert seen.quota == Quota(8000, None, None, 3)


def test_numbers_namespaces_without_an_account():
    one, other = read_namespace(namespace("a")), read_namespace(namespace("b"))
    assert one == read_namespace(namespace("a"))
    assert one.account_id != other.account_id
    assert min(one.account_id, other.account_id) > 10**18  # no account of the platform


@pytest.mark.parametrize("text", ["8 cpu", '{"cpu": "x"}', "[1]"])
def test_says_that_a_quota_cannot_be_read(text):
    seen = read_namespace(namespace(**{QUOTA_ANNOTATION: text}))
    assert seen.quota == Quota()
    assert QUOTA_ANNOTATION in str(seen.odd[0])


@pytest.mark.parametrize(
    ("where", "asked", "found", "odd"),
    [
        ("team", "nlp", "nlp", ""),
        ("team", "", "nlp", ""),  # listed in one: that one
        ("other", "", own_group("other"), ""),
        ("other", "nlp", own_group("other"), "nlp does not list this namespace"),
        ("team", "none", own_group("team"), "none does not exist"),
    ],
)
def test_finds_the_group_of_a_job(where, asked, found, odd):
    name, told = shares(group()).group_of(where, asked)
    assert name == found
    assert told.startswith(odd)


def test_does_not_choose_among_several():
    assert shares(group(), group("cv")).group_of("team", "") == (own_group("team"), "")


def test_keeps_a_namespace_apart_from_a_group_of_its_name():
    """Else the namespace would have the guarantee without being listed."""
    planned = shares(group("other", guarantee={"gpu": 4})).planned_groups(["other"])
    assert planned[own_group("other")] == Group(own_group("other"))


@given(
    st.dictionaries(
        st.sampled_from(["guarantee", "limit", "weight", "namespaces"]),
        st.none() | st.integers() | st.text(max_size=4) | st.dictionaries(st.text(), st.text()),
    )
)
def test_never_breaks_on_an_odd_group(spec):
    assert read_group({"metadata": {"name": "g"}, "spec": spec}).group.weight >= 1
