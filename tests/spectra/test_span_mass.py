"""Overlap with the span of extreme eigenvectors, against simulated spiked matrices."""

import numpy as np
import pytest

from solvable.spectra.span_mass import Ranking, masses_beyond, span_overlaps


def semicircle(power: float, delta: float) -> dict[str, object]:
    # Weights of both signs far below the pole: a semicircle of variance power / delta
    size = np.sqrt(power)
    return {
        "weights": np.array([-size, size]),
        "probabilities": np.full(2, 0.5),
        "aspect_ratio": delta,
    }


def test_share_above_a_cut_of_a_semicircle() -> None:
    cuts = np.array([-1.0, 0.0, 0.5, 1.5, 1.99, 3.0])
    above, of_vector = masses_beyond(
        cuts,
        atoms=np.zeros(1),
        shares=np.ones(1),
        profiles=np.ones((1, 1)),
        couplings=np.full((2, 1), 1e6),
        **semicircle(1e6, 1e6),
    )
    inside = np.clip(cuts, -2, 2)
    exact = 0.5 - inside * np.sqrt(4 - inside**2) / (4 * np.pi) - np.arcsin(inside / 2) / np.pi
    np.testing.assert_allclose(above, exact, atol=3e-7)
    np.testing.assert_allclose(of_vector[:, 0], exact, atol=3e-7)


@pytest.mark.parametrize("heights", [[2.0, 1.4, -1.2, 0.8], [1.1, -1.0, 0.9, -0.7]])
def test_overlaps_of_spikes_in_a_gaussian_matrix(heights: list[float]) -> None:
    D, p = 240, len(heights)
    rng = np.random.default_rng(5)
    P = np.zeros(D)
    P[:p] = heights
    measured = []
    for _ in range(40):
        root = rng.standard_normal((D, D))
        values, vectors = np.linalg.eigh(np.diag(P) + (root + root.T) / np.sqrt(2 * D))
        out = np.argsort(-np.abs(values))[:p]
        measured.append(np.sum(vectors[:p, out] ** 2, axis=1))
    predicted = span_overlaps(
        [Ranking(-2.0, 2.0, 0.0)],
        p,
        D,
        atoms=P,
        shares=np.full(D, 1 / D),
        profiles=np.eye(D)[:p],
        couplings=np.full((2, p), 1e6),
        **semicircle(1e6, 1e6),
    )
    error = np.std(measured, axis=0) / np.sqrt(len(measured))
    # Directions are counted in the mean spectrum: 0.05 if the last one is chosen by chance.
    assert (np.abs(np.mean(measured, axis=0) - predicted) < 3 * error + 0.05).all()


def test_overlaps_do_not_depend_on_the_number_of_directions_far_above_threshold() -> None:
    # Four directions of 100,000 are a share of 4e-5, which the mass beyond the cut must resolve.
    heights = np.array([2.0, 1.8, -1.6, 1.5])
    found = [
        span_overlaps(
            [Ranking(-2.0, 2.0, 0.0)],
            4,
            size,
            atoms=np.append(heights, 0.0),
            shares=np.append(np.ones(4), size - 4) / size,
            profiles=np.eye(4, 5),
            couplings=np.full((2, 4), 1e6),
            **semicircle(1e6, 1e6),
        )
        for size in (3_000, 100_000)
    ]
    np.testing.assert_allclose(found, [1 - 1 / heights**2] * 2, atol=0.01)
