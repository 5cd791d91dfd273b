"""The decision benchmark measures what it says it measures; how fast it is does not matter here."""

import json
from itertools import pairwise

import pytest

from router.bench.decision import measure_own, run
from router.bench.load import Load
from router.bench.spread import WARM_UP, timed
from router.cli import main
from router.core.prefix import PromptHasher

SMALL = Load(instances=4, stored_blocks=2_000, prompt_bytes=4_096, shared_bytes=512, repeats=20, asked_prompts=8)


def test_every_figure_carries_its_unit_and_the_size_of_the_fleet() -> None:
    figures = run([SMALL], compare=False)
    units = ("_us_p50_4", "_us_p99_4", "_blocks_4")
    assert figures.pop("prefix_index") in ("native", "reference")
    assert all(name.endswith(units) for name in figures), figures
    assert all(value > 0 for value in figures.values())


def test_the_index_is_full_when_it_is_measured() -> None:
    assert measure_own(SMALL)["stored_blocks"] == SMALL.stored_blocks


def test_asked_prompts_go_on_as_a_known_one_does_and_then_differ() -> None:
    hasher = PromptHasher(1)
    ends = set()
    for number in range(20):
        original, prompt = SMALL.asked(number)
        known = SMALL.known(original)
        common = sum(a == b for a, b in zip(*(_blocks(hasher.chain(b"", p)) for p in (prompt, known)), strict=True))
        assert SMALL.shared_bytes // 64 <= common < SMALL.prompt_bytes // 64
        assert len(prompt) == len(known) == SMALL.prompt_bytes
        ends.add(common)
    assert len(ends) > 5


def test_known_prompts_are_spread_evenly_and_every_tenth_is_held_by_four() -> None:
    load = Load(instances=16)
    counts = [0] * 16
    for number in range(1_600):
        homes = load.homes(number)
        assert len(set(homes)) == len(homes) == (4 if number % 10 == 0 else 1)
        for home in homes:
            counts[home] += 1
    assert max(counts) - min(counts) <= 16


def test_warming_up_is_left_out_of_the_figures() -> None:
    called: list[int] = []
    figures = timed("call", called.append, 7)
    assert called == [*range(WARM_UP), *range(WARM_UP, WARM_UP + 7)]
    low, high = figures["call_us_p50"], figures["call_us_p99"]
    assert all(a <= b for a, b in pairwise((0, low, high)))


def test_the_command_prints_one_object_of_figures(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--instances", "2", "3", "--stored-blocks", "500", "--prompt-bytes", "4096", "--repeats", "5"]
    assert main(["bench", "decision", "--output", "json", "--no-compare", *options]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert {"hash_match_us_p50_2", "hash_match_us_p50_3", "decide_us_p99_2", "insert_us_p50_3"} <= figures.keys()


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--instances", "2", "--stored-blocks", "500", "--prompt-bytes", "4096", "--repeats", "5"]
    assert main(["bench", "decision", "--no-compare", *options]) == 0
    assert "hash_match_us_p50_2" in capsys.readouterr().out


def _blocks(chain: bytes) -> list[bytes]:
    return [chain[i : i + 8] for i in range(0, len(chain), 8)]
