"""Rectangular products in noise: drawn matrices, a second route, both forms of the error, limits."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra import marchenko_pastur
from solvable.spectra._rectangular_curve import Quartic, critical_places
from solvable.spectra.rectangular import (
    RectangularLaw,
    prior_free_denoise,
    quadrature,
    rectangular_denoise,
    rectangular_mmse,
)

ASPECTS = (1.0, 1.005, 1.3, 2.0, 10.0, 1000.0)
RATIOS = (1e-3, 0.02, 0.2, 0.7, 1.0, 1.3, 5.0, 100.0)


def drawn(d, L, r, noise, rng):
    unit = (d * L) ** 0.25
    S = rng.standard_normal((d, r)) @ rng.standard_normal((r, L)) / r**0.5 / unit
    return S, S + noise**0.5 * rng.standard_normal((d, L)) / unit


def test_mass_and_both_forms_of_the_error_at_all_shapes():
    noise = np.geomspace(1e-6, 1e4, 21)
    for beta in ASPECTS:
        for rho in RATIOS:
            nodes = quadrature(Quartic(beta, rho, noise))
            mass = nodes.integrate(nodes.density, noise.size)
            assert np.abs(mass - 1).max() < 1e-4, (beta, rho)
            error = rectangular_mmse(noise, aspect=beta, rank_ratio=rho)
            second = 1 - nodes.integrate(nodes.density * nodes.denoised**2, noise.size) / beta**0.5
            assert np.abs(error - second)[noise < 1e3].max() < 2e-5, (beta, rho)
            assert (np.diff(error) >= 0).all()
            assert (error <= np.minimum(noise, 1) + 1e-12).all()


@pytest.mark.parametrize("rho", [0.1, 0.6, 1.0, 3.0])
@pytest.mark.parametrize("beta", [1.0, 1.5, 4.0])
def test_the_law_is_that_of_a_sample_covariance(beta, rho):
    """Second route: given A, Y Y^T is a sample covariance of A A^T / r + Delta (spectra 32)."""
    noise = 0.4
    law = RectangularLaw(aspect=beta, rank_ratio=rho, noise=noise)
    # AA^T / r = marchenko_pastur(rho) / sqrt(rho); rho < 1 leaves d - r eigenvalues of 0
    population = marchenko_pastur(rho)
    t = beta**0.5 * (population.nodes / rho**0.5 + noise)
    weights = population.node_weights
    s = np.linspace(law.edges[0, 0], law.edges[-1, 1], 23)[1:-1]
    for place in s[law.density(s) > 0.02]:
        z = place**2 + 1e-9j
        m = 1j
        for _ in range(20_000):  # Silverstein: m = -1 / (z - (1 / beta) int t H(dt) / (1 + t m))
            new = -1 / (z - weights @ (t / (1 + t * m)) / beta)
            if abs(new - m) < 1e-12:
                break
            m = (m + new) / 2
        # companion: m = -(1 - 1 / beta) / z + m_Y / beta
        density = beta * (m + (1 - 1 / beta) / z).imag / np.pi * 2 * place
        assert float(law.density(place)) == pytest.approx(density, rel=2e-3, abs=2e-4)


@pytest.mark.parametrize(
    ("beta", "rho", "noise", "theory"),
    [
        (1, 0.2, 0.1, 0.03555),
        (1, 1, 1, 0.47925),
        (2, 0.2, 1, 0.24634),
        (2, 1, 0.1, 0.08243),
        (5, 0.5, 1, 0.35848),
    ],
)
def test_drawn_matrices(beta, rho, noise, theory):
    """The shrunk matrix has the predicted error within 2 %; prior-free shrinkage is within 4 %."""
    rng = np.random.default_rng(beta)
    d = round(300 / beta**0.5)
    L, r = beta * d, round(rho * d)
    shape = {"aspect": L / d, "rank_ratio": r / d}
    law = RectangularLaw(**shape, noise=noise)
    expected = float(rectangular_mmse(noise, **shape))
    assert expected == pytest.approx(theory, rel=2e-3)  # at r / d of whole numbers
    errors, blind = [], []
    for _ in range(4):
        S, Y = drawn(d, L, r, noise, rng)
        errors.append(np.sum((rectangular_denoise(Y, law) - S) ** 2) / (d * L) ** 0.5)
        blind.append(np.sum((prior_free_denoise(Y, noise) - S) ** 2) / (d * L) ** 0.5)
    assert np.mean(errors) == pytest.approx(expected, rel=0.02)
    assert np.mean(blind) == pytest.approx(np.mean(errors), rel=0.04)


def test_edges_and_outliers():
    rng = np.random.default_rng(0)
    law = RectangularLaw(aspect=2.0, rank_ratio=0.2, noise=0.1)
    _, Y = drawn(300, 600, 60, 0.1, rng)
    s = np.linalg.svd(Y, compute_uv=False)
    assert len(law.edges) == 2
    # the largest is r^(-2/3) below its edge, the others d^(-2/3)
    assert (
        np.abs([s[-1], s[60], s[59], s[0]] - law.edges.ravel()) < [0.04, 0.04, 0.04, 0.15]
    ).all()
    # a share 1 - rho of the singular values belongs to zero directions of the signal
    assert law.weights[law.nodes < 0.8].sum() == pytest.approx(0.8, abs=1e-9)
    off = np.array([0.0, law.edges[0, 0] / 2, law.edges[:, 1].max() * 1.5, 50.0])
    kept = law.denoised(off)
    assert (kept[:-1] <= off[:-1] + 1e-11).all()
    # a lone large singular value keeps all but its noise, Delta (1 + 1 / beta) sqrt(beta) / s
    assert off[-1] - kept[-1] == pytest.approx(0.1 * 3 / 2**0.5 / 50, rel=0.05)
    inside = law.nodes
    assert law.denoised(inside) == pytest.approx(
        quadrature(Quartic(2.0, 0.2, np.array([0.1]))).denoised.ravel(), abs=1e-4
    )


@pytest.mark.parametrize("beta", [1.0, 2.0, 30.0])
def test_limits(beta):
    t = np.array([1e-3, 0.1, 1.0, 20.0])
    # many factors: every entry is Gaussian
    assert rectangular_mmse(t, aspect=beta, rank_ratio=1e6) == pytest.approx(t / (1 + t), rel=1e-5)
    # little noise: the degrees of freedom, in entries
    for rho in (0.01, 0.3, 0.8):
        freedom = rho / beta * (1 + beta - rho)
        small = rectangular_mmse([1e-9, 1e-15], aspect=beta, rank_ratio=rho)
        assert small / [1e-9, 1e-15] == pytest.approx(freedom, rel=1e-5)
    ends = rectangular_mmse([0.0, 1e30, np.inf], aspect=beta, rank_ratio=0.3)
    assert ends.tolist() == pytest.approx([0.0, 1.0, 1.0])
    nearly = rectangular_mmse(1e6, aspect=beta, rank_ratio=0.3)
    assert 1 - float(nearly) == pytest.approx(1e-6, rel=1e-3)


@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_few_factors_are_found_beyond_a_threshold(beta):
    """Rank-one spikes in noise are beyond the bulk for Delta below sqrt(beta) / rho."""
    rho = 1e-4
    for strength in (0.5 * beta**-0.5, 0.9, 2.0, 10.0):  # squared, over that of the noise
        noise = 1 / (rho * strength)
        found = 1 - float(rectangular_mmse(noise, aspect=beta, rank_ratio=rho))
        t = beta * strength
        overlap = max(t**2 - beta, 0) ** 2 / (t**2 * (t + 1) * (t + beta))
        assert found == pytest.approx(overlap, abs=0.03)


def test_every_edge_is_a_critical_place():
    curve = Quartic(2.0, 0.5, np.geomspace(1e-8, 1e3, 12))
    places = critical_places(curve)
    assert places.shape == (12, 5)
    assert (np.diff(places, axis=1) >= 0).all()


def test_bad_input():
    with pytest.raises(InvalidParameter, match="transpose"):
        rectangular_mmse(0.1, aspect=0.5, rank_ratio=0.2)
    with pytest.raises(InvalidParameter, match="rank_ratio"):
        rectangular_mmse(0.1, aspect=1.5, rank_ratio=0.0)
    with pytest.raises(InvalidParameter, match="negative"):
        rectangular_mmse(-0.1, aspect=1.5, rank_ratio=0.2)
    with pytest.raises(InvalidParameter, match="1e-11"):
        RectangularLaw(aspect=1.5, rank_ratio=0.2, noise=0.0)
    with pytest.raises(InvalidData, match="Transpose"):
        prior_free_denoise(np.zeros((4, 3)), 0.1)
