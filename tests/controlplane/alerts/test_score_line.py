"""The line on the page is the line of the alert."""

import pytest

from controlplane.alerts.evaluators.score_tail import ScoreTailLimits, score_tail
from controlplane.alerts.score_line import ScoreLine, score_line
from controlplane.alerts.services.kind_settings import set_kind
from controlplane.alerts.window import Window
from controlplane.telemetry import rollups
from controlplane.telemetry.rollup import WorkerRollup, WorkloadRollup
from tests.controlplane.alerts.conftest import OLGA
from tests.controlplane.alerts.rollups_of import END, instance, rollup

pytestmark = pytest.mark.django_db(databases=["default", "telemetry"])
HIGH = 80


def reported(usual_bucket: int = 40, name: str = "chat", worker: str = "router-0") -> list[WorkerRollup]:
    """Ten minutes of usual decisions of a workload, then twenty seconds far above."""
    made = []
    for ago in range(1, 61):
        score = {HIGH: 30} if ago <= 2 else {usual_bucket: 20}
        workload = WorkloadRollup(name=name, policy="p@1", requests=20, score=score)
        made.append(rollup(instance("gpu-00", score=score), worker=worker, ago=ago, workloads=(workload,)))
    return made


def write(made: list[WorkerRollup]) -> None:
    rollups.write(made)


def test_it_is_where_the_evaluator_counts_from() -> None:
    made = reported()
    write(made)
    line = score_line(END + 1)
    (found, of_instance) = score_tail(Window(end=END, rollups=sorted(made, key=lambda r: r.bucket)), ScoreTailLimits())
    assert line.workload == "chat"
    assert line.score == found.values["line_score"]
    assert line.usual_p95 == found.values["usual_p95_score"]
    assert line.instances == {"gpu-00": of_instance.values["line_score"]}


def test_it_follows_the_settings_in_force() -> None:
    write(reported())
    before = score_line(END + 1)
    set_kind(actor=OLGA, name="score_tail", enabled=True, limits={"factor": 2, "share": 0.25})
    after = score_line(END + 1)
    assert before.score is not None
    assert after.score == pytest.approx(before.score / 2, rel=0.01)
    assert (after.factor, after.share) == (2, 0.25)
    set_kind(actor=OLGA, name="score_tail", enabled=False, limits={})
    assert score_line(END + 1) == ScoreLine(enabled=False)


def test_of_several_workloads_the_first_to_fire_is_shown_unless_one_is_chosen() -> None:
    write(reported(40, "chat"))
    write(reported(30, "batch", worker="router-1"))
    assert score_line(END + 1).workload == "batch"
    chosen = score_line(END + 1, "chat")
    assert chosen.workload == "chat"
    assert (chosen.score or 0) > (score_line(END + 1).score or 0)


def test_too_few_decisions_make_no_line() -> None:
    write(reported()[:4])
    line = score_line(END + 1)
    assert line.enabled
    assert line.score is None
