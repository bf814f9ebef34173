"""Rows of the route table about registries of images."""

from __future__ import annotations

from dataclasses import replace

from paddlecloud.server.routers import registries
from paddlecloud.server.routing import Change, Route
from paddlecloud.wire import registry_shapes, routes, shapes_v1

_OURS = [
    Route(
        "GET",
        routes.REGISTRIES,
        registries.listed,
        "The caller's logins to registries of images; never a password",
        answers={200: registry_shapes.RegistryListShape},
    ),
    Route(
        "POST",
        routes.REGISTRIES,
        registries.save,
        "Keep a login to a registry for the caller's jobs, or replace it",
        body=registry_shapes.RegistryBody,
        answers={201: registry_shapes.RegistryShape},
        change=Change.ATOMIC,
    ),
    Route(
        "DELETE",
        routes.REGISTRY,
        registries.remove,
        "Forget a login that no live job needs",
        answers={204: None},
        change=Change.ATOMIC,
    ),
]
_FIRST = [
    Route(
        "GET",
        routes.V1_REGISTRY,
        registries.listed_v1,
        "The caller's registries as secrets",
        answers={200: registry_shapes.RegistryListV1},
        dialect="v1",
    ),
    Route(
        "POST",
        routes.V1_REGISTRY,
        registries.save_v1,
        "Keep a login to a registry, or replace it",
        body=registry_shapes.RegistryBody,
        answers={200: shapes_v1.DoneV1},
        change=Change.ATOMIC,
        dialect="v1",
    ),
    Route(
        "DELETE",
        routes.V1_REGISTRY,
        registries.remove_v1,
        "Forget a login that no live job needs",
        body=registry_shapes.RegistryNameV1,
        answers={200: shapes_v1.DoneV1},
        change=Change.ATOMIC,
        dialect="v1",
    ),
]

ROUTES = [*_OURS, *_FIRST, *(replace(route, path=route.path + "/") for route in _FIRST)]
