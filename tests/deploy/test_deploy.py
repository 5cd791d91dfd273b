"""What deploy/ says: commands that exist, settings that are documented, files that are there."""

import argparse
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import load_command_class

from router.proxy import command as worker

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
ELSEWHERE = {"PYTHONUNBUFFERED", "POINTSMAN_CONTROL"}
"""Variables of others, and of the unit itself."""


def parse(line: str) -> argparse.Namespace:
    """Parse a `pointsman` command line as the command itself does; what it does not know ends the test."""
    name, *arguments = shlex.split(line)
    if name == "worker":
        parser = argparse.ArgumentParser()
        worker.add_arguments(parser)
        return parser.parse_args(arguments)
    return load_command_class("controlplane.ops", name).create_parser("pointsman", name).parse_args(arguments)


def started_by(unit: Path) -> str:
    found = re.search(r"^ExecStart=\S+/pointsman (.*)$", unit.read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def compose(path: str = "compose.yaml") -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / path).read_text())
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_what_exists(unit: Path) -> None:
    assert parse(started_by(unit))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_finds_no_fault_in_a_unit(unit: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    copy = tmp_path / unit.name.replace("@", "@0")
    copy.write_text(re.sub(r"/opt/pointsman/bin/pointsman", "/bin/true", unit.read_text()))
    found = subprocess.run([program, "verify", str(copy)], capture_output=True, text=True, check=False)
    assert [line for line in found.stderr.splitlines() if unit.stem.partition("@")[0] in line] == []


def test_the_containers_start_what_exists() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    standard = re.search(r"^CMD \[(.*)\]$", dockerfile, re.MULTILINE)
    assert standard is not None
    assert parse(shlex.join(yaml.safe_load(f"[{standard[1]}]"))).web == "0.0.0.0:8000"
    assert parse(shlex.join(compose()["services"]["pointsman"]["command"])).workers == 2


def test_the_parts_of_a_scaled_deployment_start_what_exists() -> None:
    services = compose("scaled/compose.yaml")["services"]
    assert {parse(shlex.join(services[name]["command"])).only for name in ("web", "tasks")} == {"web", "tasks"}
    (line,) = services["router"]["command"]
    routed = parse(line.removeprefix("exec pointsman ").replace("$$", "$"))
    assert routed.control == f"http://proxy:{services['proxy']['ports'][0].rpartition(':')[2]}"
    assert routed.name == "router-$(hostname)", "each container has another name"
    assert "proxy" in services["web"]["environment"]["POINTSMAN_ALLOWED_HOSTS"].split(",")


def test_nginx_finds_no_fault_in_the_proxy(tmp_path: Path) -> None:
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("nginx is not installed: apt-get install nginx")
    text = (DEPLOY / "scaled/nginx.conf").read_text()
    assert {"web:8000", "router:8080"} <= set(re.findall(r"server (\S+) resolve", text))
    # Names of containers are known only among containers; before 1.27.3 nginx resolves no names later on.
    text = re.sub(r"server \w+:(\d+) resolve", r"server 127.0.0.1:\1", re.sub(r"resolver .*;", "", text))
    text = f"pid {tmp_path}/pid;\nerror_log stderr;\n" + text.replace("listen ", "listen 127.0.0.1:")
    copy = tmp_path / "nginx.conf"
    copy.write_text(text)
    found = subprocess.run([program, "-t", "-c", str(copy)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_every_setting_is_documented() -> None:
    known = (ROOT / "docs/reference/settings.md").read_text()
    used = set(compose()["services"]["pointsman"]["environment"])
    used |= set(compose("scaled/compose.yaml")["services"]["web"]["environment"])
    used |= set(re.findall(r"^([A-Z_]+)=", (DEPLOY / "systemd/pointsman.env").read_text(), re.MULTILINE))
    used |= set(re.findall(r"^ENV (\w+)=", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE))
    assert len(used) > 5
    assert [name for name in used - ELSEWHERE if f"`{name.removesuffix('_FILE')}`" not in known] == []


@pytest.mark.parametrize("path", ["compose.yaml", "scaled/compose.yaml"])
def test_every_secret_and_volume_is_declared(path: str) -> None:
    whole = compose(path)
    for service in whole["services"].values():
        assert set(service.get("secrets", [])) <= set(whole["secrets"])
        sources = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        files = {source for source in sources if source.startswith("./")}
        assert all((DEPLOY / path).parent.joinpath(file).is_file() for file in files)
        assert sources - files <= set(whole["volumes"])
    assert (DEPLOY / "Dockerfile").is_file()
