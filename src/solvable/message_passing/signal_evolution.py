r"""State evolution of Bayes message passing for matrices: one solver for any signal and channel.

.. math:: \hat q=c\,\alpha\,I(E),\qquad E=\mathrm{mmse}(1/\hat q),

with c = 2 for symmetric signals and 1 for rectangular ones, and I the information of the channel. Read
as a curve, :math:`\alpha(t)=1/(c\,t\,I(\mathrm{mmse}(t)))` with :math:`t=1/\hat q`, it needs no
iteration: message passing from the prior mean comes to rest at the largest t of that ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.message_passing.matrix_channels import MatrixChannel
from solvable.message_passing.signal_laws import Signal

LEAST_NOISE = 1e-9
"""Effective noise, over the variance of the signal, from which on a signal counts as recovered."""


@dataclass(frozen=True)
class SignalEvolution:
    """Where message passing comes to rest, at each sample ratio."""

    sample_ratio: np.ndarray
    error: np.ndarray  # E per dimension of the signal; 0 where it is recovered exactly
    noise: np.ndarray  # t = 1 / q^: samples are worth S + sqrt(t) G; 0 where it is recovered
    residual: np.ndarray  # of the fixed point, relative


def signal_evolution(
    signal: Signal, channel: MatrixChannel, sample_ratio: np.ndarray | float
) -> SignalEvolution:
    """Errors that Bayes message passing reaches from the prior mean (from 2503.14121)."""
    shape = np.shape(sample_ratio)
    ratios = np.asarray(sample_ratio, dtype=np.float64).ravel()
    if not (np.isfinite(ratios).all() and (ratios > 0).all()):
        raise InvalidParameter(f"sample_ratio is {sample_ratio}; allowed: above 0.")
    scale = signal.variance
    if scale == 0:
        blank = np.zeros(shape)
        return SignalEvolution(ratios.reshape(shape), blank, blank, blank)

    # Scanned downwards in t for the first crossing, then a bracketed search, all ratios at once.
    def log_ratio(log_noise: np.ndarray) -> np.ndarray:
        t = np.exp(log_noise)
        with np.errstate(divide="ignore"):
            # log of 1 / (c t I(E))
            return -np.log(signal.multiplicity * t * channel.information(signal.mmse(t)))

    target = np.log(ratios)
    # What labels tell at the error of the prior mean bounds the noise from above.
    most = float(channel.information(np.array([scale]))[0])
    if most <= 0:
        raise InvalidParameter("the labels carry no information; no sample ratio is enough.")
    top = -np.log(signal.multiplicity * ratios * most)
    grid = np.linspace(np.log(LEAST_NOISE * scale), max(top.max(), np.log(scale)) + 1e-6, SCAN)
    values = _scanned(log_ratio, grid, target.max())
    start = _first_crossing(values, target)
    below = start < 0
    found = _closed(log_ratio, target, (grid, values), np.maximum(start, 0), below)
    noise, error = np.exp(found), signal.mmse(np.exp(found))
    if below.any():
        noise[below], error[below] = _far_below(signal, channel, ratios[below], noise[below])
    residual = np.where(below, 0.0, np.abs(np.expm1(log_ratio(found) - target)))
    if (residual > 1e-7).any():
        worst = int(np.argmax(residual))
        raise NotConverged(
            f"state evolution at sample_ratio {ratios[worst]:.6g} is off its fixed point by "
            f"{residual[worst]:.2g}.",
            {"residual": residual[worst], "noise": noise[worst]},
        )
    return SignalEvolution(*(part.reshape(shape) for part in (ratios, error, noise, residual)))


SCAN = 48
"""Noises at which a curve is scanned for its first crossing."""


def _far_below(
    signal: Signal, channel: MatrixChannel, ratios: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Noise and error below the scan, where they are in proportion; 0 where the noise falls for ever."""
    share = float(signal.mmse(start[:1])[0] / start[0])
    noise, before = start, start
    for _ in range(300):
        before = noise
        # Beyond the largest number the information is infinite: no noise is left.
        with np.errstate(over="ignore", divide="ignore"):
            noise = 1 / (signal.multiplicity * ratios * channel.information(share * before))
    noise = np.where(noise < (1 - 1e-6) * before, 0.0, noise)
    return noise, share * noise


def _scanned(
    log_ratio: Callable[[np.ndarray], np.ndarray], grid: np.ndarray, most: float
) -> np.ndarray:
    """The curve on the grid, from above down to where even the largest ratio is crossed."""
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
    """Last place of the scan at which the ratio is still enough, for each; -1 for none."""
    # alpha(t) is small at large t: the first crossing from there is where the iteration ends.
    enough = values >= target[:, None]  # NaN where nothing was looked for
    last = values.size - 1 - np.argmax(enough[:, ::-1], axis=1)
    return np.where(enough.any(axis=1), np.minimum(last, values.size - 2), -1)


def _closed(
    log_ratio: Callable[[np.ndarray], np.ndarray],
    target: np.ndarray,
    scan: tuple[np.ndarray, np.ndarray],
    start: np.ndarray,
    known: np.ndarray,
) -> np.ndarray:
    """Roots inside their brackets of the scan by safeguarded secants, all at once."""
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
    """Roots of the cubics through four places of the scan, by inverse interpolation."""
    first = np.clip(start - 1, 0, grid.size - 4)[:, None] + np.arange(4)
    x, y = grid[first], values[first]
    found = np.zeros(target.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(4):
            others = [j for j in range(4) if j != i]
            share = [(target - y[:, j]) / (y[:, i] - y[:, j]) for j in others]
            found += x[:, i] * share[0] * share[1] * share[2]
    return found
