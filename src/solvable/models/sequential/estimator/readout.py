"""Bounded one-dimensional readout: a penalised spline, constant outside its training range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DEGREE = 3
"""Cubic pieces."""

ROWS_PER_PIECE = 10
"""Rows per piece at least."""


@dataclass(frozen=True)
class SplineReadout:
    """Scalar function of the index, constant outside the training range."""

    low: float  # range of the index in the rows it was fitted to
    high: float
    knots: np.ndarray  # of the rescaled index in [0, 1], with multiplicity, (c + 4,)
    coefficients: np.ndarray  # of the cubic B-splines, (c,)
    degrees_of_freedom: float  # effective number of parameters, from 2 (a straight line)

    def __call__(self, index: np.ndarray) -> np.ndarray:
        """Prediction for an index of shape (n,)."""
        from scipy.interpolate import BSpline

        inside = np.clip((index - self.low) / (self.high - self.low), 0.0, 1.0)
        return np.asarray(BSpline(self.knots, self.coefficients, DEGREE)(inside))


def fit_spline_readout(index: np.ndarray, labels: np.ndarray) -> SplineReadout | None:
    """Penalised cubic spline of labels on the index; None if there is nothing to fit."""
    from scipy.interpolate import BSpline

    # min_g (1/m) sum_mu (y_mu - g(s_mu))² + rho int g''(s)² ds, rho by generalised cross-validation: a
    # straight line as rho -> infinity. In place of 2605.14567 eq. 2.14, whose polynomials extrapolate.
    low, high = float(index.min()), float(index.max())
    scale = max(abs(low), abs(high))
    if index.size < 2 * ROWS_PER_PIECE or high - low <= 1e-9 * scale:
        return None
    position = np.clip((index - low) / (high - low), 0.0, 1.0)
    pieces = int(np.clip(index.size // ROWS_PER_PIECE, 2, 12))
    inner = np.unique(np.quantile(position, np.arange(1, pieces) / pieces))
    # Knots that nearly coincide would leave a spline without data.
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
    # B-splines add up to one, so that the offset goes into every coefficient.
    return SplineReadout(low, high, knots, coefficients + offset, freedom)


def _roughness(knots: np.ndarray) -> np.ndarray:
    """Matrix L of which L^T L is the integral of the squared second derivative."""
    from scipy.interpolate import BSpline

    count = knots.size - DEGREE - 1
    second = BSpline(knots, np.eye(count), DEGREE).derivative(2)
    borders = np.unique(knots)
    middle, half = (borders[1:] + borders[:-1]) / 2, np.diff(borders) / 2
    # Second derivatives are linear on each piece: two Gauss points integrate their products.
    points = np.concatenate([middle - half / np.sqrt(3), middle + half / np.sqrt(3)])
    return np.asarray(np.sqrt(np.concatenate([half, half]))[:, None] * second(points))


def _choose(
    gram: np.ndarray, target: np.ndarray, power: float, rough: np.ndarray, n_rows: int
) -> tuple[np.ndarray, float]:
    """Coefficients at the penalty of least cross-validation score, and degrees of freedom."""
    from scipy.linalg import cholesky, solve_triangular

    ridge = 1e-10 * np.trace(gram) / len(gram)
    factor = cholesky(gram + ridge * np.eye(len(gram)))
    # Singular values instead of eigenvalues of the product: quantile knots of a heavy-tailed index
    # lie so close together that roughnesses range over twelve orders of magnitude.
    _, singular, right = np.linalg.svd(solve_triangular(factor, rough.T, trans="T").T)
    roughness = np.zeros(len(gram))
    roughness[: singular.size] = singular**2
    basis = solve_triangular(factor, right.T)
    order = np.argsort(roughness)
    roughness, basis = roughness[order], basis[:, order]
    projections = basis.T @ target
    # In units of the third roughness: the first two belong to straight lines and vanish.
    weights = np.logspace(-8, 8, 65) / max(float(roughness[2]), 1e-300)
    kept = 1 / (1 + np.outer(weights, roughness))
    kept[:, :2] = 1.0
    residual = np.maximum(power - (2 * kept - kept**2) @ projections**2, 0.0)
    freedom = kept.sum(axis=1)
    # Degrees of freedom count 1.4 times: once undersmooths now and then.
    room = np.maximum(n_rows - 1.4 * freedom, 1e-3)
    # Ties (a perfect fit) go to the stiffest spline.
    score = residual / room**2
    best = int(np.flatnonzero(score <= score.min() * (1 + 1e-9))[-1])
    return np.asarray(basis @ (kept[best] * projections)), float(freedom[best])
