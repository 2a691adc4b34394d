"""The system `narrow-network`: training, limits, and claims that can fail."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from solvable.arrays import random_stream
from solvable.frame.curves import Curve
from solvable.frame.points import Point
from solvable.models.quadratic.narrow import (
    NarrowParameters,
    measure,
    predict,
    solve,
    system,
    target_of,
    train,
)
from solvable.models.quadratic.narrow_phases import PHASE_CLAIMS, PHASES, phase_of, phases
from solvable.models.quadratic.network.learner import QuadraticNetRegressor
from solvable.study import Study, run_study


def loss(flat, X, y, penalty):
    B = flat.reshape(X.shape[1], -1)
    d = len(B)
    outputs = [sum((x @ b) ** 2 - b @ b for b in B.T) / np.sqrt(d) for x in X]
    return np.sum((y - outputs) ** 2) / d**2 + penalty * np.sum(B**2) / d


def test_training_ends_where_the_gradient_of_the_loss_vanishes():
    parameters = NarrowParameters(dimension=10, width=2, sample_ratio=0.6)
    rng = np.random.default_rng(0)
    X, y = target_of(parameters).sample(60, rng)
    found = train(X, y, parameters, rng).ravel()
    slope = approx_fprime(found, loss, 1e-6, X, y, 0.1)
    assert np.abs(slope).max() < 1e-4
    assert loss(found, X, y, 0.1) < loss(0 * found, X, y, 0.1)


def test_a_wide_network_is_the_convex_problem():
    parameters = NarrowParameters(dimension=20, width=20, sample_ratio=1.0)
    rng = np.random.default_rng(1)
    X, y = target_of(parameters).sample(400, rng)
    B = train(X, y, parameters, rng)
    convex = QuadraticNetRegressor(0.1, "fista", fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(B @ B.T, convex.matrix_, atol=5e-3)


def test_many_samples_leave_the_eigenvalues_that_the_width_cuts():
    parameters = NarrowParameters(
        dimension=40, width=3, sample_ratio=10.0, noise=1e-3, regularisation=1e-4
    )
    lost = np.sum(target_of(parameters).strengths[3:] ** 2) / 40
    assert system.predict(parameters)["matrix_error"] == pytest.approx(lost, rel=0.05)


def test_claims_hold_and_fail_for_a_network_that_is_zero(tmp_path):
    study = Study(system, {"dimension": [60], "width": [3, 18]}, replicates=16)
    result = run_study(study, tmp_path / "run", workers=1)
    exponents = {claim.name for claim in PHASE_CLAIMS}  # of three widths or sample sizes
    verdicts = {verdict.claim: verdict.status for verdict in result.verdicts}
    assert {name for name, status in verdicts.items() if status == "holds"} == set(
        verdicts
    ) - exponents
    for row in system.power(result.points):
        if row.claim in exponents:
            continue
        assert (row.chance, row.fails_from_above is None) == ("fails", False), row


def test_claims_are_not_made_where_the_network_nearly_interpolates(tmp_path):
    grid = {"dimension": [12], "width": [12], "sample_ratio": [0.1], "regularisation": [1e-3]}
    result = run_study(Study(system, grid, replicates=2), tmp_path / "run", workers=1)
    assert {verdict.status for verdict in result.verdicts} == {"not testable"}


def test_a_wide_network_has_its_first_order_in_the_dimension():
    """First order in 1/d against trained networks of at least the rank; the limit is 10 % lower."""
    parameters = NarrowParameters(dimension=24, width=20, sample_ratio=1.0, noise=0.3)
    found = [measure(parameters, random_stream("wide", r))["matrix_error"] for r in range(24)]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    predicted, limit = predict(parameters)["matrix_error"], solve(parameters).matrix_error
    assert abs(np.mean(found) - predicted) < 3 * error + 0.02 * predicted
    assert np.mean(found) > limit + 3 * error


@pytest.mark.parametrize(
    ("width", "ratio", "exponent", "noise", "penalty"),
    [(4, 0.6, 1.4, 0.2, 0.05), (9, 0.8, 0.9, 0.5, 0.15)],
)
def test_a_width_limited_network_has_its_first_order_too(width, ratio, exponent, noise, penalty):
    """The limit is 10 % below the measured error, and above the measured training error."""
    parameters = NarrowParameters(
        dimension=32, width=width, sample_ratio=ratio, exponent=exponent, noise=noise,
        regularisation=penalty,
    )  # fmt: skip
    state = solve(parameters)
    found = [measure(parameters, random_stream("narrow", r)) for r in range(40)]
    assert state.width_limited
    for name, off in (("matrix_error", 3), ("train_error", -1)):
        values = np.array([metrics[name] for metrics in found])
        error = values.std(ddof=1) / np.sqrt(len(values))
        predicted, limit = predict(parameters)[name], getattr(state, name)
        assert abs(values.mean() - predicted) < 3 * error + 0.02 * predicted
        assert (values.mean() - limit) * np.sign(off) > abs(off) * error


def test_where_a_wide_network_has_no_expansion_there_is_no_number():
    metrics = predict(
        NarrowParameters(dimension=12, width=12, sample_ratio=0.15, regularisation=0.01)
    )
    assert metrics["matrix_error"] is None
    assert "exceeds half of the limit" in metrics["no prediction"]


def test_where_training_has_many_minima_there_is_no_number():
    """With many minima the measured error is below the limit, which assumes a single minimum."""
    setting = {"sample_ratio": 0.16, "exponent": 0.9, "noise": 1.0, "regularisation": 0.03}
    one = NarrowParameters(dimension=70, width=1, **setting)
    many = NarrowParameters(dimension=70, width=8, **setting)
    assert predict(one)["matrix_error"] > 0
    refused = predict(many)
    assert refused["matrix_error"] is None
    assert "many minima" in refused["no prediction"]
    found = [measure(many, random_stream("many", r))["matrix_error"] for r in range(6)]
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert np.mean(found) < solve(many).matrix_error - 4 * error


def test_labels_that_no_positive_matrix_fits_leave_no_training_error():
    """Near interpolation such labels add several times the limit; the error is still predicted."""
    parameters = NarrowParameters(
        dimension=50, width=50, sample_ratio=0.11, exponent=0.75, noise=15.0, regularisation=0.02
    )
    found, limit = predict(parameters), solve(parameters).train_error
    assert found["train_error"] is None
    assert "no positive matrix fits" in found["no prediction"]
    measured = [measure(parameters, random_stream("labels", r)) for r in range(6)]
    errors = np.array([(one["matrix_error"], one["train_error"]) for one in measured])
    spread = errors.std(axis=0, ddof=1) / np.sqrt(6)
    assert errors[:, 1].mean() > 2 * limit + 2 * spread[1]
    assert abs(errors[:, 0].mean() - found["matrix_error"]) < 3 * spread[0]


def test_missing_features_are_the_error_without_noise():
    parameters = NarrowParameters(dimension=20, width=3, sample_ratio=10.0, noise=1e-3)
    found = predict(parameters)
    squares = target_of(parameters).strengths ** 2
    assert found["missing_features"] == pytest.approx(np.sort(squares)[:-3].sum() / 20)
    assert found["matrix_error"] == pytest.approx(found["missing_features"], rel=0.05)


def test_exponents_and_phases_of_predicted_errors():
    points = []
    for width in (1, 2, 4, 30):
        for ratio in (0.8, 1.6, 3.2):
            parameters = NarrowParameters(
                dimension=30, width=width, sample_ratio=ratio, regularisation=0.2
            )
            predicted = predict(parameters)
            error = predicted["matrix_error"]
            records = [{"matrix_error": factor * error} for factor in (0.99, 1.0, 1.01)]
            points.append(Point(parameters.model_dump(), records, predicted, parameters))
    assert phase_of(points[0]) == PHASES[0]
    assert phase_of(points[-1]) == PHASES[2]
    for claim in PHASE_CLAIMS:
        along = claim.along
        assert claim.verdict(points).status == "holds"
        wrong = [
            replace(
                point,
                metrics=[
                    {"matrix_error": row["matrix_error"] * getattr(point.setting, along) ** 0.4}
                    for row in point.metrics
                ],
            )
            for point in points
        ]
        assert claim.verdict(wrong).status == "fails"
    (figure,) = phases([Curve(tuple(points), system.axis, lambda setting, places: [])])
    drawn = [part for part in figure.series if part.kind == "points"]
    assert sum(len(part.x) for part in drawn) == len(points)
