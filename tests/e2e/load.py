"""Load without a pause: clients that send one stream after another until they are told to stop."""

from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from types import TracebackType
from typing import Any, Self

import httpx

from tests.patience import PATIENCE_S

END = b"data: [DONE]\n\n"


class Load:
    """Runs for the length of a ``with`` block; what was begun in it is waited for at its end."""

    def __init__(self, url: str, body: dict[str, Any], clients: int) -> None:
        self._url = url
        self._body = body | {"stream": True}
        self._clients = clients
        self._over = Event()
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(clients, thread_name_prefix="load")
        self._running: list[Future[None]] = []
        self.whole = 0
        """Answers that came with status 200 and to their end."""
        self.failures: list[str] = []
        self.policies: set[str] = set()
        """What the answers say about the policy that placed them."""

    def __enter__(self) -> Self:
        self._running = [self._pool.submit(self._send_until_over) for _ in range(self._clients)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._pool.shutdown()
        for client in self._running:
            client.result()

    def _send_until_over(self) -> None:
        with httpx.Client(timeout=PATIENCE_S) as client:
            while not self._over.is_set():
                self._send(client)

    def _send(self, client: httpx.Client) -> None:
        try:
            answer = client.post(self._url, json=self._body)
        except httpx.HTTPError as error:
            self._note(repr(error), None)
        else:
            whole = answer.status_code == 200 and answer.content.endswith(END)
            self._note(
                None if whole else f"{answer.status_code}: {answer.text[-200:]}",
                answer.headers.get("x-pointsman-policy"),
            )

    def _note(self, failure: str | None, policy: str | None) -> None:
        with self._lock:
            if failure is None:
                self.whole += 1
            else:
                self.failures.append(failure)
            if policy is not None:
                self.policies.add(policy)
