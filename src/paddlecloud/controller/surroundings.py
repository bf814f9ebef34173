"""What an operator finds out about its cluster by asking: whether Volcano is installed, and whether
pods have IPv6 addresses.

Both are asked now and then by whoever needs them, and what was last heard holds meanwhile. Safe to
use from several threads; asking twice at once does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from paddlecloud.controller.peers import Site
from paddlecloud.kube.client import Client, member
from paddlecloud.kube.refusals import Refused

HOLDS_S = 60.0  # Volcano may be installed at any time
VOLCANO = "/apis/scheduling.volcano.sh"
# The one service that every cluster has. Its address is of the family that pods have first.
FIRST_SERVICE = member("v1", "services", "default", "kubernetes")


class Surroundings:
    def __init__(
        self, client: Client, site: Site, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`site` is what is believed until there is an answer."""
        self._client = client
        self._clock = clock
        self._site = site
        self._asked_at = {VOLCANO: -HOLDS_S, FIRST_SERVICE: -HOLDS_S}

    def site(self) -> Site:
        if self._is_due(VOLCANO):
            self._site = replace(self._site, has_volcano=self._look_for_volcano())
        if self._is_due(FIRST_SERVICE):
            self._site = replace(self._site, is_ipv6=self._look_for_ipv6())
        return self._site

    def _is_due(self, what: str) -> bool:
        now = self._clock()
        if now - self._asked_at[what] < HOLDS_S:
            return False
        self._asked_at[what] = now
        return True

    def _look_for_volcano(self) -> bool:
        try:
            self._client.get(VOLCANO)
        except Refused as error:
            return not error.is_missing and self._site.has_volcano
        return True

    def _look_for_ipv6(self) -> bool:
        try:
            spec = self._client.get(FIRST_SERVICE).get("spec") or {}
        except Refused as error:
            if error.is_final or error.is_missing:
                self._asked_at[FIRST_SERVICE] = float("inf")  # it will not be told
            return self._site.is_ipv6
        self._asked_at[FIRST_SERVICE] = float("inf")  # it never changes
        return ":" in str(spec.get("clusterIP") or "")
