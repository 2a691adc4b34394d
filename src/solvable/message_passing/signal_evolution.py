r"""State evolution of Bayes message passing for matrices, for any signal and channel.

.. math:: \hat q=c\,\alpha\,I(E),\qquad E=\mathrm{mmse}(1/\hat q),

with c = 2 for symmetric and c = 1 for rectangular signals, and I the information of the channel (sensing
3). The solver uses the curve :math:`\alpha(t)=1/(c\,t\,I(\mathrm{mmse}(t)))` with :math:`t=1/\hat q`
instead of an iteration. Message passing from the prior mean stops at the largest t with the given ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.message_passing.matrix_channels import Informative
from solvable.message_passing.signal_laws import Signal

LEAST_NOISE = 1e-9
"""Lower end of the scan in t, relative to the variance of the signal."""


@dataclass(frozen=True)
class SignalEvolution:
    """Fixed points of state evolution at an array of sample ratios."""

    sample_ratio: np.ndarray
    error: np.ndarray  # error E per dimension; 0 at exact recovery
    noise: np.ndarray  # effective noise t = 1 / q^ of S + sqrt(t) G; 0 at exact recovery
    residual: np.ndarray  # relative residual of the fixed-point equation


def signal_evolution(
    signal: Signal, channel: Informative, sample_ratio: np.ndarray | float
) -> SignalEvolution:
    """Errors of Bayes message passing from the prior mean (sensing 3; arXiv:2503.14121)."""
    shape = np.shape(sample_ratio)
    ratios = np.asarray(sample_ratio, dtype=np.float64).ravel()
    if not (np.isfinite(ratios).all() and (ratios > 0).all()):
        raise InvalidParameter(f"sample_ratio is {sample_ratio}; allowed: above 0.")
    scale = signal.variance
    if scale == 0:
        blank = np.zeros(shape)
        return SignalEvolution(ratios.reshape(shape), blank, blank, blank)

    # for all ratios at once: scan t downwards to the first crossing, then refine the crossing
    def log_ratio(log_noise: np.ndarray) -> np.ndarray:
        t = np.exp(log_noise)
        with np.errstate(divide="ignore"):
            # log alpha(t) = -log(c t I(mmse(t)))   (sensing 3)
            return -np.log(signal.multiplicity * t * channel.information(signal.mmse(t)))

    target = np.log(ratios)
    # the information at the error of the prior mean gives an upper bound of t
    most = float(channel.information(np.array([scale]))[0])
    if most <= 0:
        raise InvalidParameter(
            "the labels carry no information, so no sample_ratio lowers the error; use another channel."
        )
    top = -np.log(signal.multiplicity * ratios * most)
    grid = np.linspace(np.log(LEAST_NOISE * scale), max(top.max(), np.log(scale)) + 1e-6, SCAN)
    values = _scanned(log_ratio, grid, target.max())
    start = _first_crossing(values, target)
    below = start < 0
    root = _closed(log_ratio, target, (grid, values), np.maximum(start, 0), below)
    noise, error = np.exp(root), signal.mmse(np.exp(root))
    if below.any():
        noise[below], error[below] = _far_below(signal, channel, ratios[below], noise[below])
    residual = np.where(below, 0.0, np.abs(np.expm1(log_ratio(root) - target)))
    if (residual > 1e-7).any():
        worst = int(np.argmax(residual))
        raise NotConverged(
            f"state evolution did not converge at sample_ratio {ratios[worst]:.6g}: the relative "
            f"residual is {residual[worst]:.2g}; allowed: up to 1e-7. Change sample_ratio slightly.",
            {"residual": residual[worst], "noise": noise[worst]},
        )
    return SignalEvolution(*(part.reshape(shape) for part in (ratios, error, noise, residual)))


SCAN = 48
"""Number of values of t in the scan for the first crossing."""


def _far_below(
    signal: Signal, channel: Informative, ratios: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Noise and error below the scanned t, where E / t is constant; 0 if the noise decreases to 0."""
    share = float(signal.mmse(start[:1])[0] / start[0])
    noise, before = start, start
    for _ in range(300):
        before = noise
        # on overflow the information is infinite, so the noise is 0
        with np.errstate(over="ignore", divide="ignore"):
            noise = 1 / (signal.multiplicity * ratios * channel.information(share * before))
    noise = np.where(noise < (1 - 1e-6) * before, 0.0, noise)
    return noise, share * noise


def _scanned(
    log_ratio: Callable[[np.ndarray], np.ndarray], grid: np.ndarray, most: float
) -> np.ndarray:
    """Values of log alpha(t) on the grid, computed downwards until the largest ratio is crossed."""
    values = np.full(grid.size, -np.inf)
    block = 8
    for stop in range(grid.size, 0, -block):
        part = slice(max(stop - block, 0), stop)
        values[part] = log_ratio(grid[part])
        if (values[part][1:-2] >= most).any():
            values[: part.start] = np.nan
            break
    return values


def _first_crossing(values: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Largest scan index with alpha(t) >= ratio for each ratio; -1 if there is none."""
    # alpha(t) is small at large t; the first crossing from large t is the iteration's fixed point
    enough = values >= target[:, None]  # values that the scan did not reach are NaN
    last = values.size - 1 - np.argmax(enough[:, ::-1], axis=1)
    return np.where(enough.any(axis=1), np.minimum(last, values.size - 2), -1)


def _closed(
    log_ratio: Callable[[np.ndarray], np.ndarray],
    target: np.ndarray,
    scan: tuple[np.ndarray, np.ndarray],
    start: np.ndarray,
    known: np.ndarray,
) -> np.ndarray:
    """Roots inside their brackets by safeguarded secant steps, for all ratios at once."""
    grid, values = scan
    low, high = grid[start], grid[start + 1]
    found = np.where(known, low, _interpolated(grid, values, target, start))
    before, at_before = low, values[start] - target
    open_ = ~known
    for _ in range(80):
        lost = open_ & ~((found > low) & (found < high))
        found = np.where(lost, (low + high) / 2, found)
        value = np.zeros(target.size)
        value[open_] = log_ratio(found[open_]) - target[open_]
        open_ &= (np.abs(value) > 1e-10) & (high - low > 1e-14 * np.abs(high))
        if not open_.any():
            break
        low, high = np.where(value >= 0, found, low), np.where(value >= 0, high, found)
        rise = value - at_before
        step = np.divide(
            value * (found - before), rise, out=np.full(low.size, np.inf), where=rise != 0
        )
        before, at_before, found = found, value, np.where(open_, found - step, found)
    return found


def _interpolated(
    grid: np.ndarray, values: np.ndarray, target: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Roots by inverse cubic interpolation through four points of the scan."""
    first = np.clip(start - 1, 0, grid.size - 4)[:, None] + np.arange(4)
    x, y = grid[first], values[first]
    found = np.zeros(target.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(4):
            others = [j for j in range(4) if j != i]
            share = [(target - y[:, j]) / (y[:, i] - y[:, j]) for j in others]
            found += x[:, i] * share[0] * share[1] * share[2]
    return found
