"""The HTTP interface as OpenAPI 3.1, made from the registry of methods: it can't go stale."""

from collections.abc import Mapping
from typing import Any

import msgspec

from trunkline_gateway.registry import Method
from trunkline_wire import ERRORS


def document(version: str, methods: Mapping[str, Method]) -> dict[str, Any]:
    """The whole document, as JSON values."""
    kinds = [*(method.params for method in methods.values()), *(method.result for method in methods.values())]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    params, results = schemas[: len(methods)], schemas[len(methods) :]
    paths = {
        f"/api/v1/{name}": {
            "post": {
                "operationId": name,
                "summary": method.summary,
                "description": f"Needs the role `{method.role}`.",
                "requestBody": {"content": {"application/json": {"schema": given}}},
                "responses": {
                    "200": {"description": "The payload.", "content": {"application/json": {"schema": told}}},
                    "default": {
                        "description": "A problem; `code` is stable.",
                        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                    },
                },
            }
        }
        for (name, method), given, told in zip(methods.items(), params, results, strict=True)
    }
    problem = {
        "type": "object",
        "required": ["code", "detail", "status"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "code": {"type": "string", "enum": sorted(ERRORS)},
            "details": {"type": "object"},
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Trunkline gateway", "version": version},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**components, "Problem": problem},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "trunkline_<instance>"},
            },
        },
        "security": [{"token": []}, {"cookie": []}],
    }
