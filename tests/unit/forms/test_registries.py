"""Logins to registries: what is read, what is refused, and what a cluster is given."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms import registries

GOOD = {"name": "hub", "username": "alice", "password": "s3cret", "server": "hub.example.com:5000"}


def test_reads_the_four_keys_of_the_first_client() -> None:
    assert registries.parse(GOOD) == registries.Registry(
        "hub", "hub.example.com:5000", "alice", "s3cret"
    )


def test_knows_a_registry_by_its_own_name_and_by_its_secrets() -> None:
    assert registries.parse({**GOOD, "name": "pcloud-registry-hub"}).name == "hub"
    assert registries.secret_name("hub") == registries.secret_name("pcloud-registry-hub")
    assert registries.plain_name("pcloud-registry-hub") == "hub"


def test_writes_what_a_kubelet_pulls_with() -> None:
    written = json.loads(registries.docker_config(registries.parse(GOOD)))
    (entry,) = written["auths"].values()
    assert list(written["auths"]) == ["hub.example.com:5000"]
    assert base64.b64decode(entry["auth"]) == b"alice:s3cret"
    assert (entry["username"], entry["password"]) == ("alice", "s3cret")


def test_keeps_the_password_out_of_what_prints_it() -> None:
    assert "s3cret" not in repr(registries.parse(GOOD))


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"name": ""}, "name", "is missing"),
        ({"name": "pcloud-registry-"}, "name", "is missing"),
        ({"name": 7}, "name", "is missing"),
        ({"name": "Hub"}, "name", "a-z"),
        ({"name": "a..b"}, "name", "a-z"),
        ({"name": "-a"}, "name", "a-z"),
        ({"name": "a" * 64}, "name", "63"),
        ({"name": "../x"}, "name", "a-z"),
        ({"server": ""}, "server", "is missing"),
        ({"server": "two words"}, "server", "host"),
        ({"server": "hub:port"}, "server", "host"),
        ({"server": ["hub"]}, "server", "text"),
        ({"username": "a:b"}, "username", "colon"),
        ({"username": "a\nb"}, "username", "printable"),
        ({"password": None}, "password", "is missing"),
        ({"password": "a\0b"}, "password", "NUL"),
        ({"password": "p" * 16385}, "password", "16384"),
        ({"passwort": "x"}, "passwort", "unknown key"),
    ],
)
def test_refuses_by_name_what_cannot_be(change: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        registries.parse({**GOOD, **change})
    (fault,) = refused.value.faults
    assert fault.field == field
    assert words in fault.problem


def test_says_all_that_is_wrong_at_once_and_repeats_no_password() -> None:
    with pytest.raises(InvalidInput) as refused:
        registries.parse({"password": "s3cret\0"})
    assert [fault.field for fault in refused.value.faults] == [
        *("name", "server", "username", "password")
    ]
    assert "s3cret" not in str(refused.value.to_json())


def test_refuses_what_is_no_object() -> None:
    with pytest.raises(InvalidInput, match="JSON object"):
        registries.parse(["hub"])
