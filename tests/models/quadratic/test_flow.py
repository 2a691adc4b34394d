"""The system `quadratic-flow`: the flow is that of a trained network, its mean course, its limits."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.quadratic.flow import (
    FlowParameters,
    gamma_quadrature,
    integrate,
    measure,
    predict,
    strengths_of,
    system,
)
from solvable.models.quadratic.flow_theory import flow_matrix, quadratic_flow, width_floor
from solvable.study import Study, run_study


def test_flow_is_gradient_descent_of_a_network_on_fresh_samples():
    strengths = np.array([1.0, 0.5, 0.0, 0.0])
    rng = np.random.default_rng(0)
    W = start = 0.3 * rng.standard_normal((4, 3))
    rate, steps = 0.02, 200
    for _ in range(steps):
        X = rng.standard_normal((4_000, 4))
        residual = (X**2 - 1) @ strengths - (np.sum((X @ W) ** 2, axis=1) - np.sum(W**2))
        # The gradient of the mean squared error is eight times that of the flow's loss in the mean.
        slope = -4 * (X.T @ (residual[:, None] * (X @ W)) - residual.sum() * W) / len(X)
        W = W - rate / 8 * slope
    expected = flow_matrix(strengths, start, rate * steps)
    # Noise of 4,000 fresh samples a step, and steps of 0.02.
    np.testing.assert_allclose(W @ W.T, expected, atol=0.03)
    found = integrate(strengths, start, rate * steps)
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-5)


def test_mean_course_of_one_feature_is_the_average_of_the_logistic_law():
    parameters = FlowParameters(
        dimension=2, features=2, width=3, exponent=3.0, initial_scale=1e-4, time=8.5
    )
    draws = np.random.default_rng(1).chisquare(3, 400_000) * 1e-8 / 3
    logistic = 1 / (1 + (1 / draws - 1) * np.exp(-2 * 8.5))
    expected = logistic.mean(), logistic.std() / np.sqrt(400_000)
    found = system.predict(parameters)["captured"][0]
    assert abs(found - expected[0]) < 4 * expected[1] + 1e-6


def test_late_risk_is_the_floor_of_the_width():
    parameters = FlowParameters(width=4, time=3000.0)
    floor = width_floor(strengths_of(parameters), width=4)
    found = system.predict(parameters)
    assert found["risk"] == pytest.approx(floor, rel=1e-9)
    np.testing.assert_allclose(found["captured"], [1, 1, 1, 1, 0, 0], atol=1e-9)
    assert found["learning_times"][4:] == [None, None]
    measured = system.measure(parameters, np.random.default_rng(0))
    assert measured["risk"] == pytest.approx(floor, rel=1e-3)


def test_claims_hold_and_fail_for_a_network_that_is_zero(tmp_path):
    study = Study(system, {"dimension": [12], "time": [7, 13, 20]}, replicates=60)
    result = run_study(study, tmp_path / "run", workers=1)
    assert {verdict.status for verdict in result.verdicts} == {"holds"}
    for row in system.power(result.points):
        assert (row.chance, row.noticed) == ("fails", True), row
    assert [figure.name for figure in system.figures(result.points)] == ["captured", "risk"]


@pytest.mark.parametrize(("time", "exponent"), [(1.0, 0.3), (14.0, 1.5)])
def test_features_beyond_the_width_grow_until_the_stronger_take_its_units(time, exponent):
    """Mean of closed forms over many starts: two units, three features."""
    parameters = FlowParameters(
        dimension=5, features=3, width=2, exponent=exponent, initial_scale=1e-2, time=time
    )
    strengths = strengths_of(parameters)
    rng = random_stream("units", str(time))
    starts = 1e-2 * rng.standard_normal((4000, 5, 2)) / np.sqrt(2)
    courses = np.array(
        [quadratic_flow(strengths, start, np.array([time])).captured[0, :3] for start in starts]
    )
    error = courses.std(axis=0) / np.sqrt(len(courses))
    gap = np.abs(courses.mean(axis=0) - predict(parameters)["captured"])
    # Early exact; later features overlap while they grow.
    assert np.all(gap < 4 * error + (0 if time == pytest.approx(1.0) else 0.06))


@pytest.mark.parametrize("shape", [1e-3, 0.5, 3.0, 171.5, 200.0])
def test_means_over_a_random_start_have_the_moments_of_their_law(shape):
    """At shapes whose gamma function overflows, too: networks wider than 342 had no prediction."""
    nodes, weights = gamma_quadrature(shape)
    for power in range(4):
        moment = np.prod(shape + np.arange(power))
        assert weights @ nodes**power == pytest.approx(moment, rel=1e-10)


def test_a_network_of_many_units_has_its_features_predicted():
    parameters = FlowParameters(
        dimension=12, features=3, width=390, exponent=0.7, initial_scale=1e-4, time=9.0
    )
    found = [measure(parameters, random_stream("wide flow", r))["captured"] for r in range(4)]
    error = np.std(found, axis=0, ddof=1) / 2
    predicted = np.array(predict(parameters)["captured"])
    assert (np.abs(np.mean(found, axis=0) - predicted) < 4 * error + 0.01 * predicted).all()
