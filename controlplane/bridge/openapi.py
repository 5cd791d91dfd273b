"""How the OpenAPI document describes the two endpoints that are not REST framework's."""

from collections.abc import Mapping
from typing import Any

_PROBLEM = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_SECURITY: list[dict[str, list[str]]] = [{"token": []}]
_TAGS = ["router"]

PATHS: Mapping[str, Any] = {
    "/api/v1/router/config/": {
        "get": {
            "operationId": "router_config_retrieve",
            "description": "The configuration document, for router workers: at once when the caller's revision is not "
            "the newest, else when there is a newer one, or 304 after the wait. Needs the scope `router`.",
            "tags": _TAGS,
            "security": _SECURITY,
            "parameters": [
                {
                    "in": "query",
                    "name": "wait",
                    "schema": {"type": "number", "minimum": 0, "maximum": 60, "default": 0},
                    "description": "Seconds to wait for a newer revision.",
                },
                {
                    "in": "header",
                    "name": "If-None-Match",
                    "schema": {"type": "string"},
                    "example": '"7"',
                    "description": "The revision that the caller has.",
                },
            ],
            "responses": {
                "200": {
                    "description": "The newest document.",
                    "headers": {"ETag": {"schema": {"type": "string"}, "description": "Its revision, in quotes."}},
                    "content": {"application/json": {"schema": {"type": "object", "additionalProperties": True}}},
                },
                "304": {"description": "The caller's revision is the newest."},
                "400": {"description": "A value cannot be.", **_PROBLEM},
                "401": {"description": "No or no valid credentials.", **_PROBLEM},
                "403": {"description": "The scope is missing.", **_PROBLEM},
            },
        }
    },
    "/api/v1/router/snapshots/": {
        "post": {
            "operationId": "router_snapshots_create",
            "description": "A snapshot of a router worker, up to four times a second. Needs the scope `router`.",
            "tags": _TAGS,
            "security": _SECURITY,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"type": "object", "additionalProperties": True}}},
            },
            "responses": {
                "200": {
                    "description": "Taken; and what the other live workers have let in, of every tenant, and ids of "
                    "requests whose decisions are wanted with the next one.",
                    "content": {"application/json": {"schema": {"type": "object", "additionalProperties": True}}},
                },
                "204": {"description": "Taken; there is nothing to say."},
                "400": {"description": "It is no snapshot.", **_PROBLEM},
                "401": {"description": "No or no valid credentials.", **_PROBLEM},
                "403": {"description": "The scope is missing.", **_PROBLEM},
                "415": {"description": "Only JSON is read.", **_PROBLEM},
            },
        }
    },
}
"""Paths to add to the document."""
