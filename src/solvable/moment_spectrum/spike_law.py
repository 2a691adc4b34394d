"""Edges, overlaps and thresholds of a spectral step at any number of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from solvable.errors import InvalidParameter
from solvable.spectra._edge_ensemble import MOST
from solvable.spectra.sample_lattice import lattice_sizes
from solvable.spectra.sampled_spikes import DrawnSpikes, draw_spikes, few_spikes
from solvable.spectra.span_mass import Ranking, span_overlaps
from solvable.spectra.structured_spikes import (
    Background,
    SpikePrediction,
    WeightedSample,
    both_sides,
    predict_spikes,
    spike_excess,
)

MANY_SAMPLES = 1e9
"""Number of samples per feature that stands for infinitely many samples."""

MOST_DRAWN = 1_000
"""Largest number of directions for which matrices are drawn; drawing takes about a second."""


def check_range(samples: float, features: int, n_features: int) -> None:
    """Raise an error for sizes at which the theory for many directions does not hold."""
    if 2 * features > n_features:
        raise InvalidParameter(
            f"features is {features} among {n_features} directions: with more than half the bulk is made "
            f"of features. Allowed for predictions: up to half of the directions, {n_features // 2}."
        )
    if samples < features:
        raise InvalidParameter(
            f"samples is {samples:g}, fewer than the {features} directions that the learner returns: "
            "single samples then make the largest eigenvalues. Allowed: at least as many samples as "
            "features."
        )


def check_dimension(dimension: int) -> None:
    """Raise an error for fewer than ten input dimensions."""
    if dimension < 10:
        raise InvalidParameter(
            f"dimension is {dimension}: below 10 inputs the spectrum differs between first layers. "
            "Allowed for predictions: dimension of at least 10; a study can measure smaller ones."
        )


def ranking_room(dimension: int, degree: int, wick: bool) -> float:
    """Uncertainty that a learner allows for its edges, as a fraction of the bulk's width."""
    # The uncertainty is 4/d of the half-width. It is 0 for the plain operator of degree 2, for which
    # the learner tests corrected values as well.
    return 0.0 if degree == 2 and not wick else 2 / dimension


_TWENTY = (np.arange(20) + 0.5) / 20


class Population(Protocol):
    """Population operator without spikes."""

    def at(self, n_samples: float) -> Background:
        """Return the background at a number of samples, including the background's own noise."""
        ...


@runtime_checkable
class DrawnPopulation(Population, Protocol):
    """Population operator for which whole moment operators can be drawn."""

    def spikes(
        self,
        formula: Callable[[float], SpikePrediction],
        sample: WeightedSample,
        n_samples: float,
        n_features: int,
    ) -> SpikePrediction:
        """Return the prediction with overlaps and eigenvalues of drawn operators."""
        ...


@dataclass(frozen=True)
class MatrixPart:
    """Matrices drawn at one size of the lattice."""

    weight: float  # weight in the interpolation
    samples: int
    drawn: DrawnSpikes
    formula: SpikePrediction  # the formula at this size


@dataclass(frozen=True)
class MatrixMeans:
    """Means over drawn matrices at one sample size, interpolated between the sizes of a lattice."""

    squared_overlap: (
        np.ndarray
    )  # overlap of each spike with the span of the learned directions, (p,)
    eigenvalues: np.ndarray  # eigenvalue of the eigenvector that is matched with each spike, (p,)
    formula: SpikePrediction  # the formula at this sample size
    parts: tuple[MatrixPart, ...]  # sizes of the lattice at which matrices are drawn


@dataclass(frozen=True)
class SpikeLaw:
    """Spike heights, weights and background of a spectral step, for any number of samples."""

    heights: np.ndarray  # heights theta_i = E[T <A_i, K A_i>] minus the shift; shape (p,)
    sample: WeightedSample  # distribution of the weights on the complement of the features
    background: Population | None  # population operator without spikes; None if empty
    n_features: int  # number D - p of remaining directions
    room: float = 0.0  # uncertainty of the edges as a fraction of the bulk's width
    known: dict[tuple[int, int], tuple[DrawnSpikes, SpikePrediction] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def noise(self) -> float:
        """Power tau_2 of the noise, without the contraction's noise, which the background contains."""
        # tau_2 = E[T² |K|²] / D²   (sequential 4; arXiv:2605.14567, Equation 2.9)
        return float(self.sample.probabilities @ self.sample.weights**2)

    def spikes(self, n_samples: float) -> SpikePrediction:
        """Bulk edges, eigenvalues, and overlaps with the span of the p learned directions."""
        # L(a) = R_i(a), c_i² = -L' / (-L' + R_i')   (sequential 5) (sequential 6), rounded at the
        # threshold to 0.85 D^(-1/3)   (sequential 26)
        if not isinstance(self.background, DrawnPopulation):
            count = self.heights.size
            return predict_spikes(**self._at(n_samples), n_directions=count, room=self.room)
        # The edge of a bulk that ends in few eigenvalues is not universal, so whole operators are drawn.
        return self.background.spikes(
            lambda n: predict_spikes(**self._at(n)), self.sample, n_samples, self.n_features
        )

    def drawn(self, n_samples: float, n_total: int, formula: SpikePrediction) -> MatrixMeans | None:
        """Means over drawn matrices for few samples, few directions or many features; otherwise None.

        `formula` is the prediction of `spikes`, whose error at the sizes of a lattice is interpolated.
        """
        if isinstance(self.background, DrawnPopulation):  # this background draws its own operators
            return None
        overlap, places, parts = formula.squared_overlap, formula.eigenvalues, []
        for size in lattice_sizes(n_samples, fewest=self.heights.size):
            key = size.samples, n_total
            if key not in self.known:
                self.known[key] = self._matrices(size.index, *key)
            if (pair := self.known[key]) is None:
                continue
            drawn, there = pair
            overlap = overlap + size.weight * (drawn.squared_overlap - there.squared_overlap)
            places = places + size.weight * (drawn.places() - there.eigenvalues)
            parts.append(MatrixPart(size.weight, size.samples, drawn, there))
        if not parts:
            return None
        return MatrixMeans(np.clip(overlap, 0.0, 1.0), places, formula, tuple(parts))

    def _matrices(
        self, stream: int, n_samples: float, n_total: int
    ) -> tuple[DrawnSpikes, SpikePrediction] | None:
        """Matrices drawn at a size of the lattice, and the formula there."""
        few = self.few(n_samples, n_total)
        many = self.heights.size > MOST
        if n_total > MOST_DRAWN or not (few or many):
            return None
        at = self._at(n_samples) | {"n_features": n_total - self.heights.size}
        # A draw takes seconds. With unmapped labels the overlap has a standard deviation of 0.35
        # between draws.
        seconds = 8e-8 * n_total**2
        if not few_spikes(n_total, self.heights.size):
            seconds += 1e-10 * n_total**3
        # The interpolation averages over the draws of four sizes.
        draws = int(np.clip(0.3 / seconds, 3, 77)) if few else 1
        drawn = draw_spikes(**at, draws=draws, room=self.room, stream=stream)
        return drawn, self.spikes(n_samples)

    def few(self, n_samples: float, n_total: int) -> bool:
        """Return True if samples or directions are too few for the formula and matrices can be drawn."""
        # One sample makes an eigenvalue |w| D / n. Limits on it: 1.5 times the half-width 2 s for mapped
        # labels (below 1.2 the law is off by 0.01), 0.75 times for unmapped labels, which have many large
        # samples (above 0.75 the law is off by 0.08).
        noise = np.sqrt(self.noise)
        largest = float(np.abs(self.sample.clipped(n_samples).weights).max())
        single = (
            largest * np.sqrt(n_total / n_samples) > (1.5 if largest > 5 * noise else 3) * noise
        )
        # Above D = 500 only few draws fit into the time, and their scatter exceeds the error of the
        # formula: 0.04 to 0.07 against 0.01 (d = 40, six features), 0.12 against 0.03 (800 linear
        # features).
        return n_total <= 64 or (single and n_total <= 500)

    def alone(self, n_samples: float, n_total: int) -> np.ndarray:
        """Overlap of each feature with its own eigenvector, where all other features count as noise."""
        at = self._at(n_samples) | {"n_features": n_total}
        return predict_spikes(**at).sharp_squared_overlap

    def shared(self, n_samples: float, n_total: int) -> np.ndarray | None:
        """Overlaps in the noise of all other features, for more than MOST features; otherwise None."""
        p = self.heights.size
        drawn = isinstance(self.background, DrawnPopulation)
        if p <= MOST or drawn or self.few(n_samples, n_total):
            return None
        at, (upper, lower) = self._at(n_samples), both_sides(**self._at(n_samples))
        sample, background = self.sample.clipped(n_samples), at["background"]
        # Features of nearly equal height are grouped, and each group is computed once.
        groups = np.array_split(np.argsort(self.heights), min(p, 200))
        levels = np.array([self.heights[group].mean() for group in groups])
        rest = np.zeros(1) if background is None else np.quantile(background.atoms, _TWENTY)
        sizes = np.array([group.size for group in groups])
        room = self.room * (upper[1].edge + lower[1].edge)
        free = np.full(rest.size, (n_total - p) / rest.size)
        overlaps = span_overlaps(
            [Ranking(-lower[1].edge - room, upper[1].edge + room, float(rest.mean()))],
            p,
            n_total,
            atoms=np.concatenate([levels, rest]),
            shares=np.concatenate([sizes, free]) / n_total,
            profiles=np.eye(levels.size, levels.size + rest.size),
            weights=sample.weights,
            probabilities=sample.probabilities,
            couplings=np.stack([sample.couplings[:, g].mean(axis=1) for g in groups], axis=1),
            aspect_ratio=n_samples / n_total,
        )
        return np.interp(self.heights, levels, overlaps)

    def crowded(
        self, n_samples: float, n_total: int, drawn: MatrixMeans | None
    ) -> np.ndarray | None:
        """Overlaps for many features or few samples; None if the overlaps of `spikes` apply."""
        shared = self.shared(n_samples, n_total)
        return drawn.squared_overlap if shared is None and drawn is not None else shared

    def _at(self, n_samples: float) -> dict[str, Any]:
        return {
            "sample": self.sample,
            "heights": self.heights,
            "n_samples": n_samples,
            "n_features": self.n_features,
            "background": self.background.at(n_samples) if self.background else None,
        }

    @cached_property
    def floor(self) -> np.ndarray:
        """Overlap lost to the background at infinite n; 1 for a feature inside the background's bulk."""
        found = predict_spikes(**self._at(MANY_SAMPLES * self.n_features))
        return 1 - found.sharp_squared_overlap

    @cached_property
    def thresholds(self) -> np.ndarray:
        """Sample size above which each feature is outside the bulk; infinite if there is none."""
        # The search starts at the closed form n_i = D tau_2 / theta_i²
        # (sequential 7) (compositional 5; arXiv:2605.14567, Equation 2.10).
        closed = self.n_features * self.noise / np.maximum(self.heights**2, 1e-300)
        most = MANY_SAMPLES * self.n_features
        low, high = min(closed.min() / 4, most / 2), min(closed.max() * 8, most)
        near = np.geomspace(low, high, max(int(np.log2(high / low)), 2))
        far = np.geomspace(high, most, 8)[1:]
        sizes = np.concatenate([near, far]) if high < most else near
        excess = np.array([spike_excess(**self._at(n)) for n in sizes])
        # Below n = D / 16 single samples make spikes, and the theory does not hold.
        while (excess[0] > 0).any() and sizes[0] > self.n_features / 16:
            sizes = np.concatenate([[sizes[0] / 4], sizes])
            excess = np.concatenate([[spike_excess(**self._at(sizes[0]))], excess])
        # The excess is nearly linear in n^(-1/2), so three rounds are exact to 1e-3.
        for _ in range(3):
            guess = crossings(sizes, excess)
            fresh = np.unique(guess[np.isfinite(guess) & (guess > sizes[0])])
            if (
                not fresh.size
            ):  # In the range of the theory, all features are inside the bulk, or all are outside.
                break
            # Each round tests at most 12 new sizes, whatever the number of features is.
            fresh = fresh[np.unique(np.linspace(0, fresh.size - 1, 12).astype(int))]
            fresh = fresh[np.abs(np.log(fresh / sizes[:, None])).min(axis=0) > 1e-4]
            added = [spike_excess(**self._at(n)) for n in fresh]
            order = np.argsort(np.concatenate([sizes, fresh]))
            sizes = np.concatenate([sizes, fresh])[order]
            excess = np.concatenate([excess, np.reshape(added, (-1, excess.shape[1]))])[order]
        return crossings(sizes, excess)


def crossings(sizes: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Sample size above which each column of excesses is positive, interpolated in n^(-1/2)."""
    found = np.full(excess.shape[1], np.inf)
    for i, column in enumerate(excess.T):
        below = np.flatnonzero(column <= 0)
        k = below[-1] if below.size else -1
        if k < 0:
            found[i] = sizes[0]
        elif k + 1 < sizes.size:
            part = column[k] / (column[k] - column[k + 1])
            ends = sizes[k : k + 2] ** -0.5
            found[i] = float(ends[0] + part * (ends[1] - ends[0])) ** -2
    return found
