"""What the operator asks its cluster, and how often."""

from __future__ import annotations

from typing import Any, cast

import pytest

from paddlecloud.controller.peers import Site
from paddlecloud.controller.surroundings import FIRST_SERVICE, HOLDS_S, VOLCANO, Surroundings
from paddlecloud.kube.client import Client
from paddlecloud.kube.refusals import Refused


class Cluster:
    """Answers, or refuses with a status; knows what it was asked and what time it is."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {VOLCANO: {}, FIRST_SERVICE: {"spec": {"clusterIP": "10.0.0.1"}}} | answers
        self.asked: list[str] = []
        self.now = 0.0

    def get(self, path: str) -> dict[str, Any]:
        self.asked.append(path)
        answer = self.answers[path]
        if isinstance(answer, int):
            raise Refused(answer, "", "no")
        return cast(dict[str, Any], answer)

    def surroundings(self, site: Site | None = None) -> Surroundings:
        return Surroundings(cast(Client, self), site or Site(), lambda: self.now)


@pytest.mark.parametrize(
    ("address", "is_ipv6"), [("10.96.0.1", False), ("fd00:10:96::1", True), (None, False)]
)
def test_learns_the_family_of_addresses_once(address, is_ipv6):
    cluster = Cluster(**{FIRST_SERVICE: {"spec": {"clusterIP": address}}})
    asking = cluster.surroundings(Site(is_ipv6=not is_ipv6))
    assert asking.site().is_ipv6 == is_ipv6
    cluster.now += 10 * HOLDS_S
    asking.site()
    assert cluster.asked.count(FIRST_SERVICE) == 1


@pytest.mark.parametrize(("status", "times"), [(403, 1), (404, 1), (503, 3), (0, 3)])
def test_believes_the_guess_where_it_is_not_told(status, times):
    cluster = Cluster(**{FIRST_SERVICE: status})
    asking = cluster.surroundings(Site(is_ipv6=True))
    for _ in range(3):
        assert asking.site().is_ipv6
        cluster.now += HOLDS_S
    assert cluster.asked.count(FIRST_SERVICE) == times


def test_notices_that_volcano_comes_and_goes_and_asks_once_a_minute():
    cluster = Cluster(**{VOLCANO: 404})
    asking = cluster.surroundings()
    assert not asking.site().has_volcano
    cluster.answers[VOLCANO] = {}
    assert not asking.site().has_volcano
    cluster.now += HOLDS_S
    assert asking.site().has_volcano
    cluster.answers[VOLCANO] = 500
    cluster.now += HOLDS_S
    assert asking.site().has_volcano
    assert cluster.asked.count(VOLCANO) == 3
