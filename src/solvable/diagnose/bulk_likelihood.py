"""Maximum-likelihood fit of scale and shift of a bulk of noise, with simulated replicates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from solvable.diagnose.noise import NoiseLaw
from solvable.errors import InvalidData
from solvable.fitting.goodness import largest_gap
from solvable.spectra.edges import tracy_widom_quantile

IMPOSSIBLE = 1e15  # loss (minus log-likelihood) outside the support; finite, as the minimiser needs

NULL_SIZE = (
    120  # largest number of simulated values; distance times number hardly depends on the number
)


@dataclass(frozen=True, eq=False)
class Replicates:
    """Results of fits to simulated noise, in units of the true scale."""

    size: int  # number of values of each replicate
    distances: np.ndarray  # (m,): distance times the number of values, ascending
    errors: np.ndarray  # (m, 2): fitted minus true scale and shift

    def p_value(self, distance: float, count: int) -> float:
        """Probability that ``count`` values of noise have at least the given distance."""
        # The number of values below a point deviates from its mean by the order of its logarithm.
        grown = self.distances * np.log(count) / np.log(self.size)
        return float((1 + (grown >= distance * count).sum()) / (1 + grown.size))

    def spread(self, count: int) -> np.ndarray:
        """Covariance matrix (2, 2) of scale and shift, fitted to ``count`` values."""
        # Values repel, so errors of means fall as 1 / count, up to the root of a logarithm
        # that the counts at the ends of the window cause.
        shrink = self.size / count * np.sqrt(max(np.log(count) / np.log(self.size), 1.0))
        return np.asarray(np.cov(self.errors.T) * shrink**2)

    def corrected(self, scale: float, shift: float, count: int) -> tuple[float, float]:
        """Scale and shift corrected for the bias of the replicates, which falls as 1 / count."""
        bias = self.errors.mean(axis=0) * self.size / count
        right = scale / (1 + float(bias[0]))
        return right, shift - float(bias[1]) * right


def maximise(
    bulk: np.ndarray, law: NoiseLaw, *, always: bool, signed: bool = False
) -> tuple[float, float]:
    """Maximum-likelihood scale and shift; the shift is 0 unless it raises the likelihood enough."""
    # Zeros always need a shift. Values of both signs were not cut: their shift is a centre of any
    # sign. Otherwise twice the log-likelihood must rise by this much (0.1 % level for independent
    # values; the level is lower because values repel and fluctuate less).
    shrinkage_gain = 10.8
    # A closer search starts if the coarse grid is at most this far above the fit without a shift.
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
    # The coarse grid is within a few units of the optimum; if it is far off, a search cannot gain.
    if best[0] < (IMPOSSIBLE if plain is None else min(plain[0] + coarse, IMPOSSIBLE)):
        free = _polish(loss, best[1:])
        # The search extends to negative shifts only to be smooth at zero.
        enough = plain is None or 2 * (plain[0] - free[0]) > shrinkage_gain
        if signed or (free[2] > 0 and enough):
            scale = float(np.exp(free[1]))
            return scale, free[2] * scale
    if plain is None:
        # No shrinkage explains these zeros: the rank is low for another reason.
        what = "values" if signed else "zeros of the spectrum"
        raise InvalidData(f"no noise distribution fits the {what}; there is no bulk.")
    if plain[0] >= IMPOSSIBLE:
        raise InvalidData("no scale of noise covers the middle of the spectrum; there is no bulk.")
    return float(np.exp(plain[1])), 0.0


def _plain(bulk: np.ndarray, law: NoiseLaw, loss: BulkLoss) -> tuple[float, float]:
    """Loss and log-scale of the best fit with zero shift."""
    middle = float(np.quantile(bulk[bulk > 0], 0.5))
    start = float(np.log(middle / law.quantile(np.array([0.5]))[0]))
    # The loss is flat where a value is outside the support, so the grid keeps all values inside.
    trials = start + np.linspace(-0.4, 0.4, 41)
    best, value = start, IMPOSSIBLE
    for finer in (np.linspace(-0.02, 0.02, 21), np.linspace(-0.0002, 0.0002, 3)):
        values = loss.many(np.exp(trials), np.zeros(trials.size))
        k = int(np.argmin(values))
        best, value = float(trials[k]), float(values[k])
        trials = best + finer
    # The next point is the minimum of the parabola through the last three points.
    left, here, right = loss.many(np.exp(trials), np.zeros(3))
    curve = left + right - 2 * here
    if max(left, right) < IMPOSSIBLE and curve > 0:
        summit = best + float(np.clip(0.5 * (left - right) / curve, -10, 10)) * 0.0002
        value, best = min((value, best), (loss(float(np.exp(summit)), 0.0), summit))
    return value, best


def _coarse(bulk: np.ndarray, law: NoiseLaw, loss: BulkLoss) -> tuple[float, float, float]:
    """Loss, log-scale and the ratio shift/scale at the best grid point."""
    probability = np.array([loss.n_low, bulk.size - loss.n_high]) / bulk.size
    shares = np.linspace(0.0, 0.95, 20) * law.edges[1]
    # At a fixed ratio shift/scale, the upper end of the window nearly fixes the scale.
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
    """Smallest loss near a start, with its log-scale and ratio shift/scale."""
    # Newton steps by finite differences, with all points of a step evaluated at once: ten times
    # faster than a simplex search, which takes over if a step leaves the support.
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
        # Away from the minimum a curvature may be negative; its modulus makes the step go downhill.
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
    """Loss: minus the log-likelihood of the bulk, censored outside the window   (spectra 7)."""

    def __init__(self, bulk: np.ndarray, law: NoiseLaw, *, signed: bool = False) -> None:
        self.law = law
        # Values between these quantiles enter one by one. Of the values outside only the number enters,
        # because weak spikes and the rounding of the edge affect the upper part.
        bottom, top = 0.05, 0.85
        zeros = 0 if signed else int((bulk == 0).sum())
        # With a centre, the window is symmetric: it excludes values far below as well as far above.
        lower = 1 - top if signed else bottom
        first = max(int(lower * bulk.size), zeros)
        # If most of the bulk is zero, the window keeps the same share of the positive values.
        last = max(int(top * bulk.size), first + int(0.7 * (bulk.size - first)), first + 2)
        inside = bulk[first:last]
        self.low, self.high = float(inside[0]), float(inside[-1])
        if zeros:
            self.low = 0.0
        self.n_low, self.n_high = first, bulk.size - last
        # At most 256 values are used, each with a weight.
        picked = np.unique(np.linspace(0, inside.size - 1, 256).astype(int))
        self.points, self.weight = inside[picked], inside.size / picked.size

    def __call__(self, scale: float, shift: float) -> float:
        """Loss at one scale and shift."""
        return float(self.many(np.array([scale]), np.array([shift]))[0])

    def many(self, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Loss at several scales and shifts, shape (k,)."""
        # l(delta, b) = sum_{y_l <= y <= y_h} log(f((y + b)/delta) / delta) + n_l log F((y_l +
        # b)/delta) + n_h log(1 - F((y_h + b)/delta))   (spectra 7)
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
    """Margin that the error of the fitted edge adds to the cut."""
    # The fitted edge is edge * scale - shift. The numbers are mean and standard deviation of TW_1.
    mean, deviation = -1.2065, 1.2680
    gradient = np.array([edge, -1.0])
    error = float(gradient @ covariance @ gradient) / unit**2
    standard = (tracy_widom_quantile(probability) - mean) / deviation
    return unit * standard * float(np.sqrt(deviation**2 + error) - deviation)


def distance(bulk: np.ndarray, law: NoiseLaw, scale: float, shift: float) -> float:
    """Largest difference between the empirical and the fitted distribution function."""
    # The zeros form one atom, which is compared separately from the other values.
    zeros = int((bulk == 0).sum())
    return largest_gap(law.cdf((bulk[zeros:] + shift) / scale), zeros)


@lru_cache(maxsize=256)
def replicates(
    size: int, law: NoiseLaw, share: float, *, signed: bool = False, seed: int = 0
) -> Replicates:
    """Fit simulated noise; results are cached because a file has many matrices of the same shape."""
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
            # A replicate that cannot be fitted gets the largest distance.
            distances.append(float(size))
            continue
        distances.append(distance(y, law, scale, shift) * size)
        errors.append((scale - 1, shift - (0.0 if signed else share)))
    # Fewer successful fits give no standard error.
    if len(errors) < 20:
        raise InvalidData(
            f"{len(errors)} of {draws} simulated noise matrices could be fitted at this "
            "shrinkage; too little of the bulk is left."
        )
    return Replicates(size, np.sort(distances), np.array(errors).reshape(-1, 2))
