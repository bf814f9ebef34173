"""How many connections are open, in all and per address: what both servers refuse by.

One address must not be able to take every place. An IPv6 subscriber has a whole /64 and counts as
one address; an IPv4 address written as an IPv6 one is that IPv4 address.
"""

from __future__ import annotations

import threading


def network_of(address: str) -> str:
    """What a limit per address counts: the address, of IPv6 its /64."""
    if ":" not in address:
        return address
    import ipaddress

    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))


class ConnectionCounts:
    """Counts by `network_of`; connections come and go on several threads."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self.most = most
        self.most_per_address = most_per_address
        self._total = 0
        self._by_network: dict[str, int] = {}
        self._lock = threading.Lock()

    def crowded(self, network: str) -> str | None:
        """The network that has to give way before `network` gets one more; None: there is room."""
        with self._lock:
            if self._by_network.get(network, 0) >= self.most_per_address:
                return network
            if self._total >= self.most:
                return max(self._by_network, key=lambda name: self._by_network[name])
            return None

    def add(self, network: str) -> None:
        with self._lock:
            self._total += 1
            self._by_network[network] = self._by_network.get(network, 0) + 1

    def remove(self, network: str) -> None:
        with self._lock:
            self._total -= 1
            left = self._by_network[network] - 1
            if left:
                self._by_network[network] = left
            else:
                del self._by_network[network]
