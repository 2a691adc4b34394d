"""A prediction refused at a setting gives its reason in all outputs, and the study goes on."""

from __future__ import annotations

import importlib.metadata

import numpy as np
import pytest

from solvable.cli.app import main
from solvable.errors import InvalidParameter
from solvable.frame import registry
from solvable.frame.agreement import Agreement
from solvable.frame.claims import Claim, Finding
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import NO_PREDICTION, Point, predicted_or_refused
from solvable.frame.system import Preset, System, refusals
from solvable.frame.traces import Trace
from solvable.study import load
from solvable.verbs import run, theory_of

REASON = "degree is 3; the theory holds for degrees 1 and 2"


class PowerParameters(Parameters):
    degree: int = 1
    samples: int = 10


def measure(parameters, rng):
    return {"error": [0.5 + 0.01 * rng.standard_normal(), 0.3], "width": 1.0}


def predict(parameters):
    if parameters.degree > 2:
        raise InvalidParameter(f"{REASON}.\nTake one of these")
    if parameters.degree == 2:
        return {"error": [0.5, 0.3], "width": None, "threshold": 20.0, NO_PREDICTION: "no width"}
    return {"error": [0.5, 0.3], "width": 1.0, "threshold": 20.0}


def level(points):
    return Finding(float(points[0].mean("width")), float(points[0].predicted("width")), 0.05)


system = System(
    name="powers", title="Powers", version="1", parameters=PowerParameters, measure=measure,
    predict=predict, axis=Axis("samples", "samples n", resolution=5),
    claims=[
        Agreement("error", "The error is predicted.", metric="error", source="derived", within=0.02,
                  because="Noise.", where=lambda cell: cell.predicted("threshold") < 100),
        Claim("level", "The width is predicted.", "derived", "Noise.", level),
    ],
    panels=[
        Panel("error", "Errors", "error", [Trace("error", "error")], markers={"threshold": "n"}),
        Panel("width", "Widths", "width", [Trace("width", "width"), Trace("error", theory=None)]),
    ],
    presets={"quick": Preset("q", {"degree": [1, 2, 3], "samples": [10, 20]}, replicates=3)},
)  # fmt: skip


@pytest.fixture
def installed(monkeypatch):
    entry = importlib.metadata.EntryPoint("powers", f"{__name__}:system", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])


def test_quiet_leaves_missing_predictions_unmentioned(tmp_path, installed, capsys):
    assert main(["run", "powers", "--workers", "1", "--quiet", "--output", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_study_is_measured_judged_where_it_is_predicted_and_says_where_not(
    tmp_path, installed, capsys
):
    assert main(["run", "powers", "--workers", "1", "--output", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert f"no prediction at 2 of 6 points: {REASON}. Take one of these" in said.err
    assert "part of the prediction is missing at 2 of 6 points: no width" in said.err
    assert "2 claims hold" in said.out
    assert main(["verify", str(tmp_path), "--power"]) == 0
    assert REASON in capsys.readouterr().err
    assert REASON in (tmp_path / "report.html").read_text("utf-8")
    assert REASON in (tmp_path / "records.csv").read_text("utf-8")
    found = load(tmp_path)
    assert [point.refused for point in found.points] == [False] * 4 + [True] * 2
    assert found.complete
    assert not found.failures
    # Every figure has measured points, and a line where a prediction exists.
    drawn = {figure.name: figure for figure in found.drawn}
    assert len(drawn) == 6
    for name, figure in drawn.items():
        kinds = {series.kind for series in figure.series}
        refused = "degree-3" in name or name == "width-degree-2"
        assert kinds == ({"points"} if refused else {"points", "line"}), name


def test_where_nothing_is_predicted_no_claim_can_be_tested(tmp_path):
    found = run(system, preset=None, degree=3, seeds=2, workers=1, output=tmp_path)
    assert [verdict.status for verdict in found.verdicts] == ["not testable"] * 2
    assert {verdict.reason for verdict in found.verdicts} == {
        f"no prediction: {REASON}. Take one of these"
    }
    assert found.power == []


def test_theory_says_the_reason_in_one_line_or_beside_the_rest_of_a_grid(installed, capsys):
    assert main(["theory", "powers", "--set", "degree=3"]) == 2
    assert capsys.readouterr().err.count(REASON) == 1
    with pytest.raises(InvalidParameter, match=f"no prediction: {REASON}"):
        theory_of(system, degree=3)
    assert main(["theory", "powers", "--set", "degree=1,3"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no prediction" in said
    assert "degree is 3; the theory holds" in said
    assert predicted_or_refused(predict, PowerParameters())["width"] == pytest.approx(1.0)


def test_an_unknown_prediction_is_named(tmp_path):
    point = Point({"samples": 10}, [measure(None, np.random.default_rng(0))], {"error": 1.0})
    with pytest.raises(InvalidParameter, match="'width' is used, which predict does not ret"):
        point.predicted("width")


def test_reasons_that_differ_in_numbers_are_one():
    points = [
        Point({}, [{"a": 1.0}], {NO_PREDICTION: f"replicon above 1; set decay near {value}"})
        for value in ("9.47", "3.8", "1e-5")
    ]
    said = "no prediction: replicon above 1; set decay near 9.47"
    assert refusals(points) == said
    other = Point({}, [{"a": 1.0}], {NO_PREDICTION: "too few samples"})
    assert refusals([*points, other]) == (
        f"{said.replace('prediction:', 'prediction at 3 of 4 points:')}; "
        "no prediction at 1 of 4 points: too few samples"
    )


def test_a_reason_beside_another_one_is_counted_with_its_kind():
    told = ["0.3 degrees; allowed: 4. Raise d.", "too coarse.; 0.1 degrees; allowed: 4. Raise d."]
    points = [Point({}, [{"a": 1.0}], {"a": 1.0, NO_PREDICTION: reason}) for reason in told]
    assert refusals(points) == (
        "part of the prediction is missing: 0.3 degrees; allowed: 4. Raise d; "
        "part of the prediction is missing at 1 of 2 points: too coarse"
    )
