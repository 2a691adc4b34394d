"""Error of a quadratic second layer on learned features, computed from draws of latent features."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.cross_terms import count_columns, wants_cross_terms
from solvable.moment_spectrum.draws import LatentSample

PAIRS = 12
"""Largest number of features for which the fit includes products of features."""

LEADING = 48
"""Number of leading features with their own coefficients; other features share two coefficients."""


@dataclass(frozen=True)
class LatentDraws:
    """Draws of one target: labels, latent features, and features along random directions."""

    labels: np.ndarray  # labels y, shape (m,)
    signal: np.ndarray  # orthonormal latent features u_k, shape (m, p)
    noise: np.ndarray  # features zeta_k along random directions, shape (m, p)
    lean: np.ndarray | None = (
        None  # variance of zeta_k divided by the variance along a random direction
    )
    tails: dict[tuple[bytes, bool], float] = field(default_factory=dict, repr=False, compare=False)

    def learned(self, squared_overlap: np.ndarray) -> np.ndarray:
        """Return learned features with given squared overlaps, up to a rotation; shape (m, p)."""
        overlap = np.clip(squared_overlap, 0.0, 1.0)
        # hat u_k = c_k u_k + sqrt(1 - c_k²) zeta_k   (sequential 12) (compositional 8). The direction in
        # the place of a lost feature is an eigenvector of the noise, whose variance is not larger.
        rest = 1 - overlap
        if self.lean is not None:
            rest = rest * (1 + overlap * (self.lean - 1))
        return np.asarray(np.sqrt(overlap) * self.signal + np.sqrt(rest) * self.noise)

    def spanning(self, features: np.ndarray) -> np.ndarray:
        """Return features of the same span, rotated so that squares fit best; unchanged here."""
        return features

    def tail_error(self, found: np.ndarray, guess: np.ndarray, *, readout: bool) -> float:
        """Error of a last layer fitted with infinitely many rows on exactly known recovered features."""
        # Errors are cached, because sample sizes of a curve share few sets of recovered features. Above
        # PAIRS features the error depends on the guess as well.
        key = found.tobytes() + (guess.tobytes() if found.sum() > PAIRS else b""), readout
        if key not in self.tails:
            known = self.signal[:, found].astype(float)
            fit = fit_last_layer(known, self.labels, readout=readout, guess=guess[found])
            self.tails[key] = fit.normalised_mse
        return self.tails[key]

    def every(self, step: int, first: int) -> LatentDraws:
        """Return every `step`-th draw from draw `first` on."""
        rows = slice(first, None, step)
        lean = None if self.lean is None else self.lean[rows]
        return LatentDraws(self.labels[rows], self.signal[rows], self.noise[rows], lean)

    def along(self, components: np.ndarray) -> np.ndarray:
        """Return learned features along directions with given components along the features, (p, k)."""
        # The learned features are hat h_k = sum_i U_ik u_i plus noise of covariance 1 - U^T U.
        values, vectors = np.linalg.eigh(np.eye(components.shape[1]) - components.T @ components)
        rest = (vectors * np.sqrt(np.clip(values, 0, 1))) @ vectors.T
        return np.asarray(self.signal @ components + self.noise @ rest)


def random_features(
    squared_norm: np.ndarray,
    signal: np.ndarray,
    n_features: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Features along random directions orthogonal to the latent directions, shaped like `signal`."""
    # Given x, <Z, F> over random Z is Gaussian with variance |F_perp|² / (D - p)   (sequential 12). It is
    # uncorrelated with the signal but not independent, as both depend on the norm of x. For a fixed Z the
    # joint law differs by O(1/d).
    rest = max(n_features - signal.shape[1], 1)
    outside = np.maximum(squared_norm - np.sum(signal**2, axis=1), 0.0)
    return np.sqrt(outside / rest)[:, None] * rng.standard_normal(signal.shape)


def sample_lean(
    T: np.ndarray, signal: np.ndarray, images: np.ndarray, squared_input_norm: np.ndarray, d: int
) -> np.ndarray:
    """Variance of degree-2 features along each feature's noise, relative to a random direction."""
    # `images` contains |M_i x|², (m, p). The cost is O(m p²).
    # The noise of a direction is sum_mu T_mu h_mu F_mu, whose samples are large where M_i is large. With
    # w = T² h_i²: <F, E[w F F^T] F> = E[w] |F|² + 2 tr(B F²) + k [2 h_i² - 2 |M_i x|² + 1],
    # B = E[w (x x^T - 1)] = b_0 + sum_j b_j M_j² and k = E[w (h_i² - 1 - 2 (|M_i x|² - 1))]
    # (sequential 13).
    s, w = squared_input_norm, (T[:, None] * signal) ** 2
    power = w.mean(axis=0)
    trace = w.T @ (s - d) / s.size
    # The traceless parts of the M_j² are nearly orthogonal and have squared norm tr M_j⁴ - 1/d.
    quartic = (2 * d**2 + 5 * d + 5) / ((d + 1) * (d * (d + 1) / 2 + 2))
    b = (w.T @ (images - 1) / s.size - trace[:, None] / d) / (quartic - 1 / d)
    uniform = (trace - b.sum(axis=1)) / d
    form = s[:, None] * uniform + images @ b.T  # quadratic form x^T B x
    k = np.mean(w * (signal**2 - 1 - 2 * (images - 1)), axis=0)
    squared_norm = (s**2 - 2 * s + d) / 2
    added = (s[:, None] - 2) * form + trace + k * (2 * signal**2 - 2 * images + 1)
    lean = np.maximum(1 + added / (power * squared_norm[:, None]), 0.1)
    return np.asarray(lean / ((squared_norm @ lean) / squared_norm.sum()))


def latent_draws(
    sample: LatentSample, n_features: int, *, place: int, targets: int, T: np.ndarray | None = None
) -> list[LatentDraws]:
    """Draws for the error of the targets: 80,000 in total, fewer for many features."""
    # If mapped labels `T` are given, the variance along each direction's noise is computed.
    p = sample.latent.shape[1]
    columns = p * (p + 1) // 2 if p <= PAIRS else p
    wanted = int(np.clip(2e6 / columns, 4_000, 80_000))
    # Each target gets at least 4,000 draws.
    used = min(targets, max(1, wanted // 4_000))
    if place >= used:
        return []
    rows = sample.rows(slice(wanted // used))
    rng = random_stream("sequential-recovery", "random directions", place)
    lean = None
    if T is not None and rows.corrected is not None:
        # <A_i, K A_i> = h_i² - 1 - 2 (|M_i x|² - 1) and |F|² = (s² - 2 s + d) / 2
        images = 1 + (rows.latent**2 - 1 - rows.corrected.diagonal) / 2
        d = round((np.sqrt(8 * n_features + 1) - 1) / 2)
        s = 1 + np.sqrt(np.maximum(2 * rows.squared_norm - d + 1, 0))
        lean = sample_lean(T[: len(s)], rows.latent, images, s, d).astype(np.float32)
    noise = random_features(rows.squared_norm, rows.latent, n_features, rng)
    # The draws are cached with the moments; float32 halves the memory.
    signal, noise = rows.latent.astype(np.float32), noise.astype(np.float32)
    return [LatentDraws(rows.labels.copy(), signal, noise, lean)]


@dataclass(frozen=True)
class LastLayer:
    """Least-squares fit of the label on products of a representation."""

    matrix: np.ndarray  # symmetric matrix hat B in hat y = a + h^T hat B h
    normalised_mse: float  # mean squared residual over label variance, after a readout


def fit_last_layer(
    features: np.ndarray,
    labels: np.ndarray,
    *,
    readout: bool = True,
    rows: int | None = None,
    guess: np.ndarray | None = None,
) -> LastLayer:
    """Fit the last quadratic layer of a learner with `rows` fresh rows (None: infinitely many)."""
    # For all but the leading features the diagonal is proportional to `guess`. For Gaussian features
    # and the identity readout the matrix is diag(b_k c_k²) and the error is 1 - sum_k lambda_k² c_k⁴
    # (sequential 11) (compositional 8).
    count, p = features.shape
    table, spread = _products(features, rows, np.ones(p) if guess is None else guess)
    table -= table.mean(axis=0)
    centred = labels - labels.mean()
    solution, leverage = _least_squares(table, centred)
    index = table @ solution
    # The leave-one-out prediction is y - r / (1 - l), with residual r and leverage l.
    left_out = centred - (centred - index) / np.maximum(1 - leverage, 1e-3)
    inside, outside = _errors(index, left_out, centred, readout)
    # The error is linear in 1/rows. Training and leave-one-out errors are its values at 1/rows = -1/m
    # and 1/m.
    error, penalty = (inside + outside) / 2, (outside - inside) / 2
    if rows is not None:
        cross = wants_cross_terms("auto", p, rows, linear_terms=False)
        columns = count_columns(p, cross_terms=cross, linear_terms=False)
        share = columns / max(table.shape[1], 1) / max(rows - columns - 1, 1)
        error += penalty * count * share
    return LastLayer(_matrix(spread @ solution, p), float(error / np.mean(centred**2)))


def plug_in_error(index: np.ndarray, labels: np.ndarray, *, readout: bool) -> float:
    """Normalised error of predictions by a given index, with or without a fitted readout."""
    centred, moved = labels - labels.mean(), index - index.mean()
    error = _errors(moved, None, centred, readout)[0] if readout else None
    return float(
        (np.mean((centred - index) ** 2) if error is None else error) / np.mean(centred**2)
    )


def _products(
    features: np.ndarray, rows: int | None, guess: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the fit, (m, k), and the matrix from coefficients to entries of the layer."""
    p = features.shape[1]
    cross = rows is None or wants_cross_terms("auto", p, rows, linear_terms=False)
    if cross and p <= PAIRS:
        first, second = np.triu_indices(p)
        columns = np.ascontiguousarray(features.T)
        return (columns[first] * columns[second]).T, np.eye(first.size)
    # Products of different features do not lower the error: E[y h_i h_j] = O(1/D).
    order = np.argsort(-np.abs(guess), kind="stable")
    leading, rest = order[:LEADING], order[LEADING:]
    spread = np.zeros((p, leading.size + 2 * (rest.size > 0)))
    spread[leading, np.arange(leading.size)] = 1
    if rest.size:
        spread[rest, -2:] = np.column_stack([guess[rest], np.ones(rest.size)])
    return features**2 @ spread, spread


def _matrix(coefficients: np.ndarray, p: int) -> np.ndarray:
    """Symmetric matrix of a quadratic form with given coefficients of all products or of squares."""
    if coefficients.size == p:
        return np.diag(coefficients)
    matrix = np.zeros((p, p))
    matrix[np.triu_indices(p)] = coefficients / 2
    return matrix + matrix.T


def _least_squares(table: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares coefficients and the leverage of each row."""
    gram = table.T @ table
    size = np.sqrt(np.diag(gram))
    scale = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(gram / scale / scale[:, None])
    kept = values > 1e-10 * values.max(initial=1e-300)
    whiten = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None]
    white = whiten.T @ table.T
    return whiten @ (whiten.T @ (table.T @ target)), np.einsum("km,km->m", white, white)


def _errors(
    index: np.ndarray, left_out: np.ndarray | None, labels: np.ndarray, readout: bool
) -> tuple[float, float]:
    """Mean squared errors of an index and of a leave-one-out index (if given), with the same readout."""
    if readout:
        places = np.arange(index.size)
        knots = np.unique(np.interp(_QUANTILES * places[-1], places, np.sort(index)))
        if knots.size > 2:
            index, heights = _piecewise_linear(index, labels, knots)
            left_out = None if left_out is None else np.interp(left_out, knots, heights)
    inside = float(np.mean((labels - index) ** 2))
    return inside, inside if left_out is None else float(np.mean((labels - left_out) ** 2))


_QUANTILES = np.concatenate([[0, 0.002, 0.01], np.linspace(0.03, 0.97, 32), [0.99, 0.998, 1]])


def _piecewise_linear(
    index: np.ndarray, labels: np.ndarray, knots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values and knot values of the piecewise linear function of the index that fits the labels best."""
    cell = np.clip(np.searchsorted(knots, index, side="right") - 1, 0, knots.size - 2)
    right = (index - knots[cell]) / np.diff(knots)[cell]
    left = 1 - right
    size = knots.size

    def total(places: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.bincount(places, weights=values, minlength=size)

    # The normal equations of the hat functions are tridiagonal.
    gram = np.diag(total(cell, left**2) + total(cell + 1, right**2))
    next_to = np.diag(total(cell, left * right)[:-1], 1)
    target = total(cell, left * labels) + total(cell + 1, right * labels)
    heights = np.linalg.lstsq(gram + next_to + next_to.T, target, rcond=1e-12)[0]
    return left * heights[cell] + right * heights[cell + 1], heights
