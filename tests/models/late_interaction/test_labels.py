"""Signal and noise of each kind of label."""

from __future__ import annotations

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.models.late_interaction.labels import (
    STEP,
    label_factors,
    rank_signal,
    score_density,
    smoothed_density,
)
from solvable.models.late_interaction.maxima import max_moments
from solvable.models.late_interaction.parameters import LabelKind
from solvable.models.late_interaction.teacher import label_weights

RANKS: tuple[LabelKind, ...] = ("top-1", "random-negative", "runner-up")


@pytest.mark.parametrize("candidates", [3, 8, 32])
def test_gaussian_scores_give_the_means_of_the_best_candidates(candidates: int) -> None:
    """For Gaussian scores the signals are m_K, K m_K / (K - 1) and m_K - m_K,2."""
    moments = max_moments(candidates)
    expected = (
        moments.mean,
        candidates / (candidates - 1) * moments.mean,
        moments.mean - moments.second_mean,
    )
    for label, signal in zip(RANKS, expected, strict=True):
        assert label_factors(label, candidates).signal == pytest.approx(signal, abs=1e-4)
    assert label_factors("scores", candidates).signal == pytest.approx(candidates - 1)


@pytest.mark.parametrize("label", ["scores", *RANKS])
def test_signal_is_the_response_to_a_shift(label: LabelKind) -> None:
    """The signal is sum_c E[dy_c / ds_c], here for simulated exponential scores by a finite shift."""
    K, n, shift = 6, 400_000, 0.1
    rng = random_stream(0, "shift")
    scores = rng.standard_exponential((n, K)) + 0.6 * rng.standard_normal((n, K))
    scores /= np.sqrt(1.36)
    moved = np.zeros(n)
    for sign in (1, -1):
        changed = scores.copy()
        changed[:, 0] += sign * shift
        moved += sign * label_weights(changed, label, random_stream(1, "negatives"))[:, 0]
    response = K * moved / (2 * shift)
    grid = (np.arange(2**13) - 2**12) * STEP
    x = np.sqrt(1.36) * grid
    # density of exponential plus normal noise of standard deviation 0.6
    from scipy.stats import exponnorm

    density = exponnorm.pdf(x, 1 / 0.6, scale=0.6)
    expected = K - 1.0 if label == "scores" else rank_signal(density, label, K)
    assert expected == pytest.approx(
        response.mean(), abs=4 * response.std() / np.sqrt(n) + 0.01 * expected
    )


def test_density_of_a_sum_of_maxima() -> None:
    """Moments and quantiles of simulated sums."""
    place, density = score_density(3, 8)
    h = random_stream(0, "sums").standard_normal((200_000, 3, 8)).max(axis=2).sum(axis=1)
    h = (h - h.mean()) / h.std()
    for power in (1, 2, 3):
        powers = h**power
        expected = float(density @ place**power) * STEP
        assert expected == pytest.approx(
            powers.mean(), abs=4 * powers.std() / np.sqrt(h.size) + 1e-6
        )
    # The smoothed density of draws gives the same signals.
    smooth = smoothed_density(h, np.ones(h.size))
    for label in RANKS:
        exact = label_factors(label, 8, query_tokens=3, document_tokens=8).signal
        assert rank_signal(smooth, label, 8) == pytest.approx(exact, rel=0.02)


def test_many_query_tokens_are_gaussian() -> None:
    """Sums of many maxima have the signals of Gaussian scores, at a distance 1 / sqrt(L_q)."""
    plain = label_factors("runner-up", 8).signal
    gaps = [
        1 - label_factors("runner-up", 8, query_tokens=q, document_tokens=8).signal / plain
        for q in (4, 16, 64)
    ]
    np.testing.assert_allclose(np.array(gaps[1:]) / gaps[:-1], 0.5, atol=0.06)


def test_values_out_of_range() -> None:
    """Unknown labels, too few candidates and single numbers of tokens are refused."""
    with pytest.raises(InvalidParameter, match="label"):
        label_factors("best", 8)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="candidates"):
        label_factors("top-1", 2)
    with pytest.raises(InvalidParameter, match="both or neither"):
        label_factors("top-1", 8, query_tokens=3)
