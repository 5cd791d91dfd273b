"""An instance joins a running demo: ``python -m tests.benchmarks.joining_live``. Not part of the suite.

Simulated engines behind a real worker, with the demo's load and control plane. For each handling a demo is started,
runs until its windows are full, and gets one engine more. Measured are the first tokens of the requests that landed on
it in its first minute of taking requests, beside those of the other instances in the same minute and of the whole fleet
in the minute before. What the very same requests would have taken elsewhere is known in the simulator alone: what lands
on an empty instance are other requests, mostly those with much to prefill.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import msgspec

from controlplane.policies.presets import GENTLE_COLD_START
from tests.e2e.demo import Demo, running_demo
from tests.e2e.processes import eventually, is_ready, running
from tests.ports import free_ports

NAME = "joined"
CALM_S = 75.0
"""Until the sliding windows are full."""
FIRST_S = 60.0


class Handling(msgspec.Struct, frozen=True):
    """How the instance is treated."""

    title: str
    policy: Mapping[str, Any]
    preload: bool


HANDLINGS = (
    Handling("nothing", {}, False),
    Handling("preloading alone", {}, True),
    Handling("cold start as published, preloading", {"cold_start": {}}, True),
    Handling("gentle cold start, preloading", {"cold_start": GENTLE_COLD_START}, True),
)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """First tokens in the first minute of one instance that joined."""

    handling: str
    requests: int
    ttft_mean_s: float
    others_ttft_mean_s: float
    """Of the other instances in the same minute."""
    before_ttft_mean_s: float
    """Of all instances in the minute before."""
    hit_ratio: float
    """Of the prompts that landed there, as its engine reported."""
    preloads: int


class Counts(msgspec.Struct, frozen=True):
    """First tokens of one or several instances so far."""

    requests: float
    total_s: float

    def since(self, before: "Counts") -> "Counts":
        return Counts(self.requests - before.requests, self.total_s - before.total_s)

    @property
    def mean_s(self) -> float:
        return self.total_s / max(1.0, self.requests)


def main() -> None:
    """Measure the handlings that are named, or all, and print one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, action="append", help="number of a handling, from 0")
    args = parser.parse_args()
    for number in args.only or range(len(HANDLINGS)):
        sys.stdout.write(json.dumps(msgspec.to_builtins(measure(HANDLINGS[number]))) + "\n")
        sys.stdout.flush()


def measure(handling: Handling) -> Measured:
    """Run one demo with one handling."""
    with tempfile.TemporaryDirectory(prefix="joining-") as folder, ExitStack() as stack:
        environment = {"POINTSMAN_PRELOAD": "yes" if handling.preload else "no", "POINTSMAN_WARMING_S": "60"}
        demo = stack.enter_context(running_demo(Path(folder), "instances,read,policies", **environment))
        eventually(demo.busy, "every engine takes traffic")
        publish(demo, handling.policy)
        before = at(demo, time.monotonic() + CALM_S - FIRST_S)
        calm = at(demo, time.monotonic() + FIRST_S)
        join(demo, stack, Path(folder))
        start = counts(demo)
        end = at(demo, time.monotonic() + FIRST_S)
        return measured(handling, (before, calm), (start, end), demo)


def publish(demo: Demo, content: Mapping[str, Any]) -> None:
    """Have the demo's policy say what the handling says."""
    url = "/api/v1/policies/demo/"
    tag = demo.api.get(url).headers["ETag"]
    body = {"content": dict(content), "message": "For a measurement."}
    demo.api.post(f"{url}publish/", json=body, headers={"If-Match": tag}).raise_for_status()


def join(demo: Demo, stack: ExitStack, folder: Path) -> None:
    """Start one engine more, register it, and wait until its first request is placed."""
    port = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    arguments = ["-m", "router.cli", "engine", "--port", str(port), "--model", "sim"]
    stack.enter_context(running(arguments, folder / "joined.log"))
    eventually(is_ready(f"{url}/health"), "the engine is healthy")
    demo.api.put(f"/api/v1/instances/{NAME}/", json={"url": url, "hardware": "a100-80g"}).raise_for_status()
    eventually(lambda: NAME in counts(demo), "the worker knows it")


def at(demo: Demo, moment_s: float) -> dict[str, Counts]:
    """Return the counts at a moment."""
    eventually(lambda: time.monotonic() >= moment_s, "the moment", patience_s=2 * (CALM_S + FIRST_S))
    return counts(demo)


def counts(demo: Demo) -> dict[str, Counts]:
    """Return first tokens by instance, as the worker's metrics have them."""
    found: dict[str, Counts] = {}
    series = demo.stack.metrics()
    for name, value in series.items():
        if name.startswith("pointsman_instance_ttft_seconds_count{"):
            instance = name.partition('instance_name="')[2].partition('"')[0]
            total_s = series[name.replace("_count{", "_sum{")]
            found[instance] = Counts(value, total_s)
    return found


def measured(
    handling: Handling,
    calm: tuple[dict[str, Counts], dict[str, Counts]],
    first: tuple[dict[str, Counts], dict[str, Counts]],
    demo: Demo,
) -> Measured:
    """Put together what was counted."""
    none = Counts(0, 0)
    spans = {name: count.since(first[0].get(name, none)) for name, count in first[1].items()}
    calm_spans = [count.since(calm[0].get(name, none)) for name, count in calm[1].items()]
    new = spans.pop(NAME)
    done = demo.api.get("/api/v1/preloads/", params={"state": "done", "instance": NAME}).raise_for_status().json()
    return Measured(
        handling=handling.title,
        requests=int(new.requests),
        ttft_mean_s=round(new.mean_s, 4),
        others_ttft_mean_s=round(_together(spans.values()).mean_s, 4),
        before_ttft_mean_s=round(_together(calm_spans).mean_s, 4),
        hit_ratio=round(_hit_ratio(demo.stack.metrics()), 3),
        preloads=int(done["count"]),
    )


def _together(parts: Any) -> Counts:
    parts = list(parts)
    return Counts(sum(part.requests for part in parts), sum(part.total_s for part in parts))


def _hit_ratio(series: Mapping[str, float]) -> float:
    label = f'{{instance_name="{NAME}"}}'
    hits = series[f"pointsman_instance_reported_hit_tokens_total{label}"]
    return hits / max(1.0, series[f"pointsman_instance_reported_prompt_tokens_total{label}"])


if __name__ == "__main__":
    try:
        main()
    except httpx.HTTPStatusError as error:
        sys.exit(f"{error}: {error.response.text}")
