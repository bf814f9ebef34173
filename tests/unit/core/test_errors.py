from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core import errors
from paddlecloud.core.errors import Fault, InvalidInput, PaddleCloudError, error_from_json

ALL = [InvalidInput, errors.CannotFit, *errors.ERROR_CLASSES.values()]


@pytest.mark.parametrize("cls", ALL)
def test_rebuilds_the_error_a_server_sent(cls: type[PaddleCloudError]) -> None:
    sent = cls("it went wrong", hint="do this", field="name")
    got = error_from_json(json.loads(json.dumps(sent.to_json())))
    assert type(got) is cls
    assert (got.message, got.hint, got.field) == ("it went wrong", "do this", "name")
    assert str(got) == "it went wrong"


@pytest.mark.parametrize("cls", [InvalidInput, errors.CannotFit])
def test_keeps_every_fault_on_the_way(cls: type[InvalidInput]) -> None:
    faults = (Fault("-memory", "unknown suffix GB", "10GB"), Fault("-p", "must be a number", "two"))
    got = error_from_json(cls(faults=faults).to_json())
    assert isinstance(got, cls)
    assert got.faults == faults
    assert got.field == "-memory"
    assert "unknown suffix GB" in got.message
    assert "must be a number" in got.message


def test_has_one_class_per_code() -> None:
    assert len({cls.code for cls in ALL}) == len(ALL)
    assert {cls for cls in vars(errors).values() if _is_public(cls)} == set(ALL)
    assert len(ALL) > 10


def _is_public(cls: object) -> bool:
    is_error = isinstance(cls, type) and issubclass(cls, PaddleCloudError)
    return is_error and cls is not PaddleCloudError and not cls.__name__.startswith("_")


@pytest.mark.parametrize(
    ("cls", "http_status", "exit_code"),
    [
        (errors.InvalidInput, 400, 2),
        (errors.CannotFit, 422, 1),
        (errors.NotLoggedIn, 401, 3),
        (errors.NotAllowed, 403, 3),
        (errors.NotFound, 404, 4),
        (errors.Conflict, 409, 5),
        (errors.TooLarge, 413, 1),
        (errors.RateLimited, 429, 1),
        (errors.OutOfSpace, 507, 1),
        (errors.Unavailable, 503, 1),
        (errors.ServerUnreachable, 503, 6),
        (errors.InternalError, 500, 1),
    ],
)
def test_has_the_documented_status_and_exit_code(
    cls: type[PaddleCloudError], http_status: int, exit_code: int
) -> None:
    assert (cls.http_status, cls.exit_code) == (http_status, exit_code)


def test_keeps_the_message_of_an_unknown_code() -> None:
    got = error_from_json({"code": "from_the_future", "message": "new trouble"})
    assert type(got) is errors.InternalError
    assert got.message == "new trouble"


@given(
    st.dictionaries(
        st.sampled_from(["code", "message", "hint", "field", "faults"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text() | st.just("invalid_input"),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
    )
)
def test_makes_an_error_of_whatever_answered(body: dict[str, object]) -> None:
    got = error_from_json(body)
    assert got.message
    assert "None" not in (got.hint, got.field)
