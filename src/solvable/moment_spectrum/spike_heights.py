"""Spike heights of drawn labels, with the exact heights of the index as control variate."""

from __future__ import annotations

import numpy as np

from solvable.moment_spectrum.quadratic_forms import mean_traces


def exact_heights(
    strengths: np.ndarray, *, corrected: bool, dimension: int | None = None
) -> np.ndarray:
    """Exact mean of sum_j lambda_j (h_j² - 1) times the diagonal of the kernel.

    `dimension` is the input dimension of features of degree 2, and None for Gaussian features.
    """
    # E[sum_j lambda_j (h_j² - 1) <A_i, K A_i>] = sum_j lambda_j (2 <A_i, A_j>²
    #   + 8 tr M_i² M_j² + 4 tr M_i M_j M_i M_j)   (sequential 3) (sequential 19). The Wick correction
    # removes the second term. Gaussian features have the first term only.
    if dimension is None:
        return 2 * strengths
    alternating, squares = mean_traces(strengths.size, dimension)
    joint = 4 * alternating + (0 if corrected else 8) * squares
    return np.asarray(2 * strengths + joint @ strengths)


def controlled_mean(
    T: np.ndarray, diagonal: np.ndarray, index: np.ndarray, exact: np.ndarray
) -> np.ndarray:
    """Estimate E[T diagonal]; the control variate is index times diagonal, with mean `exact`."""
    control, response = index[:, None] * diagonal, T[:, None] * diagonal
    centred = control - control.mean(axis=0)
    power = np.maximum(np.mean(centred**2, axis=0), 1e-300)
    slope = np.mean(centred * response, axis=0) / power
    return np.asarray(response.mean(axis=0) - slope * (control.mean(axis=0) - exact))
