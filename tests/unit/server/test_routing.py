"""The route table: what is found, and how queries are read."""

from __future__ import annotations

import difflib

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.server.routing import Param, Route, Table


def _route(method: str, path: str, *params: Param, dialect: str = "v2") -> Route:
    return Route(method, path, lambda request: None, "", params, dialect=dialect)


LIST, ONE, SUB, DEEP = (
    _route("GET", "/a"),
    _route("GET", "/a/{x}"),
    _route("POST", "/a/{x}/go"),
    _route("DELETE", "/a/b/c/{y}"),
)
TABLE = Table([LIST, ONE, SUB, DEEP, _route("GET", "/a/"), _route("PUT", "/a/{x}")])


@pytest.mark.parametrize(
    ("method", "path", "route", "segments"),
    [
        ("GET", "/a", LIST, {}),
        ("HEAD", "/a", LIST, {}),
        ("GET", "/a/1", ONE, {"x": "1"}),
        ("GET", "/a/go", ONE, {"x": "go"}),
        ("POST", "/a/1/go", SUB, {"x": "1"}),
        ("DELETE", "/a/b/c/2", DEEP, {"y": "2"}),
    ],
)
def test_finds_a_route(method: str, path: str, route: Route, segments: dict[str, str]) -> None:
    assert TABLE.find(method, path)[:2] == (route, segments)


@pytest.mark.parametrize("path", ["/", "/b", "/a//go", "/a/1/go/", "/a/1/2", "", "/a/b/c/"])
def test_finds_nothing_where_nothing_is(path: str) -> None:
    assert TABLE.find("GET", path) == (None, {}, [])


def test_says_which_methods_a_path_has() -> None:
    assert TABLE.find("PATCH", "/a/1") == (None, {}, ["GET", "PUT"])


QUERY = (
    Param("n", int, "", 10, 0, 100),
    Param("t", float, "", None, 0),
    Param("on", bool, "", False),
    Param("s", str, ""),
)


def test_reads_typed_values_and_defaults() -> None:
    route = _route("GET", "/q", *QUERY)
    assert route.parse_query(b"") == {"n": 10, "t": None, "on": False, "s": None}
    found = route.parse_query(b"n=7&t=0.5&on=1&s=a%20b%2C%C3%A9")
    assert found == {"n": 7, "t": 0.5, "on": True, "s": "a b,é"}
    assert route.parse_query(b"on")["on"] is True
    assert route.parse_query(b"on=no")["on"] is False


@pytest.mark.parametrize("query", [b"n=-1", b"n=101", b"n=x", b"n=1.5", b"t=nan", b"t=-1", b"on=x"])
def test_refuses_values_out_of_bounds(query: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        _route("GET", "/q", *QUERY).parse_query(query)
    assert refused.value.field == query.partition(b"=")[0].decode()


def test_reports_all_faults_and_suggests() -> None:
    with pytest.raises(InvalidInput) as refused:
        Table([]), _route("GET", "/q", Param("limit", int, "")).parse_query(b"limt=1&limit=x")
    problems = {fault.field: fault.problem for fault in refused.value.faults}
    assert "did you mean limit" in problems["limt"]
    assert "whole number" in problems["limit"]


def test_old_clients_may_send_what_we_do_not_know() -> None:
    route = _route("GET", "/q", *QUERY, dialect="v1")
    assert route.parse_query(b"wat=1&n=3")["n"] == 3


@pytest.mark.parametrize(
    "text",
    ["1_000", "１", "٣", "9" * 19, "9" * 5000, " 1", "1 ", "0x1", "", "1.0", "--1", "1e3"],
)
def test_takes_ascii_digits_within_64_bits_for_a_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        Param("n", int, "").parse(text)


@pytest.mark.parametrize("text", ["1_0.5", "٣.5", "nan", "inf", "1e999", " 1", "", ".", "0x1p3"])
def test_takes_ascii_digits_for_a_number(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        Param("t", float, "").parse(text)


@pytest.mark.parametrize(("text", "value"), [("5", 5.0), (".5", 0.5), ("2.", 2.0), ("1e-3", 0.001)])
def test_takes_usual_spellings_of_a_number(text: str, value: float) -> None:
    assert Param("t", float, "").parse(text) == value


@pytest.mark.parametrize("dialect", ["v2", "v1", "job_v1"])
def test_refuses_a_parameter_that_is_there_twice(dialect: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        _route("GET", "/q", *QUERY, dialect=dialect).parse_query(b"s=a&n=1&s=a")
    assert [fault.problem for fault in refused.value.faults] == ["is there twice"]


def test_compares_names_for_the_first_fault_only(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    find = difflib.get_close_matches
    monkeypatch.setattr(
        difflib,
        "get_close_matches",
        lambda name, known, n: [*map(compared.append, known), find(name, known, n)][-1],
    )
    query = "&".join(f"nn{n}=1" for n in range(90)).encode()
    with pytest.raises(InvalidInput) as refused:
        _route("GET", "/q", *QUERY).parse_query(query)
    assert len(refused.value.faults) == 90
    assert len(compared) == len(QUERY)


def test_refuses_more_parameters_than_anybody_needs() -> None:
    with pytest.raises(InvalidInput) as refused:
        _route("GET", "/q", *QUERY).parse_query(b"&".join([b"n=1"] * 101))
    assert refused.value.field == "query"
