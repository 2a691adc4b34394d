"""The moments behind the prediction: exact means against simulation, and what they must obey."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import draw_moments as draw_all_moments
from solvable.models.sequential.predict import predict
from solvable.models.sequential.target import make_target
from solvable.moment_spectrum.draws import target_draw
from solvable.moment_spectrum.moments import finite_size_moments
from solvable.moment_spectrum.spike_heights import controlled_mean, exact_heights
from solvable.operators import MomentOperator, apply_label_map, standardise


def draw_moments(parameters):
    """The moments behind the system's prediction."""
    return draw_all_moments(parameters, [make_target(parameters, seed) for seed in range(8)])


VARIANTS = [
    {"correction": "wick"},
    {"correction": "none"},
    {"correction": "wick", "first_layer": "random"},
    {"inputs": "gaussian"},
    {"degree": 1, "dimension": 60},
]


@pytest.mark.parametrize("setting", VARIANTS, ids=str)
def test_exact_heights_are_those_of_a_simulated_operator(setting):
    """With T = the index itself, <A_i, C A_i> has exactly this mean."""
    parameters = SequentialParameters(**({"dimension": 12, "features": 3, "decay": 0.5} | setting))
    target = make_target(parameters, 4)
    norms = np.linalg.norm(target.directions, axis=0)
    one = target_draw(target)(2, random_stream(0))
    wick = parameters.correction == "wick"
    exact = exact_heights(one.strengths, one.gram, one.matrices, corrected=wick)
    found = []
    for seed in range(12):
        X, _ = target.sample(40_000, random_stream("heights", seed))
        index = ((target.latent(X)) ** 2 - norms**2) @ target.weights
        operator = MomentOperator(X, index, target.feature_map, correction=parameters.correction)
        unit = target.directions / norms
        if one.mixing is not None:
            unit = unit @ np.linalg.inv(one.mixing)
        found.append(np.einsum("dp,dp->p", unit, operator.matmat(unit)))
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(np.mean(found, axis=0) - exact) < 4 * error)


def test_degree_three_has_no_exact_heights():
    target = make_target(SequentialParameters(degree=3, dimension=6, features=2), 0)
    one = target_draw(target)(2, random_stream(0))
    assert exact_heights(one.strengths, one.gram, one.matrices, corrected=False) is None


def test_control_variate_removes_the_noise_of_a_linear_map():
    rng = random_stream(1)
    h = rng.standard_normal((5000, 2))
    index = (h**2 - 1) @ [0.8, -0.6]
    exact = 2 * np.array([0.8, -0.6])
    np.testing.assert_allclose(controlled_mean(3 * index, h**2 - 1, index, exact), 3 * exact)
    tanh = np.tanh(index)
    controlled = [controlled_mean(tanh[r], h[r] ** 2 - 1, index[r], exact) for r in _parts()]
    plain = [tanh[r] @ (h[r] ** 2 - 1) / r.size for r in _parts()]
    assert np.all(np.std(controlled, axis=0) < 0.8 * np.std(plain, axis=0))


def _parts():
    return np.arange(5000).reshape(10, 500)


def test_gaussian_features_are_known_in_closed_form():
    parameters = SequentialParameters(
        inputs="gaussian", dimension=30, features=8, decay=1.0, label_map="identity"
    )
    held = draw_moments(parameters)
    weights = make_target(parameters, 0).weights
    # T is standardised by the sample: 0.3 % of noise in its scale.
    np.testing.assert_allclose(held.law.heights, np.sqrt(2) * weights, rtol=0.01)
    # tau_2 = E[y^2 ||F||^4]/D^2 = 1 + O(1/D), coupling 1 + 4 lambda^2 + O(1/D).
    assert held.noise == pytest.approx(1, abs=0.05)
    coupling = held.sample.probabilities @ held.sample.couplings
    np.testing.assert_allclose(coupling, 1 + 4 * weights**2, rtol=0.06)
    assert held.law.background is None
    assert predict(parameters)["polynomial_kernel_normalised_mse"] is None


@pytest.mark.parametrize("correction", ["none", "wick"])
def test_noise_is_that_of_the_operator(correction):
    """E||C - E C||_F^2 n / D^2 of a simulated operator against tau_2 and the contraction."""
    parameters = SequentialParameters(
        dimension=14, features=2, correction=correction, label_map="tanh"
    )
    target = make_target(parameters, 2)
    D, n, repeats = target.n_features_total, 600, 40
    matrices = []
    for seed in range(repeats):
        X, y = target.sample(n, random_stream("noise", seed))
        T = apply_label_map(standardise(y)[0], "tanh")
        operator = MomentOperator(X, T, target.feature_map, correction=correction)
        matrices.append(operator.dense())
    variance = np.var(matrices, axis=0, ddof=1).sum() * n / D**2
    found = finite_size_moments(
        target, n_features=D, label_map="tanh", correction=correction, draws=25_000
    )
    expected = found.law.noise
    if correction == "none":
        # The noise N of the contraction acts as U -> N U + U N: trace norm (d + 2) ||N||^2 + tr^2.
        noise = found.law.background.contraction_noise * (parameters.dimension + 2)
        expected += noise * parameters.dimension / D**2
    # The closed form has both in one number, the mean of the kernel included: O(1/d) more.
    assert found.noise == pytest.approx(expected, rel=0.1)
    # 40 repeats: 5 %; the mean of T is removed from each sample: O(1/n).
    assert variance == pytest.approx(expected, rel=0.15)


def test_moments_depend_on_the_parameters_alone():
    one = draw_moments(SequentialParameters(dimension=12, features=2, samples=100))
    two = draw_moments(SequentialParameters(dimension=12, features=2, samples=9999))
    np.testing.assert_array_equal(one.heights, two.heights)
    np.testing.assert_array_equal(one.sample.weights, two.sample.weights)
