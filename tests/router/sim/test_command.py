"""``pointsman simulate``, as it is called."""

import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from router.cli import main
from router.core.hardware_profiles import A100_80G
from router.sim.report.html import bundled_plotly_js

SMALL = ("simulate", "chatbot", "--duration", "40", "--instances", "4", "--processes", "1")


def test_json_has_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--policies", "multiplicative,vllm", "--output", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["policy"] for run in document["runs"]] == ["multiplicative", "vllm"]
    for run in document["runs"]:
        for times in ("ttft_s", "tpot_s", "e2e_s"):
            assert set(run[times]) == {"mean", "p50", "p90", "p99"}
        assert run["requests"] > 0
        assert 0 < run["hit_ratio"] < 1
        assert run["load_max_over_mean"] >= 1
        assert run["wall_s"] > 0
    assert document["provenance"]["trace"] == "chatbot"
    assert document["provenance"]["hardware"] == {"a100-80g": 4}
    assert document["provenance"]["seed"] == 0


def test_the_table_names_policies_and_provenance(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--policies", "vllm,random", "--hardware", "h100:2,a100-80g:2", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    for expected in ("vllm", "random", "TTFT mean", "2 x h100", "seed 3", "calibrated to the published means"):
        assert expected in text


def test_the_page_is_self_contained(tmp_path: Path) -> None:
    page, script = tmp_path / "page.html", tmp_path / "draw.js"
    script.write_text("const trick = '</script>';")
    arguments = [*SMALL, "--policies", "vllm,multiplicative", "--output", "html"]
    assert main([*arguments, "--to", str(page), "--plotly-js", str(script)]) == 0
    text = page.read_text()
    assert "const trick = '<\\/script>';" in text
    assert "src=" not in text
    assert "href=" not in text
    drawn = json.loads(text.split('id="figures">')[1].split("</script>")[0])
    heatmap = next(figure for figure in drawn.values() if figure["data"][0]["type"] == "heatmap")
    assert len(heatmap["data"]) == 2
    assert len(heatmap["data"][0]["z"]) == 4
    assert sum(figure["data"][0]["type"] == "scatter" for figure in drawn.values()) == 3


def test_a_sweep_finds_saturation_and_draws_it(tmp_path: Path) -> None:
    page, script = tmp_path / "page.html", tmp_path / "draw.js"
    script.write_text("")
    arguments = ["simulate", "api", "--duration", "20", "--rate", "20", "--instances", "1"]
    arguments += ["--policies", "vllm", "--sweep", "--processes", "1", "--output", "html"]
    assert main([*arguments, "--to", str(page), "--plotly-js", str(script)]) == 0
    assert "Rate sweep" in page.read_text()


def test_the_drawing_script_of_the_plotting_package_is_found_without_importing_it() -> None:
    assert "Plotly" in bundled_plotly_js()


def test_policies_run_in_processes_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SMALL[:-1], "2", "--policies", "multiplicative,vllm", "--output", "json"]
    assert main(arguments) == 0
    parallel = json.loads(capsys.readouterr().out)["runs"]
    assert main([*SMALL, "--policies", "multiplicative,vllm", "--output", "json"]) == 0
    alone = json.loads(capsys.readouterr().out)["runs"]
    for run in (*parallel, *alone):
        del run["wall_s"]
    assert parallel == alone


def test_hardware_may_be_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gpu-7.json"
    file.write_bytes(msgspec.json.encode({"profile": replace(A100_80G, name="observed-gpu-7"), "enough": True}))
    assert main([*SMALL, "--policies", "multiplicative", "--hardware", f"{file}:3", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["provenance"]["hardware"] == {"observed-gpu-7": 3}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("chatbot", "--hardware", "gone.json:2"), "gone.json: no hardware profile"),
        (("nosuchfile",), "cannot be read"),
        (("chatbot", "--policies", "nobody"), "no scorer named 'nobody'"),
        (("chatbot", "--hardware", "abacus"), "no hardware profile 'abacus'"),
        (("chatbot", "--duration", "10", "--warmup", "2"), "warm-up"),
        (("chatbot", "--duration", "10", "--rate-scale", "-1"), "are none"),
    ],
)
def test_what_cannot_be_run_is_said(
    arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *arguments]) == 2
    assert reason in capsys.readouterr().err
