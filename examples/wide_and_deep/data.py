"""Synthetic click data for the wide & deep example.

Promises the same impressions on every machine for the same seed, so nothing has to be
downloaded and every trainer can cut its own share out of one imaginary log. Called by
train.py (training and test samples) and predict.py (to encode a hand-written impression).
Needs numpy only; never reads or writes a file.

The signal is one a person can check: people click on ads about what they are interested in,
more in the evening than at night, less when the product is expensive, and each user and each
ad has a habit of its own that only its identity tells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

TOPICS = ("sport", "music", "travel", "garden", "books", "cars", "food", "games")
DEVICES = ("phone", "tablet", "desktop")
USERS = 1000
ADS = 400
HOURS = 24

# Every categorical field owns a range of one common id space, so that one embedding table
# on the parameter servers holds all of them. The last field is the cross product of two
# others: the memorising ("wide") half of the model lives on such crosses.
FIELD_SIZES = {
    "user": USERS,
    "ad": ADS,
    "interest": len(TOPICS),
    "topic": len(TOPICS),
    "device": len(DEVICES),
    "hour": HOURS,
    "interest_x_topic": len(TOPICS) ** 2,
}
FIELD_COUNT = len(FIELD_SIZES)
VOCABULARY = sum(FIELD_SIZES.values())
NUMBER_COUNT = 2  # price and past click rate, both scaled to about [-1, 1]

_OFFSETS = np.cumsum([0, *list(FIELD_SIZES.values())[:-1]])
_HABITS_SEED = 2026  # the world itself; sample seeds only choose what is seen of it


class Samples(NamedTuple):
    """Rows of impressions: ids [n, FIELD_COUNT], numbers [n, NUMBER_COUNT], label [n, 1]."""

    ids: np.ndarray
    numbers: np.ndarray
    label: np.ndarray


def encode(
    user: np.ndarray,
    ad: np.ndarray,
    interest: np.ndarray,
    topic: np.ndarray,
    device: np.ndarray,
    hour: np.ndarray,
) -> np.ndarray:
    """Place the categorical fields of each impression in the common id space."""
    cross = interest * len(TOPICS) + topic
    columns = np.stack([user, ad, interest, topic, device, hour, cross], axis=1)
    return (columns + _OFFSETS).astype("int64")


def generate(count: int, seed: int) -> Samples:
    """Draw `count` impressions; the same seed gives the same rows everywhere."""
    world = np.random.RandomState(_HABITS_SEED)
    user_habit = world.normal(0.0, 0.8, USERS)
    ad_habit = world.normal(0.0, 0.8, ADS)
    user_interest = world.randint(0, len(TOPICS), USERS)
    ad_topic = world.randint(0, len(TOPICS), ADS)

    draw = np.random.RandomState(seed)
    user = draw.randint(0, USERS, count)
    ad = draw.randint(0, ADS, count)
    device = draw.randint(0, len(DEVICES), count)
    hour = draw.randint(0, HOURS, count)
    price = draw.uniform(-1.0, 1.0, count)
    past_clicks = draw.uniform(-1.0, 1.0, count)
    interest = user_interest[user]
    # Half of all impressions are targeted, otherwise almost nothing would match.
    ads_by_topic = np.argsort(ad_topic, kind="stable")
    starts = np.searchsorted(ad_topic[ads_by_topic], np.arange(len(TOPICS) + 1))
    spread = draw.uniform(0.0, 1.0, count)
    first, last = starts[interest], starts[interest + 1]
    matching = ads_by_topic[(first + (last - first) * spread).astype(int)]
    ad = np.where(draw.uniform(0.0, 1.0, count) < 0.5, matching, ad)
    topic = ad_topic[ad]

    evening = np.cos((hour - 20) * 2 * np.pi / HOURS)
    score = (
        np.where(interest == topic, 3.2, -3.2)
        + 1.2 * evening
        - 1.5 * price
        + 1.5 * past_clicks
        + user_habit[user]
        + ad_habit[ad]
    )
    clicked = draw.uniform(0.0, 1.0, count) < 1.0 / (1.0 + np.exp(-score))
    return Samples(
        ids=encode(user, ad, interest, topic, device, hour),
        numbers=np.stack([price, past_clicks], axis=1).astype("float32"),
        label=clicked.astype("float32")[:, None],
    )


def share_of(samples: Samples, trainer_id: int, trainer_count: int) -> Samples:
    """The rows that belong to one trainer: row i goes to trainer i mod count."""
    return Samples(*(part[trainer_id::trainer_count] for part in samples))
