"""The resolvent formula against its own equations on raw draws, and simulated matrices."""

import numpy as np
import pytest
from scipy.optimize import brentq

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.edges import weighted_bulk
from solvable.spectra.near_semicircle import spiked_overlap
from solvable.spectra.outliers import resolvent_outliers

WEIGHTS = np.array([0.75, -0.5, 0.43])
WEIGHTS = WEIGHTS / np.linalg.norm(WEIGHTS)


def draw(count, seed, cut=2.0):
    h = np.random.default_rng(seed).standard_normal((count, WEIGHTS.size))
    y = (h**2 - 1) @ WEIGHTS / np.sqrt(2)
    T = np.clip(y, -cut, cut)
    return T - T.mean(), h**2


def by_the_formula(T, h2, delta):
    """Upper edge, place and overlap of one feature at the upper end, from the plain equations."""

    def bulk(a):
        return 1 / (delta * a) + np.mean(T / (1 - T * a))

    def slope(a):
        return 1 / (delta * a**2) - np.mean(T**2 / (1 - T * a) ** 2)

    def own(a):
        return np.mean(T * h2 / (1 - T * a))

    top = (1 - 1e-9) / T.max()
    star = brentq(slope, 1e-6 * top, top)
    if own(star) <= bulk(star):
        return bulk(star), bulk(star), 0.0
    a = brentq(lambda x: bulk(x) - own(x), 1e-6 * top, star)
    rate = np.mean(T**2 * h2 / (1 - T * a) ** 2)
    return bulk(star), bulk(a), slope(a) / (slope(a) + rate)


@pytest.mark.parametrize("delta", [4.0, 8.0, 32.0])
def test_equations_of_the_formula(delta):
    T, h2 = draw(20_000, 0)
    found = resolvent_outliers(labels=T, squared_features=h2, aspect_ratio=delta)
    for i, weight in enumerate(WEIGHTS):
        sign = np.sign(weight)
        edge, place, overlap = by_the_formula(sign * T, h2[:, i], delta)
        side = found.bulk_edges[1 if sign > 0 else 0]
        assert side == pytest.approx(sign * edge, abs=2e-4)
        # The draws are gathered into 4,000 weights, and the mean of T is zero.
        assert found.sharp_squared_overlap[i] == pytest.approx(overlap, abs=2e-3)
        if overlap:
            assert found.eigenvalues[i] == pytest.approx(sign * place, abs=1e-3)
        assert found.recovered[i] == (overlap > 0)


def test_simulated_matrix_at_few_samples():
    D, delta, repeats = 150, 8.0, 12
    overlaps, ends = [], []
    for seed in range(repeats):
        rng = np.random.default_rng(100 + seed)
        F = rng.standard_normal((round(D * delta), D))
        T = np.clip((F[:, :3] ** 2 - 1) @ WEIGHTS / np.sqrt(2), -2, 2)
        T -= T.mean()
        values, vectors = np.linalg.eigh((F.T * T) @ F / len(F))
        squared = vectors[:3] ** 2
        overlaps.append([squared[0, -1], squared[1, 0]])
        ends.append(values[[-1, 0]])
    T, h2 = draw(200_000, 1)
    found = resolvent_outliers(labels=T, squared_features=h2, aspect_ratio=delta, n_features=D)
    error = np.std(overlaps, axis=0) / np.sqrt(repeats)
    # 0.02 for terms of order 1/D and the mixing with the weak third feature.
    assert np.all(np.abs(np.mean(overlaps, axis=0) - found.squared_overlap[:2]) < 3 * error + 0.02)
    error = np.std(ends, axis=0) / np.sqrt(repeats)
    places = found.eigenvalues[:2]
    assert np.all(np.abs(np.mean(ends, axis=0) - places) < 3 * error + 0.02 * np.abs(places))


def test_many_samples_give_the_closed_form():
    T, h2 = draw(100_000, 2)
    delta = 3000.0
    found = resolvent_outliers(labels=T, squared_features=h2, aspect_ratio=delta)
    closed = spiked_overlap(
        heights=np.mean(T[:, None] * h2, axis=0),
        noise=np.mean(T**2),
        couplings=np.mean(T[:, None] ** 2 * h2, axis=0),
        aspect_ratio=delta,
    )
    # Corrections are of relative order D/n.
    np.testing.assert_allclose(1 - found.squared_overlap, 1 - closed, rtol=0.01)


def test_norms_that_fluctuate_widen_the_bulk_and_move_it():
    T, h2 = draw(50_000, 3)
    ratio = np.random.default_rng(4).chisquare(20, T.size) / 20 + 0.1 * T
    found = resolvent_outliers(labels=T, squared_features=h2, aspect_ratio=16.0, norm_ratio=ratio)
    shift = np.mean(T * ratio)
    edges = weighted_bulk(weights=T * ratio, aspect_ratio=16.0)
    expected = [edges.lower + shift, edges.upper + shift]
    np.testing.assert_allclose(found.bulk_edges, expected, atol=2e-3)
    plain = resolvent_outliers(labels=T, squared_features=h2, aspect_ratio=16.0)
    # The norm grows with the label: the upper end is noisier, the lower end less noisy.
    assert np.array_equal(found.squared_overlap > plain.squared_overlap, WEIGHTS < 0)
    same = resolvent_outliers(
        labels=T, squared_features=h2, aspect_ratio=16.0, norm_ratio=np.ones(T.size)
    )
    np.testing.assert_array_equal(same.squared_overlap, plain.squared_overlap)


def test_sides_are_mirrored():
    T, h2 = draw(30_000, 5)
    up = resolvent_outliers(labels=T, squared_features=h2, aspect_ratio=16.0)
    down = resolvent_outliers(labels=-T, squared_features=h2, aspect_ratio=16.0)
    np.testing.assert_allclose(down.squared_overlap, up.squared_overlap, atol=1e-3)
    np.testing.assert_allclose(down.eigenvalues, -up.eigenvalues, rtol=1e-3)


def test_bad_input():
    T, h2 = draw(200, 6)
    with pytest.raises(InvalidData, match="squared_features"):
        resolvent_outliers(labels=T, squared_features=h2[:-1], aspect_ratio=2.0)
    with pytest.raises(InvalidData, match="norm_ratio"):
        resolvent_outliers(labels=T, squared_features=h2, aspect_ratio=2.0, norm_ratio=np.ones(3))
    with pytest.raises(InvalidParameter, match="aspect_ratio"):
        resolvent_outliers(labels=T, squared_features=h2, aspect_ratio=-1.0)
    with pytest.raises(InvalidData, match="finite"):
        resolvent_outliers(labels=T * np.nan, squared_features=h2, aspect_ratio=2.0)
