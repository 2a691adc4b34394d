"""Emergence times, loss and captured features of online gradient descent, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter
from solvable.models.multi_index.emergence.link import EvenLink


@dataclass(frozen=True)
class ScalingExponents:
    """Exponents of the loss of infinitely many features."""

    time: float
    width: float
    compute: float
    samples: float


def scaling_exponents(decay: float) -> ScalingExponents:
    """Exponents in time or steps, width, compute m t at a fixed rate, and samples at the best rate."""
    if not decay > 0.5:
        raise InvalidParameter(
            f"decay is {decay:g}; allowed: above 0.5, as the loss of infinitely many features has no "
            "power law below."
        )
    # t learns t^(1/beta) features and leaves a tail of sum_{p > P*} p^(-2 beta) ~ P*^(1 - 2 beta)
    tail = 1 - 2 * decay
    # the best width learns as many features as the time; a rate ~ a_{P*} costs t P*^beta samples
    return ScalingExponents(tail / decay, tail, tail / (1 + decay), tail / (2 * decay))


@dataclass(frozen=True)
class Emergence:
    """Courses of all features, averaged over starts, and the escape time of each start."""

    times: np.ndarray
    # Shapes (T,), (T, P), (T, P), (T,): half the squared distance to the teacher, shares of the
    # features, squared overlaps of their students, variance that noise of the gradient gives an overlap.
    loss: np.ndarray
    captured: np.ndarray
    squared_overlap: np.ndarray
    diffusion: np.ndarray
    escape_times: np.ndarray
    # Shape (starts, P), infinite where a feature is not captured to one half.


def draw_overlaps(
    dimension: int, features: int, width: int, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Squared overlaps of random students with the features, shape (draws, m, P)."""
    squares = rng.standard_normal((draws, width, features)) ** 2
    norms = squares.sum(axis=2, keepdims=True)
    if dimension > features:
        norms += rng.chisquare(dimension - features, norms.shape)
    return np.asarray(squares / norms)


def match_students(overlaps: np.ndarray, strengths: np.ndarray, link: EvenLink) -> np.ndarray:
    """Squared overlap of each feature with the student that learns it, 0 if none is left."""
    # A pair escapes at a rate a_p s K'(s) / y. The fastest pair comes first; student and feature are
    # then out. A pair that is the best of both its student and its feature need not wait for it.
    draws, width, features = overlaps.shape
    rates = strengths * link.pull(overlaps) / overlaps
    starts = np.zeros((draws, features))
    for _ in range(min(width, features)):
        choice, best = rates.argmax(axis=2), rates.argmax(axis=1)
        agreed = np.take_along_axis(choice, best, axis=1) == np.arange(features)
        agreed &= np.take_along_axis(rates, best[:, None, :], axis=1)[:, 0] >= 0
        if not agreed.any():
            break
        draw, feature = np.nonzero(agreed)
        student = best[draw, feature]
        starts[draw, feature] = overlaps[draw, student, feature]
        rates[draw, student, :] = -1.0
        rates[draw, :, feature] = -1.0
    return starts


def follow_features(
    strengths: np.ndarray,
    starts: np.ndarray,
    link: EvenLink,
    horizon: float,
    *,
    initial_norm: float,
    spare: int = 0,
    dimension: int = 2,
    gradient_noise: float = 0.0,
    label_noise: float = 0.0,
    step: float = 0.01,
) -> Emergence:
    """Courses of features that know of each other through the noise of the gradient alone.

    Rows of `starts` are squared overlaps of the students that learn the features, 0 for none;
    `spare` students learn none. `gradient_noise` is learning rate over batch.
    """
    a, y = strengths, starts.astype(float)
    n = np.where(starts > 0, initial_norm, 0.0)
    idle = np.full(len(starts), float(initial_norm))
    spent, time = np.zeros(len(starts)), 0.0
    escapes, before = np.full(starts.shape, np.inf), n * link.kernel(y) / a
    rows = [(0.0, *_averages(a, n, y, before, spare, idle), 0.0)]
    while time < horizon:
        # Features move on the scale of the time they have waited for.
        h = min(step * max(time, 1 / a[0]), horizon - time)
        noise = (
            gradient_noise * link.activity * (2 * _losses(a, n, before, spare, idle) + label_noise)
        )
        kappa = noise[:, None]
        y, n = _advanced(a, y, n, link, h, kappa, dimension)
        idle = _grown(idle, kappa[:, 0] * (dimension - 1), h)
        after = n * link.kernel(y) / a
        crossed = np.isinf(escapes) & (after >= 0.5)
        share = (0.5 - before[crossed]) / (after[crossed] - before[crossed])
        escapes[crossed] = time + h * share
        time, before, spent = time + h, after, spent + h * noise
        rows.append((time, *_averages(a, n, y, after, spare, idle), float(spent.mean())))
    times, loss, captured, overlap, diffusion = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    return Emergence(times, loss, captured, overlap, diffusion, escapes)


def _advanced(
    a: np.ndarray,
    y: np.ndarray,
    n: np.ndarray,
    link: EvenLink,
    h: float,
    kappa: np.ndarray,
    dimension: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Squared overlaps and norms a step later; stable for steps that are long for learned features."""
    # dy/dt = 2 a s K'(s) (1 - y) - kappa (d y - 1): for K = s^k, 2 k a s^k (1 - s^2). Exact for a
    # linear equation: y + h phi(h J) f with phi(z) = (e^z - 1) / z.
    pull = link.pull(y)
    flow = 2 * a * pull * (1 - y) - kappa * (dimension * y - 1)
    z = h * (2 * a * (link.pull_slope(y) * (1 - y) - pull) - kappa * dimension)
    z = np.where(np.abs(z) < 1e-8, 1e-8, np.minimum(z, 50.0))
    later = np.clip(y + h * np.expm1(z) / z * flow, 0.0, 1.0)
    # dn/dt = 4 n (a K - n) + kappa (d - 1) n, exact for a constant overlap
    rate = 4 * a * link.kernel((y + later) / 2) + kappa * (dimension - 1)
    return later, _grown(n, rate, h)


def _grown(n: np.ndarray, rate: np.ndarray, h: float) -> np.ndarray:
    """Solution of dn/dt = n (rate - 4 n) after a time h."""
    # n / (e^-x + 4 n h (1 - e^-x) / x) with x = rate h
    x = np.maximum(rate * h, 1e-12)
    return np.asarray(n / (np.exp(-x) + 4 * n * h * -np.expm1(-x) / x))


def _losses(
    a: np.ndarray, n: np.ndarray, captured: np.ndarray, spare: int, idle: np.ndarray
) -> np.ndarray:
    """Half the squared distance to the teacher from each start."""
    # 1/2 sum_p (a^2 - 2 a n K + n^2), and the norms of students that learn nothing
    own = a * a * (1 - 2 * captured) + n * n
    return np.asarray(0.5 * own.sum(axis=1) + 0.5 * spare * idle**2)


def _averages(
    a: np.ndarray,
    n: np.ndarray,
    y: np.ndarray,
    captured: np.ndarray,
    spare: int,
    idle: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    losses = _losses(a, n, captured, spare, idle)
    return float(losses.mean()), captured.mean(axis=0), y.mean(axis=0)
