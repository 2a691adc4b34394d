"""Threshold of the nuclear norm: values of the paper, limits, the statistical dimension of a cone."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.spectra.nuclear_norm import nuclear_norm_ratio


@pytest.mark.parametrize(
    ("rho", "beta", "threshold"),
    [(0.2, 1, 0.571690), (0.5, 1, 0.905417), (0.5, 2, 0.828492), (0.2, 2, 0.475278)],
)
def test_values_of_the_paper(rho, beta, threshold):
    """Values of arXiv:2410.18858."""
    found = nuclear_norm_ratio(aspect=beta, rank_ratio=rho)
    assert found == pytest.approx(threshold, abs=1e-6)


def test_limits_and_order():
    for beta in (1.0, 3.0, 100.0):
        rho = np.array([1e-6, 0.01, 0.2, 0.6, 0.95, 0.9999])
        found = np.array([nuclear_norm_ratio(aspect=beta, rank_ratio=float(r)) for r in rho])
        assert (np.diff(found) > 0).all()
        assert (found > rho * (1 + beta - rho) / beta).all()  # never below the degrees of freedom
        assert (found <= 1).all()
        # rho -> 0: n = 2 (1 + sqrt(beta) / (1 + beta)) r (d + L), slowly
        low = found[0] / (1e-6 * (1 + beta) / beta)
        assert low == pytest.approx(2 * (1 + beta**0.5 / (1 + beta)), rel=0.01)
    assert nuclear_norm_ratio(aspect=2.0, rank_ratio=1.0) == pytest.approx(1)
    assert nuclear_norm_ratio(aspect=2.0, rank_ratio=7.0) == pytest.approx(1)


def test_statistical_dimension_of_a_drawn_cone():
    """Amelunxen et al. 2014: min over tau of E dist(G, tau subdifferential)², by drawn matrices."""
    rng = np.random.default_rng(0)
    d, L, r = 60, 150, 18
    draws = [rng.standard_normal((d, L)) for _ in range(20)]

    def distance(tau):
        # subdifferential at U V^T on the first r axes: there the identity, below any of norm at most 1
        total = 0.0
        for G in draws:
            corner, low = G[:r, :r] - tau * np.eye(r), np.linalg.svd(G[r:, r:], compute_uv=False)
            cross = np.sum(G[:r, r:] ** 2) + np.sum(G[r:, :r] ** 2)
            total += np.sum(corner**2) + cross + np.sum(np.maximum(low - tau, 0) ** 2)
        return total / len(draws)

    drawn = min(distance(tau) for tau in np.linspace(5, 16, 45)) / (d * L)
    assert nuclear_norm_ratio(aspect=L / d, rank_ratio=r / d) == pytest.approx(drawn, rel=0.01)


def test_bad_shape():
    with pytest.raises(InvalidParameter, match="transpose"):
        nuclear_norm_ratio(aspect=0.5, rank_ratio=0.2)
