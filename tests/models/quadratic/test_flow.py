"""The system `quadratic-flow`: closed form, mean growth of features, and limits."""

import numpy as np
import pytest
import studies
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import lambertw

from solvable.arrays import random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.models.quadratic.flow import (
    FlowParameters,
    form_gradient,
    integrate,
    measure,
    online_descent,
    predict,
    strengths_of,
    system,
)
from solvable.models.quadratic.flow_scaling import SCALING_CLAIMS
from solvable.models.quadratic.flow_theory import (
    feature_learning_times,
    flow_matrix,
    gamma_quadrature,
    quadratic_flow,
    width_floor,
)
from solvable.study import Study, run_study


def test_the_mean_step_is_that_of_the_flow():
    strengths = np.array([1.0, 0.5, -0.3, 0.0])
    rng = np.random.default_rng(0)
    W = 0.5 * rng.standard_normal((4, 3))
    X = rng.standard_normal((40_000, 4))
    y = (X**2 - 1) @ strengths
    each = np.stack([form_gradient((W,), X[i : i + 1], y[i : i + 1])[0] for i in range(0, 4_000)])
    (mean,) = form_gradient((W,), X, y)
    error = each.std(axis=0) / np.sqrt(len(X))
    assert (np.abs(mean - (W @ W.T - np.diag(strengths)) @ W) < 4 * error).all()


def test_online_descent_follows_the_flow():
    strengths = np.array([1.0, 0.5, 0.0, 0.0])
    rng = np.random.default_rng(0)
    start = 0.3 * rng.standard_normal((4, 3))
    W = online_descent(strengths, start, 4.0, learning_rate=0.02, batch=4_000, rng=rng)
    expected = flow_matrix(strengths, start, 4.0)
    # Tolerance for 4,000 fresh samples per step and steps of 0.02.
    np.testing.assert_allclose(W @ W.T, expected, atol=0.03)
    found = integrate(strengths, start, 4.0)
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-5)


def test_online_descent_that_diverges_has_no_weights():
    start = np.ones((4, 3))
    arguments = {"learning_rate": 0.5, "batch": 1, "rng": np.random.default_rng(0)}
    assert online_descent(10 * np.ones(4), 9 * start, 20.0, **arguments) is None


def test_a_replicate_measures_online_descent_from_the_start_of_its_flow():
    parameters = FlowParameters(dimension=8, features=3, width=4, time=12, batch=200)
    found = measure(parameters, random_stream(0, "online replicate"))
    np.testing.assert_allclose(found["online_captured"], found["closed_form"], atol=0.1)
    assert predict(parameters)["online_captured"] == predict(parameters)["captured"]
    assert measure(FlowParameters(), random_stream(0, "flow"))["online_captured"] is None


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
    grid = {"dimension": [12], "time": [7, 13, 20], "batch": [0, 60]}
    study = Study(system, grid, replicates=24)
    result = run_study(study, tmp_path / "run", workers=1)
    # Three claims on exponents need several widths, long times or several dimensions.
    statuses = {verdict.claim: verdict.status for verdict in result.verdicts}
    scaling = {statuses.pop(claim.name) for claim in SCALING_CLAIMS}
    assert (scaling, set(statuses.values())) == ({"not testable"}, {"holds"})
    rows = [row for row in system.power(result.points) if row.claim in statuses]
    assert len(rows) == len(statuses)
    for row in rows:
        assert (row.chance, row.noticed) == ("fails", True), row
    assert [figure.name for figure in studies.figures_of(system, result.points, 8)] == [
        "captured",
        "risk",
        "online",
    ]


@pytest.mark.parametrize(("time", "exponent"), [(1.0, 0.3), (14.0, 1.5)])
def test_features_beyond_the_width_grow_until_the_stronger_take_its_units(time, exponent):
    """Means of the closed form over many starts, for two units and three features."""
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
    # Exact at early times; several features grow together at later times.
    assert np.all(gap < 4 * error + (0 if time == pytest.approx(1.0) else 0.06))


@pytest.mark.parametrize("shape", [1e-3, 0.5, 3.0, 171.5, 200.0])
def test_means_over_a_random_start_have_the_moments_of_their_law(shape):
    """Moments of the quadrature, also at shapes whose gamma function overflows."""
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


def power_law(features, exponent, dimension=None):
    """Strengths j^-a of the features, followed by zeros."""
    found = np.zeros(dimension or features)
    found[:features] = np.arange(1.0, features + 1) ** -exponent
    return found


def half_times(flow):
    """Interpolated times at which half of each feature is captured; NaN if never."""
    return np.array(
        [
            np.interp(0.5, share, flow.times) if np.nanmax(share, initial=0) >= 0.5 else np.nan
            for share in flow.captured.T
        ]
    )


def front(times, exponent, start):
    """Number of learned features: t = k^a log(k^-a / g_0) / 2 gives k^-a = -W_-1(-2 t g_0) / 2 t."""
    return (-lambertw(-2 * times * start, -1).real / (2 * times)) ** (-1 / exponent)


def integrated(strengths, weights, time):
    """Integrate dW/dt = (Lambda - W W^T) W by SciPy's Runge-Kutta method."""
    shape = weights.shape

    def velocity(_, flat):
        current = flat.reshape(shape)
        return ((np.diag(strengths) - current @ current.T) @ current).ravel()

    path = solve_ivp(velocity, (0, time), weights.ravel(), method="DOP853", rtol=1e-11, atol=1e-13)
    found = path.y[:, -1].reshape(shape)
    return found @ found.T


@pytest.mark.parametrize("time", [0.0, 0.3, 3.0, 40.0])
@pytest.mark.parametrize("width", [1, 3, 7, 12])
def test_closed_form_is_the_flow_for_strengths_of_any_sign_and_order(time, width):
    strengths = np.array([0.3, 1.0, 0.0, 0.1, -0.2, 0.5, 0.0])
    weights = 0.2 * np.random.default_rng(width).standard_normal((7, width))
    expected = integrated(strengths, weights, time) if time else weights @ weights.T
    # The error of the integrator is 1e-11 per step.
    np.testing.assert_allclose(flow_matrix(strengths, weights, time), expected, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(-1, 2), min_size=1, max_size=6),
    st.integers(1, 8),
    st.floats(1e-3, 5),
    st.integers(0, 100),
)
def test_the_flow_composes(strengths, width, time, seed):
    rates = np.array(strengths)
    weights = 0.3 * np.random.default_rng(seed).standard_normal((rates.size, width))
    halfway = flow_matrix(rates, weights, time / 2)
    values, vectors = np.linalg.eigh(halfway)
    factor = vectors * np.sqrt(np.clip(values, 0, None))
    # A factor of G(t / 2) is a valid start; rounding of 1e-16 grows at most by exp(2 rate t / 2).
    again = flow_matrix(rates, factor, time / 2)
    np.testing.assert_allclose(again, flow_matrix(rates, weights, time), atol=1e-10)


def test_commuting_start_is_the_logistic_law_over_600_decades_of_growth():
    strengths = power_law(30, 1.0)
    for time in (1.0, 30.0, 700.0, 20_000.0):
        found = flow_matrix(strengths, 1e-3 * np.eye(30), time)
        logistic = strengths / (1 + (strengths / 1e-6 - 1) * np.exp(-2 * strengths * time))
        np.testing.assert_allclose(np.diagonal(found), logistic, rtol=1e-9)
        assert np.abs(found - np.diag(np.diagonal(found))).max() == 0


def test_a_feature_that_starts_at_nothing_stays_there():
    weights = 1e-3 * np.eye(5, 4)
    weights[0] = 0
    strengths = np.array([1.0, 0.5, 0.4, 0.3, 0.0])
    found = flow_matrix(strengths, weights, 5_000.0)
    np.testing.assert_allclose(np.diagonal(found)[:4], [0, 0.5, 0.4, 0.3], atol=1e-12)


def test_learning_times_are_where_half_is_captured():
    strengths = power_law(10, 1.5, 12)
    times = np.linspace(0, 250, 626)
    flow = quadratic_flow(strengths, 1e-2 * np.eye(12), times)
    expected = feature_learning_times(strengths[:10], initial_strength=1e-4)
    # Tolerance for linear interpolation on a grid of 0.4.
    np.testing.assert_allclose(half_times(flow)[:10], expected, atol=0.03)
    assert np.isnan(half_times(flow)[10:]).all()


def test_random_start_learns_at_the_same_times_up_to_the_logarithm():
    strengths = power_law(8, 1.0, 40)
    weights = 1e-4 * np.random.default_rng(0).standard_normal((40, 40)) / np.sqrt(40)
    times = np.linspace(0, 120, 601)
    found = half_times(quadratic_flow(strengths, weights, times))[:8]
    expected = feature_learning_times(strengths[:8], initial_strength=1e-8)
    # The start of a feature is a chi-squared variable, and faster features take a share.
    assert np.all(np.abs(found / expected - 1) < 2 / np.log(1e8 / np.arange(1, 9)))


@pytest.mark.parametrize("width", [10, 30, 100])
def test_late_risk_is_the_width_floor(width):
    strengths = power_law(400, 1.0, 600)
    weights = 1e-2 * np.random.default_rng(1).standard_normal((600, width))
    early, late = quadratic_flow(strengths, weights, np.array([500.0, 1e7])).risk
    floor = width_floor(strengths, width=width)
    assert floor < early
    assert late == pytest.approx(floor, rel=1e-9)
    # (quadratic 36): floors 0.0564, 0.0184 and 0.0045
    assert floor == pytest.approx({10: 0.0564, 30: 0.0184, 100: 0.0045}[width], abs=5e-5)


def test_the_best_of_rank_r_is_the_floor():
    strengths = power_law(50, 1.2)
    kept = np.diag(np.where(np.arange(50) < 7, strengths, 0))
    expected = np.sum((np.diag(strengths) - kept) ** 2) / np.sum(strengths**2)
    assert width_floor(strengths[::-1], width=7) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("exponent", [0.75, 1.0, 1.5])
def test_slope_of_the_risk_is_the_exponent_times_its_logarithmic_correction(exponent):
    start, features = 1e-12, 300_000
    strengths = power_law(features, exponent)
    times = np.geomspace(100, 1_000, 6)
    risk = [
        np.sum(
            (strengths / (1 - np.exp(-2 * strengths * t) * (1 - strengths / start)) - strengths)
            ** 2
        )
        for t in times
    ]
    bare = -(2 * exponent - 1) / exponent  # in t / log t
    # The sum to infinity adds the features beyond the dimension.
    tail = features ** (1 - 2 * exponent) / (2 * exponent - 1)
    found = np.polyfit(np.log(times), np.log(np.array(risk) + tail), 1)[0]
    learned = front(times, exponent, start)
    expected = np.polyfit(np.log(times), (1 - 2 * exponent) * np.log(learned), 1)[0]
    assert found == pytest.approx(expected, rel=0.01)
    ratio = np.mean(np.log(learned**-exponent / start))
    assert expected == pytest.approx(bare * ratio / (ratio - 1), rel=0.005)
    # The bare exponent is wrong by several per cent, so that this tests the correction.
    assert abs(found / bare - 1) > 0.03


@pytest.mark.parametrize(
    ("strengths", "weights"),
    [
        (np.ones(3), np.ones((2, 2))),
        (np.ones(3), np.ones(3)),
        (np.array([1.0, np.nan]), np.ones((2, 1))),
        (np.empty(0), np.empty((0, 1))),
    ],
)
def test_arrays_that_do_not_fit_are_refused(strengths, weights):
    with pytest.raises(InvalidData):
        flow_matrix(strengths, weights, 1.0)


def test_parameters_out_of_range_are_refused():
    with pytest.raises(InvalidParameter, match="time is -1"):
        flow_matrix(np.ones(1), np.ones((1, 1)), -1.0)
    with pytest.raises(InvalidData, match="every strength is 0"):
        quadratic_flow(np.zeros(2), np.ones((2, 1)), np.ones(1))
    with pytest.raises(InvalidData, match="never learned"):
        feature_learning_times([0.0], initial_strength=1e-3)
