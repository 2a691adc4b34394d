"""Posterior means of Gaussian indices given the position of the largest index in every row."""

# Only the largest index of a row bounds other indices. Given each row's largest index, all other indices
# are independent truncated normal variables. An integral over at most T variables remains; it starts from
# the index without an upper bound. For two tokens the label consists of the signs of two differences,
# whose truncated means have closed forms (attention 3).

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from solvable.errors import InvalidData
from solvable.operators.sensors import index_pairs
from solvable.quasi_random import sobol_points

POINTS = 64
"""Number of Sobol points for each posterior; an equal number of antithetic points is added."""

CHUNK = 1_024
"""Number of samples with the same label that are integrated together."""


@dataclass(frozen=True)
class Order:
    """One outcome (label) with its samples and the bounds that it implies."""

    choices: tuple[int, ...]
    rows: np.ndarray
    largest: tuple[int, ...]
    """Indices that are the largest in a row, ordered so that each follows the indices that bound it."""
    bounds: tuple[tuple[int, ...], ...]
    """For every index, the row maxima that bound this index."""

    @classmethod
    def groups(cls, labels: np.ndarray, tokens: int) -> list[Order]:
        """Group samples by outcome."""
        if (
            labels.ndim != 2
            or labels.shape[1] != tokens
            or not np.isin(labels, range(tokens)).all()
        ):
            raise InvalidData(
                f"labels have shape {labels.shape}; allowed: (n, {tokens}) positions 0 to {tokens - 1}."
            )
        outcomes, which = np.unique(labels.astype(int), axis=0, return_inverse=True)
        return [
            cls.of(tuple(int(b) for b in outcome), np.flatnonzero(which.ravel() == number))
            for number, outcome in enumerate(outcomes)
        ]

    @classmethod
    def of(cls, choices: tuple[int, ...], rows: np.ndarray) -> Order:
        """Derive the bounds from an outcome."""
        first, second = index_pairs(len(choices))
        place = {
            pair: k for k, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True))
        }
        tops = [place[min(a, b), max(a, b)] for a, b in enumerate(choices)]
        bounds = tuple(
            tuple(sorted({tops[a], tops[b]} - {k}))
            for k, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
        )
        largest: list[int] = []
        waiting = sorted(set(tops))
        while waiting:
            ready = [k for k in waiting if set(bounds[k]) <= set(largest)]
            if not ready:
                raise InvalidData(
                    f"labels are {list(choices)}; allowed: the positions of the largest logits of a "
                    "symmetric matrix. These labels would require a cycle of strict inequalities."
                )
            largest += ready
            waiting = [k for k in waiting if k not in ready]
        return cls(choices, rows, tuple(largest), bounds)


def hardmax_messages(orders: list[Order], omega: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Messages (E[z | label] - omega) / spread, (n, K), of independent z ~ N(omega, spread)."""
    shifts = np.zeros_like(omega)
    for order in orders:
        uniform = _uniform(len(order.largest))
        for start in range(0, order.rows.size, CHUNK):
            rows = order.rows[start : start + CHUNK]
            shifts[rows] = _shifts(order, omega[rows] / np.sqrt(spread), np.sqrt(spread), uniform)
    return shifts / np.sqrt(spread)


def _shifts(order: Order, mean: np.ndarray, scale: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Posterior means minus prior means, in prior standard deviations, for samples of one outcome."""
    tops = list(order.largest)
    centre, width = np.zeros((len(mean), len(tops))), np.ones((len(mean), len(tops)))
    for _ in range(2):
        # centre the points on the posterior of the largest indices, as estimated in the previous round
        shifts, share = _weighted(order, mean, scale, uniform, centre, width)
        centre = np.einsum("nkp,np->nk", shifts[:, tops], share)
        square = np.einsum("nkp,np->nk", (shifts[:, tops] - centre[..., None]) ** 2, share)
        width = np.clip(1.1 * np.sqrt(square), 0.1, 1.0)
    shifts, share = _weighted(order, mean, scale, uniform, centre, width)
    return np.asarray(np.einsum("nkp,np->nk", shifts, share))


def _weighted(
    order: Order,
    mean: np.ndarray,
    scale: np.ndarray,
    uniform: np.ndarray,
    centre: np.ndarray,
    width: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Shifts (n, K, points) of all indices at points around a centre, and point weights."""
    from scipy.special import log_ndtr, ndtr, ndtri

    n, points = len(mean), len(uniform)
    weight = np.zeros((n, points))
    places: dict[int, np.ndarray] = {}

    def bound(k: int) -> np.ndarray | None:
        over = [places[j] * scale[j] / scale[k] for j in order.bounds[k]]
        return np.minimum.reduce(over) - mean[:, k, None] if over else None

    shifts = np.empty((n, mean.shape[1], points))
    for column, k in enumerate(order.largest):
        u, top = uniform[:, column], bound(k)
        m, c = centre[:, column, None], width[:, column, None]
        if top is not None:
            # draw a normal variable below the bound by inversion of the distribution function
            weight += log_ndtr((top - m) / c)
            u = np.maximum(u * ndtr((top - m) / c), 1e-300)
        normal = ndtri(u)
        shifts[:, k] = m + c * normal
        weight += (normal**2 - shifts[:, k] ** 2) / 2
        places[k] = mean[:, k, None] + shifts[:, k]
    for k in set(range(mean.shape[1])) - set(order.largest):
        top = bound(k)
        assert top is not None
        below = log_ndtr(top)
        weight += below
        shifts[:, k] = -np.exp(-(top**2) / 2 - below) / np.sqrt(2 * np.pi)
    share = np.exp(weight - weight.max(axis=1, keepdims=True))
    return shifts, share / share.sum(axis=1, keepdims=True)


@cache
def _uniform(columns: int, points: int = POINTS, seed: int = 0) -> np.ndarray:
    """Scrambled Sobol points with their antithetic points."""
    half = np.clip(sobol_points(columns, points, seed), 1e-12, 1 - 1e-12)
    return np.concatenate([half, 1 - half])


def pair_messages(orders: list[Order], omega: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Messages of two tokens in closed form (attention 3)."""
    # Signs of u = (z_11 - z_12, z_22 - z_12), g_u = Cov(u)^-1 (E[u | signs] - omega_u)
    differences = np.array([[1.0, -1.0, 0.0], [0.0, -1.0, 1.0]])
    covariance = (differences * spread) @ differences.T
    signs = np.empty((len(omega), 2))
    for order in orders:
        signs[order.rows] = [1 if order.choices[0] == 0 else -1, 1 if order.choices[1] == 1 else -1]
    scale = np.sqrt(np.diag(covariance))
    found = _orthant(omega @ differences.T / scale, signs, covariance[0, 1] / scale.prod())[1]
    # E[z | u] - omega = spread D^T g_u: g = D^T g_u
    return np.asarray(
        (found / scale) @ np.linalg.inv(covariance / np.outer(scale, scale)) @ differences
    )


def _orthant(x: np.ndarray, signs: np.ndarray, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    """Probability that a correlated normal pair with mean x has these signs, and its mean shift."""
    from scipy.special import ndtr

    a, b = (signs * x).T
    r = signs[:, 0] * signs[:, 1] * correlation
    root = np.sqrt(1 - r**2)
    # P(a, b; r) = Phi(a) Phi(b) + int_0^asin(r) exp(-(a² + b² - 2 a b sin t) / 2 cos² t) dt / 2 pi
    nodes, weights = np.polynomial.legendre.leggauss(12)
    angle = np.multiply.outer(np.arcsin(r) / 2, nodes + 1)
    sine = np.sin(angle)
    height = np.exp(-((a**2 + b**2)[:, None] - 2 * (a * b)[:, None] * sine) / (2 * (1 - sine**2)))
    probability = ndtr(a) * ndtr(b) + np.arcsin(r) / 2 * (height @ weights) / (2 * np.pi)
    # E[(w_1, w_2) 1] = phi(a) Phi((b - r a) / root) (1, r) + phi(b) Phi((a - r b) / root) (r, 1)
    one, two = (
        np.exp(-(p**2) / 2) / np.sqrt(2 * np.pi) * ndtr((q - r * p) / root)
        for p, q in ((a, b), (b, a))
    )
    # for outcomes with probability below 1e-13, take the corner of the orthant as the mean
    safe = np.maximum(probability, 1e-13)
    shift = np.column_stack([one + r * two, r * one + two]) / safe[:, None]
    unlikely = probability < 1e-13
    shift[unlikely] = np.maximum(-np.column_stack([a, b])[unlikely], 0.0)
    return np.maximum(probability, 0.0), signs * shift
