"""The least nuclear norm of rectangular matrices: solver and limit (sensing 23)."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import NotConverged
from solvable.message_passing.rectangular_signal import RectangularSignal
from solvable.models.sensing.bilinear.nuclear_norm import (
    least_nuclear_norm,
    nuclear_norm_error,
    soft_threshold,
)
from solvable.spectra.nuclear_norm import nuclear_norm_ratio
from solvable.spectra.rectangular import RectangularLaw


def problem(d, L, r, ratio, seed):
    rng = random_stream("nuclear", seed)
    S = rng.standard_normal((d, r)) @ rng.standard_normal((r, L)) / r**0.5 / (d * L) ** 0.25
    X = rng.standard_normal((round(ratio * d * L), d * L))
    return S, X, X @ S.reshape(-1, 1) / (d * L) ** 0.25


def test_the_solution_fits_and_has_a_certificate():
    S, X, y = problem(8, 12, 2, 0.5, 0)
    found = least_nuclear_norm(X, S.shape, y)
    assert found.gap <= 2e-5
    np.testing.assert_allclose(X @ found.estimate.reshape(-1, 1) / 96**0.25, y, atol=1e-9)

    def norm(matrix):
        return np.linalg.svd(matrix, compute_uv=False).sum()

    assert norm(found.estimate) <= norm(S) * (1 + 1e-4)
    # other matrices that fit have a larger norm
    null = np.linalg.svd(X)[2][len(y) :]
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = found.estimate + 0.1 * (rng.standard_normal(len(null)) @ null).reshape(S.shape)
        assert norm(other) > norm(found.estimate) * (1 - 2e-5)


@pytest.mark.parametrize("ratio", [1.0, 1.3])
def test_as_many_labels_as_entries_determine_the_matrix(ratio):
    S, X, y = problem(8, 12, 2, ratio, 0)
    np.testing.assert_allclose(least_nuclear_norm(X, S.shape, y).estimate, S, atol=1e-8)


def test_too_few_steps_are_reported():
    S, X, y = problem(8, 12, 2, 0.5, 0)
    with pytest.raises(NotConverged, match="after 25 steps"):
        least_nuclear_norm(X, S.shape, y, max_steps=25, tolerance=1e-12)


@pytest.mark.parametrize(("beta", "rho"), [(1.0, 0.2), (2.0, 0.5), (5.0, 0.1)])
def test_the_error_ends_at_the_threshold(beta, rho):
    """The statistical dimension of the descent cone (sensing 17) is a second route."""
    signal, least = RectangularSignal(beta, rho), nuclear_norm_ratio(aspect=beta, rank_ratio=rho)
    below, near, above = nuclear_norm_error(signal, least * np.array([0.9, 0.995, 1.005]))
    assert below > 5 * near > 0
    assert above == pytest.approx(0.0, abs=1e-9)
    alpha = np.linspace(0.02, 0.95, 40) * least
    assert (np.diff(nuclear_norm_error(signal, alpha)[10:]) < 0).all()


def test_published_minimisers():
    """Published means over 16 problems at d = 50 (data of arXiv:2410.18858, Figure 5)."""
    published = {0.2853: (0.4402, 0.0115), 0.3640: (0.2488, 0.0087), 0.4427: (0.1081, 0.0045)}
    expected = nuclear_norm_error(RectangularSignal(1.0, 0.2), np.array(list(published)))
    for theory, (mean, scatter) in zip(expected, published.values(), strict=True):
        assert mean == pytest.approx(theory, abs=3 * scatter)


def test_soft_threshold_of_drawn_matrices():
    """Error and divergence of the soft threshold at d = 150, L = 300 (sensing 23)."""
    d, L, r, t = 150, 300, 30, 0.3
    rng = np.random.default_rng(3)
    S = rng.standard_normal((d, r)) @ rng.standard_normal((r, L)) / r**0.5 / (d * L) ** 0.25
    Y = S + t**0.5 * rng.standard_normal((d, L)) / (d * L) ** 0.25
    law = RectangularLaw(aspect=2.0, rank_ratio=0.2, noise=t)
    U, s, V = np.linalg.svd(Y, full_matrices=False)
    for cut in (0.3, 0.8):
        f = np.maximum(s - cut, 0)
        error, divergence = soft_threshold(law, cut)
        measured = np.sum(((U * f) @ V - S) ** 2) / np.sqrt(d * L)
        assert measured == pytest.approx(error, rel=0.04)
        gaps = s[:, None] ** 2 - s**2
        np.fill_diagonal(gaps, np.inf)
        df = np.sum(f > 0) + (L - d) * np.sum(f / s) + 2 * np.sum((s * f)[:, None] / gaps)
        assert df / (d * L) == pytest.approx(divergence, rel=0.02)


def test_minimisers_of_drawn_problems():
    """Mean error over twelve problems at d = 24 within 10 % of the limit (sensing 23)."""
    expected = float(nuclear_norm_error(RectangularSignal(1.0, 1 / 6), np.array([0.25]))[0])
    found = []
    for seed in range(12):
        S, X, y = problem(24, 24, 4, 0.25, seed)
        estimate = least_nuclear_norm(X, S.shape, y).estimate
        found.append(np.sum((estimate - S) ** 2) / np.sum(S**2))
    scatter = np.std(found, ddof=1) / 12**0.5
    assert np.mean(found) == pytest.approx(expected, abs=0.05 * expected + 2.6 * scatter)
