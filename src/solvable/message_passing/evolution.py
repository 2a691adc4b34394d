r"""State evolution of Bayes message passing for one direction, solved without iteration.

The information of a label at squared overlap q is

.. math:: E(q)=E[g_{\rm out}^2],\qquad \omega=\sqrt q\,\zeta,\ V=1-q .

The overlap q is a fixed point at the sample ratio :math:`\alpha(q)=q/((1-q)E(q))`. Message passing from a
small overlap stops at the smallest fixed point. The Bayes-optimal overlap maximises the potential
:math:`\alpha I(q)+\frac12(q+\log(1-q))` with :math:`I(q)=\frac12\int_0^qE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter
from solvable.message_passing.channels import AdditiveChannel, additive_output
from solvable.message_passing.line_posterior import line_nodes
from solvable.message_passing.moments import ConditionalMoments
from solvable.message_passing.outputs import REACH, GaussianOutput
from solvable.message_passing.preimages import atoms, invert, preimage_nodes
from solvable.spectra.roots import bracketed_root

MOST_LABELS = 20_000
"""Largest number of label values in the quadrature."""


def label_information(output: GaussianOutput, overlap: float) -> float:
    """Information E(q) = E[g_out²] of a label at a squared overlap q (arXiv:2405.15480)."""
    if not 0 <= overlap < 1:
        raise InvalidParameter(f"overlap is {overlap}; allowed: at least 0 and below 1.")
    return _noisy(output, overlap) if output.noise else _noiseless(output, overlap)


@dataclass(frozen=True)
class LabelTable:
    """Likelihoods of quadrature labels y at nodes z, of a noisy channel, as a sparse matrix."""

    z: np.ndarray
    weight: np.ndarray  # of dz
    step: np.ndarray  # of dy
    likelihood: Any  # compressed columns, shape (labels, nodes)


def label_table(output: GaussianOutput, deviation: float) -> LabelTable:
    """Tabulate the likelihoods at nodes that resolve a Gaussian with a given deviation."""
    from scipy.sparse import csr_array

    scale = np.sqrt(output.noise)
    z, weight = line_nodes(output, deviation)
    values = output.scalar(z)
    y, step = _label_nodes(output, float(values.min()), float(values.max()))
    order = np.argsort(values)
    first = np.searchsorted(values[order], y - REACH * scale)
    last = np.searchsorted(values[order], y + REACH * scale)
    starts = np.concatenate([[0], np.cumsum(last - first)])
    rows = np.repeat(np.arange(y.size), last - first)
    chosen = order[np.arange(starts[-1]) - np.repeat(starts[:-1] - first, last - first)]
    density = np.exp(-((y[rows] - values[chosen]) ** 2) / (2 * output.noise))
    likelihood = csr_array(
        (density / (scale * np.sqrt(2 * np.pi)), chosen, starts), shape=(y.size, z.size)
    ).tocsc()
    return LabelTable(z, weight, step, likelihood)


def _noisy(output: GaussianOutput, q: float) -> float:
    """Information E(q) of a noisy channel, a sum over labels and cavity means by matrix products."""
    V = 1 - q
    reach = 9 * np.sqrt(V)
    table = label_table(output, np.sqrt(V))
    z, weight, step, likelihood = table.z, table.weight, table.step, table.likelihood
    total = 0.0
    for omega, share in _cavity_means(q):
        # the Gaussian of the cavity is below 1e-17 of its peak further away
        near = slice(*np.searchsorted(z, (omega[0] - reach, omega[-1] + reach)))
        moved = z[near, None] - omega
        cavity = weight[near, None] * np.exp(-(moved**2) / (2 * V)) / np.sqrt(2 * np.pi * V)
        part = likelihood[:, near]
        # dense products are about ten times as fast per number, and large noise leaves few zeros
        part = part.toarray() if part.nnz > 0.1 * step.size * moved.shape[0] else part
        evidence = part @ cavity
        mean = part @ (cavity * moved)
        # int dy p(y) g²,  g = (E[z | y] - omega) / V
        squares = np.divide(mean**2, evidence, out=np.zeros_like(mean), where=evidence > 1e-290)
        total += float(step @ squares @ share) / V**2
    return total


def _label_nodes(output: GaussianOutput, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature nodes (labels) and weights of dy, evenly spaced in the bulk and wider in the tails."""
    z = np.linspace(-REACH, REACH, 1_401)
    chance = np.exp(-(z**2) / 2)
    chance /= chance.sum()
    clean, scale = output.scalar(z), np.sqrt(output.noise)
    middle = float(chance @ clean)
    wide = 5 * (np.sqrt(chance @ (clean - middle) ** 2) + scale)
    # y = middle + wide sinh(s): the spacing is 0.4 standard deviations of the noise in the bulk, where
    # sums are exact to rounding, and grows with |y| in the tails
    ends = np.arcsinh((np.array([low, high]) + np.array([-1, 1]) * REACH * scale - middle) / wide)
    count = int((ends[1] - ends[0]) * wide / (0.4 * scale)) + 2
    if count > MOST_LABELS:
        raise InvalidParameter(
            f"noise is {output.noise:.3g}, which needs {count} label values in the quadrature; allowed: "
            f"up to {MOST_LABELS}. Raise the noise, or set it to 0."
        )
    s, step = np.linspace(ends[0], ends[1], count, retstep=True)
    return middle + wide * np.sinh(s), step * wide * np.cosh(s)


def _cavity_means(q: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Values of sqrt(q) zeta and their probabilities, in blocks of 64."""
    if q == 0:
        return [(np.zeros(1), np.ones(1))]
    spacing = min(0.4 * np.sqrt((1 - q) / q), 0.35)
    half = int(REACH / spacing) + 1
    zeta = spacing * np.arange(-half, half + 1)
    share = np.exp(-(zeta**2) / 2)
    share /= share.sum()
    return [(np.sqrt(q) * zeta[k : k + 64], share[k : k + 64]) for k in range(0, zeta.size, 64)]


def _noiseless(output: GaussianOutput, q: float) -> float:
    """Information E(q) of a noiseless channel, a sum over z and over cavity means given z."""
    V = 1 - q
    z, weight = preimage_nodes(output, min(0.5, 2 * np.sqrt(V)))
    # omega given z is N(q z, q (1 - q))
    zeta = np.linspace(-REACH, REACH, 71)
    chance = np.exp(-(zeta**2) / 2)
    chance /= chance.sum()
    omega = q * z[:, None] + np.sqrt(q * V) * zeta
    places, logs = invert(output, output.scalar(z))
    posterior = atoms(places[:, None, :], logs[:, None, :], omega, V)
    squares = ((posterior.mean[..., 0] - omega) / V) ** 2
    return float(weight @ (squares @ chance))


@dataclass(frozen=True)
class StateEvolution:
    """State evolution of a one-direction channel at every sample ratio."""

    # E(q) is computed at 60 overlaps on first use (one or two seconds) and interpolated by cubic splines
    # in -log(1 - q), with error 1e-5. Above q = 0.999 the value there is used; without noise recovery
    # counts as perfect. State evolution: arXiv:2405.15480; potential: arXiv:1708.03395.

    output: GaussianOutput
    # conditional moments of the channel, if known; without these moments, rounding errors hide the
    # threshold at large noise
    moments: ConditionalMoments | None = None
    nodes: int = (
        60  # overlaps at which E(q) is computed; of 11 the best overlap has error up to 0.02
    )

    @cached_property
    def first_information(self) -> float:
        r"""Information :math:`E(0)=E[m(y)^2]` of a label at overlap 0; 0 for even links."""
        if self.moments is not None:
            exact = float(self.moments.linear_information[0])
            return exact if exact > 1e-6 * self._scale else 0.0
        value = label_information(self.output, 0.0)
        # values that are 0 by symmetry have rounding errors
        return value if value > 1e-7 * self._scale else 0.0

    @cached_property
    def _scale(self) -> float:
        return label_information(self.output, 0.5)

    @cached_property
    def threshold_ratio(self) -> float:
        """Samples per dimension above which message passing from overlap 0 reaches a positive overlap."""
        if self.first_information:
            return 0.0
        # alpha(0) = 1 / E'(0) with E(q) = q E[G²] + O(q²)
        if self.moments is not None:
            return float(self.moments.weak_recovery_ratio[0])
        small = 1e-6
        rounding = label_information(self.output, 0.0)
        slopes = [
            (label_information(self.output, k * small) - rounding) / (k * small) for k in (1, 2)
        ]
        slope = 2 * slopes[0] - slopes[1]
        return 1 / slope if slope > 1e-9 * self._scale else np.inf

    @cached_property
    def _curve(self) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray], np.ndarray]:
        """Fine grid of t = -log(1 - q), E(q) as a function of t, and I(q) on the grid."""
        from scipy.interpolate import CubicSpline

        noise = self.output.noise
        # the largest overlap is about 1 - noise / alpha
        largest = np.log(max(1e3, min(1e4, 10 / noise))) if noise else np.log(1e3)
        t = largest * np.linspace(0, 1, self.nodes + 1) ** 2
        values = [label_information(self.output, float(-np.expm1(-each))) for each in t[1:]]
        even = not self.first_information
        # at t = 0, E / t is smooth for even links and E is smooth for all other links
        start = 1 / self.threshold_ratio if even else self.first_information
        spline = CubicSpline(t, [start, *(np.array(values) / (t[1:] if even else 1.0))])

        def information_at(place: np.ndarray) -> np.ndarray:
            return np.asarray(spline(place) * (place if even else 1.0))

        fine = largest * np.linspace(0, 1, 6_001) ** 2
        # I(q) = (1/2) int E dq = (1/2) int E e^-t dt
        integrand = CubicSpline(fine, information_at(fine) * np.exp(-fine))
        return fine, information_at, integrand.antiderivative()(fine) / 2

    @cached_property
    def _ratios(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Overlaps q on the fine grid, alpha(q), and the ratio at which the potential at q is 0."""
        t, curve, information = self._curve
        t, q = t[1:], -np.expm1(-t[1:])
        with np.errstate(divide="ignore", invalid="ignore"):
            # alpha(q) = q / ((1 - q) E(q));  alpha I(q) = -(q + log(1 - q)) / 2
            fixed = q * np.exp(t) / np.maximum(curve(t), 0)
            rival = (t - q) / 2 / np.maximum(information[1:], 0)
        return q, fixed, rival

    @cached_property
    def information_threshold_ratio(self) -> float:
        """Samples per dimension above which the Bayes-optimal overlap is positive."""
        # inf_q (-q - log(1 - q)) / 2 I(q)
        if self.first_information:
            return 0.0
        return float(min(self._ratios[2].min(), self.threshold_ratio, self._perfect_ratio))

    @property
    def _perfect_ratio(self) -> float:
        """Samples per dimension that determine the direction: 1 without noise, infinite with noise."""
        # (1 - q) E(q) -> 1 and I(q) -> -log(1 - q) / 2 as q -> 1 for links that can be inverted.
        return np.inf if self.output.noise else 1.0

    def overlap(self, sample_ratio: float, start: float = 0.0) -> float:
        """Squared overlap that message passing reaches from a starting overlap (0: infinitesimal)."""
        check_positive(sample_ratio=sample_ratio)
        q, fixed, _ = self._ratios
        if start == 0 and sample_ratio <= self.threshold_ratio:
            return 0.0
        begin = int(np.searchsorted(q, start))
        # the update raises q where alpha(q) < alpha; being monotone, it never jumps over a fixed point
        rising = begin == q.size or fixed[begin] < sample_ratio
        if rising:
            stops = np.flatnonzero(fixed[begin:] >= sample_ratio)
            if not stops.size:
                return self._beyond(sample_ratio)
            stop = begin + int(stops[0])
        else:
            stops = np.flatnonzero(fixed[: begin + 1] < sample_ratio)
            if not stops.size:
                return 0.0
            stop = int(stops[-1]) + 1
        return self._root(sample_ratio, stop)

    def best_overlap(self, sample_ratio: float) -> float:
        """Bayes-optimal squared overlap, which maximises the potential."""
        check_positive(sample_ratio=sample_ratio)
        t, _, information = self._curve
        _, fixed, _ = self._ratios
        # phi(q) = alpha I(q) + (q + log(1 - q)) / 2
        potential = sample_ratio * information + (-np.expm1(-t) - t) / 2
        best = int(np.argmax(potential))
        if best == 0 and sample_ratio <= self._perfect_ratio:
            return 0.0
        if best == potential.size - 1 or sample_ratio > self._perfect_ratio:
            return self._beyond(sample_ratio)
        stop = best - 1 if fixed[best - 1] >= sample_ratio else best
        return self._root(sample_ratio, stop)

    def _beyond(self, sample_ratio: float) -> float:
        """Fixed point above the fine grid, where noise bounds the information; 1 without noise."""
        if not self.output.noise:
            return 1.0
        t, curve, _ = self._curve
        # q = alpha E / (1 + alpha E) with E at the end of the grid
        signal = sample_ratio * float(curve(t[-1:])[0])
        return signal / (1 + signal)

    def _root(self, sample_ratio: float, stop: int) -> float:
        """Fixed point between two neighbouring overlaps of the fine grid."""
        t, curve, _ = self._curve
        if stop == 0:
            return float(self._ratios[0][0])

        def excess(place: float) -> float:
            return float(np.expm1(place) / curve(np.array(place)) - sample_ratio)

        place = bracketed_root(excess, float(t[stop]), float(t[stop + 1]))
        return float(-np.expm1(-place))


@lru_cache(maxsize=32)
def state_evolution(channel: AdditiveChannel, nodes: int = 60) -> StateEvolution:
    """State evolution of a one-direction channel, cached with its curve."""
    return StateEvolution(additive_output(channel), channel.moments, nodes)
