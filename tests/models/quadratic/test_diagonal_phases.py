"""Phases, laws and exponents of diagonal networks against the exact state evolution."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.models.quadratic.diagonal import DiagonalParameters, predict, system
from solvable.models.quadratic.diagonal_phases import DiagonalPhases, phase_diagram
from solvable.models.quadratic.diagonal_theory import solve_diagonal
from solvable.plots.recording_backend import record
from solvable.systems.base import Point


def exact(phases, samples, penalty):
    ranks = np.arange(1, phases.dimension + 1.0)
    coefficients = phases.scale * ranks**-phases.exponent
    return solve_diagonal(
        coefficients, n_samples=samples, label_noise=phases.label_noise, penalty=penalty
    ).error


DEEP = {
    "Ib": (1.5, 5000, 100, 1e5, 0.01),
    "II": (1.5, 5000, 10**6, 4_000.0, 0.05),
    "III": (0.75, 200, 10**7, 1e5, 1e-3),
    "VI": (0.75, 200, 10**7, 1.0, 1e-3),
    "V": (3.0, 5000, 1500, 1e-6, 0.1),
}
"""Exponent, dimension, samples, penalty, and accuracy of the law deep inside each phase."""


@pytest.mark.parametrize("phase", DEEP)
def test_laws_are_those_of_the_exact_solution(phase):
    exponent, dimension, samples, penalty, accuracy = DEEP[phase]
    phases = DiagonalPhases(dimension, exponent, 0.25)
    found = phases.locate(samples, penalty)
    assert found.phase == phase
    assert found.error == pytest.approx(exact(phases, samples, penalty), rel=accuracy)


@pytest.mark.parametrize("phase", ["II", "III", "VI"])
def test_exponents_are_local_slopes(phase):
    exponent, dimension, samples, penalty, _ = DEEP[phase]
    phases = DiagonalPhases(dimension, exponent, 0.25)
    errors = [exact(phases, samples * side, penalty) for side in (0.8, 1.25)]
    slope = np.log(errors[1] / errors[0]) / np.log(1.25 / 0.8)
    assert slope == pytest.approx(phases.locate(samples, penalty).exponent, abs=0.05)


def points(factor=lambda n: 1.0, **setting):
    rows = []
    for n in setting.pop("samples"):
        parameters = DiagonalParameters(samples=n, **setting)
        prediction = predict(parameters)
        metrics = dict(prediction) | {"error": prediction["error"] * factor(n)}
        rows.append(Point(parameters.model_dump(), [metrics] * 20, prediction, parameters))
    return rows


CURVES = {
    "exponent-II": {"exponent": 1.5, "weight_decay": 40.0, "samples": (2000, 4000, 8000)},
    "exponent-III": {"exponent": 0.75, "weight_decay": 40.0, "samples": (16000, 24000, 40000)},
    "exponent-VI": {"exponent": 0.75, "weight_decay": 0.02, "samples": (1000, 2000, 4000)},
}


def verdict_of(rows, claim):
    return next(row for row in system.claims if row.name == claim).verdict(rows)


@pytest.mark.parametrize("claim", CURVES)
def test_exponents_are_judged(claim):
    setting = {"dimension": 64} | CURVES[claim]
    assert verdict_of(points(**setting), claim).status == "holds"
    assert verdict_of(points(lambda n: n**0.5, **setting), claim).status == "fails"


def test_the_law_of_the_phase_is_judged():
    setting = {"dimension": 64} | CURVES["exponent-VI"]
    assert verdict_of(points(**setting), "phase-law").status == "holds"
    assert verdict_of(points(lambda n: 2.0, **setting), "phase-law").status == "fails"


def test_the_phase_diagram_shows_points_and_borders():
    rows = [
        row
        for decay in (0.02, 40.0)
        for row in points(dimension=64, exponent=1.5, weight_decay=decay, samples=(500, 4000))
    ]
    (figure,) = phase_diagram(system.curves(rows))
    labels = {one.label for one in figure.series}
    assert {"phase II", "phase VI", "noise is cut above"} <= labels
    assert record(figure)
    assert phase_diagram(system.curves(rows[:2])) == []
