"""Bounded one-dimensional readout: a penalised spline, constant outside its training range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DEGREE = 3
"""Degree of the spline pieces."""

ROWS_PER_PIECE = 10
"""Smallest number of rows for each piece of the spline."""


@dataclass(frozen=True)
class SplineReadout:
    """Scalar function of the index, constant outside the training range."""

    low: float  # low and high: range of the index in the training rows
    high: float
    knots: np.ndarray  # knots of the index rescaled to [0, 1], end knots repeated, (c + 4,)
    coefficients: np.ndarray  # coefficients of the cubic B-splines, (c,)
    degrees_of_freedom: float  # effective number of parameters; 2 for a straight line

    def __call__(self, index: np.ndarray) -> np.ndarray:
        """Return predictions for an index of shape (n,)."""
        from scipy.interpolate import BSpline

        inside = np.clip((index - self.low) / (self.high - self.low), 0.0, 1.0)
        return np.asarray(BSpline(self.knots, self.coefficients, DEGREE)(inside))


def fit_spline_readout(index: np.ndarray, labels: np.ndarray) -> SplineReadout | None:
    """Fit a penalised cubic spline of labels on the index; None for few rows or a constant index."""
    from scipy.interpolate import BSpline

    # The spline minimises (1/m) sum_mu (y_mu - g(s_mu))² + rho int g''(s)² ds over g. Generalised
    # cross-validation chooses the penalty rho; an infinite rho gives a straight line. The spline replaces
    # the polynomial readout of arXiv:2605.14567, Equation 2.14, because polynomials extrapolate badly.
    low, high = float(index.min()), float(index.max())
    scale = max(abs(low), abs(high))
    if index.size < 2 * ROWS_PER_PIECE or high - low <= 1e-9 * scale:
        return None
    position = np.clip((index - low) / (high - low), 0.0, 1.0)
    pieces = int(np.clip(index.size // ROWS_PER_PIECE, 2, 12))
    inner = np.unique(np.quantile(position, np.arange(1, pieces) / pieces))
    # Knots that nearly coincide are dropped: a spline piece between them would contain no rows.
    inner = inner[(inner > 1e-6) & (inner < 1 - 1e-6)]
    inner = inner[np.concatenate([[True], np.diff(inner) > 1e-6])] if inner.size else inner
    knots = np.concatenate([np.zeros(DEGREE + 1), inner, np.ones(DEGREE + 1)])
    design = BSpline.design_matrix(position, knots, DEGREE)
    offset = float(labels.mean())
    centred = labels - offset
    gram = (design.T @ design).toarray() / index.size
    target = np.asarray(design.T @ centred) / index.size
    power = float(np.mean(centred**2))
    coefficients, freedom = _choose(gram, target, power, _roughness(knots), index.size)
    # B-splines sum to one, so the offset is added to every coefficient.
    return SplineReadout(low, high, knots, coefficients + offset, freedom)


def _roughness(knots: np.ndarray) -> np.ndarray:
    """Matrix L such that c^T L^T L c is the integrated squared second derivative of a spline c."""
    from scipy.interpolate import BSpline

    count = knots.size - DEGREE - 1
    second = BSpline(knots, np.eye(count), DEGREE).derivative(2)
    borders = np.unique(knots)
    middle, half = (borders[1:] + borders[:-1]) / 2, np.diff(borders) / 2
    # Second derivatives are linear on each piece, so two Gauss points integrate their products exactly.
    points = np.concatenate([middle - half / np.sqrt(3), middle + half / np.sqrt(3)])
    return np.asarray(np.sqrt(np.concatenate([half, half]))[:, None] * second(points))


def _choose(
    gram: np.ndarray, target: np.ndarray, power: float, rough: np.ndarray, n_rows: int
) -> tuple[np.ndarray, float]:
    """Spline coefficients at the penalty with the lowest cross-validation score; degrees of freedom."""
    from scipy.linalg import cholesky, solve_triangular

    ridge = 1e-10 * np.trace(gram) / len(gram)
    factor = cholesky(gram + ridge * np.eye(len(gram)))
    # Singular values of the matrix are more accurate than eigenvalues of its Gram matrix. Accuracy
    # matters: a heavy-tailed index gives knots close together and roughnesses over twelve orders of
    # magnitude.
    _, singular, right = np.linalg.svd(solve_triangular(factor, rough.T, trans="T").T)
    roughness = np.zeros(len(gram))
    roughness[: singular.size] = singular**2
    basis = solve_triangular(factor, right.T)
    order = np.argsort(roughness)
    roughness, basis = roughness[order], basis[:, order]
    projections = basis.T @ target
    # Penalties are in units of the third-smallest roughness; the two smallest roughnesses belong to
    # straight lines and vanish.
    weights = np.logspace(-8, 8, 65) / max(float(roughness[2]), 1e-300)
    kept = 1 / (1 + np.outer(weights, roughness))
    kept[:, :2] = 1.0
    residual = np.maximum(power - (2 * kept - kept**2) @ projections**2, 0.0)
    freedom = kept.sum(axis=1)
    # The score multiplies the degrees of freedom by 1.4, because a factor of 1 sometimes undersmooths.
    room = np.maximum(n_rows - 1.4 * freedom, 1e-3)
    # Ties, as in a perfect fit, are broken towards the largest penalty.
    score = residual / room**2
    best = int(np.flatnonzero(score <= score.min() * (1 + 1e-9))[-1])
    return np.asarray(basis @ (kept[best] * projections)), float(freedom[best])
