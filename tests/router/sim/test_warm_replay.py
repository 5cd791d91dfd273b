"""Replaying the end of a recording: caches begin with what its requests found there, and hits are as they were."""

from pathlib import Path
from struct import pack

import msgspec
import pytest

from router.core.hardware_profiles import A100_80G
from router.core.policy import Policy
from router.sim.cluster import Cluster
from router.sim.cost import PS_PER_S
from router.sim.kv_cache import BlockCache
from router.sim.metrics import Slo
from router.sim.report.comparison import provenance_of
from router.sim.runner import Job, Setting, run_job
from router.sim.scenario import Scenario, uniform_fleet
from router.sim.traces.generator import generate
from router.sim.traces.held_prefixes import SeenRequest, held_at_start
from router.sim.traces.record import HeldPrefix, Trace
from router.sim.traces.recording import RecordedRequest, RecordingHeader, RecordingWriter, load_recording
from router.sim.traces.segments import Window, load_window, segment_name
from router.sim.traffic import RecordedTraffic
from tests.router.sim.driving import chain

STARTED_S = 1_700_000_000.0
FLEET = uniform_fleet(A100_80G, 4)


def test_what_was_hit_was_computed_in_the_recording_or_was_there_before() -> None:
    seen = [
        SeenRequest("a", chain(1, 2, 3), 2),  # 1, 2 were there
        SeenRequest("a", chain(1, 2, 3, 4), 3),  # 3 is of the first
        SeenRequest("b", chain(1, 2), 0),
        SeenRequest("b", chain(1, 2, 5), 2),  # of the one before
        SeenRequest("b", chain(7, 8, 9), 1),
    ]
    assert held_at_start(seen) == (HeldPrefix("b", chain(7)), HeldPrefix("a", chain(1, 2)))


def test_a_cache_begins_with_what_fits() -> None:
    cache = BlockCache(4)
    assert cache.begin_with(chain(1, 2, 3)) == 3
    assert cache.begin_with(chain(1, 2, 4)) == 3
    assert cache.begin_with(chain(1, 2, 4, 5, 6)) == 3, "no room: nothing goes for it"
    cache.check_integrity()
    assert (cache.cached, cache.pinned) == (4, 0)
    assert cache.match(chain(1, 2, 3), 3).blocks == 3


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recording of four simulated minutes, as a worker before real engines would have written it."""
    trace = generate("chatbot", duration_s=240, requests_per_s=12)
    outcomes = Cluster(Scenario(trace=trace, fleet=FLEET, warmup=0.0), Policy()).run()
    folder = tmp_path_factory.mktemp("last")
    with (folder / segment_name("router-0", STARTED_S)).open("wb") as file:
        writer = RecordingWriter(file, RecordingHeader(block_tokens=trace.block_tokens, started_unix_s=STARTED_S))
        for index, request in enumerate(trace.requests):
            writer.write(
                RecordedRequest(
                    arrival_s=outcomes.arrival_ps[index] / PS_PER_S,
                    prompt_tokens=request.prompt_tokens,
                    output_tokens=request.output_tokens,
                    blocks=request.blocks,
                    instance=FLEET[outcomes.instance[index]].name,
                    hit_tokens=outcomes.cached_tokens[index],
                )
            )
    return folder


def replayed(trace: Trace) -> tuple[float, float]:
    """Return the hit ratio that a replay shows, and the one that was recorded, of all its requests."""
    scenario = Scenario(trace=trace, fleet=FLEET, warmup=0.0)
    shown = run_job(Setting(RecordedTraffic(scenario)), Job(Policy()), lambda _: None).summary.hit_ratio
    really = provenance_of(scenario, Slo()).recorded_hit_ratio
    assert really is not None
    return shown, really


def test_the_last_minute_hits_as_often_as_it_really_did(recorded: Path) -> None:
    trace = load_window(recorded, Window(since_unix_s=STARTED_S + 180, most=10_000))
    assert len(trace.requests) > 300
    warm, really = replayed(trace)
    empty, _ = replayed(msgspec.structs.replace(trace, held=()))
    assert empty < really - 0.1, "or this recording shows nothing"
    assert warm == pytest.approx(really, abs=0.03)


def test_provenance_says_what_caches_began_with(recorded: Path) -> None:
    trace = load_window(recorded, Window(since_unix_s=STARTED_S + 180, most=10_000))
    known = provenance_of(Scenario(trace=trace, fleet=FLEET), Slo())
    assert known.held_tokens > 10_000
    strangers = provenance_of(Scenario(trace=trace, fleet=uniform_fleet(A100_80G, 1)), Slo())
    assert 0 < strangers.held_tokens < known.held_tokens
    whole = provenance_of(Scenario(trace=load_recording(next(recorded.iterdir())), fleet=FLEET), Slo())
    assert whole.held_tokens == 0, "it begins when the engines did"


def test_where_engines_say_nothing_caches_begin_empty(tmp_path: Path) -> None:
    with (tmp_path / segment_name("router-0", STARTED_S)).open("wb") as file:
        writer = RecordingWriter(file, RecordingHeader(block_tokens=16, started_unix_s=STARTED_S))
        writer.write(RecordedRequest(arrival_s=0.0, prompt_tokens=33, output_tokens=1, blocks=pack("<2Q", 1, 2)))
    trace = load_window(tmp_path, Window(since_unix_s=0.0, most=10))
    assert trace.held == ()
    assert provenance_of(Scenario(trace=trace, fleet=FLEET), Slo()).recorded_hit_ratio is None
