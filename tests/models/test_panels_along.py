"""Panels whose axis is a parameter that varies between curves."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.registry import load
from solvable.plots.recording_backend import record

pytestmark = pytest.mark.usefixtures("few")

CASES = [
    # system, panel, parameter and its values, the settings of all points, places on the axis
    ("boltzmann-machine", "overlap-by-spike", "spike", (2.0, 3.0),
     {"weight_decay": 2.0, "algorithm": "gradient"}, (2.0, 5.0)),
    ("bilinear-sequence", "matrix-error-by-aspect", "aspect", (1.0, 2.0),
     {"dimension": 40, "noise": 0.1, "rank_ratio": 0.2}, (0.15,)),
    ("sequential-recovery", "overlap-by-dimension", "dimension", (16, 18),
     {"features": 2, "decay": 0.4}, (2_000, 8_000)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "panel", "parameter", "values", "settings", "places"), CASES)
def test_a_parameter_that_varies_has_a_figure(name, panel, parameter, values, settings, places):
    system = load(name)
    (row,) = [p for p in system.panels if isinstance(p, Panel) and p.name == panel]
    study = []
    for value in values:
        for place in places:
            setting = system.parameters(
                **settings, **{parameter: value, system.axis.parameter: place}
            )
            prediction = system.predict(setting)
            measured = [trace for trace in row.traces if trace.measured]
            metrics = {trace.metric: prediction[trace.metric] for trace in measured}
            study.append(Point(setting.model_dump(), [metrics, metrics], prediction, setting))
    curves = system.curves(study, seconds=1.0, resolution=8)
    (figure,) = row(curves)
    drawn = record(figure)
    points, lines = drawn.named("points"), drawn.named("line")
    lines = [line for line in lines if not line["dashed"]]
    assert len(points) == len(lines) == len(places) * len(measured)
    for dots, line in zip(points, lines, strict=True):
        assert list(dots["x"]) == list(values)
        # Measured values equal predictions here, so that the line passes through the points.
        np.testing.assert_allclose(line["y"][[0, -1]], dots["y"], rtol=1e-6)
    assert row(curves[:1]) == []
