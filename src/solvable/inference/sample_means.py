r"""Means over samples of the messages of a loss, for Gaussian indices of teacher and learner.

The index z of the teacher has variance rho, the learner's prediction omega without the sample has
variance q, and their covariance is m. A message is
:math:`f=(\mathrm{prox}_{V\ell(y,\cdot)}(\omega)-\omega)/V`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from solvable.errors import InvalidParameter
from solvable.hermite import gauss_legendre, gaussian_quadrature, panel_nodes
from solvable.inference.inputs import GaussianMixture
from solvable.inference.losses import CLASSIFIERS, Loss
from solvable.inference.outputs import Output
from solvable.spectra.roots import bracketed_root


class State(NamedTuple):
    """Overlaps of a learner."""

    m: float  # covariance of prediction and index
    q: float  # variance of the prediction
    V: float  # response of a prediction to its message


class Seen(NamedTuple):
    """Means over samples at a state."""

    overlap: float  # E df/dz, by the mean of the index
    power: float  # E f²
    response: float  # -E df/domega


class Judged(NamedTuple):
    """Results per sample at a state."""

    loss: float  # of training samples; NaN if the loss has no value
    curvature: float  # E (df/domega)²
    error: float
    label_error: float
    intercept: float = 0.0


class Messages(Protocol):
    """Means of the messages of samples."""

    @property
    def rho(self) -> float:
        """Variance of the index."""

    def see(self, state: State) -> Seen:
        """Means of the messages."""


class Samples(Messages, Protocol):
    """Law of the samples, seen by a loss."""

    def judge(self, state: State) -> Judged:
        """Losses and errors."""


def panels(
    deviation: float, points: Iterable[float], step: float, order: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and probabilities of a centred Gaussian variable; panels end at the given points."""
    reach = 9.5 * deviation
    count = int(np.ceil(2 * reach / min(step, deviation / 2)))
    inner = [point for point in points if abs(point) < reach]
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, count + 1), inner]))
    edges = edges[np.concatenate([[True], np.diff(edges) > 1e-12 * reach])]
    nodes, weights = panel_nodes(edges, order)
    weights = weights * np.exp(-((nodes / deviation) ** 2) / 2)
    return nodes, weights / weights.sum()


def breakpoints(output: Output) -> tuple[float, ...]:
    """Indices at which the law of the label jumps or has a kink, and 0."""
    return tuple(sorted({*output.breakpoints, 0.0}))


@dataclass
class OutputSamples:
    """Samples whose labels an output draws from the index."""

    loss: Loss
    output: Output
    rho: float

    @cached_property
    def index(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and probabilities of the index, dense around its breakpoints."""
        deviation = np.sqrt(self.rho)
        near = deviation * np.array([-0.3, -0.1, -0.03, 0.0, 0.03, 0.1, 0.3])
        points = {point + step for point in breakpoints(self.output) for step in near}
        return panels(deviation, points, deviation)

    @cached_property
    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and their probabilities at the nodes of the index."""
        values, chances = self.output.labels(self.index[0])
        allowed = np.abs(values[chances > 0]) == 1
        if self.loss.name in CLASSIFIERS and not allowed.all():
            raise InvalidParameter(
                f"the loss {self.loss.name} needs labels -1 and 1, but the output draws "
                f"{values[chances > 0][~allowed][0]:.4g}; use an output such as sign, or the square loss."
            )
        return values, chances

    @cached_property
    def classes(self) -> bool:
        """Return True if all labels are -1 or 1, so that errors are shares of wrong signs."""
        values, chances = self.labels
        return bool((np.abs(values[chances > 0]) == 1).all())

    @cached_property
    def label_moments(self) -> tuple[float, float]:
        """Mean square of a label, and E[y z] / rho."""
        (z, chance), (values, shares) = self.index, self.labels
        mean = np.sum(values * shares, axis=1)
        square = np.sum(values**2 * shares, axis=1)
        return float(chance @ square), float(chance @ (mean * z)) / self.rho

    def see(self, state: State) -> Seen:
        """Means of the messages (empirical-risk 3)."""
        m, q, V = state
        if self.loss.name == "square":
            # closed, because the message is linear   (empirical-risk 6)
            square, slope = self.label_moments
            power = (square - 2 * slope * m + q) / (1 + V) ** 2
            return Seen(slope / (1 + V), power, 1 / (1 + V))
        if self.classes:
            y, omega, chance, pull = self._by_label(state)
            f = self.loss.force(y, omega, V)
            overlap = float(np.sum(pull * f))
            # Stein: E omega f = q E df/domega + m E df/dz, so that jumps of the slope do no harm
            slope = (float(np.sum(chance * omega * f)) - m * overlap) / q
            return Seen(overlap, float(np.sum(chance * f**2)), -slope)
        y, omega, chance, z, xi, rest = self._by_index(state)
        f = self.loss.force(y, omega, V)
        slope = float(np.sum(chance * f * xi)) / rest
        overlap = (float(np.sum(chance * f * z)) - m * slope) / self.rho
        return Seen(overlap, float(np.sum(chance * f**2)), -slope)

    def judge(self, state: State) -> Judged:
        """Loss of the training samples, squared slope of the messages, and test errors."""
        m, q, V = state
        y, omega, chance = (self._by_label if self.classes else self._by_index)(state)[:3]
        loss, curvature = _final(self.loss, y, omega, chance, V)
        square, slope = self.label_moments
        if not self.classes:
            return Judged(loss, curvature, self.rho - 2 * m + q, square - 2 * slope * m + q)
        from scipy.special import ndtr

        (z, share), (values, shares) = self.index, self.labels
        rest = max(q - m**2 / self.rho, 1e-300 * q)
        wrong = ndtr(-values * (m * z / self.rho / np.sqrt(rest))[:, None])
        # against the more probable label, and against labels as drawn   (empirical-risk 5)
        best = np.argmax(shares, axis=1)[:, None]
        clean = np.take_along_axis(wrong, best, axis=1)[:, 0]
        if (np.take_along_axis(values, best, axis=1)[:, 0] == np.where(z < 0, -1, 1)).all():
            error = float(np.arccos(np.clip(m / np.sqrt(self.rho * q), -1, 1)) / np.pi)
        else:
            error = float(share @ clean)
        return Judged(loss, curvature, error, float(share @ np.sum(wrong * shares, axis=1)))

    def _by_label(self, state: State) -> tuple[np.ndarray, ...]:
        """Labels, predictions, probabilities, their derivatives by the mean index, for labels -1, 1."""
        m, q, V = state
        rest = max(self.rho - m**2 / q, 1e-14 * self.rho)
        points = {kink for y in (-1.0, 1.0) for kink in self.loss.kinks(y, V)} | {0.0}
        if m:
            # labels change around these predictions
            edges = q / m * np.array(breakpoints(self.output))
            width = q / abs(m) * np.sqrt(rest) * np.array([-8, -4, -2, -1, 0, 1, 2, 4, 8])
            points |= {float(point) for point in (edges[:, None] + width).ravel()}
        size = float(np.sqrt(q)) * (0.5 if self.loss.name else 0.1)
        omega, weights = panels(float(np.sqrt(q)), points, size)
        # law of the index given omega: N(m omega / q, rho - m² / q)
        t, density = self._conditional(m / q * omega, np.sqrt(rest))
        z = (m / q * omega)[:, None] + np.sqrt(rest) * t
        values, shares = self.output.labels(z.ravel())
        plus = np.sum(shares * (values > 0), axis=-1).reshape(z.shape)
        above = np.sum(density * plus, axis=1)
        pull = weights * np.sum(density * t * plus, axis=1) / np.sqrt(rest)
        chance = np.concatenate([weights * above, weights * (1 - above)])
        y = np.repeat([1.0, -1.0], omega.size)
        return y, np.tile(omega, 2), chance, np.concatenate([pull, -pull])

    def _conditional(self, means: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
        """Nodes t and probabilities of a Gaussian variable; mean + width t has panels between breaks."""
        breaks = np.array(breakpoints(self.output))
        edges = np.clip((breaks - means[:, None]) / width, -9.0, 9.0)
        end = np.full((means.size, 1), 9.0)
        edges = np.concatenate([-end, edges, end], axis=1)
        unit, weights = gauss_legendre(32)
        half = np.diff(edges, axis=1)[:, :, None] / 2
        t = (edges[:, :-1, None] + half * (unit + 1)).reshape(means.size, -1)
        density = (half * weights).reshape(t.shape) * np.exp(-(t**2) / 2)
        return t, density / density.sum(axis=1, keepdims=True)

    def _by_index(self, state: State) -> tuple[Any, ...]:
        """Labels, predictions, probabilities, indices, and the independent part of the predictions."""
        m, q, _ = state
        (z, share), (values, shares) = self._coarse
        xi, weights = gaussian_quadrature(48)
        rest = float(np.sqrt(max(q - m**2 / self.rho, 1e-14 * q)))
        omega = (m / self.rho * z)[:, None, None] + rest * xi
        chance = (share[:, None] * shares)[:, :, None] * weights
        y, omega = np.broadcast_arrays(values[:, :, None], omega)
        return y, omega, chance, z[:, None, None], xi, rest

    @cached_property
    def _coarse(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Nodes of the index for means over index, label and prediction together."""
        deviation = float(np.sqrt(self.rho))
        index = panels(deviation, breakpoints(self.output), deviation, 4)
        return index, self.output.labels(index[0])


@dataclass
class MixtureSamples:
    """Samples of two Gaussian classes (empirical-risk 11)."""

    loss: Loss
    mixture: GaussianMixture
    rho: float
    fitted: bool = False  # with an intercept

    def _nodes(
        self, state: State, intercept: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
        m, q, V = state
        noise = float(np.sqrt(self.mixture.variance * q))
        width = self.mixture.variance * V
        parts = []
        for label, share in ((1.0, self.mixture.share), (-1.0, 1 - self.mixture.share)):
            # omega = y m + b + sqrt(Delta q) xi
            mean = label * m + intercept
            points = [(kink - mean) / noise for kink in (*self.loss.kinks(label, width), 0.0)]
            xi, chance = panels(1.0, points, 0.5)
            parts.append((np.full(xi.size, label), mean + noise * xi, share * chance, xi))
        y, omega, chance, xi = map(np.concatenate, zip(*parts, strict=True))
        return y, omega, chance, xi, noise

    def _intercept(self, state: State) -> float:
        """Intercept at which the messages have mean 0, as the loss is least there."""
        if not self.fitted:
            return 0.0

        def pull(intercept: float) -> float:
            y, omega, chance, _, _ = self._nodes(state, intercept)
            return float(
                np.sum(chance * self.loss.force(y, omega, self.mixture.variance * state.V))
            )

        reach = 1.0
        while pull(reach) > 0 or pull(-reach) < 0:  # the mean message falls with the intercept
            reach *= 2
        return bracketed_root(pull, -reach, reach, relative=1e-13)

    def see(self, state: State) -> Seen:
        """Means of the messages."""
        y, omega, chance, xi, noise = self._nodes(state, self._intercept(state))
        variance = self.mixture.variance
        f = self.loss.force(y, omega, variance * state.V)
        slope = float(np.sum(chance * xi * f)) / noise
        power = float(np.sum(chance * f**2))
        return Seen(float(np.sum(chance * y * f)), variance * power, -variance * slope)

    def judge(self, state: State) -> Judged:
        """Loss of the training samples, squared slope of the messages, and test error."""
        intercept = self._intercept(state)
        y, omega, chance, _, noise = self._nodes(state, intercept)
        variance = self.mixture.variance
        loss, curvature = _final(self.loss, y, omega, chance, variance * state.V)
        error = self.mixture.error(state.m, noise, intercept)
        return Judged(loss, variance**2 * curvature, error, error, intercept)


def _final(
    loss: Loss, y: np.ndarray, omega: np.ndarray, chance: np.ndarray, V: float
) -> tuple[float, float]:
    """Mean loss of training samples, and mean squared slope of their messages."""
    found = loss.values(y, omega + V * loss.force(y, omega, V))
    step = 1e-5 * (1 + V)
    slope = (loss.force(y, omega + step, V) - loss.force(y, omega - step, V)) / (2 * step)
    value = np.nan if found is None else float(np.sum(chance * found))
    return value, float(np.sum(chance * slope**2))
