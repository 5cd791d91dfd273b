"""Several web processes are one control plane: each shows and does the same, and what one heard is counted once."""

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import psycopg
import pytest
from websockets.sync.client import ClientConnection

from controlplane.telemetry.frame import Frame
from controlplane.telemetry.rollup import WorkerRollup, bucket_of_time
from tests.e2e.explaining import explained, forgotten_by
from tests.e2e.processes import eventually
from tests.e2e.web_pair import WebPair
from tests.patience import PATIENCE_S
from tests.postgres_server import new_database

pytestmark = pytest.mark.timeout(1200)
BOTH = (0, 1)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebPair]:
    with new_database() as database, WebPair(tmp_path_factory.mktemp("pair"), database).running() as found:
        yield found


def rollups(pair: WebPair) -> list[WorkerRollup]:
    """Return all roll-ups."""
    with psycopg.connect(pair.environment["DATABASE_URL"]) as connection:
        rows = connection.execute("select body from telemetry_rolluprow").fetchall()
    return [msgspec.json.decode(bytes(body), type=WorkerRollup) for (body,) in rows]


def written_requests(pair: WebPair) -> int:
    """Return the requests in all roll-ups."""
    return sum(row.requests for rollup in rollups(pair) for row in rollup.instances.values())


def wait_until_written(pair: WebPair) -> None:
    """Wait until everything that was heard so far is written: of each worker something is that came later."""
    bucket = bucket_of_time(time.time())

    def later() -> bool:
        return {rollup.worker for rollup in rollups(pair) if rollup.bucket > bucket} == {"router-0", "router-1"}

    eventually(later, "what came later is written")


def apart(pair: WebPair) -> None:
    """Wait until each worker reports to another web process, and both know."""
    for number in BOTH:
        eventually(lambda: len(set(pair.heard(number).values())) == 2, "each worker reports to another")  # noqa: B023


def settle(pair: WebPair) -> None:
    """Wait until both web processes know of everything that was sent so far: of something that was sent after it."""
    for worker in BOTH:
        last = f"last-of-{worker}-{secrets.token_hex(4)}"
        assert pair.chat(worker, **{"x-request-id": last}).status_code == 200
        for number in BOTH:
            eventually(lambda: newest(pair, number) == last, f"web process {number} knows of {last}")  # noqa: B023


def newest(pair: WebPair, number: int) -> str:
    """Return the id of the newest request that a web process explains."""
    decision = pair.frame(number).decision
    return "" if decision is None else decision.request_id


def shown(socket_: ClientConnection) -> str:
    """Return the id of the newest request in the next frame that a browser gets."""
    decision = msgspec.json.decode(socket_.recv(PATIENCE_S), type=Frame).decision
    return "" if decision is None else decision.request_id


def same(pair: WebPair) -> bool:
    """Say whether both web processes show the same; they are asked one after the other, so they may not for once."""
    one, other = (pair.frame(number) for number in BOTH)
    return (one.headline.requests, one.instances[0].score_counts, one.decision) == (
        other.headline.requests,
        other.instances[0].score_counts,
        other.decision,
    )


def test_each_shows_the_workers_and_the_requests_of_both(pair: WebPair) -> None:
    apart(pair)
    for worker in BOTH:
        sent = f"shown-of-{worker}"
        with pair.socket(0, "/ws/scores/") as one, pair.socket(1, "/ws/scores/") as other:
            assert pair.chat(worker, **{"x-request-id": sent}).status_code == 200
            for socket_ in (one, other):
                eventually(lambda: shown(socket_) == sent, f"a socket shows {sent}")  # noqa: B023
    for number in BOTH:
        assert {worker.name for worker in pair.frame(number).workers} == {"router-0", "router-1"}
    eventually(lambda: same(pair), "both show the same")


def test_any_request_is_explained_by_either(pair: WebPair) -> None:
    for worker in BOTH:
        wanted = f"asked-of-{worker}"
        pair.chat(worker, **{"x-request-id": wanted})
        for _ in range(3):  # so that the worker tells of another one by itself
            pair.chat(worker)
        for web in BOTH:
            found = explained(pair.apis[web], wanted)
            assert (found["request_id"], found["chosen"]) == (wanted, "gpu-1")
    eventually(lambda: forgotten_by(pair.apis[1], "never-sent") == 2, "both workers say that it was never here")


def test_a_quota_holds_over_workers_of_different_web_processes(pair: WebPair) -> None:
    apart(pair)
    limit, sent = 30, 120
    pair.apis[0].post("/api/v1/tenants/", json={"name": "acme", "requests_per_minute": limit}).raise_for_status()
    made = pair.apis[1].post("/api/v1/tenants/acme/keys/", json={"name": "key"}).raise_for_status().json()
    revision = pair.get(0, "/api/v1/router/workers")["revision"]
    eventually(lambda: pair.get(1, "/api/v1/router/workers")["applied"], f"both run revision {revision}")
    headers = {"Authorization": f"Bearer {made['key']}"}
    began_s = time.monotonic()
    with ThreadPoolExecutor(2) as clients:
        answers = list(clients.map(lambda number: pair.chat(number % 2, **headers), range(sent)))
    took_s = time.monotonic() - began_s
    served = sum(answer.status_code == 200 for answer in answers)
    assert {answer.status_code for answer in answers} == {200, 429}
    assert served <= limit + took_s * limit / 60 + 1, "each worker hears what the other has let in"
    assert served >= limit * 0.8, "and what is left is given away"

    def used() -> tuple[int, int]:
        rows = pair.get(1, "/api/v1/tenants/acme/usage/")
        rows = rows["results"] if isinstance(rows, dict) else rows
        return sum(row["requests"] for row in rows), sum(row["refused"] for row in rows)

    eventually(lambda: used()[0] >= sent, "what was used is written")
    assert used() == (sent, sent - served)


def test_a_change_of_alerts_reaches_browsers_of_both(pair: WebPair) -> None:
    with pair.socket(0, "/ws/alerts/") as one, pair.socket(1, "/ws/alerts/") as other:
        known = [msgspec.json.decode(socket_.recv(PATIENCE_S))["change"] for socket_ in (one, other)]
        matcher = {"label": "instance", "operator": "=", "value": "gpu-9"}
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        body = {"matchers": [matcher], "ends_at": ends, "comment": "for a test"}
        answer = pair.apis[0].post("/api/v1/silences/", json=body)
        assert answer.status_code == 201, answer.text
        for socket_, change in zip((one, other), known, strict=True):
            assert msgspec.json.decode(socket_.recv(PATIENCE_S))["change"] > change


def test_a_web_process_that_is_killed_is_missed_by_nobody(pair: WebPair) -> None:
    apart(pair)
    name = pair.heard(1)["router-1"]
    settle(pair)
    requests = pair.frame(1).headline.requests
    pair.kill(0)
    eventually(lambda: pair.heard(1) == {"router-0": name, "router-1": name}, "the other has its worker")
    assert pair.chat(0, **{"x-request-id": "while-one-is-away"}).status_code == 200
    assert explained(pair.apis[1], "while-one-is-away")["chosen"] == "gpu-1"
    assert pair.frame(1).headline.requests <= requests + 1, "nothing was counted twice"
    pair.begin_again(0)
    eventually(lambda: pair.heard(0).keys() == {"router-0", "router-1"}, "it is back, and knows all")
    assert explained(pair.apis[0], "while-one-is-away")["chosen"] == "gpu-1"


def test_what_was_served_is_written_once_also_when_a_web_process_is_told_to_end(pair: WebPair) -> None:
    settle(pair)
    wait_until_written(pair)
    before = written_requests(pair)
    for number in range(10):
        assert pair.chat(number % 2).status_code == 200
    settle(pair)
    pair.end(0)
    pair.begin_again(0)
    at_most, known, at_least = (pair.frame(number).headline.requests for number in (1, 0, 1))
    assert at_least <= known <= at_most, "what starts knows the last minute, which goes on"
    sent = 10 + len(BOTH)
    eventually(lambda: written_requests(pair) >= before + sent, "all of them are written")
    wait_until_written(pair)
    assert written_requests(pair) == before + sent
