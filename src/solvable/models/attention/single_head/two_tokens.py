"""Proximal step and responses of two tokens, in the gaps between the two logits of each row."""

# Row r of the softmax of two tokens is a logistic function of u_r = G s, so the loss is
# 2 sum_r (p_r - y_r)² with p = logistic(u), and the metric of the gaps is M = (G G^T)^-1. Arrays have one
# row per gap, which NumPy adds and multiplies ten times faster than arrays with one row per sample.

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Responses(NamedTuple):
    """Forces on the samples' indices, and means over samples of traces of their derivatives."""

    forces: np.ndarray
    """Forces g (n, k) at the proximal point."""
    overlap: float
    """Mean of tr dg/ds*."""
    response: float
    """Mean of -tr dg/domega."""
    growth: float
    """Mean squared norm of dg/domega."""
    loss: float


def logistic(u: np.ndarray) -> np.ndarray:
    """Weight of the second token."""
    return np.asarray(0.5 + 0.5 * np.tanh(u / 2))


class _Rows(NamedTuple):
    """Gaps of some samples: place, label, centre, weights, pull of the centre, objective."""

    u: np.ndarray
    y: np.ndarray
    centre: np.ndarray
    p: np.ndarray
    pull: np.ndarray
    objective: np.ndarray

    def at(self, chosen: np.ndarray) -> _Rows:
        """Return the rows of the chosen samples."""
        return _Rows(*(part[..., chosen] for part in self))


def _rows(
    u: np.ndarray, y: np.ndarray, centre: np.ndarray, metric: np.ndarray, variance: float
) -> _Rows:
    p, away = logistic(u), u - centre
    pull, error = metric @ away, p - y
    near = away[0] * pull[0] + away[1] * pull[1]
    objective = 2 * variance * (error[0] ** 2 + error[1] ** 2) + near / 2
    return _Rows(u, y, centre, p, pull, objective)


def gap_proximal(
    gaps: np.ndarray, labels: np.ndarray, omega: np.ndarray, variance: float, start: np.ndarray
) -> np.ndarray:
    """Minimise V (y - sigma(s))² + (s - omega)² / 2 by damped Newton steps."""
    metric = np.linalg.inv(gaps @ gaps.T)
    result, active = gaps @ start.T, np.arange(len(omega))
    here = _rows(result, labels[:, 1::2].T, gaps @ omega.T, metric, variance)
    for _ in range(60):
        slope, error = here.p * (1 - here.p), here.p - here.y
        gradient = here.pull + 4 * variance * error * slope
        wrong = (np.abs(gradient) > 1e-9 * (1 + np.abs(here.u))).any(axis=0)
        if not wrong.any():
            break
        if np.count_nonzero(wrong) < 0.7 * active.size:
            result[:, active], active = here.u, active[wrong]
            here, slope, error = here.at(wrong), slope[:, wrong], error[:, wrong]
            gradient = gradient[:, wrong]
        bend = slope**2 + error * slope * (1 - 2 * here.p)
        here = _stepped(here, gradient, bend, metric, variance)
    result[:, active] = here.u
    return np.asarray((np.linalg.inv(gaps) @ result).T)


def _inverse(curvature: np.ndarray, metric: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Diagonal entries (2, n) and off-diagonal entry (n) of (M + diag(curvature))^-1."""
    first, second = metric[0, 0] + curvature[0], metric[1, 1] + curvature[1]
    determinant = first * second - metric[0, 1] ** 2
    return np.stack([second, first]) / determinant, -metric[0, 1] / determinant


def _stepped(
    here: _Rows, gradient: np.ndarray, bend: np.ndarray, metric: np.ndarray, variance: float
) -> _Rows:
    """Newton step if this step lowers the objective, else a halved step with the convexified Hessian."""

    def direction(curvature: np.ndarray, pull: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            own, other = _inverse(4 * variance * curvature, metric)
            return np.asarray(-own * pull - other * pull[::-1])

    def rising(moved: _Rows, before: _Rows, falls: np.ndarray) -> np.ndarray:
        # allow for rounding errors when objectives are compared
        allowed = before.objective + 1e-4 * falls + 1e-13 * (1 + np.abs(before.objective))
        return np.asarray(~(moved.objective <= allowed))

    step = direction(bend, gradient)
    falls = step[0] * gradient[0] + step[1] * gradient[1]
    moved = _rows(here.u + step, here.y, here.centre, metric, variance)
    left = np.flatnonzero((falls >= 0) | rising(moved, here, falls))
    if left.size == 0:
        return moved
    old, pull = here.at(left), gradient[:, left]
    # the terms of the two outputs of a row, without those that are negative
    p, q, twice = old.p, 1 - old.p, 2 * (old.p - old.y)
    convex = np.maximum(p * (p + q * twice), 0) * q**2 + np.maximum(q * (q - p * twice), 0) * p**2
    step = direction(convex / 2, pull)
    falls, length = step[0] * pull[0] + step[1] * pull[1], np.ones(left.size)
    for _ in range(30):
        tried = _rows(old.u + length * step, old.y, old.centre, metric, variance)
        up = rising(tried, old, length * falls)
        if not up.any():
            break
        length = np.where(up, length / 2, length)
    for name in ("u", "p", "pull", "objective"):
        getattr(moved, name)[..., left] = getattr(tried, name)
    return moved


def gap_responses(
    gaps: np.ndarray,
    s: np.ndarray,
    labels: np.ndarray,
    variance: float,
    target: np.ndarray,
    ratio: float,
) -> Responses:
    """Means over samples, for a target with gaps `target` at `ratio` times the inverse temperature."""
    metric, p = np.linalg.inv(gaps @ gaps.T), logistic(gaps @ s.T)
    slope, error = p * (1 - p), p - labels[:, 1::2].T
    h = 4 * (slope**2 + error * slope * (1 - 2 * p))
    # dg/domega is similar to -diag(h) N in the gaps, with N = (M + Sigma diag(h))^-1
    own, other = _inverse(variance * h, metric)
    weight = logistic(ratio * target)
    cross = 2 * slope * weight * (1 - weight) * ratio
    return Responses(
        forces=np.asarray((gaps.T @ (-4 * error * slope)).T),
        overlap=2 * float(np.mean(np.sum(own * cross, axis=0))),
        response=float(np.mean(np.sum(own * h, axis=0))),
        growth=float(np.mean(np.sum((own * h) ** 2, axis=0) + 2 * other**2 * h[0] * h[1])),
        loss=2 * float(np.mean(np.sum(error**2, axis=0))),
    )
