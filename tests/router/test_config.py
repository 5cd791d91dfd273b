"""A configuration document is taken whole or refused with every reason."""

import msgspec
import pytest

from router.config import ConfigDocument, ConfigError, InstanceConfig, WorkloadConfig, dump_config, parse_config
from router.core.policy import Policy


def document(**changes: object) -> bytes:
    return dump_config(msgspec.structs.replace(ConfigDocument(revision=1), **changes))


def test_a_document_survives_the_round_trip() -> None:
    original = ConfigDocument(
        revision=7,
        instances=(InstanceConfig(id="a", name="gpu-0", url="http://127.0.0.1:9000", models=("m",)),),
        policies=(Policy(name="default", a=0.5), Policy(name="rr", scorer="round_robin")),
        workloads=(WorkloadConfig(name="default", policy="default"), WorkloadConfig(name="batch", policy="rr")),
    )
    assert parse_config(dump_config(original)) == original


def test_equal_documents_give_equal_bytes() -> None:
    assert document(policies=(Policy(params={}),)) == document()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema": 2}, "schema 2"),
        ({"workloads": ()}, "no workload named default"),
        ({"workloads": (WorkloadConfig(name="default", policy="gone"),)}, "no policy named gone"),
        ({"workloads": (WorkloadConfig(name="preload", policy="default"),)}, "preloads are counted under that name"),
        ({"policies": (Policy(), Policy())}, "policy 'default' stands 2 times"),
        ({"policies": (Policy(scorer="magic"),)}, "no scorer named 'magic'"),
        ({"policies": (Policy(a=-1),)}, "exponent a is -1"),
        ({"policies": (Policy(params={"x": 1.0}),)}, "no parameter 'x'"),
        ({"instances": (InstanceConfig(id="a", name="n", url="ftp://x"),)}, "ftp://x"),
        ({"instances": (InstanceConfig(id="a", name="n", url="http://x", kv_block_tokens=0),)}, "kv_block_tokens"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_config(document(**changes))


def test_every_fault_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(document(schema=3, workloads=(), policies=(Policy(scorer="magic"),)))
    assert len(caught.value.reasons) == 3


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"revision": 1, "colour": "red"}', b"\xff"])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError):
        parse_config(data)
