"""Mean positions of the two largest eigenvalues at a bulk's edge, with a spike near threshold."""

from __future__ import annotations

import numpy as np

from solvable.spectra._monotone import monotone_cubic

# Columns: w; mean of the largest eigenvalue, minus w² above the threshold; mean of the second
# eigenvalue. From 6,000 spiked tridiagonal matrices of size 10⁶, each accurate to about 0.02.
LEVELS = np.array(
    [
        [-5.0, -1.019, -3.083], [-4.0, -0.972, -3.040], [-3.0, -0.900, -2.976], [-2.5, -0.847, -2.932],
        [-2.0, -0.775, -2.875], [-1.5, -0.674, -2.801], [-1.0, -0.526, -2.705], [-0.75, -0.427, -2.648],
        [-0.5, -0.304, -2.582], [-0.25, -0.152, -2.509], [0.0, 0.037, -2.427], [0.25, 0.211, -2.338],
        [0.5, 0.317, -2.243], [0.75, 0.369, -2.145], [1.0, 0.381, -2.047], [1.25, 0.366, -1.951],
        [1.5, 0.335, -1.861], [2.0, 0.261, -1.713], [2.5, 0.204, -1.612], [3.0, 0.167, -1.546],
        [4.0, 0.124, -1.461], [5.0, 0.100, -1.407],
    ]
)  # fmt: skip

FIRST, SECOND = -1.2065, -3.2624
"""Means of the two largest eigenvalues of the Tracy-Widom edge of real symmetric matrices."""


def edge_levels(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of the two largest eigenvalues of noise with a spike, in units of the edge."""
    # Positions are distances beyond the edge in units kappa D^(-2/3). In the limit a spike at w has
    # its outlier at w²; w < 0 is below the threshold.
    w = np.asarray(place, dtype=np.float64)
    within = np.clip(w, LEVELS[0, 0], LEVELS[-1, 0])
    inner = monotone_cubic(LEVELS[:, 0], LEVELS[:, 1:], within)
    far = np.abs(w) > LEVELS[-1, 0]
    with np.errstate(divide="ignore"):
        # A spike far below the threshold raises both levels by 1 / |w|. A spike far above lowers the
        # noise level by as much, and its own level is raised by 1 / (2 w).
        first = np.where(w < 0, FIRST - 1 / w, 1 / (2 * w))
        second = np.where(w < 0, SECOND - 1 / w, FIRST - 1 / w)
    levels = [np.where(far, first, inner[..., 0]), np.where(far, second, inner[..., 1])]
    return levels[0] + np.maximum(w, 0.0) ** 2, levels[1]
