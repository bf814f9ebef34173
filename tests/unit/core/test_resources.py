from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.resources import (
    MAX_CPU_MILLI,
    MAX_GPUS,
    MAX_MEMORY_BYTES,
    BadQuantity,
    Resources,
    format_cpu,
    format_memory,
    parse_cpu,
    parse_gpus,
    parse_memory,
    parse_number,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-0", 0),
        ("1.5", Decimal("1.5")),
        (".5", Decimal("0.5")),
        ("2.", 2),
        ("500m", Decimal("0.5")),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1M", 10**6),
        ("10Gi", 10 * 2**30),
        ("1.5Gi", 3 * 2**29),
        ("2T", 2 * 10**12),
        ("1Pi", 2**50),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("12e-1", Decimal("1.2")),
        (" 7 ", 7),
    ],
)
def test_reads_quantities(text: str, value: Decimal | int) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("two", "is not a quantity"),
        ("-1", "is negative"),
        ("-0.001", "is negative"),
        ("10GB", "unknown suffix GB; write 10Gi (binary) or 10G (decimal)"),
        ("10gb", "unknown suffix gb; write 10Gi (binary) or 10G (decimal)"),
        ("10g", "unknown suffix g; write 10Gi (binary) or 10G (decimal)"),
        ("10K", "unknown suffix K; write 10Ki (binary) or 10k (decimal)"),
        ("10GiB", "unknown suffix GiB; write 10Gi (binary) or 10G (decimal)"),
        ("5xyz", "unknown suffix xyz; allowed are"),
        ("1e31", "exponent 31"),
        ("1e-99", "exponent -99"),
        ("1e1000", "is not a quantity"),
        ("1 Gi", "is not a quantity"),
        ("1_000", "is not a quantity"),
        ("١", "is not a quantity"),  # an Arabic digit
        ("nan", "is not a quantity"),
        ("inf", "is not a quantity"),
        ("0x10", "is not a quantity"),
        ("1" * 65, "65 characters"),
    ],
)
def test_refuses_other_texts_and_says_why(text: str, says: str) -> None:
    with pytest.raises(BadQuantity) as caught:
        parse_number(text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "milli"), [("1", 1000), ("500m", 500), ("0.1", 100), ("0.0001", 1), ("1e-30", 1)]
)
def test_rounds_cpu_up_to_a_thousandth(text: str, milli: int) -> None:
    assert parse_cpu(text) == milli


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("1m", 1), ("1.5", 2), ("0.5Ki", 512)])
def test_rounds_memory_up_to_a_byte(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize(
    ("reader", "largest", "too_large"),
    [
        (parse_cpu, ("1000000", MAX_CPU_MILLI), "1000000.001"),
        (parse_memory, ("1Ei", MAX_MEMORY_BYTES), "1.01Ei"),
        (parse_gpus, ("100000", MAX_GPUS), "100001"),
    ],
)
def test_refuses_absurd_amounts(reader, largest, too_large) -> None:  # type: ignore[no-untyped-def]
    text, value = largest
    assert reader(text) == value
    for absurd in (too_large, "1e30", "9" * 64):
        with pytest.raises(BadQuantity, match="is more than"):
            reader(absurd)


def test_refuses_half_a_card() -> None:
    with pytest.raises(BadQuantity, match="whole number"):
        parse_gpus("0.5")


@given(st.integers(0, MAX_CPU_MILLI))
def test_reads_back_the_cpu_it_wrote(milli: int) -> None:
    assert parse_cpu(format_cpu(milli)) == milli


@given(
    st.integers(0, MAX_MEMORY_BYTES)
    | st.builds(lambda n, p: n * 2**p, st.integers(0, 1023), st.sampled_from([10, 20, 30, 40, 50]))
)
def test_reads_back_the_memory_it_wrote(size: int) -> None:
    assert parse_memory(format_memory(size)) == size


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (1000, "1000"), (1024, "1Ki"), (2**30, "1Gi"), (3 * 2**29, "1536Mi")],
)
def test_writes_the_shortest_exact_memory(size: int, text: str) -> None:
    assert format_memory(size) == text


@given(st.text(max_size=70))
def test_either_reads_a_text_or_says_why_not(text: str) -> None:
    for reader in (parse_cpu, parse_memory, parse_gpus):
        try:
            read = reader(text) >= 0
        except BadQuantity as error:
            read = bool(str(error))
        assert read


amounts = st.builds(Resources, st.integers(0, 10**9), st.integers(0, 2**60), st.integers(0, 10**5))


@given(amounts, amounts, st.integers(0, 1000))
def test_adds_exactly(one: Resources, other: Resources, count: int) -> None:
    assert one + other - other == one
    assert one * count + one == one * (count + 1)


@given(amounts, amounts)
def test_fits_where_nothing_is_short(need: Resources, free: Resources) -> None:
    assert need.fits(need + free)
    assert need.fits(free) == (not need.shortages(free))
    larger = need + Resources(1, 1, 1)
    assert larger.shortages(need) == ("cpu", "memory", "gpu")


def test_never_misses_what_is_not_asked_for() -> None:
    assert Resources(cpu_milli=1).fits(Resources(cpu_milli=1, memory_bytes=-5, gpu=-1))
