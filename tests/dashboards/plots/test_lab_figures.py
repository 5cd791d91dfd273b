"""Figures of the laboratory: what Plotly and the vendored bundle can draw, and nothing lost on the way."""

import json
import re
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from dashboards.plots.cdf import cdf_figure
from dashboards.plots.load_heatmap import load_heatmap_figure
from dashboards.plots.pareto import Trade, pareto_figure, pareto_front
from dashboards.plots.policy_comparison import relative_figure, shares_figure
from dashboards.plots.rate_sweep import rate_sweep_figure
from dashboards.plots.series import COLORS, DASHES, line_of
from dashboards.plots.time_axis import duration, logarithmic_time_axis

ROOT = Path(__file__).resolve().parents[3]
STATIC = ROOT / "dashboards" / "static"
GOLDEN = Path(__file__).with_name("golden_lab_figures.json")

FIGURES: dict[str, dict[str, Any]] = {
    "cdf": cdf_figure({"a": [0.1, 0.2, 0.4], "b": [0.2, 0.3, 9.0]}, x_title="TTFT", target=2.0),
    "pareto": pareto_figure([Trade("a", 1.0, 0.02), Trade("b", 0.5, 0.03)], x_title="TTFT", y_title="TPOT"),
    "sweep": rate_sweep_figure(
        {"a": [(20.0, 0.4), (10.0, 0.2)]}, y_title="TTFT (s)", logarithmic=True, saturation={"a": 21.0, "gone": 1.0}
    ),
    "heatmap": load_heatmap_figure([[0, 1.5], [2, 3]], start_s=10.0, span_s=5.0),
    "relative": relative_figure({"a": {"TTFT": 0.5, "none": 0.0}, "b": {"TTFT": 1.0, "none": 2.0}}, y_title="times"),
    "shares": shares_figure({"a": {"KV hit": 0.5}, "b": {"KV hit": 0.25}}),
}


def test_figures_are_the_golden_ones() -> None:
    assert json.loads(json.dumps(FIGURES)) == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("name", FIGURES)
def test_plotly_accepts_them(name: str) -> None:
    text = re.sub(r'"token:[A-Za-z0-9]+"', '"#000000"', json.dumps(FIGURES[name]))
    go.Figure(json.loads(text))


def test_the_vendored_bundle_has_every_kind_of_trace() -> None:
    kinds = {trace["type"] for figure in FIGURES.values() for trace in figure["data"]}
    bundle = (STATIC / "vendor" / "plotly" / "plotly-cartesian.min.js").read_text()
    assert kinds == {"scatter", "bar", "heatmap"}
    for kind in kinds:
        assert f'moduleType:"trace",name:"{kind}"' in bundle


def test_every_colour_is_a_token_of_both_themes() -> None:
    used = set(re.findall(r'"token:(\w+)"', json.dumps(FIGURES))) | {color.removeprefix("token:") for color in COLORS}
    css = "".join((STATIC / "dashboards" / "css" / name).read_text() for name in ("pointsman.css", "lab.css"))
    names = re.sub(r"([A-Z]|\d+)", lambda found: f"-{found[1].lower()}", " ".join(sorted(used))).split()
    for name in names:
        assert len(re.findall(rf"--{name}: ", css)) == 3, f"{name}: dark, light, and light by preference"


def test_a_curve_runs_from_nothing_to_all() -> None:
    curve = FIGURES["cdf"]["data"][1]
    assert list(zip(curve["x"], curve["y"], strict=True)) == [(0.2, 0.0), (0.3, 0.5), (9.0, 1.0)]


def test_no_curves_are_no_error() -> None:
    assert cdf_figure({"a": []}, x_title="TTFT")["data"][0]["y"] == [0.0][:0]


@pytest.mark.parametrize(
    ("trades", "front"),
    [
        ([("a", 1, 1)], "a"),
        ([("a", 1, 3), ("b", 2, 2), ("c", 3, 1), ("d", 3, 3)], "abc"),
        ([("a", 1, 1), ("b", 2, 2)], "a"),
        ([("a", 1, 2), ("b", 1, 1)], "b"),
    ],
)
def test_the_front_is_what_nothing_beats(trades: list[tuple[str, float, float]], front: str) -> None:
    assert "".join(one.name for one in pareto_front([Trade(*trade) for trade in trades])) == front


def test_forty_lines_differ() -> None:
    count = len(COLORS) * len(DASHES)
    assert len({json.dumps(line_of(position)) for position in range(count)}) == count


def test_the_same_policy_in_two_runs_has_one_colour() -> None:
    places = {"A": 0, "B": 10}
    curves = cdf_figure({"A": [0.1], "B": [0.1]}, x_title="TTFT", places=places)["data"]
    assert curves[0]["line"]["color"] == curves[1]["line"]["color"]
    assert curves[0]["line"]["dash"] != curves[1]["line"]["dash"]
    bars = shares_figure({"A": {"KV hit": 0.5}, "B": {"KV hit": 0.5}}, places=places)["data"]
    assert bars[0]["marker"]["line"]["color"] == bars[1]["marker"]["line"]["color"]
    assert bars[0]["marker"]["color"] != bars[1]["marker"]["color"]


@pytest.mark.parametrize(("low", "high"), [(0.008, 0.012), (0.01, 0.5), (0.001, 900.0), (2.0, 2.0)])
def test_ticks_lie_on_the_axis_and_are_few(low: float, high: float) -> None:
    axis = logarithmic_time_axis("t", low, high)
    assert 1 <= len(axis["tickvals"]) <= 8
    assert all(10 ** axis["range"][0] <= tick <= 10 ** axis["range"][1] for tick in axis["tickvals"])
    assert len(set(axis["ticktext"])) == len(axis["tickvals"])


def test_durations_have_their_unit() -> None:
    assert [duration(value) for value in (0.0123, 1.5, 90.0)] == ["12.3 ms", "1.5 s", "90 s"]


def test_points_are_in_order_of_rate_and_saturation_is_marked() -> None:
    figure = FIGURES["sweep"]
    assert figure["data"][0]["x"] == [10.0, 20.0]
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [21.0]


def test_times_are_relative_to_the_first_policy() -> None:
    first, second = FIGURES["relative"]["data"]
    assert (first["x"], first["y"], second["y"]) == (["TTFT"], [1.0], [2.0])


def test_two_heatmaps_can_share_a_scale() -> None:
    assert FIGURES["heatmap"]["data"][0]["zmax"] == 3
    assert load_heatmap_figure([[1]], start_s=0, span_s=1, highest=8)["data"][0]["zmax"] == 8
    assert load_heatmap_figure([], start_s=0, span_s=1)["data"][0]["z"] == []
