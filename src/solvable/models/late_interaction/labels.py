"""Signal and noise of each kind of label at first order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from solvable.arrays import check_integer
from solvable.errors import InvalidParameter, unknown_choice
from solvable.models.late_interaction.maxima import max_moments
from solvable.models.late_interaction.parameters import LabelKind

STEP = 0.01
"""Step of the grid of scores, in standard deviations."""


@dataclass(frozen=True)
class LabelFactors:
    """Signal and noise of a kind of label, for scores of variance 1 given the query."""

    signal: float
    noise: float

    @property
    def queries(self) -> float:
        """Ratio of noise to squared signal."""
        return self.noise / self.signal**2


def label_factors(
    label: LabelKind,
    candidates: int,
    *,
    query_tokens: int | None = None,
    document_tokens: int | None = None,
) -> LabelFactors:
    r"""Compute the signal gamma and the noise v of a kind of label.

    .. math:: \gamma_{\text{scores}}=K-1,\quad \gamma_{\text{top-1}}=K(K-1)\int f^2F^{K-2},\quad
        \gamma_{\text{random}}=\tfrac K{K-1}\gamma_{\text{top-1}},\quad
        \gamma_{\text{runner-up}}=2\gamma_{\text{top-1}}-K(K-1)(K-2)\int f^2(1-F)F^{K-3},

    with density f and distribution F of a score of variance 1 given the query, and
    :math:`v=K-1,\ 1-1/K,\ 2,\ 2`. derivations/late-interaction (15).

    Parameters
    ----------
    label : {"scores", "top-1", "random-negative", "runner-up"}
        Centred scores; the best candidate against all, a random other one, or the second best.
    candidates : int
        Number K of candidates of a query, at least 3.
    query_tokens, document_tokens : int, optional
        Numbers of tokens, for scores that are sums of maxima; by default scores are Gaussian.

    Returns
    -------
    LabelFactors
        Signal gamma, noise v and their ratio.

    Examples
    --------
    >>> scores = label_factors("scores", 8)
    >>> round(label_factors("top-1", 8).queries / scores.queries, 2)
    3.02
    >>> skewed = label_factors("top-1", 8, query_tokens=4, document_tokens=8)
    >>> round(skewed.queries / scores.queries, 2)
    3.4
    """
    if label not in get_args(LabelKind):
        raise InvalidParameter(unknown_choice("label", label, list(get_args(LabelKind))))
    check_integer("candidates", candidates, 3)
    density = score_density(query_tokens, document_tokens)[1]
    return LabelFactors(
        signal=candidates - 1.0 if label == "scores" else rank_signal(density, label, candidates),
        noise=label_noise(label, candidates, 1.0),
    )


def label_noise(label: LabelKind, candidates: int, variance: float) -> float:
    """Mean v of the sum of squared labels, for scores of this variance   (late-interaction 15)."""
    if label == "scores":
        return (candidates - 1) * variance
    return 1 - 1 / candidates if label == "top-1" else 2.0


def rank_signal(density: np.ndarray, label: LabelKind, candidates: int) -> float:
    """Signal gamma of a label by rank, for the density of scores on a grid of step `STEP`."""
    f = density / (density.sum() * STEP)
    F = np.clip(np.cumsum(f) * STEP - f * STEP / 2, 0, 1)
    K = candidates
    # gamma = K (K - 1) int f² F^(K - 2); a random negative adds 1 / (K - 1) of it   (late-interaction 15)
    best = K * (K - 1) * float((f**2) @ F ** (K - 2)) * STEP
    if label == "top-1":
        return best
    if label == "random-negative":
        return best * K / (K - 1)
    # Derivative of P(best) - P(second) = 2 P(best) - P(best two)
    two = K * (K - 1) * (K - 2) * float((f**2 * (1 - F)) @ F ** (K - 3)) * STEP
    return 2 * best - two


def smoothed_density(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Density of weighted scores of variance about 1, on a grid of step `STEP`."""
    # The kernel raises the variance, for which the scores are scaled down.
    width = 0.12
    counts, _ = np.histogram(
        scores / np.sqrt(1 + width**2), bins=2400, range=(-8, 16), weights=weights
    )
    offsets = np.arange(-60, 61) * STEP
    return np.convolve(counts, np.exp(-(offsets**2) / (2 * width**2)), mode="same")


def score_density(
    query_tokens: int | None, document_tokens: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Grid and density of a standardised score: a sum of maxima, or normal if both numbers are None."""
    if (query_tokens is None) != (document_tokens is None):
        raise InvalidParameter(
            f"query_tokens is {query_tokens} and document_tokens is {document_tokens}; allowed: both or "
            "neither."
        )
    count = 2**13
    place = (np.arange(count) - count // 2) * STEP
    if query_tokens is None or document_tokens is None:
        return place, np.exp(-(place**2) / 2) / np.sqrt(2 * np.pi)
    from scipy.special import log_ndtr

    check_integer("query_tokens", query_tokens, 1)
    moments = max_moments(document_tokens)
    # The terms of a sum of variance 1 have standard deviation 1 / sqrt(L_q).
    x = moments.mean + np.sqrt(query_tokens * moments.variance) * place
    density = np.exp(-(x**2) / 2 + (document_tokens - 1) * log_ndtr(x))
    # Fourier transform of the sum: a power of the transform of one term
    transform = np.fft.fft(np.fft.ifftshift(density / density.sum())) ** query_tokens
    return place, np.maximum(np.fft.fftshift(np.fft.ifft(transform)).real, 0) / STEP
