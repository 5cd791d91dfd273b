"""A profile is recovered from the steps it explains."""

import json
from pathlib import Path
from random import Random

import pytest

from router.cli import main
from router.core.hardware import HardwareProfile
from router.core.hardware_profiles import A100_80G
from router.sim.errors import ProfileError
from router.sim.fitting import COLUMNS, StepRow, fit_profile, read_profile, read_step_rows


def measured(profile: HardwareProfile, rows: int, noise: float = 0.0) -> list[StepRow]:
    rng = Random(1)
    steps = []
    for _ in range(rows):
        prefill = rng.choice((0, 0, 512, 2048, 8192))
        sequences = rng.randint(0 if prefill else 1, 200)
        kv_tokens = sequences * rng.randint(100, 4000)
        step_s = profile.step_s(prefill_tokens=prefill, sequences=sequences, kv_tokens=kv_tokens)
        steps.append(StepRow(prefill, sequences, kv_tokens, step_s * (1 + noise * rng.gauss(0, 1))))
    return steps


@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 1e-6), (0.05, 0.1)])
def test_the_costs_are_recovered(noise: float, tolerance: float) -> None:
    fit = fit_profile(measured(A100_80G, 400, noise), "mine", kv_capacity_tokens=1000)
    for name in ("t0_s", "prefill_s_per_token", "decode_s_per_sequence", "decode_s_per_kv_token"):
        assert getattr(fit.profile, name) == pytest.approx(getattr(A100_80G, name), rel=tolerance)
    assert fit.mean_relative_error == pytest.approx(noise * 0.8, abs=0.01)


def test_a_cost_that_would_be_negative_is_zero() -> None:
    rows = [
        StepRow(0, n, n * kv, 0.01 + 0.001 * n - 1e-9 * n * kv) for n in (1, 5, 20, 50) for kv in (10, 500, 900)
    ] + [StepRow(1000, 0, 0, 0.06), StepRow(2000, 1, 10, 0.111)]
    profile = fit_profile(rows, "mine", kv_capacity_tokens=1000).profile
    assert profile.decode_s_per_kv_token == 0
    assert profile.decode_s_per_sequence == pytest.approx(0.001, rel=0.05)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([StepRow(1, 1, 1, 0.1)] * 3, "too few"),
        ([StepRow(0, n, n, 0.01 * n) for n in range(1, 10)], "says anything about prefill_s_per_token"),
        ([StepRow(n, n, n, 0.01 * n) for n in range(1, 10)], "do not tell the costs apart"),
        ([StepRow(n, 1, 1, 0.0) for n in range(1, 10)], "longer than 0 s"),
    ],
)
def test_rows_that_say_too_little_are_refused(rows: list[StepRow], reason: str) -> None:
    with pytest.raises(ProfileError, match=reason):
        fit_profile(rows, "mine", kv_capacity_tokens=1000)


def test_the_command_fits_a_file_and_simulate_uses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, profile = tmp_path / "rows.csv", tmp_path / "profile.json"
    lines = [",".join(str(getattr(row, column)) for column in COLUMNS) for row in measured(A100_80G, 60)]
    rows.write_text("\n".join([",".join(COLUMNS), *lines]))
    assert main(["fit-profile", str(rows), "--name", "mine", "--kv-capacity-tokens", "300000"]) == 0
    profile.write_text(capsys.readouterr().out)
    assert read_profile(profile).kv_capacity_tokens == 300_000
    arguments = ["simulate", "chatbot", "--duration", "20", "--policies", "vllm", "--output", "json"]
    assert main([*arguments, "--hardware", "mine:3", "--profile", str(profile)]) == 0
    assert json.loads(capsys.readouterr().out)["provenance"]["hardware"] == {"mine": 3}


def test_faulty_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("prefill_tokens,sequences\n")
    with pytest.raises(ProfileError, match="columns kv_tokens, step_s are missing"):
        read_step_rows(file)
    file.write_text(",".join(COLUMNS) + "\n1,2,3,0.1\n1,2,x,0.1\n")
    with pytest.raises(ProfileError, match="line 3"):
        read_step_rows(file)
    assert main(["fit-profile", str(file), "--name", "x", "--kv-capacity-tokens", "1"]) == 2
    assert "line 3" in capsys.readouterr().err
    with pytest.raises(ProfileError, match="cannot be read"):
        read_step_rows(tmp_path / "missing")
    with pytest.raises(ProfileError, match="no hardware profile"):
        read_profile(file)
