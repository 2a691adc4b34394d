"""Law of a spectral step at any number of samples: edges, overlaps, thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from solvable.errors import InvalidParameter
from solvable.spectra._edge_ensemble import MOST
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
"""Samples per feature that stand for infinitely many."""

MOST_DRAWN = 1_000
"""Directions up to which matrices are drawn: a second."""


def check_range(samples: float, features: int, n_features: int) -> None:
    """Refuse sizes at which no law of many directions holds."""
    if 2 * features > n_features:
        raise InvalidParameter(
            f"features is {features} of {n_features} directions: they are themselves the bulk that a "
            f"learner measures from. Predicted up to half of the directions, {n_features // 2}."
        )
    if samples < features:
        raise InvalidParameter(
            f"samples is {samples:g}, fewer than the {features} directions that are asked for: single "
            "samples are the spikes of such a spectrum. Allowed: at least as many samples as features."
        )


def check_dimension(dimension: int) -> None:
    """Refuse so few inputs that every first layer has a law of its own."""
    if dimension < 10:
        raise InvalidParameter(
            f"dimension is {dimension}: with so few inputs every first layer has a spectrum of its own. "
            "Predicted from dimension 10 on; a study measures smaller ones."
        )


def ranking_room(dimension: int, degree: int, wick: bool) -> float:
    """Share of the width of the bulk to which a learner of so many inputs knows its edges."""
    # 4/d of half of the width. Of the plain operator of degree 2 it asks the corrected eigenvalues too.
    return 0.0 if degree == 2 and not wick else 2 / dimension


_TWENTY = (np.arange(20) + 0.5) / 20


class Population(Protocol):
    """What the mean of an operator holds beside its spikes."""

    def at(self, n_samples: float) -> Background:
        """As seen with a number of samples, the noise of its own parts included."""
        ...


@runtime_checkable
class DrawnPopulation(Population, Protocol):
    """The same, which draws whole operators besides."""

    def spikes(
        self, found: SpikePrediction, sample: WeightedSample, n_samples: float, n_features: int
    ) -> SpikePrediction:
        """A prediction with the overlaps and places of the operators drawn."""
        ...


@dataclass(frozen=True)
class SpikeLaw:
    """What the resolvent formula needs, at any number of samples."""

    heights: np.ndarray  # theta_i = E[T <A_i, K A_i>], less the shift; shape (p,)
    sample: WeightedSample  # on the complement of the features, like `noise` and `n_features`
    background: Population | None  # what the operator holds beside spikes and noise
    n_features: int  # D - p, 0 where features fill all directions
    room: float = 0.0  # share of the width of the bulk to which a learner knows its edges

    @property
    def noise(self) -> float:
        """Power of the noise; that of a contraction is part of the background."""
        return float(self.sample.probabilities @ self.sample.weights**2)  # tau_2 = E[T² |K|²]/D²

    def spikes(self, n_samples: float) -> SpikePrediction:
        """Edges, places, and overlaps with as many directions as features."""
        if not isinstance(self.background, DrawnPopulation):
            count = self.heights.size
            return predict_spikes(**self._at(n_samples), n_directions=count, room=self.room)
        # Features inside a bulk of which a few eigenvalues are the end: no edge is universal there.
        found = predict_spikes(**self._at(n_samples))
        return self.background.spikes(found, self.sample, n_samples, self.n_features)

    def drawn(self, n_samples: float, n_total: int) -> DrawnSpikes | None:
        """Spikes in drawn matrices of all D directions, if these are few, or features many."""
        if isinstance(self.background, DrawnPopulation):  # which draws them better
            return None
        few = self.few(n_samples, n_total)
        if n_total > MOST_DRAWN or not (few or self.heights.size > MOST):
            return None
        at = self._at(n_samples) | {"n_features": n_total - self.heights.size}
        # Seconds of one draw; of a feature of an unbounded label one draw scatters by 0.35.
        seconds = 8e-8 * n_total**2
        if not few_spikes(n_total, self.heights.size):
            seconds += 1e-10 * n_total**3
        draws = int(np.clip(1 / seconds, 8, 256)) if few else 4
        return draw_spikes(**at, draws=draws, room=self.room)

    def few(self, n_samples: float, n_total: int) -> bool:
        """Whether laws of many samples or directions miss something, and the matrix can be drawn."""
        # One sample makes an eigenvalue |w| D / n, which counts from 1.5 times the half-width 2 s on:
        # mapped labels have 0.8 to 1.2, with misses of the law of 0.01. Unmapped ones have tails, many
        # such samples, and misses of 0.08 from 0.75 times the half-width on.
        noise = np.sqrt(self.noise)
        largest = float(np.abs(self.sample.clipped(n_samples).weights).max())
        single = (
            largest * np.sqrt(n_total / n_samples) > (1.5 if largest > 5 * noise else 3) * noise
        )
        # Of larger matrices time allows a few draws, which scatter by more than the law misses: by 0.04
        # and 0.07 for 0.01 (40 dimensions, six features), 0.12 for 0.03 (800 linear ones).
        return n_total <= 64 or (single and n_total <= 500)

    def alone(self, n_samples: float, n_total: int) -> np.ndarray:
        """Overlap of each feature with an eigenvector of its own, noise among features included."""
        at = self._at(n_samples) | {"n_features": n_total}
        return predict_spikes(**at).sharp_squared_overlap

    def shared(self, n_samples: float, n_total: int) -> np.ndarray | None:
        """Overlaps of many features, each in the noise of all others."""
        p = self.heights.size
        drawn = isinstance(self.background, DrawnPopulation)
        if p <= MOST or drawn or self.few(n_samples, n_total):
            return None
        at, (upper, lower) = self._at(n_samples), both_sides(**self._at(n_samples))
        sample, background = self.sample.clipped(n_samples), at["background"]
        # Features of nearly the same height stand for each other.
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
        self, n_samples: float, n_total: int, drawn: DrawnSpikes | None
    ) -> np.ndarray | None:
        """Overlaps where features or samples are no few among many; None where `spikes` has them."""
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
        """Overlap lost to the background with infinitely many samples; 1 for a feature inside it."""
        found = predict_spikes(**self._at(MANY_SAMPLES * self.n_features))
        return 1 - found.sharp_squared_overlap

    @cached_property
    def thresholds(self) -> np.ndarray:
        """Sample size from which on each feature is out of the bulk; infinite if it never is."""
        # The closed form n_i = D tau_2 / theta_i² says where to look first.
        closed = self.n_features * self.noise / np.maximum(self.heights**2, 1e-300)
        most = MANY_SAMPLES * self.n_features
        low, high = min(closed.min() / 4, most / 2), min(closed.max() * 8, most)
        near = np.geomspace(low, high, max(int(np.log2(high / low)), 2))
        sizes = np.concatenate([near, np.geomspace(high, most, 8)[1:] if high < most else []])
        excess = np.array([spike_excess(**self._at(n)) for n in sizes])
        # Below a sixteenth of the features one sample is a spike, and the law says nothing.
        while (excess[0] > 0).any() and sizes[0] > self.n_features / 16:
            sizes = np.concatenate([[sizes[0] / 4], sizes])
            excess = np.concatenate([[spike_excess(**self._at(sizes[0]))], excess])
        for _ in range(3):  # nearly linear in n^(-1/2): the third round is exact to 1e-3
            guess = crossings(sizes, excess)
            fresh = np.unique(guess[np.isfinite(guess) & (guess > sizes[0])])
            if not fresh.size:  # none is ever out, or all are wherever the law says anything
                break
            # A dozen sizes bracket many features.
            fresh = fresh[np.unique(np.linspace(0, fresh.size - 1, 12).astype(int))]
            fresh = fresh[np.abs(np.log(fresh / sizes[:, None])).min(axis=0) > 1e-4]
            added = [spike_excess(**self._at(n)) for n in fresh]
            order = np.argsort(np.concatenate([sizes, fresh]))
            sizes = np.concatenate([sizes, fresh])[order]
            excess = np.concatenate([excess, np.reshape(added, (-1, excess.shape[1]))])[order]
        return crossings(sizes, excess)


def crossings(sizes: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Size from which on each column of excesses is positive, by lines in n^(-1/2)."""
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
