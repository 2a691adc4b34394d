"""Mean eigenvalues at an edge against matrices of other ensembles and sizes."""

import numpy as np
import pytest

from solvable.spectra.edge_levels import FIRST, LEVELS, SECOND, edge_levels
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum


@pytest.mark.parametrize("height", [0.0, 0.7, 1.0, 1.25, 2.0])
def test_levels_of_a_full_matrix_with_a_spike(height):
    size, rng, found = 120, np.random.default_rng(3), []
    for _ in range(150):
        matrix = rng.standard_normal((size, size))
        matrix = (matrix + matrix.T) / np.sqrt(2 * size)
        matrix[0, 0] += height
        found.append(np.linalg.eigvalsh(matrix)[-2:])
    (second, first), error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(150)
    # Of the other 119 rows the edge is 2 sqrt(119 / 120), its fluctuations 119^(-2/3).
    noise = np.sqrt((size - 1) / size)
    unit = noise * (size - 1) ** (-2 / 3)
    outlier = max(height + noise**2 / height if height > noise else 0.0, 2 * noise)
    w = (
        np.sqrt((outlier - 2 * noise) / unit)
        if height > noise
        else (height / noise - 1) * 119 ** (1 / 3)
    )
    levels = edge_levels(np.array(w))
    # Corrections of relative order size^(-2/3): 0.04 of a unit of each.
    assert first == pytest.approx(2 * noise + unit * levels[0], abs=4 * error[1] + 0.1 * unit)
    assert second == pytest.approx(2 * noise + unit * levels[1], abs=4 * error[0] + 0.15 * unit)


def test_tails_join_the_table_and_end_at_tracy_widom():
    for end in (LEVELS[0, 0], LEVELS[-1, 0]):
        inside, outside = (np.array(edge_levels(np.array(end * f))) for f in (0.9999, 1.0001))
        np.testing.assert_allclose(inside, outside, atol=0.03)
    first, second = edge_levels(np.array([-1e9, 1e4]))
    np.testing.assert_allclose([first[0], second[0], second[1]], [FIRST, SECOND, FIRST], atol=1e-3)
    assert first[1] == pytest.approx(1e8)


@pytest.mark.parametrize(
    ("d", "n", "strength"), [(15, 200, 0.8), (40, 60, 0.8), (40, 90, 0.6), (25, 30, 0.3)]
)
def test_means_of_both_ends_at_small_dimensions(d, n, strength):
    law = LabelLaw.balanced(strength)
    found = label_weighted_spectrum(law, ratio=n / d, dimension=d)
    rng, values = np.random.default_rng(d), []
    for _ in range(200):
        # E[s² | y] = 1 +- strength
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        X = rng.standard_normal((n, d))
        X[:, 0] *= np.sqrt(1 + strength * y)
        ends = np.linalg.eigvalsh((X.T * y) @ X / n)
        values.append([ends[-1], ends[-2], ends[0]])
    mean, error = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(200)
    predicted = [found.upper.eigenvalues[0], found.upper.following[0], found.lower.eigenvalues[0]]
    # Terms of relative order d^(-2/3) beyond the first, 3 % of the edge; the limit alone misses by 10 %.
    assert np.abs(mean - predicted).max() <= 4 * error.max() + 0.03 * found.upper.edge
    assert abs(mean[2] - found.lower.edge) > 0.06 * found.upper.edge
