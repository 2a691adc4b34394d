"""Posterior of one direction given noisy labels, by quadrature on a line."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.hermite import panel_nodes
from solvable.message_passing.outputs import REACH, GaussianOutput, Posterior

MOST_NODES = 200_000
"""Largest number of quadrature nodes."""


def line_nodes(output: GaussianOutput, deviation: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of dz that resolve the likelihood and a Gaussian with a given deviation."""
    knots = np.union1d(np.linspace(-REACH, REACH, 2_801), output.breakpoints)
    knots = knots[np.abs(knots) <= REACH]
    values = output.scalar(knots)
    _check_finite(knots, values)
    # The panel width is twice the smaller of the Gaussian deviation and sqrt(noise) / |g'|. Jumps of g
    # between knots count as steep and need additional nodes.
    steepness = np.abs(np.diff(values)) / np.diff(knots)
    width = np.minimum(deviation, np.sqrt(output.noise) / np.maximum(steepness, 1e-12))
    place = np.concatenate([[0.0], np.cumsum(np.diff(knots) / (2 * width))])
    count = int(np.ceil(place[-1]))
    order = 8
    if count * order > MOST_NODES:
        raise InvalidParameter(
            f"noise is {output.noise:.3g}, which needs {count * order} quadrature nodes; allowed: up to "
            f"{MOST_NODES}. Raise the noise, or set it to 0."
        )
    inner = [point for point in output.breakpoints if abs(point) < REACH]
    edges = np.union1d(np.interp(np.linspace(0, place[-1], count + 1), place, knots), inner)
    edges = edges[np.concatenate([[True], np.diff(edges) > 1e-13])]
    return panel_nodes(edges, order)


def _check_finite(z: np.ndarray, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        where = float(z[~np.isfinite(values)][0])
        raise InvalidParameter(
            f"the link is not finite at z = {where:.4g}; allowed: links that are finite on "
            f"[-{REACH:g}, {REACH:g}]."
        )


def narrow_deviation(output: GaussianOutput) -> float:
    """Largest cavity deviation at which the likelihood is nearly constant within the cavity."""
    if output.breakpoints or not output.noise:
        return 0.0
    # Within one deviation the noiseless label changes by at most 0.3 standard deviations of the noise.
    knots = np.linspace(-5.0, 5.0, 2_001)
    steepness = float(np.max(np.abs(np.diff(output.scalar(knots))) / np.diff(knots)))
    return float(min(0.35, 0.3 * np.sqrt(output.noise) / max(steepness, 1e-12)))


@dataclass
class LinePosterior:
    """Posterior given labels (n,) of a noisy one-direction channel."""

    # In general each label uses the nodes within seven standard deviations of the noise, which are
    # recomputed when the cavity variance shrinks. A narrow cavity uses fewer nodes, around its mean.

    output: GaussianOutput
    labels: np.ndarray
    resolved: float = field(default=np.inf, init=False)
    narrow: float = field(init=False)

    def __post_init__(self) -> None:
        self.narrow = narrow_deviation(self.output)

    def _resolve(self, deviation: float) -> None:
        self.resolved = deviation
        z, weight = line_nodes(self.output, deviation)
        values, scale = self.output.scalar(z), np.sqrt(self.output.noise)
        order = np.argsort(values)
        first = np.searchsorted(values[order], self.labels - REACH * scale)
        last = np.searchsorted(values[order], self.labels + REACH * scale)
        counts = last - first
        if not counts.all():
            label = float(self.labels[counts == 0][0])
            raise InvalidData(
                f"a label is {label:.4g}, more than {REACH:g} standard deviations of the noise from all "
                "values of the link; allowed: labels of this channel."
            )
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self.rows = np.repeat(np.arange(len(self.labels)), counts)
        chosen = order[np.arange(counts.sum()) - np.repeat(self.starts - first, counts)]
        self.z = z[chosen]
        # logarithm of the weight dz N(y; g(z), noise)
        misfit = (self.labels[self.rows] - values[chosen]) ** 2 / (2 * self.output.noise)
        self.log_weight = np.log(weight[chosen] / (scale * np.sqrt(2 * np.pi))) - misfit

    def __call__(self, omega: np.ndarray, variance: np.ndarray) -> Posterior:
        """Moments of z ~ N(omega, variance) given the labels."""
        place, V = omega[:, 0], float(variance[0, 0])
        if np.sqrt(V) <= self.narrow and self._fits(place):
            return self._around(place, V)
        if np.sqrt(V) < 0.7 * self.resolved:
            self._resolve(float(np.sqrt(V)))
        moved = self.z - place[self.rows]
        logs = self.log_weight - moved**2 / (2 * V)
        top = np.maximum.reduceat(logs, self.starts)
        share = np.exp(logs - top[self.rows])
        total = np.add.reduceat(share, self.starts)
        first = np.add.reduceat(share * moved, self.starts) / total
        second = np.add.reduceat(share * moved**2, self.starts) / total
        evidence = top + np.log(total) - np.log(2 * np.pi * V) / 2
        return Posterior((place + first)[:, None], (second - first**2)[:, None, None], evidence)

    def _fits(self, place: np.ndarray) -> bool:
        """Return True if every label is within seven deviations of the noise of its cavity mean."""
        # Then the posterior mean is within about two deviations of the cavity mean.
        misfit = np.abs(self.labels - self.output.scalar(place))
        return bool((misfit <= REACH * np.sqrt(self.output.noise)).all())

    def _around(self, place: np.ndarray, V: float) -> Posterior:
        """Moments from 56 nodes within seven deviations of each cavity mean."""
        x, weight = panel_nodes(np.linspace(-REACH, REACH, 8), 8)
        z = np.clip(place[:, None] + np.sqrt(V) * x, -REACH, REACH)
        misfit = (self.labels[:, None] - self.output.scalar(z)) ** 2 / (2 * self.output.noise)
        logs = np.log(weight) - x**2 / 2 - misfit
        top = logs.max(axis=1)
        share = np.exp(logs - top[:, None])
        total = share.sum(axis=1)
        first, second = share @ x / total, share @ x**2 / total
        evidence = top + np.log(total) - np.log(4 * np.pi**2 * self.output.noise) / 2
        mean, variance = place + np.sqrt(V) * first, V * (second - first**2)
        return Posterior(mean[:, None], variance[:, None, None], evidence)
