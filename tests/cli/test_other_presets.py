"""`run` prints the claims of other presets as one list, and only the reasons that concern the run."""

from __future__ import annotations

import importlib.metadata

import pytest

from solvable.cli.app import main
from solvable.cli.verdicts import remedy
from solvable.frame import registry
from solvable.frame.agreement import Agreement
from solvable.frame.claims import Claim, Finding, NotTestable
from solvable.frame.parameters import Parameters
from solvable.frame.points import NO_PREDICTION
from solvable.frame.system import Preset, System

REASONS = {
    "peak-height": "no ratio is near the threshold; run with --preset peak",
    "peak-growth": "no three penalties were run; set penalty, or run the preset peak",
    "sign": "no label is odd; run with --preset phases --set channel=sign (none has it)",
    "onset": "no curves cross; run with --preset gone, three-layers or phases",
    "mine": "no curve spans a factor of 4; run with --preset quick",
    "noisy": "too noisy for a tolerance of 0.05: run at least 4 more replicates",
    "wide": "no two widths were trained; set width and steps=1,2",
    "lost": "fewer than four sizes were run; run with --preset gone",
    "twin": "fewer than four sizes were run; run with --preset gone",
    "partly": "no point is deep inside a phase",
    "grown": "no width is above 2; run with --preset quick --set width=3",
    "powerless": "no width is above 2; raise width, or run with --preset peak",
}
MISSING = "no error: 0.1 degrees are left; allowed: 4. Raise width.; too coarse at 3."


class WidthParameters(Parameters):
    width: int = 1
    steps: int = 1


def measure(parameters, rng):
    return {"error": 1.0, "width": 1.0}


def predict(parameters):
    return {"error": 1.0, "width": None, NO_PREDICTION: MISSING}


def claim(name):
    if name == "powerless":  # it holds with any prediction near the right one
        return Agreement(
            name, "Powerless.", metric="error", source="derived", within=0.5, because="Noise.",
            missing=REASONS[name],
        )  # fmt: skip
    if name == "partly":  # on a part of the prediction that is missing
        return Agreement(
            name, "Partly.", metric="width", source="derived", within=0.1, because="Noise.",
            missing=REASONS[name],
        )  # fmt: skip
    return Claim(name, f"{name}.", "derived", "Noise.", lambda points: NotTestable(REASONS[name]))


system = System(
    name="widths", title="Widths", version="1", parameters=WidthParameters, measure=measure,
    predict=predict, panels=[],
    claims=[
        Claim("judged", "Judged.", "derived", "Noise.", lambda _: Finding(1.0, 1.0, 0.05, 0.001)),
        *map(claim, REASONS),
    ],
    presets={
        name: Preset("q", {"width": [1, 2]}, replicates=2) for name in ("quick", "peak", "phases")
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("peak-height", "--preset peak"),
        ("peak-growth", "--preset peak"),
        ("sign", "--preset phases --set channel=sign"),
        ("onset", "--preset phases"),
        ("mine", ""),
        ("noisy", ""),
        ("wide", "set width and steps=1,2"),
        ("lost", ""),
        ("partly", ""),
        ("grown", "--preset quick --set width=3"),
        ("powerless", "--preset peak"),
    ],
)
def test_a_reason_names_what_to_run_or_set(name, expected):
    assert remedy(REASONS[name], system, "quick") == expected


def test_the_own_preset_is_no_other_one():
    assert remedy(REASONS["peak-height"], system, "peak") == ""
    assert remedy(REASONS["onset"], system, "phases") == ""
    assert remedy(REASONS["mine"], system, None) == "--preset quick"


def test_a_run_prints_what_concerns_it_and_verify_and_the_report_print_all(
    tmp_path, monkeypatch, capsys
):
    entry = importlib.metadata.EntryPoint("widths", f"{__name__}:system", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    monkeypatch.setenv("COLUMNS", "72")
    assert main(["run", "widths", "--workers", "1", "--output", str(tmp_path)]) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert "1 claim holds, 0 fail; 10 need other settings, 2 need more replicates." in said.out
    assert max(map(len, lines[: lines.index("Judged by other presets:")])) <= 72
    in_table = [line.split()[2] for line in lines if line.startswith("not testable  ")]
    assert in_table == ["mine", "noisy", "lost", "twin", "partly"]
    assert lines[lines.index("Judged by other presets:") + 1 :][:4] == [
        "--preset peak (peak-height, peak-growth, powerless)",
        "--preset phases --set channel=sign (sign)",
        "--preset phases (onset)",
        "--preset quick --set width=3 (grown)",
    ]
    assert "not testable: wide: set width and steps=1,2" in lines
    flat = " ".join(said.out.split())
    assert flat.count(REASONS["lost"]) == 1
    assert f"not testable: lost, twin: {REASONS['lost']}" in flat
    assert f"partly: {REASONS['partly']}; part of the prediction is missing" in flat
    assert "0.1 degrees" not in flat
    assert said.err.count("0.1 degrees are left") == 1
    assert main(["verify", str(tmp_path)]) == 0
    flat = " ".join(capsys.readouterr().out.split())
    page = " ".join((tmp_path / "report.html").read_text("utf-8").split())
    assert flat.count("too little power") == 1
    for name, reason in REASONS.items():
        if name == "powerless":
            continue
        assert reason in flat
        assert reason in page
