"""Figures draw points without a claim as hollow symbols."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.frame.agreement import Agreement
from solvable.frame.claims import Claim, Finding, NotTestable
from solvable.frame.curves import Axis
from solvable.frame.estimates import Estimate
from solvable.frame.panels import Panel
from solvable.frame.parameters import Parameters
from solvable.frame.points import EVERY_METRIC, Point
from solvable.frame.system import System
from solvable.frame.traces import Trace


class Setting(Parameters):
    samples: int = 10


def predict(parameters):
    return {"error": 1.0 / parameters.samples, "other": 0.5, "third": 0.5}


def points():
    """Return points with three replicates at three sizes; those of the last size scatter widely."""
    found = []
    for samples, spread in ((10, 1e-3), (20, 1e-3), (40, 1.0)):
        setting = Setting(samples=samples)
        prediction = predict(setting)
        metrics = [
            {name: value + spread * x for name, value in prediction.items()} for x in (-1, 0, 1)
        ]
        found.append(Point(setting.model_dump(), metrics, prediction))
    return found


PANEL = Panel("p", "P", "y", [Trace("error"), Trace("other")])
ROW = Agreement("error", "It is.", "error", "derived", within=0.05, because="Size.",
                where=lambda cell: cell.setting.samples > 10)  # fmt: skip


def system(*claims):
    return System(name="s", title="S", version="1", parameters=Setting, claims=claims,
                  measure=lambda p, rng: {}, predict=predict, axis=Axis("samples", "n", resolution=5),
                  panels=[PANEL])  # fmt: skip


def hollow(*claims):
    """Return the sizes at which each metric is drawn hollow."""
    (figure,) = system(*claims).figures(points())
    dots = [series for series in figure.series if series.kind == "points"]
    marks = [
        [] if s.hollow is None else np.asarray(s.x)[np.asarray(s.hollow)].tolist() for s in dots
    ]
    assert ("Hollow points: no claim judges them." in figure.caption) == any(marks)
    return marks


def test_points_without_a_cell_that_can_be_judged_are_hollow():
    # The claim excludes size 10, size 40 scatters too much, and no claim uses the other metric.
    assert hollow(ROW) == [[10, 40], [10, 20, 40]]


def test_a_system_without_claims_has_no_hollow_points():
    assert hollow() == [[], []]


def test_a_function_of_the_point_counts_for_the_metrics_that_it_reads():
    row = Agreement("r", "It is.", lambda point: point.values("other") * 2, "derived", within=0.05,
                    expected=1.0, because="Size.")  # fmt: skip
    assert hollow(row) == [[10, 20, 40], [40]]


def test_an_estimate_counts_where_its_group_gives_a_number():
    def estimate(found):
        return sum(float(point.mean("error")) for point in found), 0.0

    row = Estimate("e", "It is.", "derived", estimate=estimate, within=1.0, because="Size.",
                   where=lambda point: point.setting.samples < 40)  # fmt: skip
    assert hollow(row) == [[40], [10, 20, 40]]


@pytest.mark.parametrize("read", [("other",), ()])
def test_a_free_claim_counts_for_what_it_reads_or_for_everything(read):
    def check(found):
        for point in found:
            for name in read:
                point.mean(name)
        return Finding(1.0, 1.0, 0.1, 0.0, 3)

    sizes = [10, 20, 40] if read else []
    assert hollow(Claim("c", "It is.", "derived", "Size.", check)) == [sizes, []]


def test_claims_that_cannot_be_judged_or_raise_fill_nothing():
    def raises(found):
        raise ZeroDivisionError

    for check in (raises, lambda found: NotTestable("nothing")):
        assert hollow(Claim("c", "It is.", "derived", "Size.", check)) == [[10, 20, 40]] * 2


def test_every_metric_may_be_judged():
    point = Point({}, [{"a": 1.0}], {})
    assert point.judges({"a"})  # without information about claims
    assert Point({}, [], {}, judged=frozenset({EVERY_METRIC})).judges({"a"})
    assert not Point({}, [], {}, judged=frozenset({"b"})).judges({"a"})
