"""Scale and shift of a bulk of noise by maximum likelihood, with simulated replicates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.diagnose.noise import NoiseLaw
from solvable.errors import InvalidData
from solvable.fitting.goodness import largest_gap
from solvable.spectra.edges import tracy_widom_quantile

IMPOSSIBLE = 1e15  # minus log-likelihood outside the support: finite, as the minimiser interpolates

NULL_SIZE = 120  # values of simulated noise at most: distance times number hardly depends on it


@dataclass(frozen=True, eq=False)
class Replicates:
    """Fits of simulated noise, in units of the true scale."""

    size: int  # values of each
    distances: np.ndarray  # (m,): distance of the distribution functions times the size, ascending
    errors: np.ndarray  # (m, 2): fitted less true scale and shift

    def p_value(self, distance: float, count: int) -> float:
        """Probability of such a distance among ``count`` values of noise."""
        # Over the spectrum the count of values strays from the law by the order of its logarithm.
        grown = self.distances * np.log(count) / np.log(self.size)
        return float((1 + (grown >= distance * count).sum()) / (1 + grown.size))

    def spread(self, count: int) -> np.ndarray:
        """Covariance (2, 2) of scale and shift for ``count`` values."""
        # Values repel: means of them err by the inverse of their number, up to the root of a
        # logarithm for the counts at the ends of the window.
        shrink = self.size / count * np.sqrt(max(np.log(count) / np.log(self.size), 1.0))
        return np.asarray(np.cov(self.errors.T) * shrink**2)

    def corrected(self, scale: float, shift: float, count: int) -> tuple[float, float]:
        """Scale and shift less the bias of the replicates, which falls as one over ``count``."""
        bias = self.errors.mean(axis=0) * self.size / count
        right = scale / (1 + float(bias[0]))
        return right, shift - float(bias[1]) * right


def maximise(
    bulk: np.ndarray, law: NoiseLaw, *, always: bool, signed: bool = False
) -> tuple[float, float]:
    """Scale and shift of largest likelihood; no shift unless it gains enough."""
    # Zeros need a shift always; signed values were not cut, and their shift is a centre of either
    # sign. Twice the gain in log-likelihood that a shrinkage must bring: 0.1 % for independent
    # values. They repel and fluctuate less than independent ones, so the level is lower than that.
    shrinkage_gain = 10.8
    # How far the coarse grid of shrinkages may be above the plain fit for a closer look.
    coarse = 5.0
    loss = BulkLoss(bulk, law, signed=signed)
    if signed:
        middle, low, high = np.quantile(bulk, [0.5, 0.2, 0.8])
        scale = float(high - low) / float(np.diff(law.quantile(np.array([0.2, 0.8])))[0])
        trials = [(float(np.log(scale * f)), -middle / (scale * f)) for f in (1.0, 1.05, 1.15)]
        best = min((loss(np.exp(t[0]), t[1] * np.exp(t[0])), *t) for t in trials)
    else:
        best = _coarse(bulk, law, loss)
    plain = None if always or signed else _plain(bulk, law, loss)
    # A coarse grid is within a few units of its best; where it is far off, nothing can be gained.
    if best[0] < (IMPOSSIBLE if plain is None else min(plain[0] + coarse, IMPOSSIBLE)):
        free = _polish(loss, best[1:])
        # Below zero the search went on only to be smooth at zero.
        enough = plain is None or 2 * (plain[0] - free[0]) > shrinkage_gain
        if signed or (free[2] > 0 and enough):
            scale = float(np.exp(free[1]))
            return scale, free[2] * scale
    if plain is None:
        # Zeros that no shrinkage explains: the rank is low for another reason.
        what = "values fit no bulk" if signed else "zeros of the spectrum fit no shrunken noise"
        raise InvalidData(f"the {what}; there is no bulk.")
    if plain[0] >= IMPOSSIBLE:
        raise InvalidData("no scale of noise covers the middle of the spectrum; there is no bulk.")
    return float(np.exp(plain[1])), 0.0


def _plain(bulk: np.ndarray, law: NoiseLaw, loss: BulkLoss) -> tuple[float, float]:
    """Loss and log-scale of the best fit without a shift."""
    middle = float(np.quantile(bulk[bulk > 0], 0.5))
    start = float(np.log(middle / law.quantile(np.array([0.5]))[0]))
    # Scales at which a value leaves the support are a flat stretch: look where it is not.
    trials = start + np.linspace(-0.4, 0.4, 41)
    best, value = start, IMPOSSIBLE
    for finer in (np.linspace(-0.02, 0.02, 21), np.linspace(-0.0002, 0.0002, 3)):
        values = loss.many(np.exp(trials), np.zeros(trials.size))
        k = int(np.argmin(values))
        best, value = float(trials[k]), float(values[k])
        trials = best + finer
    # The summit of a parabola through the last three.
    left, here, right = loss.many(np.exp(trials), np.zeros(3))
    curve = left + right - 2 * here
    if max(left, right) < IMPOSSIBLE and curve > 0:
        summit = best + float(np.clip(0.5 * (left - right) / curve, -10, 10)) * 0.0002
        value, best = min((value, best), (loss(float(np.exp(summit)), 0.0), summit))
    return value, best


def _coarse(bulk: np.ndarray, law: NoiseLaw, loss: BulkLoss) -> tuple[float, float, float]:
    """Loss, log-scale and shift over scale of the best point of a grid."""
    probability = np.array([loss.n_low, bulk.size - loss.n_high]) / bulk.size
    shares = np.linspace(0.0, 0.95, 20) * law.edges[1]
    # At this shift over scale the upper end of the window fixes the scale nearly.
    places = law.quantile(probability)[1] - shares
    shares, places = shares[places > 0], places[places > 0]
    if shares.size == 0:
        return IMPOSSIBLE, 0.0, 0.0
    scales = np.outer([0.97, 1.0, 1.03], loss.high / places).ravel()
    shares = np.tile(shares, 3)
    values = loss.many(scales, shares * scales)
    k = int(np.argmin(values))
    return float(values[k]), float(np.log(scales[k])), float(shares[k])


def _polish(loss: BulkLoss, start: tuple[float, float]) -> tuple[float, float, float]:
    """Least loss near a start, with its log-scale and shift over scale."""
    # Newton steps by differences, all points of a step at once: a tenth of the time of a simplex,
    # which takes over where a step leaves the support.
    from scipy.optimize import minimize

    h = 1e-4
    corners = [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [1, -1], [-1, 1], [-1, -1]]
    steps = np.array(corners, dtype=float) * h

    def at(points: np.ndarray) -> np.ndarray:
        scales = np.exp(points[:, 0])
        return loss.many(scales, points[:, 1] * scales)

    here = np.array(start)
    value = IMPOSSIBLE
    for _ in range(12):
        values = at(here + steps)
        value = float(values[0])
        if values.max() >= IMPOSSIBLE:
            break
        gradient = (values[[1, 3]] - values[[2, 4]]) / (2 * h)
        pure = (values[[1, 3]] + values[[2, 4]] - 2 * value) / h**2
        mixed = (values[5] - values[6] - values[7] + values[8]) / (4 * h**2)
        hessian = np.array([[pure[0], mixed], [mixed, pure[1]]])
        curvature, axes = np.linalg.eigh(hessian)
        # Away from the summit a curvature may have the wrong sign: still downhill by its size.
        size = np.maximum(np.abs(curvature), 1e-3 * np.abs(curvature).max())
        step = axes @ ((axes.T @ gradient) / size)
        if 0.5 * float(gradient @ step) < 1e-6:
            return value, float(here[0]), float(here[1])
        lengths = 0.5 ** np.arange(8)
        tried = at(here - lengths[:, None] * step)
        if tried.min() >= value:
            break
        here = here - lengths[int(np.argmin(tried))] * step
    found = minimize(
        lambda t: float(at(t[None, :])[0]),
        here,
        method="Nelder-Mead",
        options={"xatol": 1e-6, "fatol": 1e-6, "maxiter": 400},
    )
    return float(found.fun), float(found.x[0]), float(found.x[1])


class BulkLoss:
    """Minus the log-likelihood of the bulk, censored beyond the window."""

    def __init__(self, bulk: np.ndarray, law: NoiseLaw, *, signed: bool = False) -> None:
        self.law = law
        # Values between these quantiles enter one by one, beyond them only by their number: spikes
        # below the threshold and the rounding of the edge live in the upper part.
        bottom, top = 0.05, 0.85
        zeros = 0 if signed else int((bulk == 0).sum())
        # What is far below a centre is as far from the middle as what is above it.
        lower = 1 - top if signed else bottom
        first = max(int(lower * bulk.size), zeros)
        # Where zeros are most of the bulk, the window keeps the share of what is left.
        last = max(int(top * bulk.size), first + int(0.7 * (bulk.size - first)), first + 2)
        inside = bulk[first:last]
        self.low, self.high = float(inside[0]), float(inside[-1])
        if zeros:
            self.low = 0.0
        self.n_low, self.n_high = first, bulk.size - last
        # 256 of them at most, each for its share.
        picked = np.unique(np.linspace(0, inside.size - 1, 256).astype(int))
        self.points, self.weight = inside[picked], inside.size / picked.size

    def __call__(self, scale: float, shift: float) -> float:
        """Loss at one point."""
        return float(self.many(np.array([scale]), np.array([shift]))[0])

    def many(self, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Loss at several scales and shifts, shape (k,)."""
        # l(delta, b) = sum_{y_l <= y <= y_h} log(f((y + b)/delta) / delta)
        #               + n_l log F((y_l + b)/delta) + n_h log(1 - F((y_h + b)/delta))
        scale, shift = scale[:, None], shift[:, None]
        density = self.law.density((self.points + shift) / scale)
        ends = self.law.cdf((np.array([self.low, self.high]) + shift) / scale)
        below, above = ends[:, 0], 1 - ends[:, 1]
        possible = density.min(axis=1) > 0
        if self.n_low:
            possible &= below > 0
        if self.n_high:
            possible &= above > 0
        found = np.full(scale.size, IMPOSSIBLE)
        if possible.any():
            logs = np.log(density[possible]).sum(axis=1)
            value = self.weight * (logs - self.points.size * np.log(scale[possible, 0]))
            if self.n_low:
                value += self.n_low * np.log(below[possible])
            if self.n_high:
                value += self.n_high * np.log(above[possible])
            found[possible] = -value
        return found


def wider_edge(unit: float, edge: float, covariance: np.ndarray, probability: float) -> float:
    """How much further a cut must be because the edge itself is fitted."""
    # The fitted edge is edge * scale - shift; mean and standard deviation are those of TW_1.
    mean, deviation = -1.2065, 1.2680
    gradient = np.array([edge, -1.0])
    error = float(gradient @ covariance @ gradient) / unit**2
    standard = (tracy_widom_quantile(probability) - mean) / deviation
    return unit * standard * float(np.sqrt(deviation**2 + error) - deviation)


def distance(bulk: np.ndarray, law: NoiseLaw, scale: float, shift: float) -> float:
    """Largest difference of the distribution functions, seen and fitted."""
    # Zeros are one atom, compared beside it and not within.
    zeros = int((bulk == 0).sum())
    return largest_gap(law.cdf((bulk[zeros:] + shift) / scale), zeros)


@lru_cache(maxsize=256)
def replicates(
    size: int, law: NoiseLaw, share: float, *, signed: bool = False, seed: int = 0
) -> Replicates:
    """Simulated noise fitted in the same way; kept, as a file has many matrices of one shape."""
    key = [seed, size, *(int(1000 * number) for number in law.key), int(100 * share)]
    rng = np.random.default_rng(key)
    draws = 79
    distances, errors = [], []
    for _ in range(draws):
        x = law.draw(size, rng)
        y = np.sort(x) if signed else np.sort(np.clip(x - share, 0, None))
        if not signed and not y.any():
            distances.append(float(size))
            continue
        try:
            scale, shift = maximise(
                y, law, always=not signed and bool((y == 0).any()), signed=signed
            )
        except InvalidData:
            # A draw without a fit is as far from its law as can be.
            distances.append(float(size))
            continue
        distances.append(distance(y, law, scale, shift) * size)
        errors.append((scale - 1, shift - (0.0 if signed else share)))
    # Fewer give no standard error.
    if len(errors) < 20:
        raise InvalidData(
            f"{len(errors)} of {draws} simulated noise matrices could be fitted at this "
            "shrinkage; too little of the bulk is left."
        )
    return Replicates(size, np.sort(distances), np.array(errors).reshape(-1, 2))
