r"""Outputs with noise: a function of the index plus Gaussian noise, or a user's likelihood P(y|z).

Indices here have variance 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.hermite import gaussian_quadrature, panel_nodes
from solvable.inference.pieces import STEP, Prepared, Score
from solvable.inference.quadrature import gaussian_nodes
from solvable.message_passing.evolution import label_information, label_table
from solvable.message_passing.line_posterior import LinePosterior
from solvable.message_passing.outputs import REACH, GaussianOutput

ROWS = 2_000_000
"""Largest number of entries of a table that is computed at once."""


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
        # kinks between the nodes of a wide cavity cost digits
        if np.sqrt(v) * self._steepness > (0.3 if self.output.breakpoints else 2):
            return label_information(self.output, 1 - v)
        return self._local(v)

    def _local(self, v: float) -> float:
        """Sum over cavity means, of labels within reach of each; for narrow cavities."""
        noise, s = self.output.noise, np.sqrt(v)
        inner = [point for point in self.output.breakpoints if abs(point) < REACH]
        omega, chance = gaussian_nodes(1 - v, inner, s, order=6, panels=40)
        omega, chance = omega[np.abs(omega) < REACH], chance[np.abs(omega) < REACH]
        xi, weight = panel_nodes(np.linspace(-REACH, REACH, 8), 6)
        weight = weight * np.exp(-(xi**2) / 2)
        weight /= weight.sum()
        clean = self.output.scalar(omega[:, None] + s * xi) / np.sqrt(noise)
        first = clean.min(axis=1, keepdims=True) - REACH
        count = int((np.ptp(clean, axis=1).max() + 2 * REACH) / 0.4) + 1
        total, block = 0.0, max(int(ROWS / (count * xi.size)), 1)
        for k in range(0, omega.size, block):
            rows = slice(k, k + block)
            y = first[rows] + 0.4 * np.arange(count)
            density = np.exp(-((y[:, :, None] - clean[rows, None, :]) ** 2) / 2)
            evidence, slope = density @ weight, density @ (weight * xi) / s
            squares = np.divide(
                slope**2, evidence, out=np.zeros_like(slope), where=evidence > 1e-290
            )
            total += float(chance[rows] @ squares.sum(axis=1))
        return 0.4 * total / np.sqrt(2 * np.pi)

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
        # values that are 0 by symmetry have rounding errors
        linear, quadratic = (x if x > 1e-11 else 0.0 for x in moments)
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
