"""Moments of the prediction against simulation, and their invariances."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.sequential.parameters import SequentialParameters
from solvable.models.sequential.predict import _moments, predict
from solvable.models.sequential.target import make_target
from solvable.moment_spectrum.draws import is_quadratic
from solvable.moment_spectrum.moments import finite_size_moments
from solvable.moment_spectrum.orthogonal_form import orthonormal_directions
from solvable.moment_spectrum.spike_heights import controlled_mean, exact_heights
from solvable.operators import MomentOperator, apply_label_map, standardise

VARIANTS = [
    {"correction": "wick"},
    {"correction": "none"},
    {"inputs": "gaussian"},
    {"degree": 1, "dimension": 60},
]


@pytest.mark.parametrize("setting", VARIANTS, ids=str)
def test_exact_heights_are_those_of_simulated_operators(setting):
    """Mean of <A_i, C A_i> for T = index over inputs and first layers (sequential 3)."""
    parameters = SequentialParameters(**({"dimension": 12, "features": 3, "decay": 0.5} | setting))
    heights = []
    for seed in range(40):
        target = make_target(parameters, seed)
        _, directions = orthonormal_directions(target)
        X, _ = target.sample(10_000, random_stream("heights", seed))
        index = (target.latent(X) ** 2 - 1) @ target.weights
        operator = MomentOperator(X, index, target.feature_map, correction=parameters.correction)
        heights.append(np.einsum("dp,dp->p", directions, operator.matmat(directions)))
    exact = exact_heights(
        target.weights,
        corrected=parameters.correction == "wick",
        dimension=parameters.dimension if is_quadratic(target) else None,
    )
    error = np.std(heights, axis=0, ddof=1) / np.sqrt(len(heights))
    assert np.all(np.abs(np.mean(heights, axis=0) - exact) < 4 * error)


def test_control_variate_removes_the_noise_of_a_linear_map():
    rng = random_stream(1)
    h = rng.standard_normal((5000, 2))
    index = (h**2 - 1) @ [0.8, -0.6]
    exact = 2 * np.array([0.8, -0.6])
    np.testing.assert_allclose(controlled_mean(3 * index, h**2 - 1, index, exact), 3 * exact)
    tanh = np.tanh(index)
    parts = np.arange(5000).reshape(10, 500)
    controlled = [controlled_mean(tanh[r], h[r] ** 2 - 1, index[r], exact) for r in parts]
    plain = [tanh[r] @ (h[r] ** 2 - 1) / r.size for r in parts]
    assert np.all(np.std(controlled, axis=0) < 0.8 * np.std(plain, axis=0))


def test_gaussian_features_are_known_in_closed_form():
    parameters = SequentialParameters(
        inputs="gaussian", dimension=30, features=8, decay=1.0, label_map="identity"
    )
    moments = _moments(parameters)
    weights = make_target(parameters, 0).weights
    # T is standardised by the sample, with 0.3 % of noise in its scale.
    np.testing.assert_allclose(moments.law.heights, np.sqrt(2) * weights, rtol=0.01)
    # tau_2 = E[y² ||F||⁴]/D² = 1 + O(1/D), coupling 1 + 4 lambda² + O(1/D).
    assert moments.law.noise == pytest.approx(1, abs=0.05)
    assert moments.label_second_moment == pytest.approx(1, abs=1e-9)
    sample = moments.law.sample
    coupling = sample.probabilities @ sample.couplings
    np.testing.assert_allclose(coupling, 1 + 4 * weights**2, rtol=0.06)
    assert moments.law.background is None
    assert predict(parameters)["polynomial_kernel_normalised_mse"] is None


@pytest.mark.parametrize("correction", ["none", "wick"])
def test_noise_is_that_of_the_operator(correction):
    """E||C - E C||_F² n / D² of a simulated operator against tau_2 and the contraction."""
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
    moments = finite_size_moments([target], label_map="tanh", correction=correction, draws=25_000)
    expected = moments.law.noise
    if correction == "none":
        # The noise N of the contraction acts as U -> N U + U N, of squared norm (d + 2) ||N||² + (tr N)².
        noise = moments.law.background.contraction_noise * (parameters.dimension + 2)
        expected += noise * parameters.dimension / D**2
        # The mean of the plain spectrum is E[T |F|²] / D.
        assert moments.shift == pytest.approx(
            np.mean([np.trace(C) for C in matrices]) / D, abs=0.02
        )
    else:
        assert moments.shift == 0
    # 40 repeats: 5 %; the mean of T is removed from each sample: O(1/n).
    assert variance == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("correction", ["none", "wick"])
def test_couplings_are_what_a_direction_loses(correction):
    """E||P (C - E C) A_i||² = tau_2h (D - p) / n, from simulated matrices of both kinds."""
    parameters = SequentialParameters(
        dimension=14, features=3, correction=correction, label_map="clip"
    )
    target = make_target(parameters, 1)
    A, D, n = target.directions, target.n_features_total, 2_000
    images = []
    for seed in range(40):
        X, y = target.sample(n, random_stream("couplings", seed))
        T = apply_label_map(standardise(y)[0], "clip")
        images.append(MomentOperator(X, T, target.feature_map, correction=correction).matmat(A))
    moved = np.array(images) - np.mean(images, axis=0)
    outside = moved - A @ (A.T @ moved)
    lost = np.sum(outside**2, axis=(0, 1)) / (len(images) - 1)
    moments = finite_size_moments([target], label_map="clip", correction="wick", draws=100_000)
    sample = moments.law.sample
    couplings = sample.probabilities @ sample.couplings * (D - 3) / n
    # The plain operator also has the noise of the contraction.
    if correction == "wick":
        np.testing.assert_allclose(lost, couplings, rtol=0.15)
    else:
        assert (lost > couplings).all()


def test_moments_depend_on_the_parameters_alone():
    first = _moments(SequentialParameters(dimension=12, features=2, samples=100))
    second = _moments(SequentialParameters(dimension=12, features=2, samples=9999))
    np.testing.assert_array_equal(first.law.heights, second.law.heights)
    np.testing.assert_array_equal(first.law.sample.weights, second.law.sample.weights)
