"""The JSON about published files: links that anybody who knows them may fetch. Types only."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class PublicationBody(TypedDict):
    """`path` is a file in the caller's home; the link lives `expires_in_s`, a week if left out."""

    path: str
    expires_in_s: NotRequired[int]


class PublicationShape(TypedDict):
    id: str
    path: str
    url: str
    created_at: str
    expires_at: str


class PublicationListShape(TypedDict):
    items: list[PublicationShape]


class PublishBodyV1(TypedDict):
    path: str


class PublishedV1(TypedDict):
    url: str


class PublishedListV1(TypedDict):
    """Both lists in the same order."""

    files: list[str]
    urls: list[str]
