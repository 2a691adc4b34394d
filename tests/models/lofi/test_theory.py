"""Filters of raw inputs: the front door against the spectrum below it, and simulations."""

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.models.lofi.theory import predict_filter
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum

LAW = LabelLaw.balanced(0.8573481658)


def test_one_size_is_an_entry_of_several():
    sizes = [300.0, 900.0, 3_000.0]
    several = predict_filter(LAW, dimension=150, samples=sizes)
    assert several.squared_overlap.shape == (3, 1)
    assert several.bulk_edges.shape == (3, 2)
    for k, n in enumerate(sizes):
        one = predict_filter(LAW, dimension=150, samples=n)
        assert one.subspace_overlap == several.subspace_overlap[k]
        np.testing.assert_array_equal(one.eigenvalues, several.eigenvalues[k])
        np.testing.assert_array_equal(one.bulk_edges, several.bulk_edges[k])


def test_without_rounding_it_is_the_limit():
    found = predict_filter(LAW, dimension=150, samples=750, rounding=False)
    exact = label_weighted_spectrum(LAW, ratio=5.0)
    assert found.squared_overlap[0] == exact.squared_overlap[0]
    assert found.opposite_eigenvalues[0] == exact.lower.edge


def test_directions_of_both_signs_sit_at_both_ends():
    law = LabelLaw.balanced(0.5, -0.5, 0.4)
    found = predict_filter(law, dimension=60, samples=2_000)
    assert (np.sign(found.eigenvalues) == [1, -1, 1]).all()
    assert found.eigenvalues[0] == pytest.approx(-found.eigenvalues[1])
    assert found.emergence_samples[0] == pytest.approx(found.emergence_samples[1])
    assert (found.emergence_samples > found.weak_recovery_samples).all()
    np.testing.assert_allclose(found.weak_recovery_samples, 60 / np.array([0.25, 0.25, 0.16]))


def test_overlap_grows_with_samples_through_the_threshold():
    sizes = np.geomspace(0.3, 50, 30) * 400
    overlap = predict_filter(LAW, dimension=400, samples=sizes).squared_overlap[:, 0]
    assert (np.diff(overlap) > 0).all()
    assert 0 < overlap[0] < 0.03
    assert overlap[-1] > 0.95


def test_unbounded_labels_are_predicted_at_their_size():
    # Labels s^2 - 1 are not bounded: in the limit no edge exists, at d = 100 there is one.
    rng = np.random.default_rng(0)
    s = rng.standard_normal(400_000)
    law = LabelLaw.from_draws(s**2 - 1, s[:, None] ** 2)
    found = predict_filter(law, dimension=100, samples=800)
    assert found.emergence_samples[0] < 800
    rows = []
    for seed in range(20):
        X = np.random.default_rng(seed).standard_normal((800, 100))
        T = X[:, 0] ** 2 - 1
        values, vectors = np.linalg.eigh((X * T[:, None]).T @ X / 800)
        rows.append([values[-1], vectors[0, -1] ** 2])
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(20)
    assert found.eigenvalues[0] == pytest.approx(mean[0], abs=4 * error[0])
    assert found.squared_overlap[0] == pytest.approx(mean[1], abs=4 * error[1] + 0.01)


@pytest.mark.parametrize("samples", [0.0, -1.0, np.nan, [[1.0]]])
def test_unusable_samples_are_refused(samples):
    with pytest.raises(InvalidParameter, match="samples"):
        predict_filter(LAW, dimension=10, samples=samples)
