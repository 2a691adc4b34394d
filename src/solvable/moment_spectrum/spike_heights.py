"""Heights of spikes: exact for the index itself, which takes the noise out of drawn ones."""

from __future__ import annotations

import numpy as np

from solvable.moment_spectrum.rotated_draw import mean_traces


def exact_heights(
    strengths: np.ndarray,
    gram: np.ndarray | None,
    matrices: np.ndarray | None,
    *,
    corrected: bool,
    dimension: int | None = None,
) -> np.ndarray | None:
    """Exact mean of sum_j lambda_j (h_j^2 - 1) times the diagonal of the kernel; None if unknown."""
    if gram is None:
        return None
    # E[sum_j lambda_j (h_j^2 - 1) <A_i, K A_i>] = sum_j lambda_j (2 <A_i, A_j>^2
    #   + 8 tr M_i^2 M_j^2 + 4 tr M_i M_j M_i M_j): joint cumulants of quadratic forms. The Wick
    # correction removes the second term; Gaussian features have the first alone.
    gaussian = 2 * gram**2 @ strengths
    if dimension is not None:
        traces = mean_traces(gram, dimension)
        joint = 4 * traces.alternating + (0 if corrected else 8) * traces.squares
        return np.asarray(gaussian + joint @ strengths)
    if matrices is None:
        return np.asarray(gaussian)
    squares = (matrices @ matrices).reshape(len(matrices), -1)
    crossed = np.array([[np.sum((M @ N) * (N @ M)) for N in matrices] for M in matrices])
    joint = 4 * crossed + (0 if corrected else 8) * squares @ squares.T
    return np.asarray(gaussian + joint @ strengths)


def controlled_mean(
    T: np.ndarray, diagonal: np.ndarray, index: np.ndarray, exact: np.ndarray | None
) -> np.ndarray:
    """E[T diagonal]; ``exact`` is the mean of index times diagonal, which takes its noise out."""
    plain = T @ diagonal / T.size
    if exact is None:
        return np.asarray(plain)
    control, response = index[:, None] * diagonal, T[:, None] * diagonal
    centred = control - control.mean(axis=0)
    slope = np.mean(centred * response, axis=0) / np.mean(centred**2, axis=0)
    return np.asarray(plain - slope * (control.mean(axis=0) - exact))
