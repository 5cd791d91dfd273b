"""What it costs a web process to read an hour of 64 instances."""

import time

import pytest

from controlplane.telemetry.history import Question, read_history
from tests.controlplane.telemetry.test_history import EVERYTHING, NOW_S, write_an_hour

pytestmark = [pytest.mark.benchmark, pytest.mark.django_db(transaction=True, databases=["default", "telemetry"])]
MOST_CPU_S = 5.0


def test_a_long_past_is_read_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    write_an_hour()
    began_s = time.process_time()
    read_history(Question(minutes=60, selection=EVERYTHING), NOW_S)
    took_s = time.process_time() - began_s
    with capsys.disabled():
        print(f"\n{took_s:.2f} s of processor time")
    assert took_s < MOST_CPU_S
