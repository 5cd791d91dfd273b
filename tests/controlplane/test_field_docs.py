"""What fields mean, as structs say it."""

import msgspec
import pytest

from controlplane.field_docs import field_docs
from router.config import AdmissionConfig, WorkloadConfig


class Sample(msgspec.Struct):
    """A struct."""

    told: int = 0
    """Told in
    two lines, of ``code``."""
    silent: int = 0
    last: int = 0
    """The last."""


def test_each_field_has_the_text_below_it() -> None:
    assert field_docs(Sample) == {"told": "Told in two lines, of `code`.", "last": "The last."}


@pytest.mark.parametrize("name", AdmissionConfig.__struct_fields__)
def test_every_setting_of_admission_says_what_it_means(name: str) -> None:
    assert field_docs(AdmissionConfig)[name].endswith(".")


def test_the_limit_of_a_workload_says_what_it_means() -> None:
    assert "at one time" in field_docs(WorkloadConfig)["concurrent"]
