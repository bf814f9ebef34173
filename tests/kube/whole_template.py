"""A pod template in which every field there is is written, from the API server's own description.

Values fit the types, not each other: what survives a custom resource is not what a pod may be.
"""

from __future__ import annotations

from typing import Any

_ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
_SCHEMAS = "#/components/schemas/"


def whole_template(description: dict[str, Any]) -> dict[str, Any]:
    """From the document at `/openapi/v3/api/v1`."""
    schemas = description["components"]["schemas"]
    found: dict[str, Any] = _value(schemas[_ROOT], schemas, "template", ())
    return found


def _value(
    schema: dict[str, Any], schemas: dict[str, Any], name: str, above: tuple[str, ...]
) -> Any:
    for part in schema.get("allOf", ()):
        schema = {**part, **schema}
    reference = schema.get("$ref", "").removeprefix(_SCHEMAS)
    if reference:
        if reference in above:
            return {}
        return _value(schemas[reference], schemas, name, (*above, reference))
    if "oneOf" in schema:
        return "7"  # a quantity or a port
    match schema.get("type"):
        case "object" | None:
            if "properties" in schema:
                return {
                    key: _value(inner, schemas, key, above)
                    for key, inner in schema["properties"].items()
                }
            inner = schema.get("additionalProperties")
            return {f"{name}-key": _value(inner, schemas, name, above)} if inner else {}
        case "array":
            return [_value(schema["items"], schemas, name, above)]
        case "integer":
            return 7
        case "number":
            return 7.5
        case "boolean":
            return True
        case _:
            is_time = schema.get("format") == "date-time"
            return "2026-11-16T18:00:00Z" if is_time else f"a-{name}".lower()


def fields(value: Any, here: str = "") -> dict[str, Any]:
    """Every leaf by its path."""
    if isinstance(value, dict) and value:
        return {k: v for key in value for k, v in fields(value[key], f"{here}.{key}").items()}
    if isinstance(value, list) and value:
        return {k: v for i, one in enumerate(value) for k, v in fields(one, f"{here}[{i}]").items()}
    return {here: value}
