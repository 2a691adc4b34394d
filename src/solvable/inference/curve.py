r"""Bayes-optimal errors of a model with any prior and output, from one curve and without iteration.

With information :math:`E(V)` of a label and :math:`\mathrm{mmse}(A)` of the prior, fixed points of state
evolution :math:`A=\alpha E(V)`, :math:`V=\mathrm{mmse}(A)` are the level sets of

.. math:: \alpha(A)=A/E(\mathrm{mmse}(A)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from solvable.errors import InvalidParameter, NotConverged, unknown_choice
from solvable.inference.multi_index import MultiIndexOutput
from solvable.inference.outputs import Channel, Output
from solvable.inference.pieces import Pieces
from solvable.inference.priors import Prior
from solvable.inference.several_directions import evolution_of
from solvable.inference.summary import Summarised
from solvable.message_passing.rectangular_signal import RectangularSignal
from solvable.message_passing.signal_evolution import signal_evolution
from solvable.message_passing.signal_laws import SymmetricSignal

Start = Literal["prior", "truth", "best"]


@dataclass(frozen=True, repr=False)
class Law(Summarised):
    r"""Errors of a model at an array of sample ratios.

    Parameters
    ----------
    sample_ratio : ndarray
        Samples per dimension :math:`\alpha=n/d`.
    error : ndarray
        Mean squared error of an entry of the signal.
    overlap : ndarray
        Squared cosine between estimate and signal; for K directions the overlaps of estimates and
        signals over the mean square of an entry, with two further axes.
    free_entropy : ndarray
        :math:`\lim_d\frac1dE\log p(y|X)` in nats; infinite at perfect recovery from a label with a
        density and no noise, and NaN for matrices.
    precision : ndarray
        Precision A at which all labels together show an entry; infinite at perfect recovery, and a
        matrix for each ratio for several directions.

    Examples
    --------
    >>> from solvable.inference import Output, Rademacher
    >>> law = state_evolution(Rademacher(0.5), Output("sign"), sample_ratio=[0.6, 1.4])
    >>> law.error.round(4)
    array([0.6523, 0.2103])
    """

    sample_ratio: np.ndarray
    error: np.ndarray
    overlap: np.ndarray
    free_entropy: np.ndarray
    precision: np.ndarray


class InformationTable:
    """Information E(V) of a channel at all cavity variances, and the label's entropy, by splines."""

    def __init__(self, channel: Channel, count: int | None = None) -> None:
        from scipy.interpolate import CubicSpline

        self.shown = channel.shown
        prepared = channel.prepared
        self.first, self.second = prepared.first, prepared.second
        smallest = getattr(channel, "smallest", 1e-13)
        usual = 160
        if isinstance(channel, Pieces) and len(channel.branches) > 1:
            # Confused preimages are slow, and 1 - v E falls like sqrt(v).
            smallest, usual = 1e-6, 70 if len(channel.branches) < 4 else 40
        elif smallest > 1e-13:
            usual = 72
        count = usual if count is None else count
        self._last = -np.log(smallest)
        t = self._last * np.linspace(0, 1, count + 1) ** 2
        values = np.array([channel.information(float(v)) for v in np.exp(-t[1:])]) * np.exp(-t[1:])
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise InvalidParameter(
                "the labels carry no information about the index, or it is NaN; allowed: an output that "
                "depends on z."
            )
        # v E(v) ~ q^k at small q = 1 - v: k = 0 if E[z|y] is not 0, and 1 for most even outputs
        self.order = 0 if self.first else 1 if self.second else self._slope(t, values)
        start = {0: self.first, 1: self.second}.get(self.order)
        smooth = values / (-np.expm1(-t[1:])) ** self.order
        at_zero = np.log(start) if start else np.log(smooth[0])
        self._log = CubicSpline(t, [at_zero, *np.log(smooth)])
        self._end = (float(np.log(smooth[-1])), float(self._log(self._last, 1)))
        fine = np.linspace(0, 1, 3_001) ** 2 * self._last
        self._integral = CubicSpline(fine, self.scaled(fine)).antiderivative()
        self.entropy = prepared.entropy

    @staticmethod
    def _slope(t: np.ndarray, values: np.ndarray) -> int:
        """Power of q with which the information begins."""
        place = np.searchsorted(t, [0.02, 0.04])
        rise = np.diff(np.log(values[place])) / np.diff(np.log(t[1:][place]))
        return max(int(np.round(rise[0])), 2)

    def scaled(self, t: np.ndarray) -> np.ndarray:
        """Product v E(v) at v = exp(-t)."""
        t = np.asarray(t, dtype=np.float64)
        level, slope = self._end
        beyond = np.maximum(t - self._last, 0.0)
        if self.shown:  # tends to c like sqrt(v)
            limit = np.log(self.shown)
            far = limit + (level - limit) * np.exp(-beyond / 2)
        else:
            far = level + min(slope, 0.0) * beyond
        logs = np.where(t > self._last, far, self._log(np.minimum(t, self._last)))
        return np.asarray(np.exp(logs) * (-np.expm1(-t)) ** self.order)

    def entropy_at(self, t: np.ndarray) -> np.ndarray:
        """Entropy of a label given its cavity mean, at v = exp(-t): dH/dv = E / 2."""
        t = np.asarray(t, dtype=np.float64)
        inside = self._integral(np.minimum(t, self._last))
        beyond = np.maximum(t - self._last, 0.0)
        level = float(self.scaled(np.array(self._last)))
        slope = min(self._end[1], 0.0)
        if self.shown or slope > -1e-3:
            rest = level * beyond
        else:
            rest = level * np.expm1(slope * beyond) / slope
        return np.asarray(self.entropy - (inside + rest) / 2)


class Curve:
    """Sample ratio alpha(A) of the fixed point at each precision A, with its turning points.

    `nodes` is the number of cavity variances at which the information of a label is computed.
    """

    def __init__(self, prior: Prior, output: Output, nodes: int | None = None) -> None:
        from scipy.interpolate import CubicSpline

        check_prior(prior)
        self.prior, self.rho = prior, prior.second_moment
        self.table = InformationTable(output.channel(self.rho), nodes)
        self.noisy = output.channel(self.rho).noisy
        self.known = prior.mean**2 > 1e-14 * self.rho or self.table.order == 0
        self.logs, self.V = self._grid()
        self.t = np.log(self.rho / self.V)
        # alpha(A) = A / E = A V / (V E)   (inference 1, 2)
        self.values = self.logs + np.log(self.V) - np.log(self.table.scaled(self.t))
        self.spline = CubicSpline(self.logs, self.values)
        self.log_error = CubicSpline(self.logs, np.log(self.V))
        # I_w(A) = (1/2) int mmse dA   (inference 6)
        fine = np.linspace(self.logs[0], self.logs[-1], 4_001)
        area = CubicSpline(fine, np.exp(fine + self.log_error(fine))).antiderivative()
        start = np.exp(self.logs[0]) * (self.prior.variance + self.V[0]) / 2
        self._information = lambda x: (start + area(x)) / 2

    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of precisions from 1e-4, until the error is 1e-13 or the precision 1e7."""
        variance = self.prior.variance
        logs = np.log(np.geomspace(1e-4, 1e7, 257) / variance)
        if self.prior.dimension < 1e-6:
            # errors of discrete priors fall exponentially: find where they are 1e-13
            last = next(
                (x for x in logs[::4] if self.prior.error(np.exp(x)) < 1e-13 * self.rho), logs[-1]
            )
            logs = np.linspace(logs[0], last, 257)
        V = np.array([self.prior.error(float(a)) for a in np.exp(logs)])
        kept = 1e-14 * self.rho < V
        return logs[kept], V[kept]

    @cached_property
    def start_ratio(self) -> float:
        """Limit of alpha(A) as A -> 0, the threshold of weak recovery (inference 8)."""
        if self.known:
            return 0.0
        return 1 / self.table.second if self.table.second else np.inf

    @cached_property
    def last_ratio(self) -> float:
        """Limit of alpha(A) as A -> infinity: infinite if labels never determine the signal."""
        if self.table.shown:
            return self.prior.dimension / self.table.shown
        return np.inf if float(self.spline(self.logs[-1], 1)) > 0.02 else 0.0

    @cached_property
    def positive_ratio(self) -> float:
        """Sample ratio above which the Bayes-optimal estimate beats the prior mean."""
        if self.known:
            return 0.0
        # i(A) < i(0) above the ratio (I_w - A V / 2) / (H(V_0) - H(V))   (inference 7); at small A the
        # ratio is `start_ratio`, and both differences lose their digits
        places = np.linspace(self.logs[0], self.logs[-1], 4_001)
        places = places[np.exp(places) * self.prior.variance > 1e-2]
        logs = self.log_error(places)
        gained = self._information(places) - np.exp(places + logs) / 2
        start = self.table.entropy_at(np.log(self.rho / self.prior.variance))
        told = start - self.table.entropy_at(np.log(self.rho) - logs)
        return float(min((gained / told).min(), self.start_ratio, self.last_ratio))

    @cached_property
    def turns(self) -> tuple[np.ndarray, np.ndarray]:
        """Precisions (logarithms) and sample ratios of the extrema of alpha(A), ascending in A."""
        place = self.spline.derivative().roots(extrapolate=False)
        return place, np.exp(self.spline(place))

    @cached_property
    def records(self) -> list[tuple[float, float]]:
        """Maxima of alpha(A) above all earlier values, with the log precision: jumps from the prior."""
        found, most = [], self.start_ratio
        if self.start_ratio and np.exp(self.values[0]) < self.start_ratio * (1 - 1e-6):
            found.append((-np.inf, self.start_ratio))
        places, ratios = self.turns
        for place, ratio in zip(places, ratios, strict=True):
            falls = float(self.spline(place, 2)) < 0
            later = min([*ratios[places > place], np.exp(self.values[-1])], default=ratio)
            if falls and ratio > most * (1 + 1e-7) and later < ratio * (1 - 1e-5):
                found.append((float(place), float(ratio)))
            most = max(most, ratio)
        return found

    def points(self, ratio: float) -> tuple[float, float]:
        """Log precisions of the first and last stable fixed point; -inf and inf for q = 0 and V = 0."""
        roots = self.spline.solve(np.log(ratio), extrapolate=False)
        rising = roots[self.spline(roots, 1) > 0]
        first = np.exp(self.values[0])
        last = self._beyond(ratio) if np.exp(self.values[-1]) < ratio else np.nan
        if ratio <= self.start_ratio:
            low = -np.inf
        elif first >= ratio:  # alpha(A) is linear in A below the grid
            share = (ratio - self.start_ratio) / (first - self.start_ratio)
            low = float(self.logs[0] + np.log(share))
        else:
            low = float(rising[0]) if rising.size else last
        high = last if not np.isnan(last) else float(rising[-1]) if rising.size else low
        return low, max(low, high)

    def reached(self, ratio: float, error: float) -> float:
        """Log precision of the fixed point that the iteration reaches from an error."""
        low, high = self.points(ratio)
        place = float(np.interp(-np.log(error), -np.log(self.V), self.logs))
        roots = self.spline.solve(np.log(ratio), extrapolate=False)
        stable = roots[self.spline(roots, 1) > 0]
        # the precision rises where alpha(A) < alpha; the map is monotone and jumps over no fixed point
        if float(self.spline(place)) < np.log(ratio):
            return min([*stable[stable > place], high])
        return max([*stable[stable < place], low])

    def overlap(self, ratio: float, start: Start | float = "prior") -> float:
        """Squared cosine of estimate and signal from a start, or from a squared overlap."""
        if isinstance(start, str):
            place = self.point(ratio, start)
        else:
            place = self.reached(ratio, (1 - start) * self.rho)
        return 1 - self.error(place) / self.rho

    def _beyond(self, ratio: float) -> float:
        """Log precision above the grid; infinite at perfect recovery."""
        if ratio >= self.last_ratio:
            return np.inf
        slope = float(self.spline(self.logs[-1], 1))
        if slope < 0.02:  # alpha(A) approaches its limit
            return float(self.logs[-1])
        return float(self.logs[-1] + (np.log(ratio) - self.values[-1]) / slope)

    def error(self, place: float) -> float:
        """Error at a log precision."""
        if np.isinf(place):
            return 0.0 if place > 0 else self.prior.variance
        if place <= self.logs[-1]:
            return self.prior.error(float(np.exp(place)))
        slope = float(self.log_error(self.logs[-1], 1))
        return float(self.V[-1] * np.exp(max(slope * (place - self.logs[-1]), -600.0)))

    def information(self, place: float, ratio: float) -> float:
        """Potential i = I_w(A) + alpha H(V) - A V / 2, minimal at the Bayes-optimal point."""
        if place == np.inf:
            if self.table.shown and self.prior.dimension < ratio * self.table.shown:
                return -np.inf
            place = float(self.logs[-1])
        if place == -np.inf:
            return ratio * float(self.table.entropy_at(np.log(self.rho / self.prior.variance)))
        if place < self.logs[0]:
            V = self.error(place)
            weight = (np.exp(place) * (self.prior.variance - V)) / 4
            return float(weight + ratio * self.table.entropy_at(np.log(self.rho / V)))
        A, V = np.exp(place), self.error(place)
        inside = min(place, float(self.logs[-1]))
        shown = float(self._information(inside))
        if place > self.logs[-1]:  # mmse = D / A
            shown += self.prior.dimension * (place - inside) / 2
        return float(
            shown + ratio * self.table.entropy_at(np.log(self.rho / max(V, 1e-300))) - A * V / 2
        )

    def gap(self, ratio: float) -> float:
        """Potential of the last stable point minus that of the first."""
        low, high = self.points(ratio)
        return self.information(high, ratio) - self.information(low, ratio)

    def point(self, ratio: float, start: Start) -> float:
        """Log precision of the fixed point that is reached from a start."""
        low, high = self.points(ratio)
        if start == "best" and low < high:
            return high if self.gap(ratio) <= 0 else low
        return low if start == "prior" else high


@lru_cache(maxsize=64)
def curve_of(prior: Prior, output: Output) -> Curve:
    """Curve of a model, cached."""
    return Curve(prior, output)


@lru_cache(maxsize=256)
def check_prior(prior: Prior) -> None:
    """Compare denoiser and draws of a prior (5 standard errors)."""
    if not isinstance(prior, Prior):
        raise InvalidParameter(
            f"the prior is {type(prior).__name__}; allowed: a Prior, such as Gaussian() or a subclass."
        )
    rng, n = np.random.default_rng(0), 40_000
    w = np.asarray(prior.draw(n, rng), dtype=np.float64)
    if not (prior.variance > 0 and np.isfinite(w).all() and w.shape == (n,)):
        raise InvalidParameter(
            f"the prior has variance {prior.variance} and draws of shape {w.shape}; allowed: a variance "
            "above 0, and finite draws of the asked size."
        )
    A = 4 / prior.variance  # precise enough that the shape of the law matters
    b = A * w + np.sqrt(A) * rng.standard_normal(n)
    estimate, variance = prior.denoise(b, A)
    x = (b - b.mean()) / b.std()
    # Errors of a posterior mean are orthogonal to every function of b, not only to linear ones.
    orthogonal = [(w - estimate) * h for h in (np.tanh(2 * x), np.sin(2 * x), np.cos(2 * x))]
    for seen, name, value in (
        ((w - estimate) ** 2, "squared errors", prior.error(A)),
        (variance, "posterior variances", prior.error(A)),
        (w - estimate, "errors", 0.0),
        *((part, "errors times functions of the observation", 0.0) for part in orthogonal),
    ):
        off = 5 * np.std(seen) / np.sqrt(n) + 1e-6 * prior.variance
        if not abs(np.mean(seen) - value) <= off:
            raise InvalidParameter(
                f"{name} of the prior on its own draws average {np.mean(seen):.4g}, predicted "
                f"{value:.4g} up to {off:.1g}; allowed: a denoiser that is the posterior mean and "
                "variance of the draws."
            )


def check_ratios(sample_ratio: Any) -> np.ndarray:
    """Sample ratios as an array of numbers above 0."""
    try:
        ratios = np.asarray(sample_ratio, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"sample_ratio is {sample_ratio!r}; allowed: numbers above 0."
        ) from None
    if not (ratios.size and np.isfinite(ratios).all() and (ratios > 0).all()):
        raise InvalidParameter(
            f"sample_ratio is {np.asarray(sample_ratio).tolist()}; allowed: numbers above 0."
        )
    return ratios


def state_evolution(
    prior: Prior | SymmetricSignal | RectangularSignal,
    output: Output | MultiIndexOutput,
    sample_ratio: float | Sequence[float] | np.ndarray,
    *,
    start: Start = "prior",
) -> Law:
    r"""Bayes-optimal errors of :math:`y\sim P(y|x\cdot w)` in the limit of large dimension.

    .. math:: A=\alpha E(V),\qquad V=\mathrm{mmse}(A).

    Parameters
    ----------
    prior : Prior, SymmetricSignal or RectangularSignal
        Law of the entries of w, or of a matrix S.
    output : Output or MultiIndexOutput
        Law of a label given its index or indices; inputs have independent entries of variance 1/d. The
        index of a
        matrix is :math:`\sum_{ij}X_{ij}S_{ij}`, where a symmetric X has entries of variance 1/d off the
        diagonal and 2/d on it, and a rectangular one of variance :math:`(dL)^{-1/2}`.
    sample_ratio : float or array
        Samples per dimension :math:`\alpha=n/d`, above 0; for a matrix :math:`n/d^2`, or
        :math:`n/(dL)`.
    start : {"prior", "truth", "best"}
        Fixed point that is reached from the prior (message passing), from the signal, or the
        Bayes-optimal one of larger free entropy.

    Returns
    -------
    Law
        Error, overlap and free entropy, one entry per ratio.

    Raises
    ------
    InvalidParameter
        If a ratio is not above 0, or prior or output contradict their draws.
    NotConverged
        If the residual of a fixed point is above 1e-5, or an overlap of several directions is beyond
        the grid.

    Notes
    -----
    All ratios share one curve of 257 precisions, of which fixed points are the level sets: no iteration.
    For several directions the matrix of overlaps is iterated, and left if it is unstable. Backed by
    ``tests/inference/test_state_evolution.py`` and ``tests/inference/test_multi_index.py``.

    Examples
    --------
    >>> from solvable.inference import GaussBernoulli, Output
    >>> law = state_evolution(GaussBernoulli(0.3), Output("relu"), sample_ratio=[0.3, 0.6])
    >>> law.error.round(4), law.overlap.round(3)
    (array([0.212 , 0.1004]), array([0.293, 0.665]))
    """
    if start not in ("prior", "truth", "best"):
        raise InvalidParameter(unknown_choice("start", start, ["prior", "truth", "best"]))
    ratios = check_ratios(sample_ratio)
    if isinstance(output, MultiIndexOutput):
        return _law_of_directions(prior, output, ratios, start)
    if isinstance(prior, SymmetricSignal | RectangularSignal):
        return _matrix_law(prior, output, ratios, start)
    curve = curve_of(prior, output)
    places = [curve.point(float(ratio), start) for ratio in ratios.ravel()]
    errors = np.array([curve.error(place) for place in places])
    _check_residuals(curve, ratios.ravel(), np.array(places), errors)
    entropy = [
        -curve.information(place, float(ratio))
        for place, ratio in zip(places, ratios.ravel(), strict=True)
    ]
    shape = ratios.shape
    precision, error = np.exp(places).reshape(shape), errors.reshape(shape)
    overlap = 1 - error / curve.rho
    return Law(ratios, error, overlap, np.array(entropy).reshape(shape), precision)


def _law_of_directions(
    prior: Any, output: MultiIndexOutput, ratios: np.ndarray, start: Start
) -> Law:
    """Errors of several directions, in the units of the prior."""
    evolution = evolution_of(prior, output)
    points = evolution.points(ratios.ravel(), start)
    shape, K = ratios.shape, output.directions
    overlap = np.array([point.Q for point in points]).reshape(*shape, K, K)
    error = evolution.rho * (1 - np.trace(overlap, axis1=-2, axis2=-1) / K)
    entropy = np.array([point.free_entropy for point in points]).reshape(shape)
    precision = np.array([point.R for point in points]).reshape(*shape, K, K) / evolution.rho
    return Law(ratios, error, overlap, entropy, precision)


def _matrix_law(
    signal: SymmetricSignal | RectangularSignal, output: Output, ratios: np.ndarray, start: Start
) -> Law:
    """Errors of a matrix, whose curve is only followed to the first fixed point (sensing 3)."""
    if start != "prior":
        raise InvalidParameter(f"start is {start!r} for a matrix; allowed: prior.")
    found = signal_evolution(signal, _Index(output, signal), ratios)
    overlap = 1 - found.error / signal.second_moment
    with np.errstate(divide="ignore"):
        return Law(ratios, found.error, overlap, np.full(ratios.shape, np.nan), 1 / found.noise)


class _Index:
    """Output of one index of a matrix, whose variance is that of the matrix times the multiplicity."""

    def __init__(self, output: Output, signal: SymmetricSignal | RectangularSignal) -> None:
        self.second_moment = signal.second_moment
        self.table = InformationTable(output.channel(signal.multiplicity * signal.second_moment))

    def information(self, error: np.ndarray) -> np.ndarray:
        """Information c E[g²] at cavity variances c E, from the product of variance and information."""
        error = np.asarray(error, dtype=np.float64)
        with np.errstate(divide="ignore"):
            t = np.minimum(np.log(self.second_moment / error), 700.0)
            return np.asarray(self.table.scaled(np.maximum(t, 0.0)) / error)


def _check_residuals(
    curve: Curve, ratios: np.ndarray, places: np.ndarray, errors: np.ndarray
) -> None:
    """Raise if a fixed point inside the grid does not fulfil its equation."""
    inside = (places > curve.logs[0]) & (places < curve.logs[-1])
    if not inside.any():
        return
    t = np.log(curve.rho / errors[inside])
    ratio = np.exp(places[inside]) * errors[inside] / curve.table.scaled(t)
    off = np.abs(ratio / ratios[inside] - 1)
    if off.max() > 1e-5:
        worst = int(off.argmax())
        raise NotConverged(
            f"the fixed point at sample_ratio {ratios[inside][worst]:.6g} has a relative residual of "
            f"{off[worst]:.2g}; allowed: up to 1e-5. Use a prior or output that is smoother.",
            {"residual": off[worst]},
        )
