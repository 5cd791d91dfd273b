"""Addresses and ports: read strictly, checked first, and whoever has one is named."""

import os
import socket
import subprocess
import sys

import pytest

from controlplane.ops.supervisor.address import Address
from controlplane.ops.supervisor.ports import free_run, port_fault
from tests.ports import free_ports

LISTEN = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:8000", "127.0.0.1", 8000), (":8000", "127.0.0.1", 8000), ("[::1]:80", "::1", 80)],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize("text", ["8000", "host:", "host:0", "host:99999", "host:x", ""])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        Address.parse(text)


def test_a_wildcard_is_reached_by_loopback() -> None:
    assert Address("0.0.0.0", 80).url == "http://127.0.0.1:80"
    assert Address("::", 80).url == "http://[::1]:80"
    assert Address("10.0.0.1", 80).url == "http://10.0.0.1:80"


def test_a_taken_port_names_who_has_it() -> None:
    command = [sys.executable, "-c", LISTEN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        fault = port_fault(Address("127.0.0.1", int(other.stdout.readline())))
        other.communicate("\n")
    assert fault is not None
    assert f"process {other.pid} ({sys.executable} -c import socket" in fault


def test_a_port_that_this_process_has_is_taken_as_well() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        fault = port_fault(Address("127.0.0.1", server.getsockname()[1]))
    assert fault is not None
    assert f"process {os.getpid()} (" in fault


def test_a_free_port_is_fine_and_a_strange_host_is_not() -> None:
    port = free_ports(1)
    assert port_fault(Address("127.0.0.1", port)) is None
    assert "cannot listen" in str(port_fault(Address("192.0.2.1", port)))


def test_a_run_of_free_ports_goes_around_what_is_taken() -> None:
    taken = free_ports(1)
    with socket.create_server(("127.0.0.1", taken)):
        first = free_run("127.0.0.1", taken, 3)
    assert first > taken
