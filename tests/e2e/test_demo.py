"""`pointsman up --demo` as a person uses it: sign in, watch, send, register an engine, lose one, stop."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.demo import Demo, running_demo
from tests.e2e.processes import eventually, is_ready, running
from tests.patience import PATIENCE_S
from tests.ports import free_ports

MODEL = "sim"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    with running_demo(folder) as made:
        yield made
    assert not processes_naming(str(folder)), "something is left running"


def processes_naming(text: str) -> list[str]:
    """Return the command lines of running processes that contain a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


def test_live_traffic_reaches_all_eight_engines(demo: Demo) -> None:
    eventually(demo.busy, "every engine takes traffic")


def test_the_login_link_works_once(demo: Demo) -> None:
    assert demo.pages.get("/").status_code == 200
    stranger = httpx.get(f"{demo.web}/", follow_redirects=True, timeout=PATIENCE_S)
    assert "/login" in str(stranger.url)


def test_a_ninth_engine_joins_by_one_put_and_its_death_fails_no_later_request(demo: Demo, tmp_path: Path) -> None:
    port = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    arguments = ["-m", "router.cli", "engine", "--port", str(port), "--model", MODEL]
    with running(arguments, tmp_path / "ninth.log") as engine:
        eventually(is_ready(f"{url}/health"), "the ninth engine is healthy")
        assert demo.api.put("/api/v1/instances/ninth/", json={"url": url}).status_code == 201
        eventually(lambda: "ninth" in demo.rows(), "the ninth engine on the page")
        eventually(lambda: demo.rows()["ninth"]["requests_per_s"], "traffic on the ninth engine")
        engine.kill()
        engine.wait()
        statuses = {demo.stack.chat(f"request {i}", model=MODEL).status_code for i in range(100)}
    assert statuses == {200}
    eventually(
        lambda: demo.api.get("/api/v1/instances/ninth/").json()["state"] == "unreachable", "ninth is unreachable"
    )
    assert demo.api.delete("/api/v1/instances/ninth/?force=true").status_code == 204
    eventually(lambda: "ninth" not in demo.rows(), "the ninth engine is gone from the page")


def test_a_port_that_is_taken_is_named(demo: Demo, tmp_path: Path) -> None:
    taken = demo.web.removeprefix("http://")
    arguments = ["manage.py", "up", "--web", taken, "--data-dir", str(tmp_path / "data")]
    with running(arguments, tmp_path / "up.log") as process:
        assert process.wait(PATIENCE_S) != 0
    assert taken.rpartition(":")[2] in (tmp_path / "up.log").read_text()
