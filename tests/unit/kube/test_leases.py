from __future__ import annotations

import copy
import threading
import time
from typing import Any

from paddlecloud.kube.leases import Lease, LeaseTimes
from paddlecloud.kube.refusals import Refused
from tests.patience import PATIENCE_S

QUICK = LeaseTimes(duration_s=1, renew_s=0.02)


class OneLease:
    """An API server that holds one lease, with versions."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.body: dict[str, Any] | None = None
        self.version = 0
        self.is_cut = False
        self.writes = self.gets = 0

    def _check(self) -> None:
        if self.is_cut:
            raise Refused(0, "Unreachable", "cut")

    def get(self, path: str) -> dict[str, Any]:
        with self.lock:
            self.gets += 1
            self._check()
            if self.body is None:
                raise Refused(404, "NotFound", "")
            return copy.deepcopy(self.body)

    def _put(self, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.writes += 1
        self.body = copy.deepcopy(body)
        self.body["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.body)

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self._check()
            if self.body is not None:
                raise Refused(409, "AlreadyExists", "")
            return self._put(body)

    def replace(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self._check()
            if body["metadata"]["resourceVersion"] != str(self.version):
                raise Refused(409, "Conflict", "")
            return self._put(body)


def lease(server: OneLease, who: str) -> Lease:
    return Lease(server, "ns", "paddlecloud", who, QUICK)


def test_leads_at_once_when_nobody_does():
    server = OneLease()
    one = lease(server, "one")
    assert one.hold()
    assert server.body["spec"]["holderIdentity"] == "one"
    one.stop()


def test_waits_for_a_leader_and_follows_when_it_lets_go():
    server = OneLease()
    one, two = lease(server, "one"), lease(server, "two")
    one.hold()
    held = threading.Event()
    thread = threading.Thread(target=lambda: two.hold() and held.set())
    thread.start()
    assert not held.wait(0.2)
    one.stop()
    assert held.wait(PATIENCE_S)
    assert server.body["spec"]["leaseTransitions"] == 2
    two.stop()
    thread.join(PATIENCE_S)


def test_takes_over_from_a_leader_that_is_silent():
    server = OneLease()
    first = lease(server, "one")
    assert first._try()  # leads, and never renews
    second = lease(server, "two")
    assert second.hold()
    second.stop()


def test_says_when_it_is_lost_and_when_it_leads_again():
    server = OneLease()
    one = lease(server, "one")
    one.hold()
    server.is_cut = True
    deadline = time.monotonic() + 5
    while one.leads.is_set():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    server.is_cut = False
    assert one.leads.wait(PATIENCE_S)
    one.stop()


def test_waits_its_turn_when_another_led_meanwhile():
    server = OneLease()
    one, two = lease(server, "one"), lease(server, "two")
    one.hold()
    with server.lock:  # as if it had been paused for long, and the other had waited for long
        server._put({**server.body, "spec": {**server.body["spec"], "holderIdentity": "two"}})
    two._held_until = time.monotonic() + PATIENCE_S
    deadline = time.monotonic() + 5
    while one.leads.is_set():
        assert time.monotonic() < deadline
        assert two._try()
        time.sleep(0.01)
    assert server.body["spec"]["holderIdentity"] == "two"
    one.stop()
    assert server.body["spec"]["holderIdentity"] == "two"


def test_knows_by_the_clock_alone_that_another_may_lead():
    server = OneLease()
    one = lease(server, "one")
    assert not one.holds()
    assert one._try()
    assert one.holds()
    ends_at = time.monotonic() + QUICK.duration_s
    while one.holds():  # nobody renews it, as in a process that is paused
        assert time.monotonic() < ends_at, "it holds longer than others wait"


def test_counts_from_when_a_renewal_was_sent():
    server = OneLease()
    one = lease(server, "one")

    def slow(body: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.9)  # longer than the holder may hold, shorter than others wait
        return OneLease._put(server, body)

    server._put = slow
    assert one._try()
    assert not one.holds()


def test_renews_with_one_call():
    server = OneLease()
    one = lease(server, "one")
    one.hold()
    server.gets = 0
    before = server.writes
    deadline = time.monotonic() + 5
    while server.writes < before + 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert server.gets == 0
    one.stop()


def test_goes_on_when_the_answer_to_a_renewal_was_lost():
    server = OneLease()
    one = lease(server, "one")
    one.hold()
    with server.lock:
        server._put(server.body)  # the version is another than the holder knows
        before = server.writes
    deadline = time.monotonic() + 5
    while server.writes < before + 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert one.holds()
    one.stop()


def test_ends_a_wait_when_asked():
    server = OneLease()
    lease(server, "one")._try()
    two = lease(server, "two")
    two.give_up()
    assert two.hold() is False
