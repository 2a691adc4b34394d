"""Likelihood of the phases: the density at the edge, planted spectra of every phase, nesting."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.diagnose.bulk_fit import fit_bulk
from solvable.diagnose.bulk_law import WholeBulk, log_edge_density
from solvable.diagnose.noise import RectangularNoise, SymmetricNoise
from solvable.diagnose.phase_likelihood import phase_laws
from solvable.errors import InvalidData


def laws(matrix):
    y = np.linalg.svd(matrix, compute_uv=False)[::-1]
    y = np.where(y < 1e-10 * y[-1], 0.0, y)
    p, q = sorted(matrix.shape)
    try:
        fit = fit_bulk(y, (p, q))
    except InvalidData:
        return phase_laws(y, None, 0)
    bulk = WholeBulk(RectangularNoise(p / q), fit.noise, fit.shrinkage, p)
    return phase_laws(y, bulk, fit.n_outliers)


def spiked(rng, shape, strengths, noise=1.0):
    p, q = shape
    left = np.linalg.qr(rng.standard_normal((p, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((q, len(strengths))))[0]
    return noise * rng.standard_normal(shape) / q**0.5 + (left * strengths) @ right.T


@pytest.mark.parametrize("law", [SymmetricNoise(), RectangularNoise(0.5), RectangularNoise(1.0)])
def test_density_at_the_edge_is_that_of_simulated_noise(law):
    rng, n, draws = np.random.default_rng(0), 150, 400
    unit, edge = law.edge_scale(n), law.edges[1]
    xi = np.concatenate([(law.draw(n, rng) - edge) / unit for _ in range(draws)])
    for low, high in ((-2.0, -1.0), (-1.0, 0.5), (0.5, 3.0)):
        grid = np.linspace(low, high, 201)
        expected = float(np.exp(log_edge_density(grid)).mean()) * (high - low)
        seen = ((xi > low) & (xi < high)).sum() / draws
        # Counts of independent draws, and a correction of relative order n^(-1/3) at the edge.
        assert seen == pytest.approx(expected, abs=4 * np.sqrt(expected / draws) + 0.15 * expected)


def test_density_at_the_edge_joins_its_limits():
    far = log_edge_density(np.array([-25.0]))
    assert float(np.exp(far)[0]) == pytest.approx(5 / np.pi, rel=0.02)
    inside, outside = log_edge_density(np.array([3.0 - 1e-9, 3.0 + 1e-9]))
    # Beyond 3 the code keeps the last term only: an error of a percent.
    assert inside == pytest.approx(outside, abs=0.03)
    assert float(log_edge_density(np.array([60.0]))[0]) == pytest.approx(-2 / 3 * 60**1.5, rel=0.02)


def test_density_far_beyond_the_edge_is_a_number():
    xi = 10.0 ** np.arange(1, 13)
    found = log_edge_density(xi)
    assert np.isfinite(found).all()
    # The exponent of the Airy function dominates.
    np.testing.assert_allclose(found[3:], -2 / 3 * xi[3:] ** 1.5, rtol=1e-5)
    near = log_edge_density(np.array([0.999e5, 1.001e5]))
    steps = -2 / 3 * np.diff(np.array([0.999e5, 1.001e5]) ** 1.5) - 0.25 * np.diff(
        np.log([0.999e5, 1.001e5])
    )
    np.testing.assert_allclose(np.diff(near), steps, rtol=1e-9)


def test_noise_is_random_like():
    rng = np.random.default_rng(1)
    for shape in ((80, 80), (80, 200), (150, 300)):
        for _ in range(4):
            assert laws(rng.standard_normal(shape))[0].phase == "random-like"


PLANTED = {
    "bulk+spikes": (np.array([4.0, 3.0, 2.0]), 1.0),
    "bulk-decay": (20 * np.arange(1, 301) ** -0.8, 1.0),
    "heavy-tailed": (np.arange(1, 301) ** -0.8, 0.0),
}


@pytest.mark.parametrize("phase", PLANTED)
def test_planted_spectra_are_found(phase):
    strengths, noise = PLANTED[phase]
    found = laws(spiked(np.random.default_rng(2), (300, 300), strengths, noise))
    assert found[0].phase == phase
    assert found[0].score > found[1].score


def test_one_signal_goes_through_bleeding_out_as_it_grows():
    rng, seen = np.random.default_rng(3), []
    for strength in (0.5, 1.3, 2.5):
        found = [laws(spiked(rng, (150, 150), [strength])) for _ in range(6)]
        gains = []
        for one in found:
            score = {law.phase: law.score for law in one}
            gains.append(score["bulk+spikes"] - score["random-like"])
        seen.append((float(np.mean(gains)), {one[0].phase for one in found}))
    assert seen[0][0] < seen[1][0] < seen[2][0]
    assert seen[0][1] == {"random-like"}
    assert "bleeding-out" in seen[1][1]
    assert seen[2][1] == {"bulk+spikes"}


def test_zeros_collapse_the_rank_from_nine_in_ten():
    rng = np.random.default_rng(4)
    values = np.sort(rng.gamma(5.0, size=60))
    for zeros, first in ((600, "rank-collapse"), (500, "bulk-decay")):
        found = phase_laws(np.r_[np.zeros(zeros), values], None, 0)
        assert found[0].phase == first
        score = {law.phase: law.log_likelihood for law in found}
        share, bound = zeros / (zeros + 60), 0.9
        atom = zeros * np.log(share / bound) + 60 * np.log((1 - share) / (1 - bound))
        assert abs(score["rank-collapse"] - score["bulk-decay"]) == pytest.approx(atom)


def test_many_merging_signals_are_more_than_the_square_root():
    bulk = WholeBulk(SymmetricNoise(), 1.0, 0.0, 900)
    # K = gamma sqrt(d) / 2.83   (spectra 10).
    assert bulk.merging(1.0) == pytest.approx(30 / (2 * np.sqrt(2)), rel=0.01)


def test_likelihood_of_noise_is_near_that_of_the_limit_law():
    law, n = RectangularNoise(0.5), 400
    y = law.draw(n, np.random.default_rng(5))
    whole = WholeBulk(law, 1.0, 0.0, n).log_density(y)
    middle = (y > law.edges[0] + 0.1) & (y < law.edges[1] - 0.1)
    np.testing.assert_allclose(whole[middle], np.log(law.density(y[middle])))
    assert np.isfinite(whole).all()


def test_nothing_to_fit_gives_no_phase():
    assert phase_laws(np.ones(50), None, 0) == []
    assert phase_laws(np.zeros(50), None, 0)[0].phase == "rank-collapse"
