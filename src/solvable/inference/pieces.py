r"""Outputs with flat and monotone pieces, and no noise added to the label: sign, door, probit, relu, ...

Indices here have variance 1. A flat piece is an atom of the label with probability P(omega), a difference
of normal distribution functions; a label of a monotone piece determines z up to its preimages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from solvable.errors import InvalidData
from solvable.inference.quadrature import gaussian_nodes
from solvable.message_passing.outputs import REACH, GaussianOutput
from solvable.message_passing.preimages import (
    Interval,
    atoms,
    flat_pieces,
    invert,
    monotone_branches,
)

Score = Callable[[np.ndarray, float], tuple[np.ndarray, float]]
"""Messages g of given labels, and the sum of their slopes, from cavity means and their variance."""

STEP = 1e-4
"""Step of differences in the cavity mean, relative to its deviation."""


class Prepared(NamedTuple):
    """First-order and second-order information of a label, and its entropy, when nothing is known."""

    first: float  # E[E[z|y]²]
    second: float  # E[E[z² - 1|y]²]
    entropy: float


@dataclass(frozen=True)
class Atom:
    """A label with a positive probability, and the intervals of the index that give it."""

    value: float
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class Pieces:
    """Channel of atoms and monotone pieces, for indices of variance 1."""

    atoms: tuple[Atom, ...]
    output: GaussianOutput | None = None  # the function, if there are monotone pieces
    branches: tuple[Interval, ...] = ()
    blur: float = 0.0  # variance of noise added to the index
    flips: float = 0.0  # probability that one of two labels becomes the other

    @property
    def noisy(self) -> bool:
        """Return True if no finite number of labels determines an index."""
        return self.blur > 0

    def information(self, v: float) -> float:
        """Information E[g²] of a label at cavity variance v (inference 5)."""
        s = np.sqrt(v + self.blur)
        points = {end for atom in self.atoms for piece in atom.intervals for end in piece}
        points = {point for point in points if np.isfinite(point)}
        total = 0.0
        if self.atoms:
            omega, chance = gaussian_nodes(1 - v, points, s)
            for atom in self.atoms:
                logs, score = self._atom(atom, omega, s)
                total += float(chance @ (np.exp(logs) * score**2))
        if self.branches:
            total += self._shown(v) - self._confused(v)
        return total

    def _atom(self, atom: Atom, omega: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
        """Log probability of an atom, and its derivative in omega."""
        parts = [_interval((a - omega) / s, (b - omega) / s) for a, b in atom.intervals]
        logs = np.logaddexp.reduce([log for log, _ in parts])
        with np.errstate(divide="ignore"):
            score = sum(np.exp(log - logs) * slope for log, slope in parts) / s
            if self.flips:
                clean = np.log1p(-2 * self.flips) + logs
                logs = np.logaddexp(np.log(self.flips), clean)
                score = score * np.exp(clean - logs)
        return logs, np.asarray(score)

    def _shown(self, v: float) -> float:
        """E[(z - omega)²] / v² over the monotone pieces."""
        from scipy.special import ndtr

        total = 0.0
        for a, b in self.branches:
            a, b = (end if abs(end) < REACH else np.copysign(40.0, end) for end in (a, b))
            mass = ndtr(-a) - ndtr(-b) if a > 0 else ndtr(b) - ndtr(a)
            edge = (a * np.exp(-(a**2) / 2) - b * np.exp(-(b**2) / 2)) / np.sqrt(2 * np.pi)
            # omega given z is N((1 - v) z, v (1 - v)), so E (z - omega)² = v² z² + v (1 - v)
            total += mass * (1 - v) / v + mass + edge
        return float(total)

    @cached_property
    def _ends(self) -> np.ndarray:
        """Finite ends of the monotone pieces."""
        ends = {end for piece in self.branches for end in piece if abs(end) < REACH}
        return np.array(sorted(ends))

    @cached_property
    def _special(self) -> np.ndarray:
        """Ends of the monotone pieces, and the other preimages of their labels."""
        assert self.output is not None
        ends = self._ends
        levels = self.output.scalar(np.concatenate([ends - 1e-9, ends + 1e-9]))
        z, logs = invert(self.output, levels, list(self.branches))
        z = z[np.isfinite(logs)]
        # preimages of an extremum that is found to 1e-8 are found to 1e-4
        other = np.abs(z[:, None] - ends).min(axis=1, initial=np.inf) > 2e-4
        return np.unique(np.concatenate([ends, np.round(z[other], 6)]))

    @cached_property
    def _mirrored(self) -> bool:
        """Return True if the function is even or odd, so that half of the indices are enough."""
        assert self.output is not None
        z = np.linspace(1e-3, REACH, 999)
        right, left = self.output.scalar(z), self.output.scalar(-z)
        apart = min(np.abs(right - left).max(), np.abs(right + left).max())
        return bool(apart <= 1e-12 * np.abs(right).max())

    def _confused(self, v: float) -> float:
        """E Var[z | y, omega] / v², where several monotone pieces give the same label."""
        if len(self.branches) < 2 or self.output is None:
            return 0.0
        s = np.sqrt(v)
        ends = self._ends
        # preimages closer than 25 s meet at an end of a piece, unless s is of order 1
        points = self._special if s > 0.1 else ends
        z, chance = gaussian_nodes(1.0, points, s, order=8, panels=40, inner=8)
        inside = np.any([(z > a) & (z < b) for a, b in self.branches], axis=0) & (abs(z) < REACH)
        if s <= 0.1:
            inside &= np.abs(z[:, None] - ends).min(axis=1, initial=np.inf) < 14 * s
        if self._mirrored:
            inside &= z > 0
        z, chance = z[inside], chance[inside]
        places, logs = invert(self.output, self.output.scalar(z), list(self.branches))
        # other preimages more than 25 s away have no weight
        far = np.isfinite(logs) & (np.abs(places - z[:, None]) > 25 * s)
        logs = np.where(far, -np.inf, logs)
        count = np.isfinite(logs).sum(axis=1)
        near = count > 1
        if not near.any():
            return 0.0
        # of many preimages, a narrow cavity sees few
        order = np.argsort(-logs, axis=1)[:, : count.max()]
        places, logs = (np.take_along_axis(part, order, axis=1) for part in (places, logs))
        zeta = np.linspace(-REACH, REACH, 57)
        share = np.exp(-(zeta**2) / 2)
        share /= share.sum()
        omega = (1 - v) * z[near, None] + np.sqrt(v * (1 - v)) * zeta
        posterior = atoms(places[near, None, :], logs[near, None, :], omega, v)
        total = float(chance[near] @ (posterior.covariance[..., 0, 0] @ share)) / v**2
        return 2 * total if self._mirrored else total

    @cached_property
    def prepared(self) -> Prepared:
        """Moments of a label before anything is known."""
        s = np.sqrt(1 + self.blur)
        first = second = entropy = 0.0
        for atom in self.atoms:
            log, score = (float(part[0]) for part in self._atom(atom, np.zeros(1), s))
            ends = np.array(atom.intervals) / s
            with np.errstate(invalid="ignore"):
                slopes = np.where(np.isfinite(ends), ends * np.exp(-(ends**2) / 2), 0.0)
            # P'' / P with P'' = sum (a phi(a) - b phi(b))
            bend = -np.diff(slopes, axis=1).sum() / np.sqrt(2 * np.pi) / s**2
            bend *= (1 - 2 * self.flips) / np.exp(log)
            first, second = first + np.exp(log) * score**2, second + np.exp(log) * bend**2
            entropy -= np.exp(log) * log
        if self.branches and self.output is not None:
            z, chance = gaussian_nodes(1.0, self._special, 0.1, order=8, panels=120, inner=8)
            inside = np.any([(z > a) & (z < b) for a, b in self.branches], axis=0)
            inside &= np.abs(z) < REACH
            z, chance = z[inside], chance[inside]
            places, logs = invert(self.output, self.output.scalar(z), list(self.branches))
            found = atoms(places, logs, np.zeros(z.size), 1.0)
            mean, square = found.mean[:, 0], found.covariance[:, 0, 0] + found.mean[:, 0] ** 2
            first += float(chance @ mean**2)
            second += float(chance @ (square - 1) ** 2)
            entropy -= float(chance @ found.log_evidence)
        # values that are 0 by symmetry have rounding errors
        first, second = (float(x) if x > 1e-14 else 0.0 for x in (first, second))
        return Prepared(first, second, float(entropy))

    @property
    def shown(self) -> float:
        """Share c of labels that determine the index: v E -> c as v -> 0."""
        from scipy.special import ndtr

        return float(sum(ndtr(b) - ndtr(a) for a, b in self.branches))

    def scores(self, labels: np.ndarray) -> Score:
        """Messages of observed labels."""
        atom = np.full(labels.shape, -1)
        for k, each in enumerate(self.atoms):
            atom[np.abs(labels - each.value) <= 1e-9 * max(abs(each.value), 1.0)] = k
        rest = atom < 0
        places = logs = np.zeros((0, 1))
        if rest.any() and self.output is not None and self.branches:
            places, logs = invert(self.output, labels[rest], list(self.branches))
        if rest.any() and not (len(logs) and np.isfinite(logs).any(axis=1).all()):
            fault = labels[rest] if not len(logs) else labels[rest][~np.isfinite(logs).any(axis=1)]
            raise InvalidData(
                f"a label is {fault[0]:.6g}, which this output cannot give; allowed: labels of the "
                "output, without noise if the output has none."
            )

        def scores(omega: np.ndarray, v: float) -> tuple[np.ndarray, float]:
            g, slope, s = np.empty(labels.shape), 0.0, float(np.sqrt(v + self.blur))
            for k, each in enumerate(self.atoms):
                mine = atom == k
                g[mine] = self._atom(each, omega[mine], s)[1]
                moved = self._atom(each, omega[mine] + STEP * s, s)[1]
                slope += float((moved - g[mine]).sum()) / (STEP * s)
            if rest.any():
                found = atoms(places, logs, omega[rest], v)
                g[rest] = (found.mean[:, 0] - omega[rest]) / v
                slope += float(found.covariance.sum()) / v**2 - rest.sum() / v
            return g, slope

        return scores


def _interval(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log of Phi(high) - Phi(low), and (phi(low) - phi(high)) over it, without cancellation."""
    from scipy.special import log_ndtr

    # On the side where both ends are negative the difference keeps its digits.
    mirrored = low + high > 0
    near, far = np.where(mirrored, -low, high), np.where(mirrored, -high, low)
    with np.errstate(invalid="ignore", over="ignore"):
        edge = log_ndtr(near)
        logs = edge + np.log1p(-np.exp(np.minimum(log_ndtr(far) - edge, -1e-300)))
        ratio = np.where(np.isinf(far), 0.0, np.exp((near**2 - far**2) / 2))
        slope = np.exp(-(near**2) / 2 - np.log(2 * np.pi) / 2 - logs) * (1 - ratio)
    slope = np.where(np.isinf(near), 0.0, slope)
    return logs, np.where(mirrored, slope, -slope)


def pieces_of(output: GaussianOutput) -> Pieces:
    """Atoms and monotone pieces of a function without noise."""
    flat = flat_pieces(output)
    branches = tuple(monotone_branches(output, flat))
    found: dict[float, list[Interval]] = {}
    for low, high in flat:
        inner = np.clip([low, high], -REACH, REACH).mean()
        value = float(np.round(output.scalar(np.array([inner]))[0], 12))
        found.setdefault(value, []).append((low, high))
    atoms = tuple(Atom(value, tuple(intervals)) for value, intervals in found.items())
    return Pieces(atoms, output, tuple(piece for piece in branches if piece[1] - piece[0] > 1e-6))
