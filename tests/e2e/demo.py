"""A running demo and the ways into it: pages as somebody who signed in, REST with a token, the router."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec

from tests.e2e.fleet import Stack
from tests.e2e.processes import eventually, run_text, running, stop
from tests.patience import PATIENCE_S
from tests.ports import free_ports


class Demo(msgspec.Struct, frozen=True):
    """A running demo."""

    web: str
    stack: Stack
    pages: httpx.Client
    api: httpx.Client

    def rows(self) -> dict[str, dict[str, object]]:
        """Return the instances as the live page shows them."""
        frame = self.pages.get("/live/frame/").raise_for_status().json()
        return {instance["name"]: instance for instance in frame["instances"]}

    def busy(self) -> bool:
        """Say whether all eight engines take traffic."""
        rows = self.rows()
        return len(rows) >= 8 and all(row["requests_per_s"] for row in rows.values())


@contextmanager
def running_demo(folder: Path, scopes: str = "instances,read", **environment: str) -> Iterator[Demo]:
    """Run ``pointsman up --demo`` until the block ends."""
    first = free_ports(2)
    web, router = f"127.0.0.1:{first}", f"127.0.0.1:{first + 1}"
    data = folder / "data"
    arguments = ["manage.py", "up", "--demo", "--web", web, "--router", router, "--data-dir", str(data)]
    log = folder / "up.log"
    with running(arguments, log, **environment) as process:
        printed = eventually(lambda: re.search(r"http://\S+/login/once/\S+", log.read_text()), "the login link")
        create = ["manage.py", "token", "create", "--name", "test", "--scopes", scopes]
        token = run_text(create, POINTSMAN_DATA_DIR=str(data)).strip()
        with (
            httpx.Client(base_url=f"http://{web}", follow_redirects=True, timeout=PATIENCE_S) as pages,
            httpx.Client(
                base_url=f"http://{web}", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S
            ) as api,
        ):
            assert pages.get(printed.group()).status_code == 200
            yield Demo(f"http://{web}", Stack(f"http://{router}", ()), pages, api)
        assert stop(process, PATIENCE_S) == 0
