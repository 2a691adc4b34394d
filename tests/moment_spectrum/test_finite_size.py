"""Finite-size moments against exact values, the population matrix, and simulated spectra."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.moment_spectrum.draws import LatentSample, gaussian_draw, quadratic_draw
from solvable.moment_spectrum.exact_population import PopulationMatrix
from solvable.moment_spectrum.moments import finite_size_moments
from solvable.operators import HermiteFeatures, MomentOperator, apply_label_map

WEIGHTS = np.array([0.7, -0.55, 0.45])
WEIGHTS = WEIGHTS / np.linalg.norm(WEIGHTS)


def random_matrices(dimension, features=3, seed=0):
    hermite = HermiteFeatures(2, dimension)
    rng = np.random.default_rng(seed)
    return hermite.to_symmetric(
        np.linalg.qr(rng.standard_normal((hermite.n_features, features)))[0]
    )


def without_kernel(draw):
    """The same draw as a target gives it: labels, latent features and norms alone."""

    def plain(n, rng):
        one = draw(n, rng)
        return one.labels, one.latent, one.squared_norm

    return plain


def test_gaussian_features_have_the_exact_moments():
    D = 400
    found = finite_size_moments(
        gaussian_draw(weights=WEIGHTS, n_features=D), n_features=D, draws=400_000
    )
    # E[y^2 ||F||^2], ||F||^2 / D = 1 + O(1/D): theta is relative to the bulk, which moves by
    # E[T ||F||^2 / D] = sqrt(2) sum lambda / D.
    shift = np.sqrt(2) * WEIGHTS.sum() / D
    assert found.shift == pytest.approx(shift, abs=4 * found.shift_error)
    heights = np.sqrt(2) * WEIGHTS - shift
    assert np.all(np.abs(found.heights - heights) < 4 * found.heights_error + 2e-3)
    assert np.all(found.heights_error < 0.02)
    assert abs(found.label_second_moment - 1) < 1e-9
    assert found.label_variance == pytest.approx(1, abs=4 * found.label_variance_error)
    # Next order in 1/D: E[T^2 (2 sum h^2 + ...)], below 20 / D.
    assert found.noise == pytest.approx(1, abs=4 * found.noise_error + 20 / D)
    couplings = 1 + 4 * WEIGHTS**2
    error = 4 * found.couplings_error + 60 / D
    assert np.all(np.abs(found.couplings - couplings) < error)


def test_errors_are_those_of_repeated_draws():
    draw = gaussian_draw(weights=WEIGHTS, n_features=300, readout=np.tanh)
    runs = [finite_size_moments(draw, n_features=300, draws=4_000, seed=seed) for seed in range(60)]
    for name in ("noise", "shift", "label_variance", "heights", "couplings"):
        values = np.array([getattr(run, name) for run in runs])
        quoted = np.mean([getattr(run, f"{name}_error") for run in runs], axis=0)
        # A standard deviation of 60 values is known to 9 %.
        np.testing.assert_allclose(values.std(axis=0, ddof=1), quoted, rtol=0.35)
    # Standardised labels and the identity map: E[T^2] = 1 without error.
    assert all(run.label_second_moment_error < 1e-12 for run in runs)


@pytest.mark.parametrize("correction", ["none", "wick"])
def test_exact_heights_are_the_diagonal_of_the_population_matrix(correction):
    d = 12
    matrices = random_matrices(d)
    matrix = PopulationMatrix(matrices, WEIGHTS, correction)
    exact = np.einsum("pab,pab->p", matrix.apply(matrices), matrices)
    found = finite_size_moments(
        quadratic_draw(matrices=matrices, weights=WEIGHTS),
        n_features=d * (d + 1) // 2,
        correction=correction,
        draws=400_000,
    )
    # Heights are in units of the standard deviation of the label, and relative to the shift.
    total = found.heights + found.shift
    error = found.heights_error + found.shift_error
    unit = np.sqrt(found.label_variance)
    assert np.all(np.abs(unit * total - exact) < 4 * unit * error + 0.02 * np.abs(exact))
    if correction == "wick":
        assert found.shift == 0


def test_shift_is_the_mean_eigenvalue():
    """E[T (||F||^2/D - 1)] is the trace of the population matrix over D."""
    d = 10
    matrices, weights = random_matrices(d), np.abs(WEIGHTS)
    found = finite_size_moments(
        quadratic_draw(matrices=matrices, weights=weights), n_features=55, draws=400_000
    )
    trace = np.trace(PopulationMatrix(matrices, weights).dense()) / 55
    unit = np.sqrt(found.label_variance)
    assert unit * found.shift == pytest.approx(trace, abs=4 * unit * found.shift_error)
    assert unit * found.shift > 0.3


def test_without_the_corrected_kernel_strong_heights_are_overstated_by_4_over_d():
    d = 40
    draw = quadratic_draw(matrices=random_matrices(d), weights=WEIGHTS)
    arguments = {"n_features": 820, "correction": "wick", "draws": 100_000}
    exact = finite_size_moments(draw, **arguments)
    leading = finite_size_moments(without_kernel(draw), **arguments)
    # Same draws: common fluctuations drop out of the ratio.
    ratio = leading.heights / exact.heights
    # (1 + 8/d) / (1 + 4/d) for T = y, O(1/d) fluctuations between directions.
    np.testing.assert_allclose(ratio, (1 + 8 / d) / (1 + 4 / d), atol=0.05)
    assert leading.noise > exact.noise


@pytest.mark.parametrize("label_map", ["tanh", "clip", np.arctan])
@pytest.mark.parametrize("correction", ["none", "wick"])
def test_noise_is_the_variance_of_the_bulk(label_map, correction):
    """tr (C - E C)^2 / D = D tau_2 / n for any label map and both matrices, true features."""
    d, n = 10, 3_000
    D = 55
    matrices = random_matrices(d)
    draw = quadratic_draw(matrices=matrices, weights=WEIGHTS)
    moments = finite_size_moments(
        draw, n_features=D, label_map=label_map, correction=correction, draws=60_000
    )
    hermite = HermiteFeatures(2, d)
    rng = np.random.default_rng(5)
    found = []
    for _ in range(8):
        X = rng.standard_normal((n, d))
        h = (np.einsum("na,pab,nb->np", X, matrices, X, optimize=True)
             - np.trace(matrices, axis1=1, axis2=2)) / np.sqrt(2)  # fmt: skip
        T = apply_label_map((h**2 - 1) @ WEIGHTS, label_map)
        found.append(MomentOperator(X, T, hermite, correction=correction).dense())
    variance = np.sum(np.var(found, axis=0, ddof=1)) / D
    # 8 repeats of D(D+1)/2 entries: a few per cent; means of 0.3 per sample drop out at O(1/D).
    assert variance == pytest.approx(D * moments.noise / n, rel=0.08)


def test_couplings_are_what_a_direction_loses():
    """E||P (C - E C) A_i||^2 = D tau_2h / n, from simulated matrices of both kinds."""
    d, D, n = 10, 55, 2_000
    matrices = random_matrices(d)
    hermite = HermiteFeatures(2, d)
    A = hermite.from_symmetric(matrices)
    rng = np.random.default_rng(6)
    for correction in ("none", "wick"):
        moments = finite_size_moments(
            quadratic_draw(matrices=matrices, weights=WEIGHTS),
            n_features=D,
            label_map="clip",
            correction=correction,
            draws=100_000,
        )
        images = []
        for _ in range(40):
            X = rng.standard_normal((n, d))
            h = hermite.project(X, A)
            T = apply_label_map((h**2 - 1) @ WEIGHTS, "clip")
            images.append(MomentOperator(X, T, hermite, correction=correction).matmat(A))
        moved = np.array(images) - np.mean(images, axis=0)
        own = np.einsum("rdp,dp->rp", moved, A)
        lost = (np.sum(moved**2, axis=(0, 1)) - np.sum(own**2, axis=0)) / (len(images) - 1)
        np.testing.assert_allclose(lost, D * moments.couplings / n, rtol=0.12)


def test_law_of_the_weights_has_the_moments():
    found = finite_size_moments(
        gaussian_draw(weights=WEIGHTS, n_features=200), n_features=200, label_map="clip",
        draws=50_000,
    )  # fmt: skip
    law = found.sample
    # The law is of the complement of the features, whose own share of |F|^2 grows with T.
    assert law.probabilities @ law.weights**2 < found.noise
    assert law.probabilities @ law.weights**2 == pytest.approx(found.noise, rel=0.05)
    np.testing.assert_allclose(law.probabilities @ law.couplings, found.couplings, rtol=0.05)
    assert (found.label_map, found.correction, found.draws) == ("clip", "none", 50_000)


def test_draws_depend_on_the_seed_alone():
    draw = gaussian_draw(weights=WEIGHTS, n_features=50)
    one, two, other = (
        finite_size_moments(draw, n_features=50, draws=1_000, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.heights, two.heights)
    assert one.noise != other.noise


def test_readout_and_norms_of_matrices():
    matrices = random_matrices(6)
    rng = np.random.default_rng(7)
    state = rng.bit_generator.state
    one = quadratic_draw(matrices=3 * matrices, weights=WEIGHTS, readout=np.tanh)(500, rng)
    rng.bit_generator.state = state
    two = quadratic_draw(matrices=matrices, weights=WEIGHTS)(500, rng)
    np.testing.assert_allclose(one.labels, np.tanh(two.labels))
    assert np.abs(one.latent.var(axis=0) - 1).max() < 0.5


def test_bad_input():
    draw = gaussian_draw(weights=WEIGHTS, n_features=10)
    with pytest.raises(InvalidParameter, match="draws"):
        finite_size_moments(draw, n_features=10, draws=5)
    with pytest.raises(InvalidParameter, match="correction"):
        finite_size_moments(draw, n_features=10, correction="Wick")
    with pytest.raises(InvalidParameter, match="label_map"):
        finite_size_moments(draw, n_features=10, label_map="tan", draws=400)
    with pytest.raises(InvalidData, match="draw returned"):
        finite_size_moments(lambda n, rng: (np.ones(3), np.ones((3, 1)), np.ones(3)), n_features=3)
    with pytest.raises(InvalidData, match="labels"):
        finite_size_moments(
            lambda n, rng: LatentSample(np.ones(n), np.ones((n, 1)), np.ones(n)), n_features=3
        )
    with pytest.raises(InvalidParameter, match="n_features"):
        gaussian_draw(weights=np.ones(4), n_features=3)
    with pytest.raises(InvalidData, match="shape"):
        quadratic_draw(matrices=np.ones((2, 3, 4)), weights=np.ones(2))
    with pytest.raises(InvalidData, match="zero"):
        quadratic_draw(matrices=np.zeros((1, 3, 3)), weights=np.ones(1))
