"""Exponents of the population flow and of online descent, as claims across points."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.quadratic.flow import FlowParameters, measure, predict, system
from solvable.models.quadratic.flow_scaling import (
    diverged,
    front,
    power_of_dimension,
    smallest_batch,
)
from solvable.systems.base import Point

BASE = {"dimension": 120, "features": 120, "exponent": 1.5}


def point(factor=1.0, replicates=6, **changes):
    setting = FlowParameters(**BASE | changes)
    prediction = predict(setting)
    metrics = dict(prediction) | {"closed_form": prediction["captured"]}
    metrics["risk"] = prediction["risk"] * factor
    return Point(setting.model_dump(), [metrics] * replicates, prediction, setting)


def verdict_of(points, claim):
    return next(row for row in system.claims if row.name == claim).verdict(points)


def test_the_front_is_half_learned():
    setting = FlowParameters(**BASE, width=120, time=80)
    strength = front(setting) ** -1.5
    start = setting.initial_scale**2
    grown = 1 / (1 + (strength / start - 1) * np.exp(-2 * strength * 80))
    assert grown == pytest.approx(0.5, abs=1e-5)
    assert np.isnan(front(setting.model_copy(update={"time": 1e6})))


@pytest.mark.parametrize(("power", "status"), [(0.0, "holds"), (0.4, "fails"), (-0.4, "fails")])
def test_exponent_in_time(power, status):
    rows = [point(width=120, time=t, factor=t**power) for t in (20, 40, 80, 160)]
    assert verdict_of(rows, "time-exponent").status == status


@pytest.mark.parametrize(("power", "status"), [(0.0, "holds"), (0.6, "fails"), (-0.6, "fails")])
def test_exponent_in_width(power, status):
    rows = [point(width=r, time=1000, factor=r**power) for r in (4, 8, 15)]
    assert verdict_of(rows, "width-exponent").status == status


def test_early_times_and_wide_networks_have_no_exponent():
    early = [point(width=120, time=t) for t in (2, 4, 8)]
    assert verdict_of(early, "time-exponent").status == "not testable"
    unfinished = [point(width=r, time=20) for r in (4, 8, 15)]
    assert verdict_of(unfinished, "width-exponent").status == "not testable"


def online(dimension, batch, needed):
    """Point of 40 replicates, of which a share 1 / (1 + (b / needed)^8) diverges."""
    setting = FlowParameters(dimension=dimension, batch=batch, time=15)
    flow = [0.9, 0.6, 0.3, 0.1, 0.1, 0.1]
    lost = round(40 / (1 + (batch / needed) ** 8))
    metrics = [{"online_captured": None}] * lost + [{"online_captured": flow}] * (40 - lost)
    return Point(setting.model_dump(), metrics, {"risk": 1.0}, setting)


def test_the_smallest_batch_is_read_off_between_batches():
    rows = [online(30, batch, 10.0) for batch in (1, 2, 4, 8, 12, 16, 32)]
    assert smallest_batch(rows) == pytest.approx(10.0, rel=0.03)
    assert np.isnan(smallest_batch(rows[-1:]))
    assert diverged(rows[0]).mean() == pytest.approx(1.0)
    assert diverged(rows[-1]).mean() == pytest.approx(0.0)


@pytest.mark.parametrize(("power", "status"), [(1.0, "holds"), (0.4, "fails"), (1.6, "fails")])
def test_samples_and_dimension(power, status):
    rows = [
        online(d, batch, 8 * (d / 30) ** power)
        for d in (15, 30, 60)
        for batch in (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 46)
    ]
    measured, _ = power_of_dimension(rows)
    assert measured == pytest.approx(power, abs=0.05)
    assert verdict_of(rows, "samples-and-dimension").status == status


def test_descent_with_few_samples_diverges_and_with_many_does_not():
    few, many = (
        [
            measure(
                FlowParameters(time=15, batch=batch, learning_rate=0.05), random_stream("few", k)
            )
            for k in range(3)
        ]
        for batch in (1, 15)
    )
    assert all(metrics["online_captured"] is None for metrics in few)  # eta d / B = 1.5
    assert all(metrics["online_captured"] is not None for metrics in many)  # eta d / B = 0.1
