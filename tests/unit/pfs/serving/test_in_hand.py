"""Requests under way: each account's own, and each published link's."""

from __future__ import annotations

import pytest

from paddlecloud.core.errors import RateLimited
from paddlecloud.pfs.owners import Owner
from paddlecloud.pfs.serving.callers import Callers, InHand


def test_readers_of_a_link_do_not_count_for_its_owner() -> None:
    facts = {"name": "ann", "id": 1}
    callers = Callers("http://127.0.0.1:1")
    ann, reader = callers.owner_from(facts), callers.owner_from({**facts, "link": "l1"})
    in_hand = InHand(2)
    in_hand.enter(reader)
    in_hand.enter(reader)
    with pytest.raises(RateLimited):
        in_hand.enter(reader)
    in_hand.enter(ann)
    in_hand.enter(ann)
    with pytest.raises(RateLimited):
        in_hand.enter(ann)
    in_hand.leave(reader)
    in_hand.enter(reader)
    in_hand.enter(Owner("bob", 2))
