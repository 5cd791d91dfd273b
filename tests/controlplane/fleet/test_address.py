"""Which addresses an instance may have."""

import pytest

from controlplane.fleet.address import address_faults, host_fault, normalized

SETTINGS = "controlplane.fleet.address.settings"


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.7:8000",
        "https://engine.example/base",
        "http://127.0.0.1:8101",
        "http://[::1]:8000",
        "http://gpu-1:8000",
    ],
)
def test_engines_may_be_on_private_networks_and_this_machine(url: str) -> None:
    assert address_faults(url) == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://10.0.0.7", "http"),
        ("file:///etc/passwd", "http"),
        ("http://", "host"),
        ("http://me:secret@10.0.0.7", "credentials"),
        ("http://10.0.0.7/?a=1", "query"),
        ("http://10.0.0.7:0", "Port 0"),
        ("http://10.0.0.7:99999", "URL"),
        ("http://10.0.0.7/a b", "white space"),
        ("http://10.0.0.7\r\nX: y", "white space"),
        ("http://169.254.169.254/latest", "metadata"),
        ("http://169.254.1.1", "link-local"),
        ("http://[fe80::1]", "link-local"),
        ("http://[::ffff:169.254.169.254]", "metadata"),
        ("http://2852039166", "metadata"),
        ("http://0xa9fea9fe", "metadata"),
        ("http://169.254.43518", "metadata"),
        ("http://metadata.google.internal", "metadata"),
        ("http://METADATA.google.internal.", "metadata"),
        ("http://100.100.100.200", "metadata"),
        ("http://0.0.0.0:8000", "one machine"),
        ("http://224.0.0.1", "one machine"),
        ("http://" + "a" * 500, "characters"),
    ],
)
def test_others_are_refused_with_a_reason(url: str, why: str) -> None:
    assert any(why in fault for fault in address_faults(url)), address_faults(url)


def test_the_operator_may_allow_link_local_addresses(settings: object) -> None:
    settings.ALLOW_LINK_LOCAL = True  # type: ignore[attr-defined]
    assert host_fault("169.254.169.254") is None


def test_slashes_at_the_end_mean_nothing() -> None:
    assert normalized(" http://10.0.0.7:8000// ") == "http://10.0.0.7:8000"
