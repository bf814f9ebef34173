"""The OpenAPI description, written from the route table and the shapes.

`document()` is served at /api/v2/openapi.json; `python -m paddlecloud.server.openapi` writes
docs/openapi.json, and a test holds the file to the table.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

import paddlecloud
from paddlecloud.server.routing import Access, Change, Param, Route
from paddlecloud.wire import shapes
from paddlecloud.wire.routes import IDEMPOTENCY_KEY, JOB_SERVICE

_REFERENCE = "#/components/schemas/{name}"
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def document() -> dict[str, Any]:
    from paddlecloud.server.table import TABLE

    table = TABLE.routes
    used = [shapes.ErrorShape]
    for route in table:
        used += [shape for given in (route.body, *route.answers.values()) for shape in _all(given)]
    schemas, components = msgspec.json.schema_components(used, ref_template=_REFERENCE)
    by_shape = {id(shape): schema for shape, schema in zip(used, schemas, strict=True)}
    paths: dict[str, Any] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_shape)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "PaddleCloud",
            "version": paddlecloud.__version__,
            "description": "Submit, watch and kill distributed training jobs.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "`Token <token>`",
                },
                "basic": {"type": "http", "scheme": "basic"},
                "session": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
                "signature": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "paddle-auth-v1, with an access key; docs/guides/job-client.md",
                },
            },
        },
    }


def _all(given: Any) -> tuple[Any, ...]:
    """The shapes of a cell of the table: none (or a content type), one, or alternatives."""
    if given is None or isinstance(given, str):
        return ()
    return given if isinstance(given, tuple) else (given,)


def _operation(route: Route, by_shape: dict[int, Any]) -> dict[str, Any]:
    # Both generations have a /v1; that of the job service is not under /api.
    path = route.path.replace(JOB_SERVICE, "service/", 1) if _is_service(route) else route.path
    words = re.findall(r"[a-z0-9]+", path.removeprefix("/api/").lower())
    slash = ["slash"] if route.path.endswith("/") else []
    parameters = [_parameter(param) for param in route.params]
    for name in re.findall(r"{(\w+)}", route.path):
        parameters.append(
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        )
    if route.change is not Change.NONE:
        parameters.append(
            {
                "name": IDEMPOTENCY_KEY,
                "in": "header",
                "schema": {"type": "string", "maxLength": 255},
                "description": "the same key and request again give the same answer again",
            }
        )
    operation: dict[str, Any] = {
        "operationId": "_".join([route.method.lower(), *words, *slash]),
        "summary": route.summary,
        "parameters": parameters,
        "responses": _responses(route, by_shape),
        "security": []
        if route.access is Access.OPEN
        else [{"token": []}, {"basic": []}, {"session": []}, {"signature": []}],
    }
    if route.body is not None:
        content = {"application/json": {"schema": by_shape[id(route.body)]}}
        operation["requestBody"] = {"content": content}
    elif route.body_type:
        operation["requestBody"] = {"required": True, "content": {route.body_type: {}}}
    return operation


def _is_service(route: Route) -> bool:
    return route.path.startswith(JOB_SERVICE)


def _parameter(param: Param) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _TYPES[param.kind]}
    if param.default is not None:
        schema["default"] = param.default
    if param.low is not None:
        schema["minimum"] = param.low
    if param.high is not None:
        schema["maximum"] = param.high
    return {"name": param.name, "in": "query", "description": param.about, "schema": schema}


def _responses(route: Route, by_shape: dict[int, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, shape in route.answers.items():
        response: dict[str, Any] = {"description": "done"}
        if isinstance(shape, str):
            response["content"] = {shape: {}}
        elif schemas := [by_shape[id(one)] for one in _all(shape)]:
            schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
            response["content"] = {"application/json": {"schema": schema}}
        responses[str(status)] = response
    error = {"application/json": {"schema": by_shape[id(shapes.ErrorShape)]}}
    responses["default"] = {"description": "refused; `code` says why", "content": error}
    return responses


def text() -> str:
    return json.dumps(document(), indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Write docs/openapi.json (or the path given)."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/openapi.json")
    with tempfile.TemporaryDirectory() as state_dir:
        # The table names handlers, handlers name models, models need settings and those a home.
        os.environ["PADDLECLOUD_HOME"] = state_dir
        os.environ["DJANGO_SETTINGS_MODULE"] = "paddlecloud.server.settings"
        import django

        django.setup()
        path.write_text(text(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
