"""The leader among several operators, by a Lease object.

`Lease.hold()` blocks until this process leads, then keeps renewing in a thread. `leads` is clear
from when it could not for almost as long as others must wait before they take over, and set again
when the lease is ours again: it is tried for until `stop`. Leading saves work; nothing is correct
only because of it, since all that the operator writes may be written twice. Times of others are
never compared with our clock: a lease has expired when it has not changed for its duration as we
measure it.

`holds()` is for `Client.fence`: by the clock alone, so a process that was paused knows at once
that another may lead. The client given here should be an impatient one (`PATIENCE_S`) and is not
fenced: a call that hangs must not keep the holder from noticing.
"""

from __future__ import annotations

import datetime
import logging
import threading
import time
from dataclasses import dataclass

from paddlecloud import clock
from paddlecloud.kube.client import Client, Json, collection, member
from paddlecloud.kube.refusals import Refused

log = logging.getLogger(__name__)

GROUP_VERSION, PLURAL = "coordination.k8s.io/v1", "leases"
PATIENCE_S = (2.4, 2.4)  # of its client: one slow call between two renewals loses no lease
SAFE = 0.8  # of the duration: so much earlier the holder stops than others begin


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    duration_s: int = 5  # how long others wait after the last renewal
    renew_s: float = 1.5


class Lease:
    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes | None = None,
    ) -> None:
        self._client = client
        self._namespace, self._name = namespace, name
        self._identity = identity
        self._times = times or LeaseTimes()
        self._stopped = threading.Event()
        self._seen: tuple[str, float] = ("", 0.0)  # version, and when we first saw it
        self._held: Json | None = None
        self._thread: threading.Thread | None = None
        self._held_until = 0.0
        self.leads = threading.Event()

    def hold(self) -> bool:
        """Wait until we lead; False if `stop` was called first."""
        while not self._stopped.is_set():
            if self._try():
                self.leads.set()
                self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
                self._thread.start()
                return True
            self._stopped.wait(self._times.renew_s)
        return False

    def holds(self) -> bool:
        """Whether nobody else can lead yet, as far as a clock can tell."""
        return time.monotonic() < self._held_until

    def give_up(self) -> None:
        """End a wait in `hold`, and renewing. Safe to call from a signal handler."""
        self._stopped.set()

    def stop(self) -> None:
        """Stop renewing and let go, so that another takes over at once."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(self._times.duration_s)
        if self.leads.is_set() and self._held is not None:
            self.leads.clear()
            try:
                self._write({**self._held, "spec": {**self._held["spec"], "holderIdentity": ""}})
            except Refused as error:
                log.info("the lease runs out by itself: %s", error.message)

    # --- inside ------------------------------------------------------------------------------

    def _renew(self) -> None:
        while not self._stopped.wait(self._times.renew_s):
            is_renewed = self._held is not None and self._take(self._held)
            if is_renewed or self._try():
                self.leads.set()
            elif self.leads.is_set() and not self.holds():
                log.warning("the lease is lost; another operator may lead")
                self.leads.clear()
                self._held = None

    def _try(self) -> bool:
        try:
            found = self._client.get(member(GROUP_VERSION, PLURAL, self._namespace, self._name))
        except Refused as error:
            if not error.is_missing:
                log.warning("asking for the lease: %s", error.message)
                return False
            found = {"metadata": {"namespace": self._namespace, "name": self._name}, "spec": {}}
        return self._may_take(found) and self._take(found)

    def _take(self, found: Json) -> bool:
        """Write it as ours, if it still is as it was found."""
        sent_at = time.monotonic()  # others begin to count later, when the server has it
        try:
            self._held = self._write(self._taken(found))
        except Refused as error:
            log.info("the lease was not written: %s", error.message)
            return False
        self._held_until = sent_at + SAFE * self._times.duration_s
        return True

    def _may_take(self, found: Json) -> bool:
        holder = found["spec"].get("holderIdentity") or ""
        if holder in ("", self._identity):
            return True
        version, now = str(found["metadata"].get("resourceVersion")), time.monotonic()
        if self._seen[0] != version:
            self._seen = (version, now)
        wait_s = found["spec"].get("leaseDurationSeconds") or self._times.duration_s
        return now - self._seen[1] > wait_s

    def _taken(self, found: Json) -> Json:
        read = datetime.datetime.fromtimestamp(clock.now(), datetime.UTC)
        now = read.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before = found["spec"]
        is_ours = before.get("holderIdentity") == self._identity
        return {
            **found,
            "spec": {
                **before,
                "holderIdentity": self._identity,
                "leaseDurationSeconds": self._times.duration_s,
                "renewTime": now,
                "acquireTime": before.get("acquireTime") if is_ours else now,
                "leaseTransitions": int(before.get("leaseTransitions") or 0) + (not is_ours),
            },
        }

    def _write(self, body: Json) -> Json:
        if body["metadata"].get("resourceVersion"):
            path = member(GROUP_VERSION, PLURAL, self._namespace, self._name)
            return self._client.replace(path, body)
        return self._client.create(collection(GROUP_VERSION, PLURAL, self._namespace), body)
