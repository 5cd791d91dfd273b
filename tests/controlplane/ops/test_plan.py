"""What `pointsman up` runs."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.ops.supervisor.address import Address
from controlplane.ops.supervisor.only_one import AlreadyRunning, only_one
from controlplane.ops.supervisor.plan import Demo, Layout, Part, steps
from router import cli


async def nothing() -> None:
    await asyncio.sleep(0)


def layout(demo: bool, workers: int = 1, web: str = "127.0.0.1:8000") -> Layout:
    fleet = Demo("127.0.0.1", 8101, 8, nothing) if demo else None
    return Layout(Address.parse(web), Address("127.0.0.1", 8080), workers, Path("/data"), Path("/data/t"), fleet)


def names(found: Layout) -> list[list[str]]:
    return [[child.name for child in step.children] for step in steps(found)]


def test_the_order() -> None:
    assert names(layout(demo=False)) == [["web"], ["router-0"], ["celery", "beat"]]
    assert names(layout(demo=True)) == [["web"], ["router-0"], ["celery", "beat"], ["engines"], ["traffic"]]


def test_several_web_processes_share_the_port() -> None:
    found = replace(layout(demo=False), web_processes=3)
    (web,) = steps(found)[0].children
    assert web.arguments[-2:] == ("--workers", "3")
    assert "--workers" not in steps(layout(demo=False))[0].children[0].arguments


def test_a_part_runs_without_the_others() -> None:
    assert names(replace(layout(demo=False), only=Part.WEB)) == [["web"]]
    assert names(replace(layout(demo=False), only=Part.TASKS)) == [["celery", "beat"]]


def test_several_workers_share_the_port() -> None:
    (_, workers, _) = steps(layout(demo=False, workers=3))
    assert [child.name for child in workers.children] == ["router-0", "router-1", "router-2"]
    assert all("--reuse-port" in child.arguments for child in workers.children)


def test_every_router_command_has_the_options_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands belong to other packages: their own parsers read the arguments that the plan makes."""
    import argparse
    from importlib import import_module

    for step in steps(layout(demo=True, workers=2)):
        for child in step.children:
            if "router.cli" in child.arguments:
                _, _, _, command, *options = child.arguments
                parser = argparse.ArgumentParser()
                import_module(cli.COMMANDS[command]).add_arguments(parser)
                parser.parse_args(options)


def test_the_host_that_is_served_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POINTSMAN_ALLOWED_HOSTS", raising=False)
    (web,) = steps(layout(demo=False, web="10.1.2.3:8000"))[0].children
    assert "10.1.2.3" in web.environment["POINTSMAN_ALLOWED_HOSTS"].split(",")


def test_one_supervisor_a_data_directory(tmp_path: Path) -> None:
    with only_one(tmp_path), pytest.raises(AlreadyRunning, match="in use"), only_one(tmp_path):
        pass
    with only_one(tmp_path), only_one(tmp_path, "tasks"):
        pass
