"""An error in one claim, panel or prediction of a system leaves all others unaffected."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.frame.agreement import Agreement
from solvable.frame.claims import Claim, Finding
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import Point
from solvable.frame.system import System
from solvable.frame.traces import Trace
from solvable.paths import error_line
from solvable.plots.figure import Figure, Series
from solvable.study import load
from solvable.verbs import run, theory_of

LOST = "IndexError: too many features\nsecond line"


class Setting(Parameters):
    samples: int = 10
    kind: str = "plain"


def measure(parameters, rng):
    return {"error": 0.5 + 0.01 * rng.standard_normal(), "spectrum": [1.0, 2.0]}


def predict(parameters):
    return {"error": 0.5, "spectrum": [1.0, 2.0], "threshold": 20.0}


def boom(*_, **__):
    raise IndexError("too many features\nsecond line")


def agreement(name="right", **changes):
    settings = {"metric": "error", "source": "derived", "within": 0.02, "because": "Noise."}
    return Agreement(name, "The error is predicted.", **settings | changes)


def claim(name, check):
    return Claim(name, "It is so.", "derived", "Noise.", check)


def system(**parts):
    base = {"name": "s", "title": "S", "version": "1", "parameters": Setting, "measure": measure}
    base |= {"predict": predict, "axis": Axis("samples", "samples n", resolution=8)}
    return System(**base | parts)


def points(replicates=4):
    rng, found = np.random.default_rng(0), []
    for kind in ("plain", "odd"):
        for samples in (10, 20, 40):
            setting = Setting(samples=samples, kind=kind)
            metrics = [measure(setting, rng) for _ in range(replicates)]
            found.append(Point(setting.model_dump(), metrics, predict(setting)))
    return found


def scaled_alone(points):
    """Raise an error if predictions are scaled, as they are to measure power."""
    if points[0].predicted("error") > 0.5:
        boom()
    return Finding(float(points[0].mean("error")), 0.5, 0.05)


def leave(error):
    def check(_):
        raise error

    return check


RAISING = {
    "free check": claim("broken", boom),
    "no finding": claim("broken", lambda _: None),
    "metric": agreement("broken", metric=boom, expected=0.0),
    "expected": agreement("broken", expected=boom),
    "where": agreement("broken", where=boom),
    "within": agreement("broken", within=boom),
    "scatter": agreement("broken", scatter=boom),
    "entry": agreement("broken", metric="spectrum", entry=boom),
    "shapes": agreement("broken", expected=lambda _: np.ones(3)),
    "name": agreement("broken", metric="eror"),
    "power": claim("broken", scaled_alone),
}


@pytest.mark.parametrize("part", RAISING)
def test_a_claim_that_raises_is_an_error_and_the_others_are_judged(part):
    found = system(claims=[agreement("first"), RAISING[part], agreement("last")])
    first, broken, last = found.verdicts(points())
    assert (first.status, broken.status, last.status) == ("holds", "error", "holds")
    assert broken.measured is broken.expected is broken.tolerance is None
    assert len(broken.reason.splitlines()) == 1
    if part not in ("no finding", "shapes", "name"):
        assert broken.reason.startswith("IndexError: too many features")
    rows = found.power(points())
    assert [row.status for row in rows] == ["holds", "error", "holds"]
    assert (rows[1].passes, bool(rows[1].error)) == (False, True)


def test_a_chance_learner_that_raises_is_the_error_of_the_claims_that_hold():
    wrong = agreement("wrong", expected=lambda _: 0.7)
    found = system(claims=[agreement(), wrong], chance=boom)
    held, failed = found.verdicts(points())
    assert (held.status, failed.status) == ("error", "fails")
    assert held.reason == "IndexError: too many features (in its power)"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_passes(kind):
    found = system(claims=[claim("c", leave(kind()))], panels=[leave(kind())])
    with pytest.raises(kind):
        found.verdicts(points())
    with pytest.raises(kind):
        found.drawn(points())


def test_records_that_no_longer_fit_the_parameters_are_errors_of_every_claim():
    found = system(
        claims=[agreement(), claim("c", scaled_alone)], panels=[Panel("p", "P", "y", [])]
    )
    old = [Point({"samples": "many"}, [measure(None, np.random.default_rng(0))], predict(None))]
    assert [verdict.status for verdict in found.verdicts(old)] == ["error"] * 2
    assert found.power(old) == []
    assert [fault.error.split(":")[0] for fault in found.drawn(old).faults] == ["InvalidParameter"]


ERROR = Panel("error", "Error", "error", [Trace("error")], markers={"threshold": "n"})


def figure(name, **changes):
    return Figure(name, "T", "x", "y", [Series("s", [1, 2], changes.get("y", [1, 2]))])


PANELS = {
    "free panel": boom,
    "when": Panel("broken", "B", "y", [Trace("error")], when=boom),
    "trace": Panel("broken", "B", "y", [Trace("error", shown=boom)]),
    "scale": Panel("broken", "B", "y", [Trace("error", scale=boom)]),
    "names": Panel("broken", "B", "y", [Trace("spectrum", names=boom)]),
    "too few names": Panel("broken", "B", "y", [Trace("spectrum", names=lambda _: ["a"])]),
    "metric": Panel("broken", "B", "y", [Trace("eror")]),
    "marker": Panel("broken", "B", "y", [Trace("error")], markers={"nowhere": "n"}),
    "range": Panel("broken", "B", "y", [Trace("error")], y_range=boom),
    "no figure": lambda curves: ["a text"],
    "nothing": lambda curves: None,
    "two of a name": lambda curves: [figure("error-kind-odd")],
    "bad name": lambda curves: [figure("../../secret")],
    "cannot be drawn": lambda curves: [figure("fine", y=[1, 2, 3])],
}


@pytest.mark.parametrize("part", PANELS)
def test_a_panel_that_raises_is_an_empty_figure_and_the_others_are_drawn(part):
    last = Panel("last", "Last", "error", [Trace("error")])
    found = system(panels=[ERROR, PANELS[part], last]).drawn(points())
    drawn = [one.name for one in found.figures if one.series]
    assert drawn == ["error-kind-plain", "error-kind-odd", "last-kind-plain", "last-kind-odd"]
    empty = [one for one in found.figures if not one.series]
    assert [one.caption for one in empty] == [f"error: {fault.error}" for fault in found.faults]
    assert found.faults
    assert {fault.part for fault in found.faults} == {"panel"}
    assert len({one.name for one in found.figures}) == len(found.figures)


def test_a_panel_that_raises_for_one_curve_is_drawn_for_the_others():
    def shown(curve, name, line):
        return boom() if curve.setting.kind == "odd" else line

    panel = Panel("error", "Error", "error", [Trace("error", shown=shown)])
    found = system(panels=[panel]).drawn(points())
    assert [(one.name, len(one.series)) for one in found.figures] == [
        ("error-kind-plain", 2),
        ("error-kind-odd", 0),
    ]
    assert [fault.name for fault in found.faults] == ["error-kind-odd"]


def test_a_theory_line_has_a_gap_where_the_prediction_raises_and_the_figure_says_so():
    def poles(parameters):
        return {"error": 1 / (parameters.samples != 23 and parameters.kind == "plain")}

    axis = Axis("samples", "samples n", resolution=40)
    panels = [Panel("error", "Error", "error", [Trace("error")], "See."),
              Panel("points", "Points", "error", [Trace("error", theory=None)])]  # fmt: skip
    found = system(predict=poles, panels=panels, axis=axis).drawn(points())
    plain, odd, *without = found.figures
    line = np.asarray(plain.series[0].y)[::4]  # the computed places
    assert 0 < np.isnan(line).sum() < 5
    assert [series.kind for series in odd.series] == ["points"]
    assert plain.caption.startswith("See. The theory line is incomplete: error: ZeroDivisionError")
    assert {one.caption for one in without} == {""}
    assert [(fault.part, fault.name) for fault in found.faults] == [
        ("theory line", "kind plain"),
        ("theory line", "kind odd"),
    ]
    assert found.faults[0].error.endswith(f"(at {np.isnan(line).sum()} of 40 places)")


@pytest.mark.parametrize("error", [IndexError("here"), InvalidParameter("not here")])
def test_a_curve_that_raises_costs_its_line_and_not_the_points(error):
    def curve(setting, coordinates):
        raise error

    found = system(panels=[ERROR], curve=curve).drawn(points()[:3])
    (drawn,) = found.figures
    assert [series.kind for series in drawn.series] == ["points"]
    assert len(drawn.markers) == 1
    assert [fault.error for fault in found.faults] == [f"{type(error).__name__}: {error}"]


def test_figures_of_ones_own_that_raise_are_an_empty_figure():
    class Own(System):
        """A system with its own method `figures`, which raises."""

        figures = boom

    own = Own(name="s", title="S", version="1", parameters=Setting, measure=measure,
              predict=predict)  # fmt: skip
    found = own.drawn(points())
    assert [(one.series, one.caption) for one in found.figures] == [
        ([], "error: IndexError: too many features")
    ]


def test_an_error_is_one_line_without_codes_that_a_terminal_obeys():
    class Broken(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    assert error_line(KeyError("x")) == "KeyError: 'x'"
    assert (
        error_line(ValueError("\n \n\x1b[31mred\x1b[0m\x07 text\nmore")) == "ValueError: red text"
    )
    assert error_line(ValueError("\x1b]0;title\x07here")) == "ValueError: here"
    assert error_line(ValueError("")) == "ValueError: no message"
    assert error_line(ValueError("\ud800")) == "ValueError: no message"
    assert error_line(Broken()) == "Broken: no message"
    long = error_line(ValueError("x" * 10_000))
    assert (len(long), long[-4:]) == (200, "x...")


def test_a_study_carries_the_errors_in_python(tmp_path):
    def sometimes(parameters):
        return {"error": 0.5 / (parameters.samples != 20), "spectrum": [1.0, 2.0]}

    broken = system(
        predict=sometimes, claims=[agreement(), RAISING["free check"]], panels=[ERROR, boom]
    )
    found = run(broken, preset=None, samples=[10, 20], seeds=4, workers=1, output=tmp_path)
    assert [verdict.status for verdict in found.verdicts] == ["holds", "error"]
    line = "s: 8 of 8 tasks; claims: 1 hold, 1 raised an error"
    assert repr(found) == f"<StudyResult: {line}>"
    assert "IndexError: too many features" in found._repr_html_()
    assert found.figure_names == ["error", "boom"]
    assert found.figure("boom").axes
    assert [fault.part for fault in found.faults] == ["panel"] * 2
    raised = "error: ZeroDivisionError: float division by zero"
    assert [row["prediction"].get("no prediction") for row in found.records] == [None] * 4 + [
        raised
    ] * 4
    assert raised in (tmp_path / "records.csv").read_text("utf-8")
    assert not found.complete
    assert load(tmp_path, broken).verdicts == found.verdicts


def test_theory_goes_on_where_one_point_raises():
    def poles(parameters):
        return {"error": 1 / (parameters.samples - 20), "spectrum": [1.0, 2.0]}

    found = theory_of(system(predict=poles), samples=[10, 20, 40])
    assert [point.parameters["samples"] for point in found.raised] == [20]
    np.testing.assert_allclose(found.values("error"), [-0.1, np.nan, 0.05])
    assert np.isnan(found.values("spectrum")).sum(axis=1).tolist() == [0, 2, 0]
    assert "3 points of samples; 1 raised an error" in repr(found)
    assert "ZeroDivisionError: division by zero" in found._repr_html_()
    alone = theory_of(system(predict=poles), samples=20)
    assert alone.points[0].prediction == {
        "no prediction": "error: ZeroDivisionError: division by zero"
    }
    with pytest.raises(InvalidParameter, match="No prediction: error: ZeroDivisionError"):
        alone.values("error")


def test_claims_that_cannot_be_imported_are_refused_before_anything_is_measured(
    tmp_path, monkeypatch
):
    (tmp_path / "raising_claims.py").write_text("CLAIMS = unknown")
    monkeypatch.syspath_prepend(str(tmp_path))
    calls = []
    measured = SimpleNamespace(call=lambda *_: calls.append(1) or {"error": 0.5})
    for name, said in (
        ("raising_claims:CLAIMS", "importing raising_claims raised NameError: name 'unknown'"),
        ("json:CLAIMS", "there is no 'CLAIMS' in json"),
        ("no_such_module:CLAIMS", "there is no 'CLAIMS' in no_such_module"),
    ):
        broken = system(measure=measured.call, claims=name)
        broken._module = "top"
        with pytest.raises(InvalidParameter, match=said):
            run(broken, preset=None, workers=1)
    assert calls == []
