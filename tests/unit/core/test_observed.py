"""What an exit code tells of."""

from __future__ import annotations

import pytest

from paddlecloud.core.observed import signal_of


@pytest.mark.parametrize(
    ("code", "number"),
    [(0, 0), (1, 0), (128, 0), (129, 1), (137, 9), (192, 64), (193, 0), (255, 0)],
)
def test_a_code_above_128_tells_of_a_signal_if_there_is_such_a_one(code, number):
    assert signal_of(code) == number
