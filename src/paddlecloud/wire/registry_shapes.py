"""The JSON about registries of images. Types only; a password goes in and never comes out."""

from __future__ import annotations

from typing import Any, TypedDict


class RegistryBody(TypedDict):
    """The same name again replaces what was there."""

    name: str
    server: str
    username: str
    password: str


class RegistryShape(TypedDict):
    """`secret` is what a cluster calls it, and does as well as `name` in a job's `registry`."""

    name: str
    secret: str
    server: str
    username: str
    created_at: str
    changed_at: str


class RegistryListShape(TypedDict):
    items: list[RegistryShape]


class RegistryNameV1(TypedDict):
    name: str


class RegistryListV1(TypedDict):
    """`msg.items` are secrets in snake_case, without what is secret in them."""

    code: int
    msg: dict[str, Any]
