"""Posterior of one direction given noiseless labels, supported on the preimages of the label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from solvable.errors import InvalidData, InvalidParameter
from solvable.hermite import panel_nodes
from solvable.message_passing.moments import ConditionalMoments
from solvable.message_passing.outputs import REACH, GaussianOutput, Posterior

MOST_BRANCHES = 200
"""Largest number of monotone pieces of a link."""


Interval = tuple[float, float]


def flat_pieces(output: GaussianOutput) -> tuple[Interval, ...]:
    """Intervals on which the link is constant, as for relu below 0; the outermost end at infinity."""
    inner = [point for point in output.breakpoints if abs(point) < REACH]
    found: list[Interval] = []
    for low, high in pairwise([-REACH, *inner, REACH]):
        # the value at a breakpoint may belong to neither side
        grid = np.linspace(low, high, max(int(14_000 * (high - low) / (2 * REACH)), 8) + 1)
        grid[[0, -1]] += np.array([1e-9, -1e-9]) * (high - low)
        values = output.scalar(grid)
        level = np.abs(np.diff(values)) <= 1e-13 * np.ptp(
            output.scalar(np.linspace(-REACH, REACH, 99))
        )
        edges = np.flatnonzero(np.diff(np.concatenate([[False], level, [False]]).astype(int)))
        for first, last in edges.reshape(-1, 2):
            # one level cell is an extremum; saturation beyond five deviations is rounding
            if last - first < 3 or np.abs(grid[first : last + 1]).min() > 5:
                continue
            start = low if first == 0 else _edge(output, grid[first - 1], grid[first])
            stop = high if last == level.size else _edge(output, grid[last + 1], grid[last])
            start, stop = (np.copysign(np.inf, x) if abs(x) == REACH else x for x in (start, stop))
            found.append((float(start), float(stop)))
    return tuple(found)


def _edge(output: GaussianOutput, outside: float, inside: float) -> float:
    """End of a constant piece between two points, by bisection."""
    value = output.scalar(np.array([inside]))[0]
    for _ in range(60):
        middle = (outside + inside) / 2
        level = abs(output.scalar(np.array([middle]))[0] - value) <= 1e-14 * abs(value)
        outside, inside = (outside, middle) if level else (middle, inside)
    return inside


def monotone_branches(output: GaussianOutput, flat: tuple[Interval, ...] = ()) -> list[Interval]:
    """Intervals between breakpoints and extrema, outside flat pieces, where the link is monotone."""
    grid = np.union1d(np.linspace(-REACH, REACH, 14_001), output.breakpoints)
    grid = grid[np.abs(grid) <= REACH]
    values = output.scalar(grid)
    if not np.isfinite(values).all():
        raise InvalidParameter(
            f"the link is not finite at z = {grid[~np.isfinite(values)][0]:.4g}; allowed: finite "
            f"values on [-{REACH:g}, {REACH:g}]."
        )
    # differences no larger than rounding errors count as 0, but are ignored for abs(z) above 5
    slopes = np.sign(np.where(np.abs(np.diff(values)) > 1e-13 * np.ptp(values), np.diff(values), 0))
    middle = (grid[1:] + grid[:-1]) / 2
    known = np.any(
        [(middle > low) & (middle < high) for low, high in flat] or [middle > np.inf], axis=0
    )
    level = (slopes == 0) & (np.abs(grid[1:]) < 5) & ~known
    if level.any():
        raise InvalidParameter(
            f"noise is 0 and the link is constant near z = {grid[1:][level][0]:.4g}; allowed: noise "
            "above 0, or a link that is constant on no interval."
        )
    turns = np.flatnonzero(slopes[1:] * slopes[:-1] < 0) + 1
    cuts = [_extremum(output, grid[k - 1], grid[k + 1], slopes[k - 1]) for k in turns]
    inner = [point for point in output.breakpoints if abs(point) < REACH]
    inner += [end for piece in flat for end in piece if abs(end) < REACH]
    ends = np.unique(np.concatenate([[-REACH, REACH], inner, cuts]))
    # merge an extremum with a breakpoint at the same position
    ends = ends[np.concatenate([[True], np.diff(ends) > 1e-7])]
    if ends.size > MOST_BRANCHES:
        raise InvalidParameter(
            f"the link turns {ends.size - 2} times between -{REACH:g} and {REACH:g}; allowed: up to "
            f"{MOST_BRANCHES} without noise. Set noise above 0, or take a slower link."
        )
    return [
        (low, high)
        for low, high in pairwise(ends.tolist())
        if not any(start <= (low + high) / 2 <= stop for start, stop in flat)
    ]


def _extremum(output: GaussianOutput, low: float, high: float, rising: float) -> float:
    """Position of an extremum between two points, by ternary search."""
    for _ in range(60):
        inner = np.array([low + (high - low) / 3, high - (high - low) / 3])
        left, right = rising * output.scalar(inner)
        low, high = (inner[0], high) if left < right else (low, inner[1])
    # rounding errors limit the search near an extremum; a breakpoint nearby gives the exact position
    middle = (low + high) / 2
    near = [point for point in output.breakpoints if abs(point - middle) < 1e-6]
    return near[0] if near else float(middle)


def invert(
    output: GaussianOutput, labels: np.ndarray, branches: list[Interval] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Preimages (n, branches) of labels with log abs(dz/dy), -inf where a branch has no preimage."""
    branches = monotone_branches(output) if branches is None else branches
    z = np.zeros((len(labels), len(branches)))
    logs = np.full(z.shape, -np.inf)
    lows, highs = np.array(branches).reshape(-1, 2).T
    # the value of the link exactly at a jump may belong to the neighbouring branch
    inside = 1e-9 * (highs - lows)
    ends = output.scalar(np.array([lows + inside, highs - inside]))
    slack = 1e-12 * np.abs(ends).max(axis=0)  # allow for rounding errors at an extremum
    within = (labels[:, None] >= ends.min(axis=0) - slack) & (
        labels[:, None] <= ends.max(axis=0) + slack
    )
    hit, j = np.nonzero(within)
    if not hit.size:
        return z, logs
    # all branches at a time, as many short calls of the link take longer than few long ones
    low, high, rising, wanted = lows[j], highs[j], (ends[1] > ends[0])[j], labels[hit]
    below, above = low, high
    for _ in range(52):
        middle = (below + above) / 2
        smaller = (output.scalar(middle) < wanted) == rising
        below, above = np.where(smaller, middle, below), np.where(smaller, above, middle)
    z[hit, j] = middle
    step = np.minimum(1e-5, np.minimum(middle - low, high - middle) + 1e-12)
    rise = output.scalar(middle + step) - output.scalar(middle - step)
    with np.errstate(divide="ignore"):
        logs[hit, j] = -np.log(np.maximum(np.abs(rise) / (2 * step), 1e-300))
    return z, logs


@dataclass
class PreimagePosterior:
    """Posterior given labels (n,) of a noiseless one-direction channel."""

    output: GaussianOutput
    labels: np.ndarray

    @cached_property
    def _preimages(self) -> tuple[np.ndarray, np.ndarray]:
        z, logs = invert(self.output, self.labels)
        missing = ~np.isfinite(logs).any(axis=1)
        if missing.any():
            raise InvalidData(
                f"a label is {self.labels[missing][0]:.6g}, which is not a value of the link; allowed: "
                "noiseless labels of this channel."
            )
        return z, logs

    def __call__(self, omega: np.ndarray, variance: np.ndarray) -> Posterior:
        """Moments of z ~ N(omega, variance) given the labels."""
        z, logs = self._preimages
        return atoms(z, logs, omega[:, 0], float(variance[0, 0]))


def atoms(z: np.ndarray, logs: np.ndarray, omega: np.ndarray, V: float) -> Posterior:
    """Posterior over the preimages (..., branches) with given log densities, for cavity means (...)."""
    moved = z - omega[..., None]
    weight = logs - moved**2 / (2 * V)
    top = weight.max(axis=-1, keepdims=True)
    share = np.exp(weight - top)
    total = share.sum(axis=-1)
    first = (share * moved).sum(axis=-1) / total
    second = (share * moved**2).sum(axis=-1) / total
    evidence = top[..., 0] + np.log(total) - np.log(2 * np.pi * V) / 2
    return Posterior(
        (omega + first)[..., None], np.maximum(second - first**2, 0.0)[..., None, None], evidence
    )


def preimage_nodes(output: GaussianOutput, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature nodes of z with probabilities, dense where the number of preimages changes."""
    branches = monotone_branches(output)
    ends = np.array([low for low, _ in branches[1:]])
    # near an extremum, and near the other preimages of its label, moments vary like a square root
    inside = 1e-9
    levels = output.scalar(np.concatenate([ends - inside, ends + inside])) if ends.size else ends
    z, logs = invert(output, levels)
    special = np.concatenate([ends, z[np.isfinite(logs)]])
    near = (special[:, None] + width * 2.0 ** -np.arange(11) * np.array([[[1]], [[-1]]])).ravel()
    edges = np.concatenate([np.arange(-REACH, REACH, width), [REACH], special, near])
    edges = np.unique(edges[np.abs(edges) <= REACH])
    edges = edges[np.concatenate([[True], np.diff(edges) > 1e-8])]
    z, weights = panel_nodes(edges, 8)
    chance = weights * np.exp(-(z**2) / 2)
    return z, chance / chance.sum()


def preimage_moments(output: GaussianOutput) -> ConditionalMoments:
    """Conditional moments of a noiseless one-direction channel, exact at every label."""
    # Means over labels are means over nodes of z, E f(y) = E f(g(z)), because cells of labels would mix
    # branches at extrema.
    z, chance = preimage_nodes(output, 0.06)
    y = output.scalar(z)
    posterior = PreimagePosterior(output, y)(np.zeros((z.size, 1)), np.eye(1))
    order = np.argsort(y)
    first = posterior.mean[order]
    second = posterior.covariance[order, :, 0] + first**2 - 1
    return ConditionalMoments(y[order], chance[order], first, second)
