r"""Outputs with noise: a function of the index plus Gaussian noise, or a user's likelihood P(y|z).

Indices here have variance 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from solvable.errors import InvalidParameter
from solvable.hermite import gaussian_quadrature, panel_nodes
from solvable.inference.pieces import STEP, Prepared, Score
from solvable.inference.quadrature import gaussian_nodes
from solvable.message_passing.line_posterior import LinePosterior, line_nodes
from solvable.message_passing.outputs import REACH, GaussianOutput

ROWS = 2_000_000
"""Largest number of entries of a table that is computed at once."""

MOST_LABELS = 20_000
"""Largest number of label values in the quadrature."""


@dataclass(frozen=True)
class Linear:
    """Channel y = z + noise, in closed form."""

    noise: float
    shown = 0.0
    noisy = True

    def information(self, v: float) -> float:
        """Information 1 / (v + noise)."""
        return 1 / (v + self.noise)

    @property
    def prepared(self) -> Prepared:
        """Moments of a label before anything is known."""
        known = 1 / (1 + self.noise)
        return Prepared(known, 2 * known**2, float(np.log(2 * np.pi * np.e / known) / 2))

    def scores(self, labels: np.ndarray) -> Score:
        """Messages of observed labels."""
        return lambda omega, v: (
            (labels - omega) / (v + self.noise),
            -labels.size / (v + self.noise),
        )


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


@dataclass(frozen=True)
class Noisy:
    """Channel y = f(z) + noise by quadrature."""

    output: GaussianOutput
    shown = 0.0
    noisy = True

    @cached_property
    def _steepness(self) -> float:
        """Largest slope of the function in units of the noise; infinite at a jump."""
        z = np.linspace(-6, 6, 4_801)
        rise = np.abs(np.diff(self.output.scalar(z)))
        ends = np.array(self.output.breakpoints)
        if ends.size:
            jump = np.abs(self.output.scalar(ends + 1e-9) - self.output.scalar(ends - 1e-9))
            if (jump > 1e-6).any():
                return float("inf")
        return float(rise.max() / (z[1] - z[0]) / np.sqrt(self.output.noise))

    @cached_property
    def smallest(self) -> float:
        """Cavity variance below which the information is a power of it."""
        if np.isinf(self._steepness):
            return 1e-3 * min(1.0, self.output.noise)
        return 1e-6 / max(self._steepness, 1.0) ** 2

    def information(self, v: float) -> float:
        """Information E[g²] of a label at cavity variance v."""
        # kinks between the nodes of a wide cavity cost digits: 2 % of the information at large noise
        kinked, s = bool(self.output.breakpoints), np.sqrt(v)
        wide = s * self._steepness > (0.3 if kinked else 2) or (kinked and s > 0.06)
        return self._wide(v) if wide else self._local(v)

    def _wide(self, v: float) -> float:
        """Sum over labels and cavity means, by matrix products; for wide cavities."""
        reach = 9 * np.sqrt(v)
        table = label_table(self.output, np.sqrt(v))
        z, weight, step, likelihood = table.z, table.weight, table.step, table.likelihood
        total = 0.0
        for omega, share in _cavity_means(1 - v):
            # the Gaussian of the cavity is below 1e-17 of its peak further away
            near = slice(*np.searchsorted(z, (omega[0] - reach, omega[-1] + reach)))
            moved = z[near, None] - omega
            cavity = weight[near, None] * np.exp(-(moved**2) / (2 * v)) / np.sqrt(2 * np.pi * v)
            part = likelihood[:, near]
            # dense products are about ten times as fast per number, and large noise leaves few zeros
            part = part.toarray() if part.nnz > 0.1 * step.size * moved.shape[0] else part
            evidence = part @ cavity
            mean = part @ (cavity * moved)
            # int dy p(y) g²,  g = (E[z | y] - omega) / v
            squares = np.divide(mean**2, evidence, out=np.zeros_like(mean), where=evidence > 1e-290)
            total += float(step @ squares @ share) / v**2
        return total

    def _local(self, v: float) -> float:
        """Sum over cavity means, of labels within reach of each; for narrow cavities."""
        s = np.sqrt(v)
        inner = np.array([point for point in self.output.breakpoints if abs(point) < REACH])
        omega, chance = gaussian_nodes(1 - v, inner, s, order=6, panels=40)
        omega, chance = omega[np.abs(omega) < REACH], chance[np.abs(omega) < REACH]
        # cavities without a kink are smooth
        kinked = np.abs(omega[:, None] - inner).min(axis=1, initial=np.inf) < REACH * s
        xi, weight = panel_nodes(np.linspace(-REACH, REACH, 8), 6)
        weight = weight * np.exp(-(xi**2) / 2)
        return self._summed(omega[kinked], chance[kinked], xi, weight / weight.sum(), s) + (
            self._summed(omega[~kinked], chance[~kinked], *gaussian_quadrature(20), s)
        )

    def _summed(
        self, omega: np.ndarray, chance: np.ndarray, xi: np.ndarray, weight: np.ndarray, s: float
    ) -> float:
        """Sum over cavity means of the information, with quadrature nodes xi of the cavity."""
        if not omega.size:
            return 0.0
        clean = self.output.scalar(omega[:, None] + s * xi) / np.sqrt(self.output.noise)
        first = clean.min(axis=1, keepdims=True) - REACH
        # labels at 0.6 deviations of the noise: sums over them are exact to 1e-12
        count = int((np.ptp(clean, axis=1).max() + 2 * REACH) / 0.6) + 2
        total, block = 0.0, max(int(ROWS / (count * xi.size)), 1)
        for k in range(0, omega.size, block):
            rows = slice(k, k + block)
            y = first[rows] + 0.6 * np.arange(count)
            density = np.exp(-((y[:, :, None] - clean[rows, None, :]) ** 2) / 2)
            evidence, slope = density @ weight, density @ (weight * xi) / s
            squares = np.divide(
                slope**2, evidence, out=np.zeros_like(slope), where=evidence > 1e-290
            )
            total += float(chance[rows] @ squares.sum(axis=1))
        return 0.6 * total / np.sqrt(2 * np.pi)

    @cached_property
    def prepared(self) -> Prepared:
        """Moments of a label before anything is known."""
        table = label_table(self.output, 1.0)
        z, chance = table.z, table.weight * np.exp(-(table.z**2) / 2)
        powers = np.stack([chance, chance * z, chance * (z**2 - 1)], axis=1)
        p, first, second = (table.likelihood @ powers / chance.sum()).T
        known = p > 1e-290
        p, step = p[known], table.step[known]
        moments = (float(step @ (part[known] ** 2 / p)) for part in (first, second))
        linear, quadratic = moments
        # values that are 0 by symmetry have rounding errors
        scale = self.information(0.5)
        mirrored = np.abs(self.output.scalar(z) - self.output.scalar(-z)).max()
        even = mirrored <= 1e-12 * np.abs(self.output.scalar(z)).max()
        linear = 0.0 if even or linear < 1e-7 * scale else linear
        quadratic = quadratic if quadratic > 1e-11 * scale else 0.0
        return Prepared(linear, quadratic, -float(step @ (p * np.log(p))))

    def scores(self, labels: np.ndarray) -> Score:
        """Messages of observed labels."""
        posterior = LinePosterior(self.output, labels)

        def scores(omega: np.ndarray, v: float) -> tuple[np.ndarray, float]:
            found = posterior(omega[:, None], np.array([[v]]))
            slope = float(found.covariance.sum()) / v**2 - labels.size / v
            return (found.mean[:, 0] - omega) / v, slope

        return scores


@dataclass(frozen=True)
class Likelihood:
    """Channel of a likelihood P(y|z), smooth in z, with discrete labels or quadrature nodes of them."""

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]  # P(y | z), by broadcasting
    labels: np.ndarray  # label values or nodes, shape (k,)
    weights: np.ndarray  # 1 for discrete labels, else weights of dy
    shown = 0.0
    noisy = True

    @cached_property
    def _steep(self) -> tuple[float, np.ndarray]:
        """Smallest scale of the likelihood in z, and places where it is steep."""
        z = np.linspace(-6, 6, 2_401)
        table = self.function(self.labels[:, None], z)
        slope = np.abs(np.diff(table, axis=1)) / (z[1] - z[0]) / table.max()
        slope = slope.max(axis=0)
        peak = (slope[1:-1] >= slope[:-2]) & (slope[1:-1] > slope[2:])
        peak &= slope[1:-1] > 0.1 * slope.max()
        places = (z[1:-2] + z[2:-1])[peak] / 2
        scale = float(min(0.25 / max(slope.max(), 1e-9), 1.0))
        return scale, places[:: max(places.size // 20, 1)]

    @property
    def smallest(self) -> float:
        """Cavity variance below which the information is a power of it."""
        return max(2.5e-5 * self._steep[0] ** 2, 1e-5)

    def information(self, v: float) -> float:
        """Information E[g²] of a label at cavity variance v."""
        (scale, places), s = self._steep, np.sqrt(v)
        width = max(s, scale)
        omega, chance = gaussian_nodes(1 - v, places, width, order=6, panels=40)
        total, block = 0.0, max(int(ROWS / (self.labels.size * 64)), 1)
        for k in range(0, omega.size, block):
            part = omega[k : k + block]
            P, slope = self._moments(self.labels[:, None], part, s)
            squares = np.divide(slope**2, P, out=np.zeros_like(P), where=P > 1e-290)
            total += float(self.weights @ squares @ chance[k : k + block])
        return total

    def _moments(self, y: np.ndarray, omega: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
        """Evidence of labels given cavity means, and its derivative in the means."""
        scale, places = self._steep
        if s > 2 * scale:
            z, weight = gaussian_nodes(1.0, places, scale, order=6, panels=max(40, int(20 / s)))
            weight = weight * np.exp(z**2 / 2) * np.sqrt(2 * np.pi)
            moved = (z - omega[:, None]) / s
            kernel = np.exp(-(moved**2) / 2) * weight / (np.sqrt(2 * np.pi) * s)
            table = self.function(y[..., None], z)
            if table.ndim == 3:  # all labels at all means
                table = table[:, 0]
                return table @ kernel.T, table @ (kernel * moved).T / s
            return (table * kernel).sum(axis=-1), (table * kernel * moved).sum(axis=-1) / s
        if s < 0.2 * scale:
            xi, weight = gaussian_quadrature(12)
        else:
            xi, weight = panel_nodes(np.linspace(-REACH, REACH, 10), 6)
            weight = weight * np.exp(-(xi**2) / 2)
            weight = weight / weight.sum()
        values = self.function(y[..., None], omega[:, None] + s * xi)
        return values @ weight, values @ (weight * xi) / s

    @cached_property
    def prepared(self) -> Prepared:
        """Moments of a label before anything is known."""
        scale, places = self._steep
        z, chance = gaussian_nodes(1.0, places, scale, order=8)
        powers = np.stack([chance, chance * z, chance * (z**2 - 1)], axis=1)
        p, first, second = (self.function(self.labels[:, None], z) @ powers).T
        known = p > 1e-290
        p, weights = p[known], self.weights[known]
        moments = (float(weights @ (part[known] ** 2 / p)) for part in (first, second))
        entropy = -float(weights @ (p * np.log(p)))
        linear, quadratic = (x if x > 1e-11 else 0.0 for x in moments)
        return Prepared(linear, quadratic, entropy)

    def scores(self, labels: np.ndarray) -> Score:
        """Messages of observed labels."""

        def messages(omega: np.ndarray, s: float) -> np.ndarray:
            g, block = np.empty(labels.shape), ROWS // 512
            for k in range(0, labels.size, block):
                rows = slice(k, k + block)
                P, slope = self._moments(labels[rows], omega[rows], s)
                g[rows] = np.divide(slope, P, out=np.zeros_like(P), where=P > 1e-290)
            return g

        def scores(omega: np.ndarray, v: float) -> tuple[np.ndarray, float]:
            s = float(np.sqrt(v))
            g, moved = messages(omega, s), messages(omega + STEP * s, s)
            return g, float((moved - g).sum()) / (STEP * s)

        return scores
