"""Asking why a request went where it did: workers are given a moment to answer, which a busy machine may overrun."""

from typing import Any

import httpx

from tests.e2e.processes import eventually

CONFLICT = 409
"""Some worker did not answer in time, or none was heard of late."""


def ask_about(api: httpx.Client, request_id: str) -> httpx.Response:
    """Ask a control plane about a request, again and again until all workers have answered."""
    url = f"/api/v1/decisions/{request_id}/"
    return eventually(lambda: _answered(api.get(url)), f"workers answer about {request_id}")


def explained(api: httpx.Client, request_id: str) -> dict[str, Any]:
    """Return the explanation of a request."""
    found: dict[str, Any] = ask_about(api, request_id).raise_for_status().json()
    return found


def forgotten_by(api: httpx.Client, request_id: str) -> int:
    """Return how many workers say that they do not remember a request."""
    answer = ask_about(api, request_id)
    assert answer.status_code == 404, answer.text
    return int(answer.json()["asked"])


def _answered(answer: httpx.Response) -> httpx.Response | None:
    return None if answer.status_code == CONFLICT else answer
