"""An engine's pages for probes, over httpx without a socket: each page can be changed while a test runs."""

import json

import httpx


class ProbedEngine:
    """Answers /health, /v1/models and /metrics; ``pages`` maps a path to (status, body)."""

    def __init__(self, model: str = "sim", started_unix_s: float = 100.0) -> None:
        self.pages: dict[str, tuple[int, bytes]] = {
            "/health": (200, b""),
            "/v1/models": (200, json.dumps({"data": [{"id": model}]}).encode()),
        }
        self.restart(started_unix_s)
        self.asked: list[httpx.Request] = []

    def restart(self, started_unix_s: float) -> None:
        """Be another process."""
        text = (
            'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0\n'
            f"process_start_time_seconds {started_unix_s}\n"
        )
        self.pages["/metrics"] = (200, text.encode())

    def client(self) -> httpx.AsyncClient:
        """Return a client that talks to it."""
        return httpx.AsyncClient(transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        status, body = self.pages.get(request.url.path, (404, b'{"detail":"Not Found"}'))
        return httpx.Response(status, content=body)
