"""Anisotropic label-weighted moments: the isotropic limit, sum rules, simulated matrices."""

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.spectra.anisotropic import direction_profile
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum

LAW = LabelLaw.balanced(0.8573481658)


def simulated(variances, direction_variance, n, seeds, cut=0.454936):
    rows = []
    d = len(variances) + 1
    scale = np.sqrt(np.append(variances, direction_variance))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        s = rng.standard_normal((n, d))
        y = np.where(s[:, -1] ** 2 > cut, 1.0, -1.0)
        X = s * scale
        values, vectors = np.linalg.eigh((X * y[:, None]).T @ X / n)
        squared = vectors[-1] ** 2
        best = int(squared.argmax())
        rank = int(np.sum(np.abs(values) > abs(values[best])))
        rows.append([squared[best], rank, values[best], values[0], values[-1]])
    return np.array(rows)


@pytest.mark.parametrize("ratio", [2.5, 6.0])
def test_isotropic_limit_is_the_closed_form(ratio):
    d = 4_000
    found = direction_profile(LAW, variances=np.ones(d), direction_variance=1, n_samples=ratio * d)
    exact = label_weighted_spectrum(LAW, ratio=ratio)
    assert len(found.outliers) == 1
    assert found.outliers[0].eigenvalue == pytest.approx(exact.eigenvalues[0], rel=1e-6)
    assert found.outliers[0].squared_overlap == pytest.approx(exact.squared_overlap[0], rel=1e-6)
    inside = found.places[found.density > 1e-3 * found.density.max()]
    step = found.places[1] - found.places[0]
    assert inside[-1] == pytest.approx(exact.upper.edge, abs=2 * step)
    assert inside[0] == pytest.approx(exact.lower.edge, abs=2 * step)


@pytest.mark.parametrize("strong", [1.0, 10.0, 40.0])
def test_the_direction_is_somewhere(strong):
    variances = np.concatenate([np.full(20, strong), np.ones(299)])
    found = direction_profile(LAW, variances=variances, direction_variance=1, n_samples=3_000)
    # The trapezium rule across the narrow bulks is accurate to one in a thousand.
    count = np.trapezoid(found.density, found.places) + len(found.outliers)
    assert count == pytest.approx(320, rel=0.002)
    total = np.trapezoid(found.density * found.squared_overlap, found.places)
    total += sum(one.squared_overlap for one in found.outliers)
    assert total == pytest.approx(1, abs=0.002)


def test_strong_directions_hide_a_feature_and_deflation_shows_it():
    weak, strong = np.ones(149), np.concatenate([np.full(10, 10.0), np.ones(149)])
    raw = direction_profile(LAW, variances=strong, direction_variance=1, n_samples=1_500)
    bare = direction_profile(LAW, variances=weak, direction_variance=1, n_samples=1_500)
    found = simulated(strong, 1.0, 1_500, 12)
    error = found.std(axis=0, ddof=1) / np.sqrt(12)
    assert abs(raw.best_squared_overlap - found[:, 0].mean()) < 3 * error[0] + 0.03
    assert abs(raw.best_rank - found[:, 1].mean()) < 3 * error[1] + 2
    alone = simulated(weak, 1.0, 1_500, 8)
    assert bare.best_squared_overlap == pytest.approx(alone[:, 0].mean(), abs=0.03)
    assert bare.best_rank < 0.1
    assert not alone[:, 1].any()
    assert not raw.outliers


@pytest.mark.parametrize("strong", [1.0, 10.0])
def test_fewer_samples_than_directions(strong):
    variances = np.concatenate([np.full(20, strong), np.ones(179)])
    found = direction_profile(LAW, variances=variances, direction_variance=1, n_samples=120)
    rows = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        s = rng.standard_normal((120, 200))
        y = np.where(s[:, -1] ** 2 > 0.454936, 1.0, -1.0)
        X = s * np.sqrt(np.append(variances, 1.0))
        values, vectors = np.linalg.eigh((X * y[:, None]).T @ X / 120)
        rows.append((vectors[-1, np.abs(values) > 1e-9] ** 2).max())
    assert not found.outliers
    assert np.trapezoid(found.density, found.places) == pytest.approx(120, rel=0.02)
    assert found.best_squared_overlap == pytest.approx(np.mean(rows), abs=0.03)
    assert 0 < found.best_rank < 120


def test_a_gap_between_bulks_holds_an_outlier():
    # Labels with a mean push the bulk of the strong directions far below; the feature is in
    # between.
    tail = 2 * 1.644854 * np.exp(-2.705543 / 2) / np.sqrt(2 * np.pi)
    moments = np.array([[(0.9 - tail) / 0.9], [(0.1 + tail) / 0.1]])
    law = LabelLaw(np.array([-1.0, 1.0]), np.array([0.9, 0.1]), moments)
    strong = np.concatenate([np.full(10, 30.0), np.ones(100)])
    found = direction_profile(law, variances=strong, direction_variance=1, n_samples=5_000)
    rows = simulated(strong, 1.0, 5_000, 6, cut=2.705543)
    error = rows.std(axis=0, ddof=1) / np.sqrt(6)
    assert len(found.outliers) == 1
    assert found.outliers[0].eigenvalue == pytest.approx(rows[:, 2].mean(), abs=4 * error[2] + 0.01)
    assert found.best_squared_overlap == pytest.approx(rows[:, 0].mean(), abs=4 * error[0] + 0.02)
    # All other eigenvalues have larger modulus: the feature ranks last by modulus.
    assert found.best_rank == pytest.approx(rows[:, 1].mean(), abs=1)


def test_a_resonance_narrower_than_the_spacing_is_one_eigenvector():
    # Five strong levels over (-10, 10) around a feature with weak couplings.
    strong = np.concatenate([np.full(5, 300.0), np.ones(100)])
    found = direction_profile(LAW, variances=strong, direction_variance=1, n_samples=20_000)
    rows = simulated(strong, 1.0, 20_000, 4)
    assert not found.outliers
    assert found.best_squared_overlap > 0.7
    # Overlaps of single samples are between a half and one.
    assert found.best_squared_overlap == pytest.approx(rows[:, 0].mean(), abs=0.25)


def test_a_real_label_and_graded_variances():
    variances = np.geomspace(0.2, 3.0, 120)
    rng = np.random.default_rng(0)
    s = rng.standard_normal(200_000)
    draws = np.round(np.tanh(s**2 - 1), 2)
    law = LabelLaw.from_draws(draws, s[:, None] ** 2)
    found = direction_profile(
        law, variances=variances, direction_variance=1.5, n_samples=1_200,
        places=np.linspace(-1, 3, 401),
    )  # fmt: skip
    rows = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((1_200, 121))
        X = z * np.sqrt(np.append(variances, 1.5))
        T = np.tanh(z[:, -1] ** 2 - 1)
        values, vectors = np.linalg.eigh((X * T[:, None]).T @ X / 1_200)
        rows.append([values[-1], vectors[-1, -1] ** 2])
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(6)
    assert found.outliers[0].eigenvalue == pytest.approx(mean[0], abs=4 * error[0] + 0.01)
    assert found.outliers[0].squared_overlap == pytest.approx(mean[1], abs=4 * error[1] + 0.02)


def test_unusable_arguments_are_refused():
    with pytest.raises(InvalidData, match="variances"):
        direction_profile(LAW, variances=np.array([1.0, 0.0]), direction_variance=1, n_samples=10)
    with pytest.raises(InvalidParameter, match="n_samples"):
        direction_profile(LAW, variances=np.ones(3), direction_variance=1, n_samples=0)
