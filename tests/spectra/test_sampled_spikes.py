"""Sampled matrices with few samples, few directions or many spikes, against simulation and laws."""

import numpy as np
import pytest

from solvable.spectra.sampled_spikes import draw_spikes
from solvable.spectra.structured_spikes import (
    Background,
    WeightedSample,
    compress_sample,
    predict_spikes,
)


def weighted(T, h):
    """Law of samples T (f f^T - 1) of Gaussian f whose first components are h."""
    order = np.argsort(T)
    return compress_sample(T[order], (T**2)[order, None] * h[order] ** 2)


def labels(h):
    T = np.clip((h**2 - 1) @ np.full(h.shape[1], 0.5), -1.5, 1.5)
    return T


@pytest.mark.parametrize(("columns", "samples"), [(48, 21), (17, 60), (90, 400)])
def test_few_samples_against_simulated_matrices(columns, samples):
    rng = np.random.default_rng(7)
    h = rng.standard_normal((200_000, 2))
    T = labels(h)
    mean = T.mean()
    law = weighted(T - mean, h)
    heights = (T - mean) @ (h**2 - 1) / T.size
    measured = []
    for _ in range(300 if columns < 50 else 100):
        F = rng.standard_normal((samples, columns))
        weights = labels(F[:, :2])
        weights -= weights.mean()
        values, vectors = np.linalg.eigh((F.T * weights) @ F / samples)
        # With these weights the upper edge is farther from the centre.
        out = np.argsort(-np.abs(values - values.mean()))[:2]
        measured.append(np.sum(vectors[:2, out] ** 2, axis=1))
    drawn = draw_spikes(
        sample=law,
        heights=heights,
        n_samples=samples,
        n_features=columns - 2,
        background=None,
        draws=128,
    )
    spread = np.std(measured, axis=0)
    error = np.sqrt(spread**2 / len(measured) + spread**2 / 128)
    np.testing.assert_array_less(
        np.abs(drawn.squared_overlap - np.mean(measured, axis=0)), 3.5 * error
    )


def test_many_samples_give_the_law():
    weights = np.linspace(-1.5, 1.5, 2001)
    sample = WeightedSample(weights, np.full(2001, 1 / 2001), (weights**2)[:, None] * np.ones(2))
    at = {"sample": sample, "heights": np.array([0.6, -0.45]), "n_samples": 9_000}
    found = predict_spikes(**at, n_features=298, n_directions=2)
    drawn = draw_spikes(**at, n_features=298, background=None, draws=24)
    np.testing.assert_allclose(drawn.squared_overlap, found.squared_overlap, atol=0.02)
    first = np.sort(drawn.eigenvalues, axis=1)[:, ::-1].mean(axis=0)
    np.testing.assert_allclose(first, found.eigenvalues, rtol=0.03)


def test_background_moves_and_takes_from_a_spike():
    weights = np.linspace(-1.5, 1.5, 2001)
    sample = WeightedSample(weights, np.full(2001, 1 / 2001), (weights**2)[:, None])
    rng = np.random.default_rng(3)
    atoms = np.sort(rng.uniform(-0.15, 0.25, 60))
    background = Background(atoms, 0.01, np.array([0.01]), links=np.full((1, 60), 2e-4))
    at = {"sample": sample, "heights": np.array([0.5]), "n_samples": 20_000}
    found = predict_spikes(**at, n_features=240, background=background, n_directions=1)
    drawn = draw_spikes(**at, n_features=240, background=background, draws=24)
    np.testing.assert_allclose(drawn.squared_overlap, found.squared_overlap, atol=0.03)
    np.testing.assert_allclose(drawn.eigenvalues.mean(axis=0), found.eigenvalues, rtol=0.03)


def test_as_many_directions_as_there_are_hold_everything():
    sample = WeightedSample(np.array([-1.0, 1.0]), np.full(2, 0.5), np.ones((2, 9)))
    drawn = draw_spikes(
        sample=sample, heights=np.linspace(0.1, 0.5, 9), n_samples=40, n_features=0,
        background=None, draws=4,
    )  # fmt: skip
    np.testing.assert_allclose(drawn.squared_overlap, 1, atol=1e-5)


def test_signs_of_eigenvectors_do_not_depend_on_the_linear_algebra(monkeypatch):
    """Libraries return eigenvectors with either sign; fixed draws are projected on them afterwards."""
    rng = np.random.default_rng(3)
    h = rng.standard_normal((20_000, 3))
    T = labels(h)
    law = weighted(T - T.mean(), h)
    setting = {"sample": law, "heights": (T - T.mean()) @ (h**2 - 1) / T.size, "n_samples": 80.0,
               "n_features": 40, "background": None, "draws": 4}  # fmt: skip
    before = draw_spikes(**setting)

    def flipped(matrix, eigh=np.linalg.eigh):
        values, vectors = eigh(matrix)
        return values, vectors * rng.choice([-1.0, 1.0], len(values))

    monkeypatch.setattr(np.linalg, "eigh", flipped)
    after = draw_spikes(**setting)
    np.testing.assert_allclose(after.components, before.components, rtol=1e-5, atol=1e-6)
    largest = np.abs(before.components).max(axis=1)
    np.testing.assert_allclose(before.components.max(axis=1), largest, rtol=1e-6)


def test_normal_inputs_have_lengths_of_their_own_after_a_permutation_of_the_labels():
    # One sample of weight -1: its eigenvalue is minus its squared length, plus the mean of the weights.
    sample = WeightedSample(-np.ones(1), np.ones(1), np.ones((1, 1)), gaussian=True)
    drawn = draw_spikes(
        sample=sample, heights=-np.ones(1), n_samples=1, n_features=49, background=None, draws=400,
        ranking="permuted",
    )  # fmt: skip
    lengths = 1 - drawn.edges[:, 0]
    assert lengths.mean() == pytest.approx(50, abs=4 * 100**0.5 / 20)
    assert lengths.var() == pytest.approx(100, rel=4 * (2 / 400) ** 0.5)
