"""Theory lines of the probe against the learners that they describe."""

import json

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.models.sequential.estimator.learner import LayerwiseSpectralRegressor
from solvable.models.sequential.target import make_target
from solvable.probes.kernel import RidgeKernel, kernel_levels
from solvable.probes.references import BAYES, KERNEL, SPECTRAL, half_samples, reference_shares
from solvable.probes.results import monotone
from solvable.probes.shares import learned_shares
from solvable.probes.targets import make_subject, settings_of

SETTINGS = json.dumps({"degree": 1, "dimension": 40, "features": 4, "label_noise": 1.0})
NAMES = ("feature 1", "feature 2", "feature 3", "feature 4")


@pytest.mark.parametrize("n", [400, 1200])
def test_the_kernel_learns_all_features_of_a_degree_alike_at_its_predicted_level(n):
    shares = []
    for seed in range(4):
        subject = make_subject("sequential-recovery", SETTINGS, seed)
        X, y = subject.sample(n, random_stream(seed, "rows"))
        fresh, _ = subject.sample(8_000, random_stream(seed, "fresh"))
        fitted = RidgeKernel().fit(X, y).predict(fresh)
        found = learned_shares(subject.parts(fresh)[1], subject.clean(fresh), fitted)
        shares.append(found.energy @ found.share)
    predicted = kernel_levels(n, 40, {2: 1.0}, 1.0)[2]
    error = np.std(shares, ddof=1) / 2
    assert np.mean(shares) == pytest.approx(predicted, abs=max(3 * error, 0.05))


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_n_rows_determine_at_most_n_functions_of_a_degree(noise):
    sizes = (50, 200, 800, 3_000)
    shares = [kernel_levels(n, 40, {2: 1.0}, noise)[2] for n in sizes]
    assert all(0 < share <= n / 820 for share, n in zip(shares, sizes, strict=True))
    assert np.all(np.diff(shares) > 0)


def test_the_spectral_learner_has_the_shares_that_its_overlaps_give():
    settings = json.dumps({"degree": 1, "dimension": 30, "features": 3, "label_noise": 0.5})
    subject = make_subject("sequential-recovery", settings, 2)
    X, y = subject.sample(1_500, random_stream(1))
    model = LayerwiseSpectralRegressor(
        1, n_directions=3, selection="forced", readout="none", random_state=0
    ).fit(X, y)
    fresh, _ = subject.sample(60_000, random_stream(5))
    _, parts = subject.parts(fresh)
    fitted = model.predict(fresh)
    found = learned_shares(parts, subject.clean(fresh), fitted)
    # The fitted function is quadratic: its matrix M gives s_k = sqrt(2) (A^T M A)_kk / lambda_k.
    offset = model.predict(np.zeros((1, 30)))[0]
    basis = np.eye(30)
    single = model.predict(basis) - offset
    matrix = np.diag(single)
    for i in range(30):
        both = model.predict(basis[i] + basis[i + 1 :]) if i < 29 else np.empty(0)
        matrix[i, i + 1 :] = (both - offset - single[i] - single[i + 1 :]) / 2
        matrix[i + 1 :, i] = matrix[i, i + 1 :]
    own = make_target(settings_of("sequential-recovery", settings), 2)
    quadratic = np.diag(own.directions.T @ matrix @ own.directions)
    exact = np.sqrt(2) * quadratic / own.weights
    assert np.abs((found.share - exact) / found.standard_error).max() < 3.5


def test_references_have_the_numbers_of_an_independent_calculation():
    # Values of a separate program: spectral 356, 905, 1898, 3139; Bayes-optimal 192, 561, 1083, 1775.
    sizes = np.geomspace(60, 30_000, 40)
    for name, wanted, tolerance in (
        (SPECTRAL, (356, 905, 1898, 3139), 0.06),
        (BAYES, (192, 561, 1083, 1775), 0.09),
    ):
        shares = reference_shares(name, "sequential-recovery", SETTINGS, NAMES, sizes)
        halves = [half_samples(sizes, column) for column in shares.T]
        assert halves == pytest.approx(wanted, rel=tolerance), name
    kernel = reference_shares(KERNEL, "sequential-recovery", SETTINGS, NAMES, sizes)
    assert np.ptp(kernel, axis=1).max() < 1e-12


def test_a_best_share_of_a_link_is_that_of_its_hermite_coefficients():
    settings = json.dumps({"dimension": 50, "features": 2, "link": "abs", "noise": 0.3})
    names = ("feature 1", "feature 2")
    many = reference_shares(
        BAYES, "hierarchical-multi-index", settings, names, np.array([50_000.0])
    )
    assert (many > 0.9).all()
    few = reference_shares(BAYES, "hierarchical-multi-index", settings, names, np.array([10.0]))
    assert few == pytest.approx(np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("shares", "wanted"),
    [([0.0, 1.0], 10.0), ([0.6, 0.9], 0.0), ([0.1, 0.2], np.inf), ([0.4, 0.3], np.inf)],
)
def test_rows_at_one_half(shares, wanted):
    assert half_samples(np.array([1.0, 100.0]), np.array(shares)) == pytest.approx(wanted)


def test_monotone_is_isotonic():
    assert monotone(np.array([0.1, 0.5, 0.3, 0.9])) == pytest.approx([0.1, 0.4, 0.4, 0.9])
