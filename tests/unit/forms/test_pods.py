"""`--pods`: what it means, and everything that can be wrong with it at once."""

from __future__ import annotations

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.pods import parse_pods


@pytest.mark.parametrize(
    ("text", "pods"),
    [
        ("pod=a-trainer-1,host=h1", {"a-trainer-1": "h1"}),
        ("pod=a,host=h1;pod=b,host=h2", {"a": "h1", "b": "h2"}),
        (" host = h1 , pod = a ; ; pod=b,host=h2 ;", {"a": "h1", "b": "h2"}),
        ("pod=a,host=host1.yq01.example.com:80=x", {"a": "host1.yq01.example.com:80=x"}),
    ],
)
def test_reads_host_by_pod(text: str, pods: dict[str, str]) -> None:
    faults = FaultList()
    assert parse_pods(text, faults) == pods
    assert not faults


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "names no pod"),
        (" ; ", "names no pod"),
        ("a", "must be pod=NAME,host=HOST"),
        ("pod=a", "lacks the host of a pod"),
        ("host=h", "lacks the pod of a pod"),
        ("pod=,host=", "lacks the pod and the host of a pod"),
        ("pod=a,hots=h", "did you mean host?"),
        ("pod=a,pod=b,host=h", "pod is given twice"),
        ("pod=a,host=h;pod=a,host=g", "a is named twice"),
        ("pod=a,host=h,", "must be pod=NAME"),
    ],
)
def test_says_what_is_wrong(text: str, problem: str) -> None:
    faults = FaultList()
    parse_pods(text, faults, "--pod")
    with pytest.raises(InvalidInput) as caught:
        faults.raise_if_any()
    (fault,) = caught.value.faults
    assert problem in fault.problem
    assert fault.field == "--pod"


def test_tells_all_at_once() -> None:
    faults = FaultList()
    assert parse_pods("pod=a;b;pod=c,host=h", faults) == {"c": "h"}
    assert len(faults) == 2
