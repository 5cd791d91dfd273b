"""A worker that follows KV events, a process before simulated engines that are processes: it foretells hits exactly."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from router.config import dump_config
from tests.e2e.fleet import MODEL, document
from tests.e2e.processes import eventually, is_ready, running, stop
from tests.patience import PATIENCE_S
from tests.ports import free_ports

BLOCK = 16
KV_TOKENS = 6144
"""Small: six conversations do not fit."""
TURNS = 80


class Engine:
    """A simulated engine in a process of its own, on ports that it keeps over a restart."""

    def __init__(self, folder: Path, name: str, first_port: int) -> None:
        self.url = f"http://127.0.0.1:{first_port}"
        self._log = folder / f"{name}.log"
        self._arguments = [
            *("-m", "router.cli", "engine", "--port", str(first_port), "--model", MODEL, "--speedup", "20"),
            *("--kv-tokens", str(KV_TOKENS), "--max-model-len", "4096", "--kv-events-port", str(first_port + 1)),
        ]
        self._stack = ExitStack()

    def start(self) -> None:
        self._process = self._stack.enter_context(running(self._arguments, self._log))
        eventually(is_ready(f"{self.url}/health"), f"{self.url} is healthy")

    def stop(self) -> None:
        stop(self._process)
        self._stack.close()


class Router:
    """The worker as its client and its metrics see it."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def of(self, metric: str) -> dict[str, float]:
        """Return a metric by instance."""
        found: dict[str, float] = {}
        for line in self._client.get("/metrics").text.splitlines():
            if line.startswith(f'{metric}{{instance_name="'):
                name, _, value = line.partition('="')[2].partition('"} ')
                found[name] = float(value)
        return found

    def settle(self, learnt: int, names: set[str]) -> None:
        """Wait until every instance is exact, and so many texts are learnt."""

        def is_settled() -> bool:
            exact = self.of("pointsman_instance_exact")
            known = self.of("pointsman_instance_texts_learnt_total")
            return {name for name, value in exact.items() if value} == names and sum(known.values()) >= learnt

        eventually(is_settled, f"{learnt} texts are learnt and {names} are exact")

    def ask(self, body: dict[str, Any]) -> tuple[int, int, str]:
        """Send a request; return predicted and reported cached tokens, and the answer."""
        metric = "pointsman_instance_predicted_hit_tokens_total"
        before = sum(self.of(metric).values())
        answer = self._client.post("/v1/chat/completions", json={"model": MODEL, **body})
        assert answer.status_code == 200, answer.text
        predicted = int(sum(self.of(metric).values()) - before)
        reported: int = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        return predicted, reported, answer.json()["choices"][0]["message"]["content"]


@contextmanager
def two_engines(folder: Path) -> Iterator[tuple[Router, list[Engine]]]:
    first = free_ports(8)
    engines = [Engine(folder, f"engine-{number}", first + 3 * number) for number in range(2)]
    config = folder / "config.json"
    config.write_bytes(dump_config(document({f"gpu-{n}": engine.url for n, engine in enumerate(engines)})))
    router = f"127.0.0.1:{first + 6}"
    with ExitStack() as stack:
        for engine in engines:
            engine.start()
            stack.callback(engine.stop)
        worker = ["-m", "router.cli", "worker", "--listen", router, "--config", str(config)]
        stack.enter_context(running([*worker, "--state-dir", str(folder / "state")], folder / "worker.log"))
        eventually(is_ready(f"http://{router}/readyz"), "the router is ready")
        yield Router(stack.enter_context(httpx.Client(base_url=f"http://{router}", timeout=PATIENCE_S))), engines


class Talkers:
    """A few conversations that take turns at random."""

    def __init__(self, router: Router, seed: int) -> None:
        self._router = router
        self._rng = random.Random(seed)
        self._talks: list[list[dict[str, Any]]] = []
        self.learnt = 0
        self.errors: list[int] = []
        """Of turns after the first of a conversation, in blocks."""
        self.reported = 0

    def turn(self) -> tuple[int, int]:
        """Take a turn; return predicted and reported cached tokens."""
        rng = self._rng
        if len(self._talks) < 6 or rng.random() < 0.05:
            system = f"you are assistant {rng.randrange(3)} " * 60
            self._talks = [*self._talks[-5:], [{"role": "system", "content": system}]]
        talk = rng.choice(self._talks)
        talk.append({"role": "user", "content": f"{rng.random()} " * rng.randrange(5, 40)})
        self._router.settle(self.learnt, {"gpu-0", "gpu-1"})
        predicted, reported, said = self._router.ask({"messages": talk, "max_tokens": 24})
        self.learnt += 1
        if len(talk) > 2:
            self.errors.append(abs(predicted - reported) // BLOCK)
            self.reported += reported
        talk.append({"role": "assistant", "content": said})
        return predicted, reported


def test_hits_are_foretold_to_the_block_through_evictions_a_reset_and_a_restart(tmp_path: Path) -> None:
    with two_engines(tmp_path) as (router, engines):
        talkers = Talkers(router, seed=5)
        for _ in range(TURNS):
            talkers.turn()
        held = router.of("pointsman_instance_events_blocks")
        assert all(value <= KV_TOKENS / BLOCK for value in held.values())

        httpx.post(f"{engines[0].url}/reset_prefix_cache", timeout=PATIENCE_S)
        asked = {"model": MODEL, "prompt": "x", "max_tokens": 1}
        httpx.post(f"{engines[0].url}/v1/completions", json=asked, timeout=PATIENCE_S)
        eventually(lambda: router.of("pointsman_instance_events_blocks")["gpu-0"] == 0, "the reset is known")
        for _ in range(TURNS // 4):
            talkers.turn()

        engines[1].stop()
        eventually(lambda: router.of("pointsman_instance_exact")["gpu-1"] == 0, "the engine is missed")
        engines[1].start()
        eventually(lambda: router.of("pointsman_instance_exact")["gpu-1"] == 1, "the engine is followed again")
        assert router.of("pointsman_instance_events_blocks")["gpu-1"] == 0
        for _ in range(TURNS // 4):
            talkers.turn()

        errors = sorted(talkers.errors)
        assert talkers.reported > 20_000
        assert (median(errors), errors[int(0.95 * len(errors))] <= 1) == (0, True), errors
        # Told by its events or, sooner, by a poll of its metrics, which has everything asked for anew.
        restarts = router.of("pointsman_instance_events_restarts_total")
        assert (restarts["gpu-0"], restarts["gpu-1"] in (0, 1)) == (0, True)
        assert max(router.of("pointsman_instance_hit_wrong_ratio").values()) <= 0.05
