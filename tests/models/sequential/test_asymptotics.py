"""Expansion of eigenvectors, power laws and label noise against simulations and sums."""

from types import SimpleNamespace

import numpy as np
import pytest

from solvable.models.sequential.predict import asymptotic_error, expand, recovered_count
from solvable.models.sequential.system import system
from solvable.models.sequential.target import HierarchicalTarget
from solvable.moment_spectrum.moments import finite_size_moments

D, N, P = 60, 20_000, 3


@pytest.fixture(scope="module")
def simulated():
    """Losses of the eigenvectors of twelve label-weighted moments of Gaussian features."""
    weights = np.arange(1.0, P + 1) ** -1
    weights /= np.linalg.norm(weights)
    rng, rows = np.random.default_rng(0), []
    for _ in range(12):
        F = rng.standard_normal((N, D))
        y = (F[:, :P] ** 2 - 1) @ weights / np.sqrt(2)
        y = (y - y.mean()) / y.std()
        vectors = np.linalg.eigh((F.T * y) @ F / N)[1][:, : -P - 1 : -1] ** 2
        rows.append((vectors[P:].sum(axis=0), vectors[:P].sum(axis=0) - np.diag(vectors)))
    return np.array(rows)


@pytest.fixture(scope="module")
def expansion():
    target = HierarchicalTarget(
        dimension=D, degree=1, features=P, decay=1.0, inputs="gaussian", signs="positive"
    )
    moments = finite_size_moments([target])
    return expand(moments.law, moments.pair_products, N)


def test_no_asymptotic_error_above_that_of_a_constant():
    """The power law exceeds 1 at few samples, where there is no prediction (sequential 31)."""
    setting = {"dimension": 20, "features": 4, "decay": 1.0}
    errors = [
        system.predict(system.parameters(**setting, samples=n))["normalised_mse_asymptotic"]
        for n in (500, 200_000)
    ]
    assert errors[0] is None
    assert 0 < errors[1] < 1


@pytest.mark.parametrize("side", ["outside", "inside"])
def test_losses_of_eigenvectors_are_those_of_the_expansion(simulated, expansion, side):
    values = simulated[:, ("outside", "inside").index(side)]
    expected = getattr(expansion, side)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    # The expansion leaves out relative terms of the size of the loss itself, which is at most 0.06.
    assert (np.abs(values.mean(axis=0) - expected) < 4 * error + 0.1 * expected).all()


def test_the_bound_of_davis_and_kahan_is_above_the_measured_loss(simulated, expansion):
    bound = 0.5 * expansion.bound_samples / N  # squared sine, proportional to 1/n
    assert (simulated.sum(axis=1).max(axis=0) < bound).all()


def law(features, decay, n_features=1000):
    """Gaussian features with unmapped labels and small weights: theta = sqrt(2) lambda."""
    weights = np.arange(1.0, features + 1) ** -decay
    heights = np.sqrt(2) * weights / np.linalg.norm(weights)
    sample = SimpleNamespace(probabilities=np.ones(1), couplings=np.ones((1, features)))
    return SimpleNamespace(
        heights=heights, thresholds=n_features / heights**2, noise=1.0, sample=sample
    )


@pytest.mark.parametrize("decay", [0.75, 1.0, 1.5])
def test_asymptotic_error_is_the_sum_over_many_features(decay):
    known, ratio = law(400_000, decay), 3e4
    nu = known.heights**2 * ratio
    overlap = np.maximum(nu - 1, 0) / nu
    error = 1 - np.sum(known.heights**2 / 2 * overlap**2)
    assert asymptotic_error(known, decay, 1000 * ratio) == pytest.approx(error, rel=0.04)


def test_the_number_of_recovered_features_is_that_of_overlaps_above_a_half():
    known = law(10_000, 0.7)
    nu = known.heights**2 * 3e3
    found = np.sum((nu - 1) / nu > 0.5)
    assert recovered_count(known, 0.7, 3e6) == pytest.approx(found, abs=1)
    assert np.isnan(recovered_count(known, 0.0, 3e6))


def test_noise_on_labels_lowers_the_spikes_and_adds_to_the_variance():
    quiet, noisy = (
        finite_size_moments(
            [HierarchicalTarget(dimension=300, degree=1, features=4, label_noise=noise)]
        )
        for noise in (0.0, 1.0)
    )
    # theta_i = sqrt(2) lambda_i / sqrt(1 + sigma²) for standardised labels; the moments of 200,000 draws
    # with heavy tails are accurate to 2 %
    np.testing.assert_allclose(noisy.law.heights / quiet.law.heights, np.sqrt(0.5), rtol=0.04)
    assert noisy.label_variance == pytest.approx(2.0, rel=1e-9)
