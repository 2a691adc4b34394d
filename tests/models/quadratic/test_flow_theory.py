import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.quadratic.flow_theory import (
    feature_learning_times,
    flow_exponent,
    flow_matrix,
    flow_strengths,
    learned_features,
    quadratic_flow,
    width_floor,
)


def integrated(strengths, weights, time):
    """Solve dW/dt = (Lambda - W W^T) W itself, by SciPy's Runge-Kutta."""
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
    # The integrator's own error: 1e-11 a step.
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
    # Any factor of G(t / 2) is a start; its rounding, 1e-16, grows at most by exp(2 rate t / 2).
    again = flow_matrix(rates, factor, time / 2)
    np.testing.assert_allclose(again, flow_matrix(rates, weights, time), atol=1e-10)


def test_commuting_start_is_the_logistic_law_over_600_decades_of_growth():
    strengths = flow_strengths(dimension=30, features=30, exponent=1.0)
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
    strengths = flow_strengths(dimension=12, features=10, exponent=1.5)
    times = np.linspace(0, 250, 626)
    flow = quadratic_flow(strengths, 1e-2 * np.eye(12), times)
    expected = feature_learning_times(strengths[:10], initial_strength=1e-4)
    # Linear interpolation on a grid of 0.4.
    np.testing.assert_allclose(flow.learning_times()[:10], expected, atol=0.03)
    assert np.isnan(flow.learning_times()[10:]).all()


def test_random_start_learns_at_the_same_times_up_to_the_logarithm():
    strengths = flow_strengths(dimension=40, features=8, exponent=1.0)
    weights = 1e-4 * np.random.default_rng(0).standard_normal((40, 40)) / np.sqrt(40)
    times = np.linspace(0, 120, 601)
    found = quadratic_flow(strengths, weights, times).learning_times()[:8]
    expected = feature_learning_times(strengths[:8], initial_strength=1e-8)
    # The start of a feature is chi-squared about its mean, and the faster ones take a share.
    assert np.all(np.abs(found / expected - 1) < 2 / np.log(1e8 / np.arange(1, 9)))


@pytest.mark.parametrize("width", [10, 30, 100])
def test_late_risk_is_the_width_floor(width):
    strengths = flow_strengths(dimension=600, features=400, exponent=1.0)
    weights = 1e-2 * np.random.default_rng(1).standard_normal((600, width))
    early, late = quadratic_flow(strengths, weights, np.array([500.0, 1e7])).risk
    floor = width_floor(strengths, width=width)
    assert floor < early
    assert late == pytest.approx(floor, rel=1e-9)
    # Note 04, section 4.3, has .0564, .0184 and .0045 for the floor.
    assert floor == pytest.approx({10: 0.0564, 30: 0.0184, 100: 0.0045}[width], abs=5e-5)


def test_the_best_of_rank_r_is_the_floor():
    strengths = flow_strengths(dimension=50, features=50, exponent=1.2)
    kept = np.diag(np.where(np.arange(50) < 7, strengths, 0))
    expected = np.sum((np.diag(strengths) - kept) ** 2) / np.sum(strengths**2)
    assert width_floor(strengths[::-1], width=7) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("exponent", [0.75, 1.0, 1.5])
def test_slope_of_the_risk_is_the_exponent_times_its_logarithmic_correction(exponent):
    start, features = 1e-12, 300_000
    strengths = flow_strengths(dimension=features, features=features, exponent=exponent)
    times = np.geomspace(100, 1_000, 6)
    risk = [
        np.sum(
            (strengths / (1 - np.exp(-2 * strengths * t) * (1 - strengths / start)) - strengths)
            ** 2
        )
        for t in times
    ]
    # Features that do not exist are added to the tail.
    tail = features ** (1 - 2 * exponent) / (2 * exponent - 1)
    found = np.polyfit(np.log(times), np.log(np.array(risk) + tail), 1)[0]
    learned = learned_features(times, exponent=exponent, initial_strength=start)
    expected = np.polyfit(np.log(times), (1 - 2 * exponent) * np.log(learned), 1)[0]
    assert found == pytest.approx(expected, rel=0.01)
    ratio = np.mean(np.log(learned**-exponent / start))
    assert expected == pytest.approx(flow_exponent(exponent) * ratio / (ratio - 1), rel=0.005)
    # The correction is what is tested: the bare exponent is off by several per cent.
    assert abs(found / flow_exponent(exponent) - 1) > 0.03


def test_front_of_learned_features_inverts_the_learning_time():
    rank = np.array([1.0, 10.0, 100.0])
    times = rank / 2 * np.log(1 / (rank * 1e-8))
    found = learned_features(times, exponent=1.0, initial_strength=1e-8)
    np.testing.assert_allclose(found, rank, rtol=1e-10)
    assert np.isnan(learned_features(1e9, exponent=1.0, initial_strength=1e-8))


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
    with pytest.raises(InvalidParameter, match="above 1/2"):
        flow_exponent(0.5)
    with pytest.raises(InvalidParameter, match="features is 3"):
        flow_strengths(dimension=2, features=3, exponent=1.0)
    with pytest.raises(InvalidData, match="nothing to learn"):
        quadratic_flow(np.zeros(2), np.ones((2, 1)), np.ones(1))
    with pytest.raises(InvalidData, match="never learned"):
        feature_learning_times([0.0], initial_strength=1e-3)
    with pytest.raises(InvalidParameter, match="finite and above 0"):
        learned_features(0.0, exponent=1.0, initial_strength=1e-3)
